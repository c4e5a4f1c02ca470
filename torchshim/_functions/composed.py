"""Tensors that are made of other tensors: what sparse and nested ones have in common.

Such a tensor has no slot in a recording. What is done with it is recorded as operators
on its values (`_v`), so that autograd, programs and devices need to know nothing of it.
What follows from its index tensors is found on the host, once for each (`planned`).
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from torchshim._core.meta import meta_of
from torchshim._core.record import untracked
from torchshim._core.storage import TensorBase, writes_of
from torchshim._tensor import Tensor, host_value

#: What composed tensors know as other tensors do.
FACTS = (
    "shape dtype device ndim requires_grad itemsize is_cpu is_cuda is_xla is_meta "
    "is_mps is_xpu is_mtia is_ipu is_hpu is_vulkan is_maia is_nested is_quantized "
    "is_mkldnn size dim ndimension numel nelement element_size get_device is_conj "
    "is_neg is_floating_point is_complex is_signed is_inference __len__ __hash__ "
    "__bool__ is_nonzero __format__ __dir__ is_same_size"
).split()

_NO_LEAF = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
    "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
    "because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001"
)


class Composed(Tensor):
    """A tensor whose elements are those of another one, in some arrangement."""

    __slots__ = ()

    # The elements.
    _v: Any
    _composed = True

    def _refused(self) -> NoReturn:
        """Raises: this was reached by what does not ask what its operands are."""
        raise NotImplementedError

    @property
    def _slot(self) -> int:
        # Reached by what records its operands without asking what they are.
        self._refused()

    @property
    def _array(self) -> Any:
        self._refused()

    @property
    def _grad(self) -> Any:
        return self.grad

    @_grad.setter
    def _grad(self, value: Any) -> None:
        self.grad = value

    @property
    def requires_grad(self) -> bool:
        return self._tmeta.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @property
    def is_leaf(self) -> bool:
        return not self._tmeta.requires_grad or self._v.is_leaf

    @property
    def grad_fn(self) -> Any:
        return self._v.grad_fn if self._tmeta.requires_grad else None

    @property
    def _version(self) -> int:
        return self._v._version

    @property
    def grad(self) -> Any:
        found = self._v.grad
        return None if found is None else self._gradient(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        self._v.grad = value if value is None else self._values_of(value)

    def _gradient(self, values: Any) -> Any:
        """A gradient for this tensor, out of that of its values."""
        return self._like(values)

    def _like(self, values: Any, **changes: Any) -> Any:
        """The same arrangement of other values."""
        raise NotImplementedError

    def _moved(self, move: Callable[[Any], Any]) -> Any:
        """All parts moved to another device."""
        raise NotImplementedError

    def _values_of(self, gradient: Any) -> Any:
        """The values of a gradient, arranged as those of this tensor."""
        raise NotImplementedError

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """As `Tensor.requires_grad_`, of the values."""
        if not (requires_grad or self._tmeta.requires_grad):
            return self
        if requires_grad and self._v.is_leaf and not self._v.requires_grad:
            self._v = self._v.detach()
        self._v.requires_grad_(requires_grad)
        return refreshed(self)

    def backward(self, gradient: Any = None, **options: Any) -> None:
        """As `Tensor.backward`; the gradient is arranged as this tensor is."""
        if gradient is not None:
            gradient = self._values_of(gradient)
        self._v.backward(gradient, **options)

    def retain_grad(self) -> None:
        """As `Tensor.retain_grad`, of the values."""
        self._v.retain_grad()

    def __copy__(self) -> Any:
        with untracked():
            made = self._moved(lambda part: part.detach())
        for name, value in self._notes(made):
            setattr(made, name, value)
        return made

    def _notes(self, made: Any) -> list[tuple[str, Any]]:
        """The attributes that a script gave it, which one just `made` has not."""
        return [(k, v) for k, v in vars(self).items() if k not in vars(made)]

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if not self.is_leaf:
            raise RuntimeError(_NO_LEAF)
        if id(self) not in memo:
            with untracked():
                made = self._moved(lambda part: part.detach().clone())
            if self.requires_grad:
                made.requires_grad_()
            memo[id(self)] = made
            if self.grad is not None:
                made.grad = copy.deepcopy(self.grad, memo)
            for name, value in self._notes(made):
                setattr(made, name, copy.deepcopy(value, memo))
        return memo[id(self)]


def set_meta(tensor: Any, size: Sequence[int], values: Any) -> Any:
    """Says of a composed tensor what follows from its size and values."""
    tensor._tmeta = meta_with(size, values)
    tensor._v = values
    return tensor


def meta_with(size: Sequence[int], values: Any) -> Any:
    """What is known of a tensor of this size with these values."""
    meta = values._tmeta
    return meta_of(
        size,
        meta.dtype,
        meta.device,
        requires_grad=meta.requires_grad,
        leaf=meta.leaf,
        inference=meta.inference,
    )


def refreshed(tensor: Any) -> Any:
    """The tensor, after its values have changed their role."""
    return set_meta(tensor, tensor._tmeta.shape, tensor._v)


def knows_facts(kind: type) -> None:
    """Gives a class of composed tensors what it does not define of `FACTS`."""
    for name in FACTS:
        own = any(name in vars(c) for c in kind.__mro__ if issubclass(c, Composed))
        if hasattr(Tensor, name) and not own:
            setattr(kind, name, vars(Tensor).get(name, getattr(Tensor, name)))


# Plans --------------------------------------------------------------------------------


def host_indices(tensor: Any) -> np.ndarray:
    """The values of an index tensor."""
    return host_value(tensor)


_KEPT = 16


def planned(name: Any, make: Callable[..., Any], *indices: TensorBase) -> Any:
    """`make(*indices)`, kept as long as none of the index tensors is written to."""
    first, others = indices[0], indices[1:]
    if first._plans is None:
        first._plans = {}
    plans = first._plans
    key = (name, *map(id, others))
    versions = [writes_of(t._storage or t) for t in indices]
    found = plans.get(key)
    if found is not None:
        alive, then, plan = found
        same = all(r() is t for r, t in zip(alive, others, strict=True))
        if same and then == versions:
            return plan
    plan = make(*map(host_indices, indices))
    if len(plans) >= _KEPT:
        plans.clear()
    plans[key] = [weakref.ref(t) for t in others], versions, plan
    return plan


def recompute_input(func: Any, input: Any, after: Any) -> Any:
    """As the operator of that name, which checkpointing uses, of the values."""
    after = [t._v if isinstance(t, Composed) else t for t in after]
    if not isinstance(input, Composed):
        return func(input, after)
    return input._like(func(input._v, after))
