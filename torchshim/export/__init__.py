"""Export of programs, which is refused.

https://docs.pytorch.org/docs/2.13/export.html
"""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["Dim", "dims", "draft_export", "export", "load", "save", "unflatten"]


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"torch.export.{name}: PyTorch's programs cannot be exported or loaded; "
        "jax.export writes programs of JAX"
    )


def export(mod: Any, args: Any, kwargs: Any = None, **options: Any) -> Any:
    """Refused."""
    _refuse("export")


def draft_export(mod: Any, args: Any, kwargs: Any = None, **options: Any) -> Any:
    """Refused."""
    _refuse("draft_export")


def save(ep: Any, f: Any, **options: Any) -> None:
    """Refused."""
    _refuse("save")


def load(f: Any, **options: Any) -> Any:
    """Refused."""
    _refuse("load")


def unflatten(module: Any, flat_args_adapter: Any = None) -> Any:
    """Refused."""
    _refuse("unflatten")


def Dim(name: str, **bounds: Any) -> Any:
    """Refused."""
    _refuse("Dim")


def dims(*names: str, **bounds: Any) -> Any:
    """Refused."""
    _refuse("dims")
