"""`gradcheck` of functions that take or give sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim._functions.sparse_tensor import is_sparse

SPARSE_OUTPUT = (
    "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad="
    "...) on the output of fn for gradcheck."
)


def of_values(
    func: Callable[..., Any], inputs: tuple[Any, ...], masked: bool | None
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of the values of sparse inputs, and these.

    What it is differentiated by are the values that a sparse tensor has, as gradients
    here have the pattern of their tensors: NotImplementedError unless `masked`.
    """
    patterns = {
        at: each for at, each in enumerate(inputs) if is_sparse(each) and each.is_leaf
    }
    checked = [at for at, each in patterns.items() if each.requires_grad]
    if not checked:
        return func, inputs
    if not masked:
        raise NotImplementedError(
            "gradcheck of sparse inputs is supported with masked=True: gradients have "
            "the pattern of their tensors"
        )
    given = list(inputs)
    for at in checked:
        given[at] = patterns[at]._v.detach().clone().requires_grad_()
        patterns[at] = patterns[at].detach()

    def function(*values: Any) -> Any:
        args = list(values)
        for at in checked:
            args[at] = patterns[at]._like(args[at])
        return func(*args)

    return function, tuple(given)


def check_outputs(outputs: tuple[Any, ...]) -> None:
    """Raises for a sparse output."""
    if any(is_sparse(each) for each in outputs):
        raise ValueError(SPARSE_OUTPUT)


def with_dense_outputs(func: Callable[..., Any], masked: bool) -> Callable[..., Any]:
    """The function with its sparse results as dense ones."""

    def dense(each: Any) -> Any:
        if not is_sparse(each):
            return each
        return each.to_dense(masked_grad=None if masked else False)

    def function(*args: Any) -> Any:
        outputs = func(*args)
        if isinstance(outputs, (list, tuple)):
            return tuple(dense(each) for each in outputs)
        return dense(outputs)

    return function
