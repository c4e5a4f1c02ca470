"""The autograd attributes and methods of tensors."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from torchshim import _warnings as warnings
from torchshim._attributes import fact
from torchshim._core import hooks, node
from torchshim._core.dtypes import dtype as DType
from torchshim._core.dtypes import type_name
from torchshim._core.hooks import hooks_of, retaining
from torchshim._core.leaf_facts import grad_dtype
from torchshim._core.leaves import add
from torchshim._core.meta import contiguous_strides
from torchshim._core.record import local
from torchshim._core.storage import (
    TensorBase,
    base_of,
    bits_of,
    check_apart,
    dense,
    placement,
    shown_version,
    version_of,
)
from torchshim._derived import NEVER, fns, public
from torchshim._errors import triggered, warn_once
from torchshim._functions import backward as passes
from torchshim._functions import creation, nodes
from torchshim._functions._arguments import tensor_argument
from torchshim._functions.sparse_gradients import accumulated
from torchshim._functions.sparse_tensor import SparseTensor
from torchshim._tensor import Tensor

assert nodes

_NON_LEAF_GRAD = triggered(
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
    ".grad attribute won't be populated during autograd.backward(). If you indeed want "
    "the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
    "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
    "access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for "
    "more information.",
    "build/aten/src/ATen/core/TensorBody.h:493",
)


def method(function: Callable[..., Any]) -> Any:
    """A method of tensors that is no function of a namespace."""
    function.__qualname__ = f"Tensor.{function.__name__}"
    return public(function, method=True, namespaces=())


# -- backward --------------------------------------------------------------------------


@method
def backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Adds the gradients of this tensor to the `.grad` of the leaves it came from.

    `gradient` is the vector that the Jacobian is multiplied by; a real tensor of one
    element needs none. `inputs` limits the leaves. RuntimeError where nothing requires
    grad, or for a graph that a backward without `retain_graph` went through.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.backward.html

    >>> import torchshim as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).backward(torch.tensor([1.0, 10.0]))
    >>> x.grad
    tensor([ 2., 40.])
    """
    if gradient is None and inputs is None and create_graph is False:
        meta = self._tmeta
        if (
            meta.requires_grad
            and meta.dtype.is_floating_point
            and (not meta.shape or meta.numel == 1)
            and (retain_graph is None or retain_graph.__class__ is bool)
            and not retaining
            and not (meta.leaf and self._inherits)
            and not self._unaware
        ):
            passes.run_plain(self, retain_graph)
            return
    passes.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def _accumulate(self: Tensor, grad: Tensor, create: bool, shared: bool) -> None:
    """Puts a gradient into `.grad`, or adds it to the one that is there.

    `shared`: whether it is somebody else's, too.
    """
    before = self._grad
    if grad._composed or (before is not None and before._composed):
        self._grad = accumulated(before, grad, create)
    elif before is None:
        if (
            grad._tmeta.shape != self._tmeta.shape
        ):  # `.data` of another was assigned since
            grad = creation.empty_like(self, requires_grad=False).copy_(grad)
        elif create:
            grad = fns._gradient_copy(grad)
        if grad._tmeta.strides != self._tmeta.strides and (
            shared or create or local.rec.lays_out_grads
        ):
            grad = _laid_out(self, grad)
        self._grad = grad
    elif create:
        self._grad = total = before + grad
        _check_layout(self, total)
    else:
        rec = local.rec
        if before._tmeta.inference:
            rec.check_writable(before)
        if before._storage is not None:
            check_apart(before, ())
        kind, own = grad._tmeta, before._tmeta
        if kind.shape != own.shape or kind.dtype is not own.dtype:
            before.add_(grad)  # it broadcasts and is cast, or is refused
            return
        rec.write(before, add[0](before, grad))
        if own.strides != self._tmeta.strides:
            _check_layout(self, before)


def _check_layout(self: Tensor, grad: Tensor) -> None:
    """Warns, once, of a `.grad` that is laid out otherwise than its parameter.

    Where that has gaps, the gradient should be contiguous.
    """
    own, meta = grad._tmeta, self._tmeta
    if own.shape != meta.shape:
        return
    expected = meta.strides
    if not dense((meta.shape, expected, 0)):
        expected = contiguous_strides(meta.shape)
    pairs = zip(meta.shape, own.strides, expected, strict=True)
    if any(size != 1 and a != b for size, a, b in pairs):
        sizes, strides = list(own.shape), list(own.strides)
        text = (
            "grad and param do not obey the gradient layout contract. This is not an "
            "error, but may impair performance.\n"
            f"grad.sizes() = {sizes}, strides() = {strides}\n"
            f"param.sizes() = {sizes}, strides() = {list(meta.strides)}"
        )
        where = "torch/csrc/autograd/functions/accumulate_grad.h:252"
        warn_once(triggered(text, where), key="grad layout")


def _laid_out(self: Tensor, grad: Tensor) -> Any:
    """A new gradient in its parameter's memory order, if that is dense."""
    meta, own = self._tmeta, grad._tmeta
    expected = 1
    for stride, size in sorted(zip(meta.strides, meta.shape, strict=True)):
        if size != 1:
            if stride != expected:
                return grad
            expected *= size
    rec = local.rec
    changed = own.replace(strides=meta.strides, leaf=True, requires_grad=False)
    if own.requires_grad:
        return grad
    return rec.tensor_on(rec.identity(rec.slot_of(grad), changed), changed)


Tensor._accumulate = _accumulate


# -- .grad -----------------------------------------------------------------------------


def _get_grad(self: Tensor) -> Tensor | None:
    """The gradient that backward passes have added up; None before the first.

    It has the tensor's shape; setting it to a tensor of another raises RuntimeError.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.grad.html

    >>> import torchshim as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (x * x).backward()
    >>> (x * x).backward()
    >>> x.grad
    tensor(12.)
    """
    grad = self._grad
    if grad is None:
        meta = self._tmeta
        if meta.requires_grad and not meta.leaf and not _retains(self):
            warnings.warn(_NON_LEAF_GRAD, UserWarning, stacklevel=2)
    return grad


def _set_grad(self: Tensor, value: Tensor | None) -> None:
    if value is None:
        self._grad = None
        return
    if not isinstance(value, TensorBase):
        raise TypeError(
            "assigned grad expected to be a Tensor or None but got grad of type "
            + type_name(type(value))
        )
    if value is self:
        raise RuntimeError("can't assign Variable as its own grad")
    own, meta = self._tmeta, value._tmeta
    wanted = grad_dtype(self)
    if wanted is not None and meta.dtype is not wanted:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{_cpp(meta.dtype)}' to a "
            f"tensor with grad_dtype '{wanted.scalar_name}'. The gradient must "
            "match the tensor's grad_dtype (defaults to the tensor's dtype). You can "
            "set the tensor's grad_dtype attribute with a specific dtype, or None to "
            "allow any dtype. Set grad_dtype with caution. Diverging the dtypes of a "
            "tensor and its gradient may break downstream systems that assume they "
            "match."
        )
    if meta.device.type != own.device.type:
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{meta.device.type}' to "
            f"a tensor with device type '{own.device.type}'. Please ensure that the "
            "gradient and the tensor are on the same device"
        )
    if (self._composed or value._composed) and not value.is_sparse:
        if value.layout is not self.layout:
            raise RuntimeError(
                "attempting to assign a gradient to a tensor that has data of a "
                "different type"
            )
    if tuple(meta.shape) != tuple(own.shape):
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(meta.shape)}' to a tensor "
            f"of size '{list(own.shape)}'. Please ensure that the gradient and the "
            "tensor are the same size"
        )
    self._grad = value


def _cpp(dtype: Any) -> str:
    names: dict[str, str] = {"int64": "long int", "int32": "int"}
    return names.get(dtype.name) or str(dtype.cpp_name)


def _del_grad(self: Tensor) -> None:
    self._grad = None


Tensor.grad = property(_get_grad, _set_grad, _del_grad)
SparseTensor.grad = property(lambda self: self._grad, _set_grad, _del_grad)


def _get_grad_dtype(self: Tensor) -> Any:
    """The dtype that `.grad` of a leaf has; None: that in which gradients come.

    RuntimeError for a tensor that is no leaf.

    >>> import torchshim as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> x.grad_dtype = torch.float16
    >>> (x * x).backward()
    >>> x.grad
    tensor(6., dtype=torch.float16)
    """
    if not self._tmeta.leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return grad_dtype(self)


def _set_grad_dtype(self: Tensor, dtype: Any) -> None:
    grad = self.grad  # (PyTorch asks first, too, which warns)
    if not self._tmeta.leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if dtype is not None and not isinstance(dtype, DType):
        raise RuntimeError(
            f"grad_dtype must be a torch.dtype or None, but got {type(dtype).__name__}"
        )
    if grad is not None and dtype not in (None, grad.dtype):
        raise RuntimeError(
            f"Cannot set grad_dtype to '{dtype.scalar_name}' because there is already "
            f"a gradient with dtype '{_cpp(grad.dtype)}'. Please clear the gradient "
            "(.grad = None) before changing grad_dtype, or ensure the new grad_dtype "
            "matches the existing gradient's dtype."
        )
    hooks = hooks_of(self, make=True)
    assert hooks is not None
    hooks.grad_dtype = dtype


Tensor.grad_dtype = property(_get_grad_dtype, _set_grad_dtype)


def _retains(self: Tensor) -> bool:
    """Whether a backward pass keeps the gradient of this tensor, which is no leaf.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.retains_grad.html

    >>> import torchshim as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> y.retain_grad()
    >>> y.retains_grad, x.retains_grad
    (True, False)
    """
    if self._hooks is None or self._tmeta.leaf:
        return self._hooks is not None and self._hooks.retains
    found = hooks_of(self)
    return found is not None and found.retained is not None


@method
def retain_grad(self: Tensor) -> None:
    """Makes a backward pass keep this tensor's gradient though it is no leaf.

    RuntimeError if it does not require grad.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.retain_grad.html

    >>> import torchshim as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> y = x * x
    >>> y.retain_grad()
    >>> (2 * y).backward()
    >>> y.grad
    tensor(2.)
    """
    meta = self._tmeta
    if not meta.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    local.rec.refuse_in_transform("retain_grad")
    if meta.leaf or self._unaware:
        return
    mine = hooks_of(self, make=True)
    assert mine is not None
    if mine.retained is None:
        mine.retained = weakref.ref(self)
        key = id(self)
        retaining[key] = weakref.ref(self, lambda _: retaining.pop(key, None))


# -- attributes ------------------------------------------------------------------------


def _output_nr(self: Tensor) -> int:
    """Which output of its node this tensor is.

    >>> import torchshim as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> [each.output_nr for each in x.unbind()]
    [0, 1]
    """
    meta = self._tmeta
    if meta.leaf or not meta.requires_grad or self._unaware:
        return 0
    return node.edge_of(*hooks.place_of(local.rec, self))[1]


def _version(self: Tensor) -> int:
    """How often the memory of this tensor was written to."""
    if self._tmeta.inference and self._own_version is None:
        raise RuntimeError("Inference tensors do not track version counter.")
    return shown_version(self)


def _is_leaf(self: Tensor) -> bool:
    """Whether no recorded operation made this tensor.

    So are all tensors that do not require grad.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.is_leaf.html

    >>> import torchshim as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> x.is_leaf, (x * 2).is_leaf, (x * 2).detach().is_leaf
    (True, False, True)
    """
    meta = self._tmeta
    if self._is_view():
        self._unaware = False
        local.rec.check_current(self)
        if self._hist is None:
            self._hist_version = version_of(self)  # PyTorch makes its node
    return meta.leaf or bool(meta.levels and local.rec.starts_level(self))


def _grad_fn(self: Tensor) -> Any:
    """The node whose result this tensor is; None for leaves.

    >>> import torchshim as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> x.grad_fn, (x * 2).grad_fn.name()
    (None, 'MulBackward0')
    """
    return node.grad_fn(self)


def _backward_hooks(self: Tensor) -> Any:
    """The hooks on this tensor's gradient, by the number of their handle."""
    found = hooks_of(self) if self._hooks is not None else None
    return None if found is None else found.backward


def _set_backward_hooks(self: Tensor, value: Any) -> None:
    if value is None and self._hooks is None:
        return
    found = hooks_of(self, make=True)
    assert found is not None
    found.backward = value


def _keep_backward_hooks(self: Tensor) -> None:
    raise RuntimeError("Deletion of _backwards_hooks not allowed!")


def _set_grad_fn(self: Tensor, value: Any) -> None:
    if value is not None:
        raise RuntimeError("_grad_fn can be only set to None")
    self.detach_()


def _keep_grad_fn(self: Tensor) -> None:
    raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")


def _post_hooks(self: Tensor) -> Any:
    """The hooks that run after a gradient was added to `.grad`."""
    return None if self._hooks is None else self._hooks.post


def _base(self: Tensor) -> Tensor | None:
    """The tensor that a view shows the memory of."""
    return None if self._tmeta.inference else base_of(self)


Tensor.grad_fn = fact("grad_fn", _grad_fn)
Tensor.is_leaf = fact("is_leaf", _is_leaf)
Tensor._base = fact("_base", _base)
Tensor._version = fact("_version", _version)
Tensor.output_nr = fact("output_nr", _output_nr)
Tensor.retains_grad = fact("retains_grad", _retains)
Tensor._grad_fn = property(_grad_fn, _set_grad_fn, _keep_grad_fn)
Tensor._backward_hooks = property(
    _backward_hooks, _set_backward_hooks, _keep_backward_hooks
)
Tensor._post_accumulate_grad_hooks = property(_post_hooks)


@method
def is_inference(self: Tensor) -> bool:
    """Whether this tensor was made in inference mode.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.is_inference.html

    >>> import torchshim as torch
    >>> with torch.inference_mode():
    ...     x = torch.ones(1)
    >>> x.is_inference(), (x + 1).is_inference()
    (True, False)
    """
    return getattr(self._tmeta, "inference", False)


_Visitor = Callable[[Any], Any] | None


@method
def _view_func(
    self: Tensor,
    new_base: Tensor,
    symint_visitor_fn: _Visitor = None,
    tensor_visitor_fn: _Visitor = None,
) -> Tensor | None:
    """What this view would be of another tensor, laid out as its base is.

    `symint_visitor_fn` may replace sizes and positions that the views were made with;
    no view was made with tensors.
    """
    tensor_argument("_view_func", "new_base", 1, new_base)
    base = _base(self)
    if base is None or placement(base) != placement(new_base):
        return None
    alike = base._tmeta.dtype is self._tmeta.dtype and not bits_of(self)
    if alike and symint_visitor_fn is None:
        return new_base.as_strided(*placement(self))
    return _replayed(self, base, new_base, symint_visitor_fn)


@method
def _view_func_unsafe(
    self: Tensor,
    new_base: Tensor,
    symint_visitor_fn: _Visitor = None,
    tensor_visitor_fn: _Visitor = None,
) -> Tensor | None:
    """As `_view_func`, of a tensor that may be laid out otherwise."""
    tensor_argument("_view_func", "new_base", 1, new_base)
    base = _base(self)
    if base is None:
        return None
    return _replayed(self, base, new_base, symint_visitor_fn)


# What `symint_visitor_fn` sees of the operators that make views.
_VISITED = {"starts", "size", "sizes", "stride"}


def _replayed(
    view: Tensor, base: Tensor, new_base: Tensor, visitor: _Visitor
) -> Tensor:
    for op, given, number in view._path[len(base._path) :]:
        arguments = given
        if visitor is not None:
            arguments = [
                tuple(map(visitor, a)) if p.name in _VISITED and type(a) is tuple else a
                for a, p in zip(given, op.params[1:], strict=False)
            ]
        new_base = getattr(fns, op.name)(new_base, *arguments)
        new_base = new_base[number] if isinstance(new_base, tuple) else new_base
    return new_base


# -- warnings --------------------------------------------------------------------------


@public(overridden=NEVER)
def set_warn_always(b: bool) -> None:
    """Whether warnings that are given only once are to be given each time.

    RuntimeError for what is no bool.

    https://docs.pytorch.org/docs/2.13/generated/torch.set_warn_always.html

    >>> import torchshim as torch
    >>> before = torch.is_warn_always_enabled()
    >>> torch.set_warn_always(True)
    >>> torch.is_warn_always_enabled()
    True
    >>> torch.set_warn_always(before)
    """
    if not isinstance(b, bool):
        kind = type(b).__name__
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {kind}")
    passes.warn_always[0] = b


@public(overridden=NEVER)
def is_warn_always_enabled() -> bool:
    """Whether warnings that are given only once are given each time.

    https://docs.pytorch.org/docs/2.13/generated/torch.is_warn_always_enabled.html

    >>> import torchshim as torch
    >>> before = torch.is_warn_always_enabled()
    >>> torch.set_warn_always(False)
    >>> torch.is_warn_always_enabled()
    False
    >>> torch.set_warn_always(before)
    """
    return passes.warn_always[0]
