"""The public tensor: identity, autograd attributes, and reading values."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from torchshim._attributes import Fact, attributes
from torchshim._core import dtypes
from torchshim._core.device import device, get_default_device
from torchshim._core.dtypes import type_name
from torchshim._core.flush import may_fail
from torchshim._core.layout import contiguous_format, has_format, strided
from torchshim._core.meta import Size, meta_of
from torchshim._core.record import local
from torchshim._core.shared import seen, shown
from torchshim._core.storage import Storage, TensorBase, bits_of, placement
from torchshim._errors import TO_SCALAR, warn_once
from torchshim._function_modes import SUBCLASSES_DISABLED, disabled
from torchshim._overrides import TensorMeta, overridable, start_overriding
from torchshim._printing import format_scalar, format_tensor

_new = object.__new__

_FLAG_OF_RESULT = "you can only change requires_grad flags of leaf variables."
_DETACH_INSTEAD = (
    _FLAG_OF_RESULT + " If you want to use a computed variable in a subgraph that "
    "doesn't require differentiation use var_no_grad = var.detach()."
)
_VMAP_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap "
    "over calling .item() on a Tensor, please try to rewrite what you're doing with "
    "other operations. If error is occurring somewhere inside PyTorch internals, "
    "please file a bug report."
)
_VMAP_FORMAT = (
    "NYI: querying is_contiguous inside of vmap for memory_format other than "
    "torch.contiguous_format"
)
_NO_STORAGE = "Cannot access data pointer of Tensor that doesn't have storage"
_VMAP_BRANCH = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent "
    "control flow. We don't support that yet, please file an issue at "
    "https://github.com/pytorch/pytorch/issues ."
)


def _never(tensor: Any) -> bool:
    return False


class Tensor(TensorBase, metaclass=TensorMeta):
    """A mutable multi-dimensional array that records what is done with it.

    https://docs.pytorch.org/docs/2.13/tensors.html
    """

    __slots__ = ()
    __module__ = "torch"

    __dict__ = attributes  # type: ignore[assignment]

    # -- what is known without running -------------------------------------------------

    @Fact
    def shape(self) -> Size:
        return self._tmeta.shape

    @Fact
    def dtype(self) -> dtypes.dtype:
        return self._tmeta.dtype

    @Fact
    def device(self) -> Any:
        return self._tmeta.device

    @Fact
    def ndim(self) -> int:
        return len(self._tmeta.shape)

    @Fact
    def requires_grad(self) -> bool:
        return self._tmeta.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        meta = self._tmeta
        if not (meta.leaf or self._unaware):
            raise RuntimeError(_FLAG_OF_RESULT if value else _DETACH_INSTEAD)
        if value and not _can_require_grad(meta.dtype):
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients"
            )
        if meta.leaf:
            set_requires_grad(self, value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Sets whether operations on this leaf are recorded for autograd."""
        if not isinstance(requires_grad, bool):
            raise TypeError(
                "requires_grad_(): argument 'requires_grad' (position 1) must be bool, "
                f"not {type_name(type(requires_grad))}"
            )
        local.rec.refuse_in_transform("requires_grad_")
        meta = self._tmeta
        if not (meta.leaf or requires_grad or self._unaware):
            raise RuntimeError(_DETACH_INSTEAD)
        if requires_grad and not _can_require_grad(meta.dtype):
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients"
            )
        if meta.leaf:
            set_requires_grad(self, requires_grad)
        return self

    # -- subclasses --------------------------------------------------------------------

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """What subclasses do where they do not say: results are of the subclass."""
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        with disabled(SUBCLASSES_DISABLED):
            made = func(*args, **(kwargs or {}))
            return (
                made if func == vars(Tensor)["grad"].__get__ else converted(made, cls)
            )

    # -- size and memory ---------------------------------------------------------------

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one dimension."""
        shape = self._tmeta.shape
        return shape if dim is None else shape[_wrapped("size", dim, len(shape))]

    def stride(self, dim: int | None = None) -> Any:
        """How many elements lie between neighbours, for all dimensions or one."""
        strides = self._tmeta.strides
        if dim is None:
            return strides
        return strides[_wrapped("stride", dim, len(strides))]

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self._tmeta.shape)

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return self._tmeta.shape.numel()

    nelement = numel

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._tmeta.dtype.itemsize

    def storage_offset(self) -> int:
        """Where the first element lies in the storage, in elements."""
        return placement(self)[2]

    def is_contiguous(self, memory_format: Any = contiguous_format) -> bool:
        """Whether the elements lie in memory in the order of this format."""
        meta = self._tmeta
        if memory_format is contiguous_format:
            return meta.contiguous
        if meta.batch:
            raise RuntimeError(_VMAP_FORMAT)
        return has_format(meta.shape, meta.strides, memory_format)

    def data_ptr(self) -> int:
        """An address that tensors have in common exactly where they share memory."""
        meta = self._tmeta
        if meta.batch:
            raise RuntimeError(_NO_STORAGE)
        if not meta.shape.numel() or meta.device.type == "meta":
            return 0
        storage = local.rec.storage_of(self)
        offset = placement(self)[2] - storage.meta.offset
        return address_of(storage) + offset * meta.dtype.itemsize

    def is_set_to(self, tensor: Tensor) -> bool:
        """Whether both are the same view of the same memory."""
        mine, other = self._tmeta, tensor._tmeta
        if bits_of(self) or bits_of(tensor):
            return False  # PyTorch compares a copy
        return (
            self._storage is not None
            and self._storage is tensor._storage
            and mine.shape == other.shape
            and mine.strides == other.strides
            and placement(self)[2] == placement(tensor)[2]
        ) or self is tensor

    itemsize = Fact(element_size)

    @Fact
    def nbytes(self) -> int:
        return self._tmeta.shape.numel() * self._tmeta.dtype.itemsize

    @Fact
    def layout(self) -> Any:
        return strided

    def get_device(self) -> int:
        """The index of the accelerator, -1 on the CPU."""
        device = self._tmeta.device
        return -1 if device.type in ("cpu", "meta") else (device.index or 0)

    is_cpu = Fact(lambda self: self._tmeta.device.type == "cpu")
    is_cuda = Fact(lambda self: self._tmeta.device.type == "cuda")
    is_xla = Fact(lambda self: self._tmeta.device.type == "xla")
    is_meta = Fact(lambda self: self._tmeta.device.type == "meta")
    # What tensors of this package never are.
    is_sparse = Fact(_never)
    is_sparse_csr, is_quantized, is_mkldnn = Fact(_never), Fact(_never), Fact(_never)
    is_mps, is_xpu, is_mtia = Fact(_never), Fact(_never), Fact(_never)
    is_ipu, is_hpu, is_vulkan = Fact(_never), Fact(_never), Fact(_never)
    is_maia, is_nested = Fact(_never), Fact(_never)

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating point one."""
        return self._tmeta.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self._tmeta.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype can hold negative values."""
        return self._tmeta.dtype.is_signed

    def _is_view(self) -> bool:
        # What a custom function returned has a history of its own.
        known = self._view_of is not None or self._view_note is not None
        return known and not self._tmeta.inference

    # -- reading -----------------------------------------------------------------------

    def _host(self) -> np.ndarray:
        """The value as a numpy array (not to be written to)."""
        return host_value(self)

    def _scalar(self, warn: bool = False) -> Any:
        """The value of a tensor with one element, for Python's conversions."""
        if warn and self._tmeta.requires_grad and local.rec.grad:
            warn_once(TO_SCALAR)
        if self._tmeta.shape.numel() != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars"
            )
        check_readable(self._tmeta, _VMAP_ITEM)
        return self._host().item()

    def item(self) -> Any:
        """The value of a tensor with one element, as a Python number."""
        count = self._tmeta.shape.numel()
        if count != 1 and not self._tmeta.batch:
            raise RuntimeError(
                f"a Tensor with {count} elements cannot be converted to Scalar"
            )
        check_readable(self._tmeta, _VMAP_ITEM)
        return self._host().item()

    def tolist(self) -> Any:
        """The values in nested lists; a number where there is no dimension."""
        host = self._host()
        if host.dtype.kind not in "?biufc":
            host = host.astype(np.float32)  # bfloat16 and its like
        return host.tolist()

    def __bool__(self) -> bool:
        count = self._tmeta.shape.numel()
        if count != 1 and not self._tmeta.batch:
            many = "more than one value" if count else "no values"
            raise RuntimeError(f"Boolean value of Tensor with {many} is ambiguous")
        check_readable(self._tmeta, _VMAP_BRANCH)
        return bool(self._host().item())

    is_nonzero = __bool__

    def __int__(self) -> int:
        value = self._scalar()
        if isinstance(value, complex):
            return int(_real_part(value, "int64_t"))
        return int(value)

    def __float__(self) -> float:
        value = self._scalar(warn=True)
        if isinstance(value, complex):
            return float(_real_part(value, "double"))
        return float(value)

    def __complex__(self) -> complex:
        return complex(self._scalar(warn=True))

    def __index__(self) -> int:
        meta = self._tmeta
        integral = not (meta.dtype.is_floating_point or meta.dtype.is_complex)
        if meta.shape.numel() != 1 or not integral:
            raise TypeError(
                "only integer tensors of a single element can be converted to an index"
            )
        check_readable(meta, _VMAP_ITEM)
        return int(self._host().item())

    def __len__(self) -> int:
        shape = self._tmeta.shape
        if not shape:
            raise TypeError("len() of a 0-d tensor")
        return shape[0]

    def __hash__(self) -> int:
        return id(self)

    # -- text --------------------------------------------------------------------------

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        return tensor_text(self, tensor_contents)

    def __format__(self, format_spec: str) -> str:
        meta = self._tmeta
        if not meta.shape and type(self) is Tensor and meta.device.type != "meta":
            check_readable(meta, _VMAP_ITEM)
            return format_scalar(self._host(), format_spec)
        return object.__format__(self, format_spec)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__}
        if not self.is_cuda:
            names.discard("__cuda_array_interface__")
        return sorted(names - {"volatile"})

    if TYPE_CHECKING:
        # What `_derived` and `_functions` attach: the methods of all operators, and
        # what autograd, hooks and indexing give a tensor.
        _make_subclass: ClassVar[Callable[..., Any]]

        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __iter__(self) -> Iterator[Any]: ...
        def __neg__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __add__(self, other: Any) -> Tensor: ...

        __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __add__
        __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __add__
        __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __add__
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __add__
        __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __add__
        __lt__ = __le__ = __gt__ = __ge__ = __add__


# Reading values is seen by modes; what is known of every tensor (`x.shape`) is not.
for _name in (
    *("item", "tolist", "requires_grad_", "is_nonzero", "__bool__", "__int__"),
    *("__float__", "__complex__", "__index__", "__repr__", "__format__"),
):
    _read = overridable(vars(Tensor)[_name], "torch.Tensor")
    _read.__name__ = _name
    setattr(Tensor, _name, _read)
start_overriding(Tensor)


def check_readable(meta: Any, mapped: str) -> None:
    """Raises where a value cannot become a number; `mapped`: the text under vmap."""
    if meta.batch:
        raise RuntimeError(mapped)
    if meta.device.type == "meta":
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")


def check_storage(tensor: TensorBase) -> None:
    """Raises where memory is asked for that belongs to all examples of a `vmap`."""
    if tensor._tmeta.batch:
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")


def converted(made: Any, cls: type) -> Any:
    """A result, and what is in a sequence, as instances of a subclass."""
    if cls is Tensor:
        return made
    if isinstance(made, Tensor) and not isinstance(made, cls):
        return made.as_subclass(cls)
    if isinstance(made, (tuple, list)):
        return type(made)(converted(each, cls) for each in made)
    return made


def _wrapped(name: str, dim: Any, ndim: int) -> int:
    """A dimension counted from either end, checked."""
    if dim.__class__ is bool or not hasattr(dim, "__index__"):
        raise TypeError(
            f"{name}(): argument 'dim' (position 1) must be int, not "
            f"{type_name(type(dim))}"
        )
    dim = dim.__index__()
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, "
            f"{ndim - 1}], but got {dim})"
        )
    return dim % ndim


def _real_part(value: complex, kind: str) -> float:
    if value.imag:
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
    return value.real


def _can_require_grad(dtype: dtypes.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def set_requires_grad(tensor: TensorBase, value: bool) -> None:
    """Changes a leaf's `requires_grad`; its value stays as it is."""
    meta = tensor._tmeta
    rec = local.rec
    if value and meta.inference and not rec.inference:
        raise RuntimeError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is "
            "not allowed."
        )
    base = tensor._view_of
    if base is not None and not value:
        # It still says what its base does.
        tensor._inherits = value = base._tmeta.requires_grad
    elif value and tensor._inherits:
        tensor._inherits = False
        tensor._slot = -1  # what it was used for so far stays untracked
    if meta.requires_grad is value:
        return
    changed = meta.replace(requires_grad=value, leaf=True)
    rec.note_switch(tensor)
    if rec.recording.duals:
        rec.keep_tangents([(tensor, rec.slot_of(tensor))])
    if tensor._storage is not None:
        rec.settle_views_before_switch(tensor, value)
        tensor._slot = -1
    elif tensor._slot >= 0 or tensor._raw >= 0:
        # The same value in another role: what it was used for so far stays untracked.
        slot = rec.slot_of(tensor)
        tensor._raw = -1
        tensor._slot = rec.identity(slot, changed)
        if tensor._tangents:
            rec.recording.duals[tensor._slot] = tensor._tangents
        if value:
            rec.recording.entered[tensor._slot] = tensor
        # It may have been in another thread's recording so far.
        rec.live.append(weakref.ref(tensor))
    tensor._tmeta = changed
    if tensor._storage is not None and base is None:
        rec.let_views_inherit(tensor, value)


_addresses: weakref.WeakKeyDictionary[Storage, int] = weakref.WeakKeyDictionary()
_next_address = [1 << 40]


def _new_address(meta: Any) -> int:
    """A number that no other memory had: never used again."""
    found = _next_address[0]
    size = meta.shape.numel() * meta.dtype.itemsize
    _next_address[0] += (size // 64 + 1) * 64
    return found


def address_of(storage: Storage) -> int:
    """A number for a storage's memory, the same as long as it has tensors."""
    if storage.shared is not None:
        return storage.shared.memory.ctypes.data
    found = _addresses.get(storage)
    if found is None:
        tensors = storage.tensors()
        # A tensor that had the memory to itself, and may have it again.
        known = [t._address for t in tensors if t._address is not None]
        found = known[0] if known else _new_address(storage.meta)
        _addresses[storage] = found
        for tensor in tensors:
            tensor._address = found
    return found


# What `_functions` puts here: the text of tensors under a transform, and of tangents.
transformed_text: list[Callable[[Any], str | None]] = []
tangent_text: list[Callable[[Any], str | None]] = []


def tensor_text(tensor: Tensor, contents: str | None = None) -> str:
    """What `repr` gives for a tensor (`torch._tensor_str`)."""
    tangent: str | None = None
    if local.rec.levels:
        text = transformed_text[0](tensor)
        if text is not None:
            return text
        tangent = tangent_text[0](tensor)
    meta = tensor._tmeta
    plain = type(tensor) is Tensor or type(tensor).__name__ == "Parameter"
    grad_fn = None
    if meta.requires_grad:
        try:
            node = tensor.grad_fn
            grad_fn = None if node is None else type(node).__name__
        except RuntimeError:
            grad_fn = "Invalid"
    read = contents is None and meta.device.type != "meta"
    read = read and (meta.shape.numel() or may_fail(local.rec))
    return format_tensor(
        tensor._host() if read else meta,
        dtype=meta.dtype.name,
        default_dtype=dtypes.get_default_dtype().name,
        device=str(meta.device),
        requires_grad=meta.requires_grad,
        grad_fn=grad_fn,
        class_prefix="tensor" if plain else type(tensor).__name__,
        tensor_contents=contents,
        tangent=tangent,
        parameter=not plain and getattr(tensor, "_is_param", False),
    )


def host_value(tensor: TensorBase) -> np.ndarray:
    if tensor._tmeta.batch:
        raise RuntimeError(_NO_STORAGE)
    rec = local.rec
    storage = tensor._storage
    if storage is not None and storage.shared is not None:
        rec.raise_failed_checks()
        window = seen(tensor, storage.shared.window(tensor))
        window.flags.writeable = False
        return window
    if storage is None:
        array = rec.array_of(tensor)
    else:
        array = rec.base_array_of(storage)
    if array is None:  # another thread is writing to it at this moment
        time.sleep(0)
        return host_value(tensor)
    rec.raise_failed_checks()
    array = rec.host(array)
    return array if storage is None else shown(tensor, storage, array)


def from_array(
    array: Any,
    requires_grad: bool = False,
    cls: type = Tensor,
    *,
    device: Any = None,
    strides: tuple[int, ...] | None = None,
    batch: tuple[tuple[int, int], ...] = (),
) -> Tensor:
    """A new leaf on an array that nobody else writes to; `batch`: see `Meta.batch`."""
    tensor = _new(cls)
    tensor._slot = -1
    tensor._tmeta = meta_of(
        array.shape[len(batch) :],
        dtypes.from_array_dtype(array.dtype),
        get_default_device() if device is None else device,
        strides,
        requires_grad=requires_grad,
        inference=local.rec.inference,
        batch=batch,
    )
    tensor._array = array
    if local.rec.levels:
        tensor._levels = tuple(local.rec.levels)
    return tensor


def on_cpu(array: np.ndarray) -> Tensor:
    """As `from_array`, on the CPU whatever the default device is."""
    return from_array(array, device=device("cpu"))
