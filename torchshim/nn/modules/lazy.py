"""Modules that take the shapes of their parameters from the first input."""

from __future__ import annotations

import itertools
from typing import Any

import torchshim
from torchshim.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Makes a module wait for its first input before it has parameters.

    The module defines `initialize_parameters`, which materialises them from the
    arguments of `forward`; it then becomes `cls_to_become`. Follows
    ``torch.nn.modules.lazy.LazyModuleMixin``.

    >>> import torchshim as torch
    >>> torch.nn.LazyLinear(3).has_uninitialized_params()
    True
    """

    cls_to_become: type[Any] | None = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(
        self: Any, destination: Any, prefix: str, keep_vars: bool
    ) -> None:
        saved = [
            *self._parameters.items(),
            *(
                (name, buffer)
                for name, buffer in self._buffers.items()
                if name not in self._non_persistent_buffers_set
            ),
        ]
        for name, value in saved:
            if value is not None:
                kept = keep_vars or is_lazy(value)
                destination[prefix + name] = value if kept else value.detach()

    def _lazy_load_hook(
        self: Any,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        """Gives what is loaded into its shape before the loading itself."""
        for name, value in itertools.chain(
            self._parameters.items(), self._buffers.items()
        ):
            loaded = state_dict.get(prefix + name)
            if loaded is not None and is_lazy(value) and not is_lazy(loaded):
                with torchshim.no_grad():
                    value.materialize(loaded.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """To be defined: materialises the parameters for these arguments."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self: Any) -> bool:
        """Whether any parameter or buffer still waits for its shape."""
        return any(
            is_lazy(value)
            for value in itertools.chain(
                self._parameters.values(), self._buffers.values()
            )
        )

    def _infer_parameters(
        self: Any, module: Any, args: Any, kwargs: Any = None
    ) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(
                f"module {self._get_name()} has not been fully initialized"
            )
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook
        del module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. "
            "Run a dummy forward pass to correctly initialize the modules"
        )
