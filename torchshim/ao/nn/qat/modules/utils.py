"""What layers that are observed in training share."""

from __future__ import annotations

from typing import Any

NO_QCONFIG = "qconfig must be provided for QAT module"


def required(qconfig: Any) -> Any:
    """A qconfig; AssertionError if there is none."""
    if not qconfig:
        raise AssertionError(NO_QCONFIG)
    return qconfig


def check_configured(
    mod: Any, valid: str = "Input float module must have a valid qconfig"
) -> None:
    """AssertionError for a layer of floating point without a qconfig."""
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if not mod.qconfig:
        raise AssertionError(valid)
