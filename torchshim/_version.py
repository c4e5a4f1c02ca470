"""The version of torchshim, and of the PyTorch release whose behaviour it follows.

Under `import torch` the package is PyTorch to every script, so the attribute
`torchshim.__version__` is `torch_version`: scripts compare `torch.__version__` with
releases of PyTorch. The version of torchshim itself is what
`importlib.metadata.version("torchshim")` gives.
"""

import re

_VERSION = re.compile(
    r"v?(?P<release>\d+(\.\d+)*)[-_.]?((?P<phase>dev|a|alpha|b|beta|c|rc|pre|post)"
    r"[-_.]?(?P<number>\d*))?(\+(?P<local>[a-z0-9.]+))?",
    re.IGNORECASE,
)
_PHASES = {"dev": -4, "a": -3, "b": -2, "c": -1, "r": -1, "p": -1}


def _order(version: object) -> tuple[object, ...] | None:
    """What versions are compared by (PEP 440); None for what is none."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    found = _VERSION.fullmatch(str(version).strip())
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while release and not release[-1]:
        release.pop()
    phase = (found["phase"] or "").lower()
    rank = 1 if phase == "post" else _PHASES.get(phase, _PHASES.get(phase[:1], 0))
    local = [
        (part.isdigit(), part.zfill(9)) for part in (found["local"] or "").split(".")
    ]
    return release, rank, int(found["number"] or 0), bool(found["local"]), local


class TorchVersion(str):
    """A version as text that compares as versions do, with text and tuples.

    >>> TorchVersion("2.13.0") > "2.9", TorchVersion("2.13.0") >= (2, 13)
    (True, True)
    """

    __slots__ = ()
    __module__ = "torch.torch_version"
    __hash__ = str.__hash__

    def _compare(self, other: object, name: str) -> bool:
        mine, theirs = _order(self), _order(other)
        if mine is None or theirs is None:
            return getattr(str, name)(self, other)
        return getattr(tuple, name)(mine, theirs)

    def __lt__(self, other: object) -> bool:
        return self._compare(other, "__lt__")

    def __le__(self, other: object) -> bool:
        return self._compare(other, "__le__")

    def __gt__(self, other: object) -> bool:
        return self._compare(other, "__gt__")

    def __ge__(self, other: object) -> bool:
        return self._compare(other, "__ge__")

    def __eq__(self, other: object) -> bool:
        return self._compare(other, "__eq__")

    def __ne__(self, other: object) -> bool:
        return not self == other


#: torchshim's own version (read by the build).
__version__ = "0.1.0"

#: The PyTorch release that decides what every function does.
torch_release = "2.13.0"

#: `torch.__version__`: ordered as the PyTorch release (PEP 440 puts a local label
#: after the plain release), and saying whose it is.
torch_version = TorchVersion(f"{torch_release}+torchshim.{__version__}")
