"""Classes that compiled libraries register: none can be, so that each is refused.

https://docs.pytorch.org/docs/2.13/cpp_index.html
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from torchshim import ops


class _ClassNamespace(ModuleType):
    """The classes that one library would have registered."""

    def __init__(self, name: str) -> None:
        super().__init__(f"torch.classes{name}")
        self.name = name

    def __getattr__(self, attr: str) -> Any:
        if attr.startswith("__"):
            raise AttributeError(attr)
        raise RuntimeError(
            f"Tried to instantiate class '{self.name}.{attr}', but it does not exist! "
            "Ensure that it is registered via torch::class_"
        )


class _Classes(ModuleType):
    """The namespaces of classes, as attributes; any name is one."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = self.__dict__[name] = _ClassNamespace(name)
        return made

    @property
    def loaded_libraries(self) -> set[str]:
        """Paths of the libraries that were loaded."""
        return ops.loaded_libraries

    def load_library(self, path: Any) -> None:
        """As `torch.ops.load_library`."""
        ops.load_library(path)


sys.modules[__name__].__class__ = _Classes
