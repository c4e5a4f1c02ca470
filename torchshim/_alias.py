"""`import torch` resolves to torchshim: the import finder behind `install`.

Without limits, `sys.modules["torch"]` *is* `torchshim` and `sys.modules["torch.nn"]`
is `torchshim.nn`: one set of module objects under two names. A finder at the front of
`sys.meta_path` makes it so, one module at a time as they are imported.

`sys.modules` belongs to the whole process, so an alias for some importers only cannot
live there. `install(only=..., block=...)` therefore leaves `sys.modules` alone and
replaces `builtins.__import__` (and `importlib.import_module`) by functions that look
at who is importing: the chosen packages get torchshim's modules, everybody else what
they would get without torchshim.

Without limits, the classes and functions of public modules also say that they are
`torch.…`: in what programs print, and in what they pickle.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing import spawn
from types import FunctionType, ModuleType
from typing import Any

from torchshim._version import torch_version
from torchshim._well_known import WELL_KNOWN

SHIM = __name__.partition(".")[0]

#: Importers that belong to PyTorch itself: they never get torchshim.
_TORCH_PACKAGES = ("torch", "functorch", "torchgen")


# Modules that are called otherwise here.
_RENAMED = {"torch._ops": "torchshim.ops"}


def shim_name(name: str) -> str:
    """torchshim's name for a module of PyTorch: `torch.nn` -> `torchshim.nn`."""
    if name in _RENAMED:
        return _RENAMED[name]
    if name.startswith("functorch"):
        return f"{SHIM}.{name}"
    return SHIM + name.removeprefix("torch")


def _torch_name(name: str) -> str:
    """PyTorch's name for a module of torchshim's: the inverse of `shim_name`."""
    inner = name.removeprefix(SHIM)
    if inner.startswith(".functorch"):
        return inner[1:]
    return f"torch{inner}"


def _is_torch(name: str) -> bool:
    return name.partition(".")[0] in ("torch", "functorch")


def _is_ours(module: ModuleType | None) -> bool:
    name = getattr(module, "__name__", "")
    return module is sys.modules[SHIM] or name.startswith(SHIM + ".")


def _is_private(name: str) -> bool:
    """Whether a module of torchshim is no part of PyTorch's API."""
    if name in _RENAMED:
        return False
    inner = name.partition(".")[2]
    for known in WELL_KNOWN:
        if inner == known or inner.startswith(f"{known}."):
            inner = inner.removeprefix(known)
    return any(part.startswith("_") for part in inner.split("."))


def _shim_spec(name: str) -> importlib.machinery.ModuleSpec | None:
    """The spec of torchshim's module for `name`, or None if it has none."""
    try:
        return importlib.util.find_spec(shim_name(name))
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] == SHIM:
            return None  # a parent is missing, or is no package
        raise


def know_torch() -> None:
    """Gives modules the name `torch`, which PyTorch's have, as they import it.

    Programs find it there: `torch.sparse.torch.eye(3)[labels]`.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith(f"{SHIM}.") and "._" not in name:
            vars(module).setdefault("torch", sys.modules[SHIM])


def _missing(name: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"No module named {name!r}", name=name)


class _AliasLoader(importlib.abc.Loader):
    """Loads `torch.x` by importing `torchshim.x` and giving the same object."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(shim_name(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # It ran as torchshim's. The import system has meanwhile put the alias's spec
        # on it: give it its own back.
        alias = module.__spec__
        assert alias is not None
        module.__spec__ = alias.loader_state
        if alias.name == "torch":
            for each in list(sys.modules.values()):
                if _is_ours(each):
                    _shown.change(each)
            module.__name__ = "torch"  # which some programs compare


class _Names:
    """The modules that classes and functions say they are of."""

    def __init__(self) -> None:
        # id -> the object, and its own module.
        self._own: dict[int, tuple[Any, str]] = {}

    def change(self, module: ModuleType) -> None:
        """Has what a public module gives say that it is PyTorch's.

        What is defined in a private one is of the public module that lists it, the
        innermost of several.
        """
        shown = _torch_name(module.__name__)
        if _is_private(shown) or shim_name(shown) != module.__name__:
            return
        # Where `inspect` and `pickle` look.
        sys.modules.setdefault(shown, module)
        listed = getattr(module, "__all__", ())
        for name, value in list(vars(module).items()):
            if not isinstance(value, (type, FunctionType)):
                continue
            _, own = self._own.get(id(value), (value, value.__module__))
            elsewhere = own.startswith(f"{SHIM}.") and _is_private(_torch_name(own))
            first = id(value) not in self._own or len(shown) > len(value.__module__)
            if own == module.__name__ or (
                elsewhere and first and name in listed and name == value.__name__
            ):
                self._own[id(value)] = value, own
                _say(value, shown)

    def restore(self) -> None:
        for value, own in self._own.values():
            _say(value, own)
        self._own.clear()


def _say(value: Any, module: str) -> None:
    """Has a class or function say that it is of a module."""
    # From Python 3.13 on a class forgets its place in the file with it.
    line = vars(value).get("__firstlineno__")
    value.__module__ = module
    if line is not None:
        value.__firstlineno__ = line


_shown = _Names()


class _SourceLoader(importlib.machinery.SourceFileLoader):
    """Loads a module of torchshim's while the alias stands."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        if "._" not in module.__name__:
            vars(module).setdefault("torch", sys.modules[SHIM])
        if "torch" in sys.modules:
            _shown.change(module)


# Libraries that read a tensor's memory at its address (`data_ptr()` tells tensors apart
# here, there is nothing to read at it), and what reads it for them.
_READERS = {"safetensors.torch": "torchshim.serialization._safetensors"}


class _ReadingLoader(importlib.abc.Loader):
    """Loads a module of `_READERS`, and replaces functions of it."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        importlib.import_module(_READERS[module.__name__]).adapt(module)


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata.version("torch")` reads."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        return f"Metadata-Version: 2.1\nName: torch\nVersion: {torch_version}\n"

    def locate_file(self, path: Any) -> Any:
        return importlib.metadata.distribution(SHIM).locate_file(path)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `torch` and `torch.*` as modules of torchshim."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith(f"{SHIM}."):
            own = importlib.machinery.PathFinder.find_spec(fullname, path, target)
            if own is not None and type(own.loader) is _SourceLoader.__base__:
                assert own.origin is not None
                own.loader = _SourceLoader(fullname, own.origin)
            return own
        if fullname in _READERS:
            other = importlib.machinery.PathFinder.find_spec(fullname, path, target)
            if other is not None:
                other.loader = _ReadingLoader(other.loader)
            return other
        if not _is_torch(fullname):
            return None
        if _is_private(fullname):
            # Left to the next finder, it would be loaded a second time from our own
            # directory, since `torch.__path__` is torchshim's.
            if _shim_spec(fullname) is not None:
                raise _missing(fullname)
            return None
        found = _shim_spec(fullname)
        if found is None:
            return None
        spec = importlib.machinery.ModuleSpec(
            fullname,
            _AliasLoader(),
            origin=found.origin,
            is_package=found.submodule_search_locations is not None,
        )
        if found.submodule_search_locations is not None:
            spec.submodule_search_locations = list(found.submodule_search_locations)
        return spec

    def find_distributions(
        self, context: Any = None
    ) -> Iterator[importlib.metadata.Distribution]:
        if context is None or context.name in (None, "torch"):
            yield _Distribution()


class _Selective:
    """Replaces the import functions by ones that look at who is importing."""

    def __init__(self, only: tuple[str, ...] | None, block: tuple[str, ...]) -> None:
        self.only = only
        self.block = block
        self.active = True
        self._import = builtins.__import__
        self._import_module = importlib.import_module
        self.import_hook = self._make_import()
        self.import_module_hook = self._make_import_module()

    def serves(self, importer: Mapping[str, Any] | None) -> bool:
        """Whether the module with these globals gets torchshim."""
        if importer is None:
            return self.only is None
        # Under `python -m package.module` the name is __main__, the package is told.
        names = {importer.get("__name__"), importer.get("__package__")}

        def is_in(packages: Iterable[str]) -> bool:
            return any(
                isinstance(name, str) and (name == p or name.startswith(p + "."))
                for name in names
                for p in packages
            )

        if is_in(_TORCH_PACKAGES) or is_in(self.block):
            return False
        return self.only is None or is_in(self.only)

    def _make_import(self) -> Callable[..., Any]:
        original = self._import

        @functools.wraps(original)
        def __import__(
            name: str,
            globals: Mapping[str, Any] | None = None,
            locals: Mapping[str, Any] | None = None,
            fromlist: Sequence[str] | None = (),
            level: int = 0,
        ) -> Any:
            if (
                level == 0
                and self.active
                and isinstance(name, str)
                and _is_torch(name)
                and self.serves(globals)
            ):
                _require(name)
                name = shim_name(name)
            return original(name, globals, locals, fromlist or (), level)

        return __import__

    def _make_import_module(self) -> Callable[..., ModuleType]:
        original = self._import_module

        @functools.wraps(original)
        def import_module(name: str, package: str | None = None) -> ModuleType:
            absolute = name
            if name.startswith(".") and package is not None:
                absolute = importlib.util.resolve_name(name, package)
            importer = sys._getframe(1).f_globals
            if self.active and _is_torch(absolute) and self.serves(importer):
                _require(absolute)
                return original(shim_name(absolute))
            return original(name, package)

        return import_module

    def start(self) -> None:
        builtins.__import__ = self.import_hook
        importlib.import_module = self.import_module_hook

    def stop(self) -> None:
        # Somebody may have wrapped our function since: then it stays, but does nothing.
        self.active = False
        if builtins.__import__ is self.import_hook:
            builtins.__import__ = self._import
        if importlib.import_module is self.import_module_hook:
            importlib.import_module = self._import_module


def _require(name: str) -> None:
    """Raise what importing a module of PyTorch's raises if torchshim has none."""
    if _is_private(name) or _shim_spec(name) is None:
        raise _missing(name)


class _Children:
    """Has processes started by `multiprocessing` install the alias too.

    A spawned child imports the parent's main module, and with it torch, before any
    code of ours could run there. What it unpickles before that is the preparation
    data, so the installation travels in them.
    """

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments = arguments
        self.active = True
        self._original = spawn.get_preparation_data

        @functools.wraps(self._original)
        def get_preparation_data(name: str) -> dict[str, Any]:
            data = self._original(name)
            if not self.active:
                return data
            if name == "ignore":
                # The fork server's own: it would import the main module at once, and
                # takes nothing else from here. Its children get the data below.
                return {k: v for k, v in data.items() if "main" not in k}
            return {**data, SHIM: self}

        self.hook = get_preparation_data
        spawn.get_preparation_data = get_preparation_data

    def __reduce__(self) -> tuple[Any, ...]:
        code = (
            f"import sys; sys.path[:] = {sys.path!r}\n"
            f"from {SHIM} import _alias; _alias.install(**{self.arguments!r})"
        )
        return exec, (code, {})

    def stop(self) -> None:
        self.active = False
        if spawn.get_preparation_data is self.hook:
            spawn.get_preparation_data = self._original


_installed: _Finder | _Selective | None = None
_children: _Children | None = None


def _names(packages: str | Iterable[str], argument: str) -> tuple[str, ...]:
    names = (packages,) if isinstance(packages, str) else tuple(packages)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(
                f"install() argument {argument!r} takes names of packages, "
                f"not {type(name).__name__}"
            )
    return names


def install(
    only: str | Iterable[str] | None = None, block: str | Iterable[str] = ()
) -> None:
    """Make `import torch`, and the import of its submodules, give torchshim's modules.

    Without arguments this holds for the whole process, and an installed PyTorch is
    shadowed until `uninstall`. With `only` and `block` it holds for the import
    statements of chosen packages, whose names are compared as prefixes
    (`"mypackage"` covers `mypackage.data`; a script is `"__main__"`): those in `only`
    if it is given, and never those in `block`. Everybody else gets the PyTorch that is
    installed, or ModuleNotFoundError. In that mode `sys.modules` has no alias, so what
    reads modules by name (`pickle` data that says `torch.nn...`, `find_spec`) sees the
    real PyTorch.

    Processes that `multiprocessing` starts get the same alias. Calling it again with
    the same arguments does nothing.

    Raises ImportError if PyTorch has been imported already where torchshim is to be
    used, and RuntimeError if the alias stands with other arguments.

    >>> import torchshim
    >>> torchshim.install()
    >>> import torch
    >>> torch is torchshim
    True
    >>> torchshim.uninstall()
    """
    global _installed, _children
    blocked = _names(block, "block")
    chosen = None if only is None else _names(only, "only")
    limited = chosen is not None or bool(blocked)
    if _installed is None:
        if limited:
            selective = _Selective(chosen, blocked)
            _refuse_mixture_in_packages(selective)
            selective.start()
            _installed = selective
        else:
            _refuse_mixture_in_process()
            _installed = _Finder()
            sys.meta_path.insert(0, _installed)
        _children = _Children({"only": chosen, "block": blocked})
        return
    if isinstance(_installed, _Selective):
        same = (_installed.only, _installed.block) == (chosen, blocked)
    else:
        same = not limited
    if same:
        return
    raise RuntimeError(
        "torchshim is installed already with other arguments: "
        "call torchshim.uninstall() first"
    )


def uninstall() -> None:
    """Undo `install`: later imports of torch find what they would without torchshim.

    Modules that have imported torchshim's modules keep them. Without an alias it does
    nothing.
    """
    global _installed, _children
    if _children is not None:
        _children.stop()
    if isinstance(_installed, _Selective):
        _installed.stop()
    elif _installed is not None:
        if _installed in sys.meta_path:
            sys.meta_path.remove(_installed)
        _shown.restore()
        sys.modules[SHIM].__name__ = SHIM
        for name in [n for n in sys.modules if _is_torch(n)]:
            if _is_ours(sys.modules[name]):
                del sys.modules[name]
    _installed = _children = None


def _refuse_mixture_in_process() -> None:
    for name in sorted(filter(_is_torch, sys.modules)):  # "torch" comes first
        module = sys.modules[name]
        if module is None or _is_ours(module):
            continue
        file = getattr(module, "__file__", None)
        place = f" from {file}" if file else ""
        raise ImportError(
            f"PyTorch is imported already ({name}{place}), and its tensors cannot be "
            "mixed with torchshim's: call torchshim.install() before anything imports "
            "torch",
            name=name,
        )


def _refuse_mixture_in_packages(selective: _Selective) -> None:
    """Refuse if a package that is to get torchshim holds modules of PyTorch."""
    torch = sys.modules.get("torch")
    if torch is None or _is_ours(torch):
        return
    real = {
        id(module)
        for name, module in sys.modules.items()
        if _is_torch(name) and module is not None
    }
    for name, module in list(sys.modules.items()):
        if name == SHIM or name.startswith(SHIM + ".") or _is_torch(name):
            continue
        names = getattr(module, "__dict__", None)
        if not isinstance(names, dict) or not selective.serves(names):
            continue
        if any(id(value) in real for value in list(names.values())):
            raise ImportError(
                f"{name} has imported PyTorch already, whose tensors cannot be mixed "
                "with torchshim's: call torchshim.install() before importing it, or "
                "add it to `block`",
                name=name,
            )
