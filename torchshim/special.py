"""Special functions: https://docs.pytorch.org/docs/2.13/special.html."""

from __future__ import annotations

from torchshim._derived import namespace as _namespace

# PyTorch's names for functions that have another name outside of this module.
_ALIASES = {
    "expit": "sigmoid",
    "gammainc": "igamma",
    "gammaincc": "igammac",
    "gammaln": "lgamma",
    "log_softmax": "log_softmax",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "psi": "digamma",
    "softmax": "softmax",
}

globals().update(_namespace("special"))
globals().update(
    {
        name: _namespace("torch")[of]
        for name, of in _ALIASES.items()
        if of in _namespace("torch")
    }
)

# The registry has the names.
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    n for n in globals() if not n.startswith("_") and n != "annotations"
]
