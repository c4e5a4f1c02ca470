"""Full backward hooks: identities around a module that see its gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torchshim
from torchshim._errors import warn
from torchshim._tensor import Tensor
from torchshim.autograd import Function


class BackwardHookFunction(Function):
    """The identity; its node in the graph is where the hooks are attached."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        return args


def _spread(indices: Sequence[int], values: Sequence[Any], size: int) -> tuple:
    """A tuple of `size` with the values at their places and None elsewhere."""
    at = dict(zip(indices, values, strict=True))
    return tuple(at.get(i) for i in range(size))


class BackwardHook:
    """Runs the full backward hooks and pre-hooks of one call of one module.

    `setup_input_hook` and `setup_output_hook` pass the arguments and the result
    of the forward through an identity. The output's node sees the gradients
    first: pre-hooks run there. The input's node sees them last: hooks run there,
    with both. Follows ``torch.utils.hooks.BackwardHook``.
    """

    def __init__(
        self,
        module: Any,
        user_hooks: Sequence[Callable[..., Any]],
        user_pre_hooks: Sequence[Callable[..., Any]],
    ) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: Any = None
        self.n_inputs = self.n_outputs = -1
        self.input_tensors_index: list[int] | None = None
        self.output_tensors_index: list[int] | None = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments for forward, with the gradients of its inputs watched."""

        # PyTorch's name for it: errors about what it returns tell it.
        def hook(grad_input: tuple[Any, ...], grad_output: tuple[Any, ...]) -> Any:
            return self._on_input_grad(grad_input)

        args, self.input_tensors_index = _through_identity(hook, args)
        self.n_inputs = len(args)
        return args

    def setup_output_hook(self, result: Any) -> Any:
        """The module's result, with the gradients of its outputs watched."""
        outputs = result if isinstance(result, tuple) else (result,)

        def hook(grad_input: tuple[Any, ...], grad_output: tuple[Any, ...]) -> Any:
            return self._on_output_grad(grad_output)

        outputs, self.output_tensors_index = _through_identity(hook, outputs)
        self.n_outputs = len(outputs)
        return outputs if isinstance(result, tuple) else outputs[0]

    def _on_output_grad(self, grad_output: tuple[Any, ...]) -> Any:
        assert self.output_tensors_index is not None
        grads: Any = _spread(self.output_tensors_index, grad_output, self.n_outputs)
        for pre_hook in self.user_pre_hooks:
            # A hook may look at what the ones before it made of the gradients.
            self.grad_outputs = grads
            replaced = pre_hook(self.module, grads)
            if replaced is None:
                continue
            if len(replaced) != len(grads):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(replaced)}, but expected {len(grads)}"
                )
            grads = replaced
        self.grad_outputs = grads
        if self.input_tensors_index is None:
            self._run_without_input_grads(grads)
        return tuple(grads[i] for i in self.output_tensors_index)

    def _run_without_input_grads(self, grads: Any) -> None:
        # No input requires grad, so no node of an input will ever fire.
        warn(
            "Full backward hook is firing when gradients are computed with respect to "
            "module outputs since no inputs require gradients. See "
            "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details."
        )
        grad_inputs = (None,) * self.n_inputs
        for hook in self.user_hooks:
            replaced = hook(self.module, grad_inputs, grads)
            if replaced is None:
                continue
            if not isinstance(replaced, tuple) or any(g is not None for g in replaced):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should "
                    "always return None or None for all gradients."
                )
        self.grad_outputs = None

    def _on_input_grad(self, grad_input: tuple[Any, ...]) -> Any:
        if self.grad_outputs is None:
            # The gradients did not come through the module's output.
            return None
        assert self.input_tensors_index is not None
        grads: Any = _spread(self.input_tensors_index, grad_input, self.n_inputs)
        for hook in self.user_hooks:
            replaced = hook(self.module, grads, self.grad_outputs)
            if replaced is None:
                continue
            if len(replaced) != len(grads):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(replaced)}, but expected {len(grads)}"
                )
            grads = replaced
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_tensors_index)


def _through_identity(
    hook: Callable[..., Any], values: Any
) -> tuple[Any, list[int] | None]:
    """`values` with its tensors passed through an identity that calls `hook`.

    The places of the tensors come second; None where nothing requires grad.
    """
    places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    watched = any(values[i].requires_grad for i in places)
    if not (watched and torchshim.is_grad_enabled()):
        return values, None
    tensors = BackwardHookFunction.apply(*(values[i] for i in places))
    for tensor in tensors:
        node = tensor.grad_fn
        if node is not None and node.name() == "BackwardHookFunctionBackward":
            node.register_hook(hook)
            break
    else:
        raise RuntimeError(
            "Error while setting up backward hooks. Please open an issue with a code "
            "sample to reproduce this."
        )
    replaced = list(values)
    for i, tensor in zip(places, tensors, strict=True):
        replaced[i] = tensor
    if type(values) is tuple:
        return tuple(replaced), places
    return type(values)(*replaced), places  # a named tuple
