"""Whether attention layers may take their fast path: `torch.backends.mha`."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_is_fastpath_enabled = True


def get_fastpath_enabled() -> bool:
    """What `set_fastpath_enabled` set; every path is one program here."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Keeps the setting, which changes no result."""
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
