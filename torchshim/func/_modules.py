"""Modules as functions of their parameters: `functional_call` and what goes with it."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from torchshim import _pytree as tree
from torchshim._derived import fns
from torchshim._tensor import Tensor
from torchshim.nn.modules.batchnorm import _BatchNorm
from torchshim.nn.modules.module import Module
from torchshim.nn.utils.stateless import _functional_call


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls a module with other parameters and buffers than its own.

    Raises ValueError for keys in several dicts and, with `tie_weights`, for different
    values of tied tensors; RuntimeError with `strict` for keys that are missing or
    unexpected.
    https://docs.pytorch.org/docs/2.13/generated/torch.func.functional_call.html

    >>> import torchshim as torch
    >>> linear = torch.nn.Linear(2, 1, bias=False)
    >>> functional_call(linear, {"weight": torch.ones(1, 2)}, torch.ones(2))
    tensor([2.])
    """
    given: Any = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        if not isinstance(given, Sequence):
            raise ValueError(
                "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of "
                f"dicts, but got {type(given)}"
            )
        if not all(isinstance(d, dict) for d in given):
            raise ValueError(
                "Expected all elements of parameter_and_buffer_dicts to be dictionaries"
            )
        counts = Counter(key for d in given for key in d)
        repeated = [key for key, n in counts.items() if n > 1]
        if repeated:
            raise ValueError(
                f"{repeated} appeared in multiple dictionaries; behavior of functional "
                "call is ambiguous"
            )
        given = {key: value for d in given for key, value in d.items()}
    return _functional_call(
        module, given, args, kwargs, tie_weights=tie_weights, strict=strict
    )


def _stacked_leaf(tensors: Sequence[Tensor], name: str) -> Tensor:
    tracked = {t.requires_grad for t in tensors}
    if len(tracked) > 1:
        raise RuntimeError(
            f"Expected {name} from each model to have the same .requires_grad"
        )
    result = fns.stack(list(tensors))
    return result.detach().requires_grad_() if True in tracked else result


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """(parameters, buffers) of models of one class, those of the same name stacked.

    https://docs.pytorch.org/docs/2.13/generated/torch.func.stack_module_state.html

    >>> import torchshim as torch
    >>> models = [torch.nn.Linear(2, 1) for _ in range(3)]
    >>> stack_module_state(models)[0]["weight"].shape
    torch.Size([3, 1, 2])
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({bool(m.training) for m in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval "
            "mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError(
            "stack_module_state: Expected all models to be of the same class."
        )
    stacked: list[dict[str, Tensor]] = []
    for each in (Module.named_parameters, Module.named_buffers):
        tables: list[dict[str, Any]] = [dict(each(model)) for model in models]
        stacked.append(
            {key: _stacked_leaf([t[key] for t in tables], key) for key in tables[0]}
        )
    return stacked[0], stacked[1]


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Takes the running statistics out of all batch normalizations, in place.

    https://docs.pytorch.org/docs/2.13/generated/torch.func.replace_all_batch_norm_modules_.html
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = None
            module.running_var = None
            module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functionalize(
    func: Callable[..., Any], *, remove: str = "mutations"
) -> Callable[..., Any]:
    """A function with the same results and effects; `remove` is about its programs.

    What is recorded never mutates anything, so there is nothing to remove. Results that
    are views become tensors of their own with "mutations_and_views".
    https://docs.pytorch.org/docs/2.13/generated/torch.func.functionalize.html
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for "
            f"remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed "
            "from the program, and replaced with their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing "
            "operators {view} will be replaced with their non-aliasing counterparts, "
            "{view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        found = func(*args, **kwargs)
        if remove == "mutations":
            return found

        def alone(leaf: Any) -> Any:
            view = isinstance(leaf, Tensor) and leaf._base is not None
            return leaf.clone() if view else leaf

        return tree.tree_map(alone, found)

    return wrapped


for _function in (
    functional_call,
    stack_module_state,
    replace_all_batch_norm_modules_,
    functionalize,
):
    _function.__module__ = "torch.func"
