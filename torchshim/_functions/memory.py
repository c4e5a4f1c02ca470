"""Tensors on other memory: `out=`, `.data`, `set_`, subclasses.

https://docs.pytorch.org/docs/2.13/tensors.html
"""

from __future__ import annotations

import copyreg
import weakref
from typing import Any

import numpy as np

from torchshim import _bind
from torchshim._attributes import fields, set_fields
from torchshim._core import dtypes
from torchshim._core.device import current_accelerator
from torchshim._core.infer import check_kept
from torchshim._core.layout import (
    strided,
)
from torchshim._core.levels import VMAP
from torchshim._core.meta import meta_of
from torchshim._core.promotion import castable
from torchshim._core.record import local, untracked
from torchshim._core.storage import (
    TensorBase,
    bits_of,
    set_version,
    version_of,
)
from torchshim._core.write import WRITTEN_LEAF
from torchshim._derived import NEVER, fns, public
from torchshim._function_modes import ALL_DISABLED, disabled
from torchshim._functions._arguments import (
    as_index,
    kind_of,
    size_of,
    warn,
    wrong,
)
from torchshim._functions.ahead import send_ahead
from torchshim._functions.resizing import (
    RESIZED,
    alias_of,
    become,
    onto,
    resize_output,
    set_bits,
    take_size,
)
from torchshim._functions.storage import UntypedStorage
from torchshim._functions.typed_storage import TypedStorage
from torchshim._out import refuse_tracked
from torchshim._overrides import refuse_dispatch
from torchshim._tensor import Tensor, from_array, set_requires_grad

# What PyTorch makes of `cat`.
_JOINING = frozenset({"cat", "stack", "hstack", "vstack", "dstack", "column_stack"})


# What is said of an `out=` of another dtype; others stand with their operators.
_OTHER_DTYPE = {
    "exact": "Expected out tensor to have dtype {want.cpp_name}, but got "
    "{have.cpp_name} instead",
    "same": "Found dtype {have.scalar_name} but expected {want.scalar_name}",
}
_CASTABLE = (
    "result type {want.scalar_name} can't be cast to the desired output type "
    "{have.scalar_name}"
)


def write_into(
    op: Any,
    result: Tensor,
    out: Tensor,
    args: Any,
    text: str | bool = True,
    castable_text: str | tuple[()] = (),
) -> Tensor:
    """Ends a call with `out=`: `out` takes the result over, resized.

    `op`: the operator, or of a function in Python the name that errors tell.
    It is cast, too, unless a `text` (as of operators' `out`) says what is wrong then.
    `castable_text` is the error for a dtype that it can't be cast to.
    """
    if isinstance(op, str):
        name, op = op, None
    else:
        name = op.parsed
    refuse_tracked(local.rec, name, (args, out))
    _check_out(op, result, out, args, text, castable_text)
    return _take_over(op, result, out, args)


def write_all(op: Any, results: Any, outs: Any, args: Any) -> list[Tensor]:
    """Ends a call of an operator with `out=`, after the dtypes have been checked."""
    pairs = list(zip(results, outs, strict=True))
    for result, out in pairs:
        # What is read and written is not resized.
        if op.layout == "preserve" and any(arg is out for arg in args):
            check_kept(out._tmeta, tuple(result._tmeta.shape))
    for i, (result, out) in enumerate(pairs):
        _check_out(op, result, out, args, _of(op.out, i), _of(op.castable, i))
    return [_take_over(op, result, out, args) for result, out in pairs]


def _truths(op: Any) -> set[Any]:
    """The dtypes that `out=` of `all` and `any` may have for one another."""
    if op is not None and op.name in ("all", "any"):
        return {dtypes.bool_, dtypes.uint8}
    return set()


def _of(texts: Any, i: int) -> Any:
    return texts[min(i, len(texts) - 1)] if texts and type(texts) is tuple else texts


def _check_out(
    op: Any, result: Tensor, out: Tensor, args: Any, text: Any, castable_text: Any
) -> None:
    want, have = result._tmeta.dtype, out._tmeta.dtype
    if callable(castable_text):
        castable_text = castable_text(*args)
    if text == "exact" and castable_text and not castable(want, have):
        raise RuntimeError(castable_text.format(want=want, have=have))
    if callable(text):
        text = text(*args)
    if text in ("asked", "computed"):
        at = [p.name for p in op.params].index("dtype")
        text = "exact" if args[at] is not None else True
    if isinstance(text, str) and want is not have and not {want, have} <= _truths(op):
        named = {p.name: a for p, a in zip(op.params, args, strict=False)} if op else {}
        text = _OTHER_DTYPE.get(text, text)
        raise RuntimeError(text.format(want=want, have=have, **named))
    if not castable(want, have) and not {want, have} <= _truths(op):
        if op is not None and op.name in _JOINING:
            raise TypeError(
                "torch.cat(): input types can't be cast to the desired output type "
                f"{have.scalar_name}"
            )
        raise RuntimeError((castable_text or _CASTABLE).format(want=want, have=have))
    if op is not None and not _ONE_DEVICE.isdisjoint((op.name, op.parsed)):
        there, here = result._tmeta.device, out._tmeta.device
        if there != here:
            raise RuntimeError(
                f"Expected out tensor to have device {there}, but got {here} instead"
            )


# What looks at the device of `out=` first.
_ONE_DEVICE = frozenset(
    "argmax argmin gather linalg_cholesky linalg_det linalg_inv linalg_svd "
    "linalg_svdvals max.dim min.dim topk".split()
)
# What PyTorch resizes without a warning.
_SILENT = frozenset({"addbmm", "logsigmoid"})


def _resize_along(op: Any, out: Tensor, shape: tuple[int, ...], args: Any) -> None:
    """`resize_output` for `kthvalue` and `mode`.

    Its warning has the dimension that is gone from the result.
    """
    have, sizes = out._tmeta.shape, args[0]._tmeta.shape
    given = dict(zip((p.name for p in op.params), args, strict=False))
    if given["keepdim"]:
        resize_output(out, shape)
    elif have != shape:
        shown, wanted = list(have), list(shape)
        dim = given["dim"] % max(len(sizes), 1)
        if len(have) == len(shape) or (op.name == "mode" and len(have) >= dim):
            shown.insert(dim, 1)
        wanted.insert(dim, 1)
        if have.numel() and (sizes or op.name != "mode"):
            warn(RESIZED.format(shown, wanted if sizes else []))
        take_size(out, shape)


def _take_over(op: Any, result: Tensor, out: Tensor, args: Any) -> Tensor:
    name, shape = None if op is None else op.name, result._tmeta.shape
    if name in ("kthvalue", "mode"):
        _resize_along(op, out, shape, args)
    elif name not in _SILENT:
        resize_output(out, shape)
    else:
        take_size(out, shape)
    if op is not None and op.unfollowed:
        return put_unfollowed(op.parsed, result, out)
    with untracked():
        put_into(out, result)
    return out


def put_unfollowed(name: str, result: Tensor, out: Tensor) -> Tensor:
    """Gives `out` a value whose gradient is refused in a backward."""
    if local.rec.grad and (result.requires_grad or out.requires_grad):
        fns.unfollowed_(out, result, name)
    else:
        put_into(out, result)
    return out


def put_into(out: Tensor, value: Tensor) -> None:
    """Gives `out` another value, unseen by transforms of functions, as by `out=`."""
    rec, there, here = local.rec, value._tmeta.device, out._tmeta.device
    if there != here and "meta" in (there.type, here.type):
        raise RuntimeError(
            f"Attempting to copy from device {there} to device {here}, but "
            "cross-device copies are not allowed!"
        )
    before, rec.into_out = rec.into_out, True
    try:
        fns.copy_(out, value)
    finally:
        rec.into_out = before


_bind.out_writer.append(write_all)


def _mapped(self: Tensor) -> bool:
    """Whether the innermost of the transforms in progress maps over a tensor."""
    levels = local.rec.levels
    return bool(levels) and levels[-1].kind == VMAP and bool(self._tmeta.batch)


def _data(self: Tensor) -> Tensor:
    """The same memory without history; its changes are not counted.

    RuntimeError under `vmap`. Setting it puts the tensor onto the memory of another.

    >>> import torchshim as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> x.data.mul_(5)
    tensor([5., 5.])
    >>> x, x._version
    (tensor([5., 5.], requires_grad=True), 0)
    """
    if _mapped(self):
        raise RuntimeError("accessing `data` under vmap transform is not allowed")
    made = alias_of(self)
    if not (made._tmeta.inference and local.rec.inference):
        made._own_version, made._ahead = [0], 0
    return made


OTHER_KIND = (
    "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
    "incompatible tensor type."
)


def get_tensor_metadata(tensor: Any) -> dict[str, bool]:
    """Which bits a tensor has: `conj`, `neg`."""
    if not isinstance(tensor, Tensor):
        raise AssertionError(f"expected torch.Tensor, got {type(tensor).__name__}")
    return dict.fromkeys(bits_of(tensor), True)


def set_tensor_metadata(tensor: Any, metadata: Any) -> None:
    """Has a tensor seen with such bits."""
    if not isinstance(metadata, dict):
        raise AssertionError(f"expected dict, got {type(metadata).__name__}")
    if not isinstance(tensor, Tensor):
        raise AssertionError(f"expected torch.Tensor, got {type(tensor).__name__}")
    set_bits(tensor, tuple(bit for bit, on in metadata.items() if on))


def _set_data(self: Tensor, value: Any) -> None:
    if not isinstance(value, TensorBase):
        raise TypeError(f"Variable data has to be a tensor, but got {kind_of(value)}")
    if getattr(value, "layout", strided) is not strided:
        raise RuntimeError(OTHER_KIND)
    if _mapped(self):
        raise RuntimeError(
            "mutating directly with `.data` under vmap transform is not allowed."
        )
    meta, its = self._tmeta, value._tmeta
    if meta.requires_grad and not (its.dtype.is_floating_point or its.dtype.is_complex):
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or "
            "complex dtype"
        )
    if meta.device.type != its.device.type and (
        "meta" in (meta.device.type, its.device.type)
        or (meta.requires_grad and not meta.leaf)
    ):
        raise RuntimeError(OTHER_KIND)
    onto(self, value)


_CONTENTS = ("_slot", "_tmeta", "_array")
_UNSET = object()


def swap_contents(a: Tensor, b: Tensor) -> None:
    """Exchanges all but the identity of two tensors."""
    for each in (a, b):
        if not isinstance(each, TensorBase):
            name = type(each).__name__
            raise AttributeError(f"'{name}' object has no attribute '_use_count'")
    names = [set(copyreg._slotnames(type(t))) for t in (a, b)]  # type: ignore[attr-defined]
    if names[0] != names[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    if a is b:
        return
    local.rec.flush()
    first, second = (local.rec.storage_of(tensor) for tensor in (a, b))
    stands_for = {id(a): b, id(b): a}
    for tensor, storage, name in ((a, first, "t1"), (b, second, "t2")):
        views = [t for t in storage.tensors() if t._view_of is tensor]
        if views:
            raise RuntimeError(
                f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad "
                f"node but got {1 + len(views)} make sure you are not holding "
                "references to the tensor in other places."
            )
    for storage in {first, second}:
        storage.aliases[:] = [
            weakref.ref(stands_for.get(id(each), each)) for each in storage.tensors()
        ]
    for name in (*_CONTENTS, "__class__"):
        mine, its = getattr(a, name), getattr(b, name)
        setattr(a, name, its)
        setattr(b, name, mine)
    for name in _own_slots(type(a)):
        held = [getattr(each, name, _UNSET) for each in (b, a)]
        for each, value in zip((a, b), held, strict=True):
            if value is not _UNSET:
                setattr(each, name, value)
            elif hasattr(each, name):
                delattr(each, name)
    for each in (a, b):
        each._identity = id(each) if each._identity is None else each._identity
    mine, its = fields(a), fields(b)
    set_fields(a, its)
    set_fields(b, mine)


def _no_deletion(self: Tensor) -> None:
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


Tensor.data = property(_data, _set_data, _no_deletion)


@public(namespaces=(), method=True)
def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: Any = None,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Puts the tensor on the memory of `source`; without it, on none.

    `source` is a tensor or a storage, of the same dtype. `storage_offset`, `size` and
    `stride` count elements.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.set_.html

    >>> import torchshim as torch
    >>> x, y = torch.zeros(0), torch.tensor([1.0, 2.0, 3.0])
    >>> x.set_(y.untyped_storage(), 1, (2,))
    tensor([2., 3.])
    >>> x.data_ptr() - y.data_ptr()
    4
    """
    local.rec.check_inference(self)
    if local.rec.grad and self._tmeta.requires_grad and self._tmeta.leaf:
        raise RuntimeError(WRITTEN_LEAF)
    own = self._tmeta.dtype
    if isinstance(source, TypedStorage) and source.dtype is not own:
        raise RuntimeError(
            f"Expected a Storage of type {own.cpp_name} or an "
            f"UntypedStorage, but got type {source.dtype.scalar_name} for argument 1 "
            "'storage'"
        )
    if isinstance(source, (TypedStorage, UntypedStorage)):
        source = source._as_tensor(self._tmeta.dtype)
    if source is None:
        array = np.zeros(0, dtypes.array_dtype(self._tmeta.dtype))
        become(self, from_array(array, device=self._tmeta.device))
        self._versions += 1
        return self
    if not isinstance(source, Tensor):
        raise TypeError(wrong("set_", "source", 1, "Tensor", source))
    mine, its = self._tmeta.device, source._tmeta.device
    if mine.type != its.type:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{mine}" to a storage '
            f'on different device "{its}".  This is no longer allowed; the devices '
            "must match."
        )
    if source._tmeta.dtype is not self._tmeta.dtype:
        raise RuntimeError(
            "Could not set tensor of type "
            f"{source._tmeta.dtype.cpp_name} to a tensor of type "
            f"{self._tmeta.dtype.cpp_name}"
        )
    if size is not None:
        shape = size_of("set_", (size,))
        steps = None if stride is None else size_of("set_", (stride,))
        if steps is None:
            steps = meta_of(shape, self._tmeta.dtype, self._tmeta.device).strides
        if len(shape) != len(steps):
            raise RuntimeError(
                f"unequal size length ({len(shape)}) and stride length ({len(steps)})"
            )
        with untracked():
            source = source.as_strided(shape, steps, as_index(storage_offset) or 0)
    bits, inference = bits_of(self), self._tmeta.inference
    onto(self, source)
    set_bits(self, bits)
    self._tmeta = self._tmeta.replace(inference=inference)
    set_version(self, version_of(self) + 1)
    return self


# Subclasses ---------------------------------------------------------------------------


_NO_SUBCLASS = (
    "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
    "possible. Make sure your class inherits from Tensor."
)


def _make_subclass(
    cls: Any, data: Any, require_grad: bool = False, **options: Any
) -> Any:
    """A tensor of class `cls` on the memory of `data`, a leaf."""
    if not isinstance(data, TensorBase):
        raise TypeError(wrong("_make_subclass", "data", 2, "Tensor", data))
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(_NO_SUBCLASS)
    if require_grad.__class__ is not bool:
        text = wrong("_make_subclass", "require_grad", 3, "bool", require_grad)
        raise TypeError(text)
    for name, value in options.items():
        if value:
            raise NotImplementedError(f"_make_subclass(): {name} is not supported")
    refuse_dispatch(cls)
    made = alias_of(data, cls)  # type: ignore[arg-type]
    if require_grad:
        kind = made._tmeta.dtype
        if not (kind.is_floating_point or kind.is_complex):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        if made._tmeta.inference:
            set_requires_grad(made, True)  # which may refuse it
        made._tmeta = made._tmeta.replace(requires_grad=True)
    return made


def _make_wrapper_subclass(cls: Any, size: Any, *args: Any, **options: Any) -> Any:
    """A tensor without memory, for classes with `__torch_dispatch__`: refused."""
    if not issubclass(cls, Tensor):
        raise TypeError(_NO_SUBCLASS)
    refuse_dispatch(cls)
    raise TypeError(f"{cls.__name__} must define __torch_dispatch__")


Tensor._make_subclass = staticmethod(_make_subclass)
Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)


@public(namespaces=(), method=True, overridden=NEVER)
def as_subclass(self: Tensor, cls: Any) -> Any:
    """The tensor as an instance of a subclass of Tensor, on the same memory.

    TypeError for what is no subclass.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.as_subclass.html

    >>> import torchshim as torch
    >>> class Named(torch.Tensor):
    ...     pass
    >>> type(torch.ones(2).as_subclass(Named) + 1).__name__
    'Named'
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {kind_of(cls)})")
    if not issubclass(cls, Tensor):
        raise TypeError(_NO_SUBCLASS)
    refuse_dispatch(cls)
    with disabled(ALL_DISABLED):
        made = fns.alias(self)
    if cls.__basicsize__ != Tensor.__basicsize__:  # it has slots of its own
        return _laid_out(made, cls)
    made.__class__ = cls
    return made


def _own_slots(cls: Any) -> set[str]:
    """The names in `__slots__` of a class and its bases, beyond those of tensors."""
    slots = copyreg._slotnames  # type: ignore[attr-defined]
    return set(slots(cls)) - set(slots(Tensor))


def _laid_out(tensor: Tensor, cls: Any) -> Any:
    """An instance of a class with slots of its own in the place of a new tensor.

    Python lays these out otherwise, so that no tensor can become one.
    """
    local.rec.flush()
    made = object.__new__(cls)
    storage = local.rec.storage_of(tensor)
    storage.aliases[:] = [
        weakref.ref(made if each is tensor else each) for each in storage.tensors()
    ]
    for name in _CONTENTS:
        setattr(made, name, getattr(tensor, name))
    set_fields(made, fields(tensor))
    return made


@public(namespaces=(), method=True)
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Begins the copy to the accelerator, which is what page-locked memory is for.

    The tensor stays on the CPU, and its memory as it is; `to` takes the copy. A
    RuntimeError without an accelerator.

    >>> import torchshim as torch
    >>> try:
    ...     pinned = torch.ones(2, device="meta").pin_memory()
    ... except RuntimeError as error:
    ...     print(type(error).__name__)
    RuntimeError
    """
    kind = self._tmeta.device.type
    if kind != "cpu":
        name = f"{self._tmeta.dtype.tensor_name}".replace("torch.", "torch.cuda.")
        if kind == "meta":
            name = f"Meta{self._tmeta.dtype.scalar_name}Type"
        raise RuntimeError(f"cannot pin '{name}' only dense CPU tensors can be pinned")
    accelerator = current_accelerator()
    if accelerator is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    send_ahead(self, accelerator)
    return self


@public(namespaces=(), method=True)
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is page-locked: never.

    >>> import torchshim as torch
    >>> torch.ones(2).is_pinned()
    False
    """
    return False


def _volatile(self: Tensor) -> bool:
    """Always False, with a warning: `torch.no_grad` is for that.

    >>> import torchshim as torch
    >>> torch.ones(1).volatile
    False
    """
    warn("volatile was removed (Variable.volatile is always False)")
    return False


def _set_volatile(self: Tensor, value: Any) -> None:
    warn(
        "volatile was removed and now has no effect. "
        "Use `with torch.no_grad():` instead."
    )


Tensor.volatile = property(_volatile, _set_volatile)
