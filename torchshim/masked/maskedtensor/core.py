"""`MaskedTensor`: data, and a mask of the elements that count.

What is done with one is done with its data (`composed.py`), and with its mask where
it is about the arrangement. Functions and methods come to `HANDLERS` (`_handlers.py`);
what is not there is refused in PyTorch's words.
https://docs.pytorch.org/docs/2.13/masked.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from torchshim import _warnings as warnings
from torchshim._core import dtypes
from torchshim._core.layout import NAMES as LAYOUTS
from torchshim._core.layout import strided
from torchshim._core.meta import contiguous_strides
from torchshim._core.record import untracked
from torchshim._derived import fns
from torchshim._function_modes import SUBCLASSES_DISABLED, disabled
from torchshim._functions.composed import (
    FACTS,
    Composed,
    knows_facts,
    set_meta,
)
from torchshim._functions.elementwise import allclose
from torchshim._tensor import Tensor, host_value

__all__ = ["MaskedTensor", "is_masked_tensor"]

HANDLERS: dict[str, Callable[..., Any]] = {}

_COO, _CSR = LAYOUTS["sparse_coo"], LAYOUTS["sparse_csr"]
_DTYPES = frozenset(
    "float16 float32 float64 bool int8 int16 int32 int64".split(),
)
_PROTOTYPE = (
    "The PyTorch API of MaskedTensors is in prototype stage and will change in the "
    "near future. Please open a Github issue for features requests and see our "
    "documentation on the torch.masked module for further information about the "
    "project."
)
_REQUIRES_GRAD = (
    "It is not recommended to create a MaskedTensor with a tensor that requires_grad. "
    "To avoid this, you can use data.detach().clone()"
)
_ASK = (
    "If you would like this operator to be supported, please file an issue for a "
    "feature request at https://github.com/pytorch/maskedtensor/issues with a minimal "
    "reproducible code snippet.\nIn the case that the semantics for the operator are "
    "not trivial, it would be appreciated to also include a proposal for the semantics."
)


# What PyTorch computes by another operator, which is the one that it refuses.
_REFUSED_AS = {
    **{"matmul": "mm", "linear": "mm", "contains": "any", "setitem": "fill_"},
    **{"movedim": "permute", "moveaxis": "permute", "einsum": "permute"},
    **{"tile": "repeat", "log_softmax": "_log_softmax", "__rpow__": "pow"},
}


def lacking(name: str) -> str:
    """The warning for a function that masked tensors do not have."""
    return f"{name} is not implemented in __torch_dispatch__ for MaskedTensor.\n" + _ASK


def refuse(called: str, reason: str, protocol: str = "dispatch") -> NoReturn:
    """Raises, after a warning, for what masked tensors do not support."""
    warnings.warn(reason, stacklevel=4)
    kind = "<class 'torch.masked.maskedtensor.core.MaskedTensor'>"
    raise TypeError(
        f"Multiple dispatch failed for '{called}'; all __torch_{protocol}__ handlers "
        f"returned NotImplemented:\n\n  - tensor subclass {kind}\n\nFor more "
        "information, try re-running with TORCH_LOGS=not_implemented"
    )


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether something is a masked tensor.

    https://docs.pytorch.org/docs/2.13/masked.html

    >>> import torchshim as torch
    >>> torch.masked.is_masked_tensor(torch.ones(2))
    False
    """
    return isinstance(obj, MaskedTensor)


class MaskedTensor(Composed):
    """A tensor of which only the elements chosen by a mask count.

    `data` and `mask` have the same shape and layout (strided, COO or CSR, then with the
    same indices); the mask is of truth values. Both are copied, and the result is a
    leaf. TypeError and ValueError for parts that do not fit.

    https://docs.pytorch.org/docs/2.13/masked.html

    >>> import torchshim as torch
    >>> chosen = torch.tensor([True, False, True])
    >>> x = torch.masked.MaskedTensor(torch.tensor([1.0, 2.0, 3.0]), chosen)
    >>> x * 2
    MaskedTensor(
      [  2.0000,       --,   6.0000]
    )
    >>> x.sum().item()
    4.0
    """

    __slots__ = ()

    # `_v` is the data.
    _mask: Any
    data: Any

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        if is_masked_tensor(data) or not isinstance(data, Tensor):
            raise TypeError("data must be a Tensor")
        if is_masked_tensor(mask) or not isinstance(mask, Tensor):
            raise TypeError("mask must be a Tensor")
        warn_of(data)
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        with untracked():
            made = checked(*_fitted(data.detach(), mask), cls)
        return made.requires_grad_() if requires_grad else made

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        pass

    def _refused(self) -> NoReturn:
        refuse("this operation", lacking("this operation"))

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if isinstance(getattr(func, "__self__", None), property):
            return func(*args)
        name = func.__name__
        handler = HANDLERS.get(name)
        if handler is not None:
            return handler(func, *args, **(kwargs or {}))
        if name in FACTS:
            with disabled(SUBCLASSES_DISABLED):
                return getattr(MaskedTensor, name)(*args, **(kwargs or {}))
        called = name.strip("_") if name.startswith("__") else name
        called = str(_REFUSED_AS.get(called, called))
        refuse(f"torch._ops.aten.{called}.default", lacking(called))

    # Parts ----------------------------------------------------------------------------

    @property
    def _masked_data(self) -> Any:
        return self._v

    @property
    def _masked_mask(self) -> Any:
        return self._mask

    def get_data(self) -> Any:
        """The data, those of masked elements as well; gradients flow to this tensor.

        >>> import torchshim as torch
        >>> x = torch.masked.MaskedTensor(torch.ones(2), torch.tensor([True, False]))
        >>> x.get_data()
        tensor([1., 1.])
        """
        return fns.alias(self._v) if self.layout is strided else self._v

    def get_mask(self) -> Any:
        """Where the elements count.

        >>> import torchshim as torch
        >>> x = torch.masked.MaskedTensor(torch.ones(2), torch.tensor([True, False]))
        >>> x.get_mask()
        tensor([ True, False])
        """
        return self._mask

    def to_tensor(self, value: Any) -> Any:
        """The data with a value in the place of masked elements.

        >>> import torchshim as torch
        >>> x = torch.masked.MaskedTensor(torch.ones(2), torch.tensor([True, False]))
        >>> x.to_tensor(7)
        tensor([1., 7.])
        """
        return self.get_data().masked_fill(~self._mask, value)

    def _set_data_mask(self, data: Any, mask: Any) -> None:
        self._mask = mask
        set_meta(self, data.shape, data)

    @property
    def layout(self) -> Any:
        return self._v.layout

    def is_sparse_coo(self) -> bool:
        """Whether data and mask are of layout COO."""
        return self.layout is _COO

    def is_sparse_csr(self) -> bool:
        """Whether data and mask are of layout CSR."""
        return self.layout is _CSR

    @property
    def is_sparse(self) -> bool:
        return self.layout is not strided

    def stride(self, dim: int | None = None) -> Any:
        """As `Tensor.stride`: as if the elements lay one after the other."""
        strides = contiguous_strides(self._tmeta.shape)
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """As `Tensor.storage_offset`: a masked tensor has no memory of its own."""
        return 0

    def data_ptr(self) -> int:
        """As `Tensor.data_ptr`: a masked tensor has no memory of its own."""
        return 0

    # Autograd -------------------------------------------------------------------------

    def _like(self, values: Any, **changes: Any) -> Any:
        return masked(values, self._mask)

    def _moved(self, move: Callable[[Any], Any]) -> Any:
        return masked(move(self._v), move(self._mask))

    def _values_of(self, gradient: Any) -> Any:
        return gradient._v if is_masked_tensor(gradient) else gradient

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """As `Tensor.register_hook`; `hook` gets a masked gradient."""

        def with_mask(gradient: Any) -> Any:
            found = hook(self._gradient(gradient))
            return None if found is None else self._values_of(found)

        return self._v.register_hook(with_mask)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _again, (self._v.detach(), self._mask, self.requires_grad)

    def __copy__(self) -> Any:
        return _again(self._v.detach(), self._mask, self.requires_grad)

    # Python's protocols ---------------------------------------------------------------

    def item(self) -> Any:
        """The number of a tensor of one element. ValueError if it is masked."""
        if not host_value(self._mask):
            raise ValueError(
                "__torch_dispatch__, aten._local_scalar_dense: expected a mask tensor"
            )
        return self._v.item()

    def __bool__(self) -> bool:
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __lt__(self, other: Any) -> Any:
        data = other.get_data() if is_masked_tensor(other) else other
        return masked(self.get_data() < data, self._mask)

    def tolist(self) -> NoReturn:
        """Refused, as in PyTorch."""
        raise RuntimeError(
            ".tolist() is not supported for tensor subclasses, got MaskedTensor"
        )

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Refused, as in PyTorch."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")

    def __format__(self, spec: str) -> str:
        return object.__format__(self, spec)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        data, mask = self._v.detach(), self._mask
        if self.is_sparse:
            data, mask = data.to_dense(), mask.to_dense()
        values, chosen = data.tolist(), mask.tolist()
        if not data.ndim:
            return f"MaskedTensor({_number(values) if chosen else '--'}, {chosen})"
        lines = _text(values, chosen).split("\n")
        return "MaskedTensor(\n" + "\n".join(f"  {line}" for line in lines) + "\n)"


def _number(value: Any) -> str:
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _text(values: Any, chosen: Any) -> str:
    if not (values and isinstance(values[0], list)):
        texts = [_number(value) for value in values]
        width = max(
            len(text) if there else 8 for text, there in zip(texts, chosen, strict=True)
        )
        shown = [
            text if there else "--".rjust(width)
            for text, there in zip(texts, chosen, strict=True)
        ]
        return f"[{', '.join(shown)}]"
    rows = [
        _text(*row).replace("\n", "\n  ") for row in zip(values, chosen, strict=True)
    ]
    return "[\n" + ",\n".join(f"  {row}" for row in rows) + "\n]"


def warn_of(data: Any) -> None:
    """What PyTorch warns of where a masked tensor is made."""
    warnings.warn(_PROTOTYPE, UserWarning, stacklevel=3)
    if data.requires_grad:
        warnings.warn(_REQUIRES_GRAD, UserWarning, stacklevel=3)


def masked(data: Any, mask: Any, cls: type[MaskedTensor] = MaskedTensor) -> Any:
    """A masked tensor of parts that fit, as they are."""
    made = object.__new__(cls)
    made._mask = mask
    return set_meta(made, data.shape, data)


def checked(data: Any, mask: Any, cls: type[MaskedTensor] = MaskedTensor) -> Any:
    """A masked tensor, if the parts fit."""
    layout = data.layout
    if layout not in (strided, _COO, _CSR):
        raise TypeError(f"data layout of {layout} is not supported.")
    if layout is _COO and not matching(data.indices(), mask.indices()):
        raise ValueError(
            "data and mask are both sparse COO tensors but do not have the same "
            "indices."
        )
    if layout is _CSR and not (
        matching(data.crow_indices(), mask.crow_indices())
        and matching(data.col_indices(), mask.col_indices())
    ):
        raise ValueError(
            "data and mask are both sparse CSR tensors but do not share either crow or "
            "col indices."
        )
    if mask.dtype is not dtypes.bool_:
        raise TypeError("mask must have dtype bool.")
    if data.dtype.name not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.ndim != mask.ndim:
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    return masked(data, mask, cls)


def matching(
    a: Any, b: Any, exact: bool = True, rtol: float = 1e-5, atol: float = 1e-8
) -> bool:
    """Whether elements are the same, or close; ValueError where layouts are not."""
    if a.layout is not b.layout:
        raise ValueError(
            f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}"
        )
    if a.layout is _COO:
        return matching(a.values(), b.values(), exact) and matching(
            a.indices(), b.indices(), exact
        )
    if a.layout is _CSR:
        return (
            matching(a.crow_indices(), b.crow_indices(), exact)
            and matching(a.col_indices(), b.col_indices(), exact)
            and matching(a.values(), b.values(), exact)
        )
    if a.ndim != b.ndim:
        return False
    if not exact:
        return allclose(a, b, rtol, atol)
    return bool((host_value(a) == host_value(b)).all())


# By these names PyTorch's own tests ask.
def _tensors_match(
    a: Any, b: Any, exact: bool = True, rtol: float = 1e-5, atol: float = 1e-8
) -> bool:
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    return matching(a, b.to(a.dtype), exact, rtol, atol)


def _masks_match(a: Any, b: Any) -> bool:
    if not (is_masked_tensor(a) and is_masked_tensor(b)):
        return True
    return _tensors_match(a.get_mask(), b.get_mask())


def _fitted(data: Any, mask: Any) -> tuple[Any, Any]:
    """Copies of the parts; the data only where the mask has values, if sparse."""
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout is _COO:
        data, mask = data.coalesce(), mask.coalesce()
        if data._nnz() != mask._nnz():
            data = data.to_dense().sparse_mask(mask)
    elif data.layout is _CSR and data._nnz() != mask._nnz():
        data = data.to_dense().sparse_mask(mask)
    return data.clone(), mask.clone()


def _again(data: Any, mask: Any, requires_grad: bool) -> Any:
    made = masked(data, mask)
    return made.requires_grad_() if requires_grad else made


from torchshim.masked.maskedtensor import _handlers as _handlers  # noqa: E402

knows_facts(MaskedTensor)
