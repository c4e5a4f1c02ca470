"""Moving a module's tensors: to another dtype, device or memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torchshim
from torchshim import _warnings as warnings
from torchshim.__future__ import (
    get_overwrite_module_params_on_conversion,
    get_swap_module_params_on_conversion,
)
from torchshim._functions.memory import swap_contents
from torchshim._tensor import Tensor
from torchshim.nn.modules._base import ModuleBase
from torchshim.nn.modules._parse_to import parse_to
from torchshim.nn.parameter import Parameter


def _same_kind(tensor: Tensor, applied: Tensor) -> bool:
    """Whether `tensor` can take over the data of `applied` and stay itself."""
    return tensor.is_meta == applied.is_meta and tensor.layout == applied.layout


def _only_floating(convert: str) -> Callable[[Tensor], Tensor]:
    def fn(t: Tensor) -> Tensor:
        return getattr(t, convert)() if t.is_floating_point() else t

    return fn


class Conversion(ModuleBase):
    """`Module`'s ``to``, ``float``, ``cuda`` and the like."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        if recurse:
            for module in self.children():
                module._apply(fn)
        swap = get_swap_module_params_on_conversion()
        for name, param in self._parameters.items():
            if param is None:
                continue
            if swap:
                self._swap_parameter(fn, param, name)
            else:
                self._parameters[name] = self._apply_to_parameter(fn, param)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def _apply_to_parameter(
        self, fn: Callable[[Tensor], Tensor], param: Parameter
    ) -> Parameter:
        grad = param.grad
        with torchshim.no_grad():
            applied = fn(param)
            grad_applied = None if grad is None else fn(grad)
        # Optimizers hold the parameter: it stays the same object where it can.
        overwrite = get_overwrite_module_params_on_conversion()
        if _same_kind(param, applied) and not overwrite:
            param.data = applied
            result = param
        else:
            assert param.is_leaf, "param must be a leaf tensor"
            result = Parameter(applied, param.requires_grad)
        if grad is not None and grad_applied is not None:
            if result is param and _same_kind(grad, grad_applied):
                grad.data = grad_applied
            else:
                assert grad.is_leaf, "param_grad must be a leaf tensor"
                result.grad = grad_applied.requires_grad_(grad.requires_grad)
        return result

    def _swap_parameter(
        self, fn: Callable[[Tensor], Tensor], param: Parameter, name: str
    ) -> None:
        grad, where = param.grad, f"{self._get_name()}.{name}"
        with torchshim.no_grad():
            applied = fn(param)
        try:
            param.grad = None
            swap_contents(param, Parameter(applied, param.requires_grad))
        except Exception as e:
            param.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {where}") from e
        if grad is None:
            return
        with torchshim.no_grad():
            applied = fn(grad)
        applied.requires_grad_(grad.requires_grad)
        try:
            swap_contents(grad, applied)
        except Exception as e:
            raise RuntimeError(f"_apply(): Couldn't swap {where}.grad") from e
        param.grad = grad

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Call `fn` on every submodule, children first, and on the module itself.

        Follows ``torch.nn.Module.apply``; typically used to initialise parameters.

        >>> from torchshim import nn
        >>> _ = nn.Sequential(nn.ReLU()).apply(lambda m: print(type(m).__name__))
        ReLU
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move parameters and buffers to a device, a floating dtype, or both.

        Integer and bool tensors keep their dtype. An integer `dtype` is a
        TypeError. The module itself is changed and returned. Follows
        ``torch.nn.Module.to``.

        >>> import torchshim as torch
        >>> torch.nn.Linear(2, 1).to(torch.float64).weight.dtype
        torch.float64
        """
        device, dtype, non_blocking, memory_format = parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, but "
                    f"got desired dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose "
                    "design may change, and some modules might not work as expected "
                    "when using complex tensors as parameters or buffers. Please file "
                    "an issue at https://github.com/pytorch/pytorch/issues/new"
                    "?template=bug-report.yml if a complex module does not work as "
                    "expected.",
                    stacklevel=2,
                )

        def convert(t: Tensor) -> Tensor:
            new_dtype = dtype if t.is_floating_point() or t.is_complex() else None
            extra = {}
            if memory_format is not None and t.dim() in (4, 5):
                extra["memory_format"] = memory_format
            try:
                return t.to(device, new_dtype, non_blocking, **extra)
            except NotImplementedError as e:
                if str(e) != "Cannot copy out of meta tensor; no data!":
                    raise
                raise NotImplementedError(
                    f"{e} Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different "
                    "device."
                ) from None

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move to `device` without copying: the values are not initialised.

        >>> import torchshim as torch
        >>> torch.nn.Linear(2, 1).to_empty(device="cpu").weight.shape
        torch.Size([1, 2])
        """
        return self._apply(
            lambda t: torchshim.empty_like(t, device=device), recurse=recurse
        )

    def type(self, dst_type: Any) -> Self:
        """Cast every parameter and buffer, whatever its dtype, to `dst_type`.

        >>> import torchshim as torch
        >>> torch.nn.Linear(2, 1).type(torch.float64).bias.dtype
        torch.float64
        """
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast floating-point parameters and buffers to float32.

        >>> from torchshim import nn
        >>> nn.Linear(2, 1).float().bias.dtype
        torch.float32
        """
        return self._apply(_only_floating("float"))

    def double(self) -> Self:
        """Cast floating-point parameters and buffers to float64.

        >>> from torchshim import nn
        >>> nn.Linear(2, 1).double().bias.dtype
        torch.float64
        """
        return self._apply(_only_floating("double"))

    def half(self) -> Self:
        """Cast floating-point parameters and buffers to float16.

        >>> from torchshim import nn
        >>> nn.Linear(2, 1).half().bias.dtype
        torch.float16
        """
        return self._apply(_only_floating("half"))

    def bfloat16(self) -> Self:
        """Cast floating-point parameters and buffers to bfloat16.

        >>> from torchshim import nn
        >>> nn.Linear(2, 1).bfloat16().bias.dtype
        torch.bfloat16
        """
        return self._apply(_only_floating("bfloat16"))

    def cpu(self) -> Self:
        """Move every parameter and buffer to the CPU.

        >>> from torchshim import nn
        >>> nn.Linear(2, 1).cpu().bias.device
        device(type='cpu')
        """
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move every parameter and buffer to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device: Any = None) -> Self:
        """Move every parameter and buffer to an XPU."""
        return self._apply(lambda t: t.xpu(device))

    def ipu(self, device: Any = None) -> Self:
        """Move every parameter and buffer to an IPU."""
        return self._apply(lambda t: t.ipu(device))

    def mtia(self, device: Any = None) -> Self:
        """Move every parameter and buffer to an MTIA device."""
        return self._apply(lambda t: t.mtia(device))

    def share_memory(self) -> Self:
        """Move every parameter and buffer to memory that other processes see.

        RuntimeError for parameters that are not initialized.

        >>> from torchshim import nn
        >>> nn.Linear(2, 1).share_memory().weight.is_shared()
        True
        """
        return self._apply(lambda t: t.share_memory_())

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Switch gradient recording on or off for every parameter.

        >>> from torchshim import nn
        >>> nn.Linear(2, 1).requires_grad_(False).weight.requires_grad
        False
        """
        for p in self.parameters():  # type: ignore[attr-defined]
            p.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients, or fill them with zeros where `set_to_none` is false.

        >>> from torchshim import nn
        >>> nn.Linear(2, 1).zero_grad()
        """
        if getattr(self, "_is_replica", False):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has "
                "no effect. The parameters are copied (in a differentiable manner) "
                "from the original module. This means they are not leaf nodes in "
                "autograd and so don't accumulate gradients. If you need gradients in "
                "your forward method, consider using autograd.grad instead.",
                stacklevel=2,
            )
        for p in self.parameters():  # type: ignore[attr-defined]
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
                continue
            if p.grad.grad_fn is not None:
                p.grad.detach_()
            else:
                p.grad.requires_grad_(False)
            p.grad.zero_()
