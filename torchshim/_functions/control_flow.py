"""Python functions chosen and repeated by the values of tensors, which are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim import _pytree
from torchshim._derived import NEVER, fns, public
from torchshim._tensor import Tensor

_NO_OPERANDS = (
    "Expect operands to be a tuple of possibly nested dict/list/tuple that only "
    "consists of tensor leaves, but got {}."
)


# Only the branches ask classes that override: `pred` is looked at here.
@public(overridden=NEVER)
def cond(
    pred: Any,
    true_fn: Callable[..., Any],
    false_fn: Callable[..., Any],
    operands: Any = (),
) -> Any:
    """The result of one of two functions, by the value of `pred`.

    A tensor is read for that; where `vmap` maps over it, each example gets its own.
    Follows ``torch.cond``.

    >>> import torchshim as torch
    >>> torch.cond(torch.tensor(False), torch.sin, torch.neg, (torch.ones(1),))
    tensor([-1.])
    """
    if not isinstance(pred, (bool, int, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(
            f"Expected pred to be bool or single-element tensor, but got {pred}."
        )
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or not all(
        isinstance(each, Tensor) for each in _pytree.tree_leaves(operands)
    ):
        raise RuntimeError(_NO_OPERANDS.format(operands))
    if isinstance(pred, Tensor) and pred._tmeta.batch:
        return _chosen(pred, true_fn(*operands), false_fn(*operands))
    return (true_fn if pred else false_fn)(*operands)


def _chosen(pred: Tensor, if_true: Any, if_false: Any) -> Any:
    """What one of two functions gave, for each example by its own `pred`."""
    found, spec = _pytree.tree_flatten(if_true)
    others, other = _pytree.tree_flatten(if_false)
    leaves = [*found, *others]
    if spec != other or not all(isinstance(each, Tensor) for each in leaves):
        raise RuntimeError(
            "Expect both branches to return the same tree of tensors under vmap, but "
            f"got {spec} and {other}."
        )
    holds = fns.ne(pred, 0).reshape(())
    pairs = zip(found, others, strict=True)
    return spec.unflatten([fns.where(holds, yes, no) for yes, no in pairs])


@public(overridden=NEVER)
def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any
) -> Any:
    """What `body_fn` makes of the inputs, again and again while `cond_fn` holds.

    Both take what is carried, tensors and integers in trees; `body_fn` gives as many,
    of the same shapes and dtypes. Follows ``torch._higher_order_ops.while_loop``.

    >>> import torchshim as torch
    >>> x = torch.tensor(1.0)
    >>> torch.while_loop(lambda x: x < 100, lambda x: (x * 3,), (x,))
    (tensor(243.),)
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    leaves = _pytree.tree_leaves(carried_inputs)
    if not all(isinstance(each, (Tensor, int)) for each in leaves):
        kinds = tuple(type(each) for each in leaves)
        raise AssertionError(f"{leaves} can only be of tensors and int but got {kinds}")
    carried = tuple(carried_inputs)
    first, made = carried, None
    while _holds(cond_fn(*carried)):
        made = body_fn(*carried)
        carried = made if isinstance(made, tuple) else (made,)
        _check_alike(carried, first)
    if carried is first:
        return _pytree.tree_map(
            lambda x: fns.clone(x) if isinstance(x, Tensor) else x, carried
        )
    return made


def _holds(pred: Any) -> bool:
    one = isinstance(pred, Tensor) and pred._tmeta.shape.numel() == 1
    if not (one or isinstance(pred, bool)):
        raise RuntimeError(
            f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}"
        )
    return bool(pred)


def _check_alike(made: tuple[Any, ...], first: tuple[Any, ...]) -> None:
    (now, spec), (before, wanted) = map(_pytree.tree_flatten, (made, first))
    if spec != wanted:
        raise RuntimeError(
            "Expected body_fn_output and carried_inputs to have the same structure "
            f"but found {spec} and {wanted}."
        )
    for at, (a, b) in enumerate(zip(now, before, strict=True)):
        facts = [
            (x._tmeta.shape, x._tmeta.dtype) if isinstance(x, Tensor) else type(x)
            for x in (a, b)
        ]
        if facts[0] != facts[1]:
            raise RuntimeError(
                "Expected body_fn_output and carried_inputs to have same metadata but "
                f"found:\npair[{at}] differ, {facts[0]} vs {facts[1]}"
            )
