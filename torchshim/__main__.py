"""Run a PyTorch script on JAX: `python -m torchshim script.py`."""

from __future__ import annotations

import gc
import importlib.machinery
import importlib.util
import io
import marshal
import os
import re
import sys
import zipfile
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

from torchshim import _alias, _kept_programs
from torchshim._version import __version__, torch_release

USAGE = """\
usage: python -m torchshim script.py [argument ...]
       python -m torchshim -m module [argument ...]
       python -m torchshim -c code [argument ...]

Run a Python program in which `import torch` means torchshim.

  script.py     a file, a directory or zip file with a __main__.py, or - for the
                standard input
  -m module     a module, as by `python -m`
  -c code       Python code, as by `python -c`
  -h, --help    show this text
  --version     show the version

Compiled programs are kept in TORCHSHIM_CACHE_DIR (by default a directory in the
user's cache; nowhere if it is empty), so that the next run starts faster.
"""


def main(arguments: list[str] | None = None) -> None:
    """Run what the command line names; ends as the program itself would end."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if not arguments:
        _fail(USAGE.rstrip(), 2)
    first, *rest = arguments
    if first in ("-h", "--help"):
        print(USAGE, end="")
    elif first in ("-V", "--version"):
        print(f"torchshim {__version__} (PyTorch {torch_release})")
    elif first.startswith(("-m", "-c")):
        what = first[2:]
        if not what:
            if not rest:
                _fail(f"argument expected for the {first} option\n{USAGE.rstrip()}", 2)
            what, *rest = rest
        _run(_module if first[1] == "m" else _code, what, rest)
    elif first == "--" and rest:
        _run(_script, rest[0], rest[1:])
    elif first.startswith("-") and first != "-":
        _fail(f"unknown option {first}\n{USAGE.rstrip()}", 2)
    else:
        _run(_script, first, rest)


class _Exit(Exception):
    """The program cannot be started: a message for the standard error, and a status."""


def _fail(message: str, status: int) -> NoReturn:
    print(message, file=sys.stderr)
    raise SystemExit(status)


def _run(find: Any, what: str, arguments: list[str]) -> None:
    try:
        _alias.install()
    except ImportError as error:
        _fail(f"{sys.executable}: {error}", 1)
    _kept_programs.keep_programs()
    # Collections of the script's garbage need not look at what was imported so far.
    gc.freeze()
    main_module = ModuleType("__main__")
    sys.modules["__main__"] = main_module
    try:
        code, names = find(what, arguments)
        vars(main_module).update(names, __builtins__=__builtins__, __annotations__={})
        exec(code, vars(main_module))
    except _Exit as exit:
        message, status = exit.args
        _fail(f"{sys.executable}: {message}", status)
    except BaseException as error:
        _hide_frames(error)
        raise


def _hide_frames(error: BaseException) -> None:
    """Have the traceback that ends the program begin at the program's own frames."""
    trace = error.__traceback__
    while trace is not None and _is_own(trace):
        trace = trace.tb_next
    hook = sys.excepthook

    def excepthook(
        kind: type[BaseException], value: BaseException, shown: TracebackType | None
    ) -> Any:
        if value is error:
            value, shown = value.with_traceback(trace), trace
        return hook(kind, value, shown)

    sys.excepthook = excepthook


def _is_own(trace: TracebackType) -> bool:
    name = trace.tb_frame.f_code.co_filename
    return name == __file__ or name.startswith("<frozen importlib")


def _set_path(entry: str) -> None:
    """Put the program's place where `python -m torchshim` has put the current one."""
    if not sys.flags.safe_path:
        sys.path[:1] = [entry]


Found = tuple[CodeType, Mapping[str, Any]]


def _script(path: str, arguments: list[str]) -> Found:
    sys.argv[:] = [path, *arguments]
    if path == "-":
        _set_path("")
        names = {"__file__": "<stdin>", "__cached__": None}
        return compile(sys.stdin.read(), "<stdin>", "exec", dont_inherit=True), names
    absolute = os.path.abspath(path)
    if os.path.isdir(absolute) or zipfile.is_zipfile(absolute):
        sys.path[:1] = [absolute]
        spec = importlib.machinery.PathFinder.find_spec("__main__", [absolute])
        if spec is None:
            raise _Exit(f"can't find '__main__' module in {absolute!r}", 1)
        return _from_spec(spec, path)
    try:
        with io.open_code(absolute) as file:
            source = file.read()
    except OSError as error:
        message = f"can't open file {absolute!r}: [Errno {error.errno}]"
        raise _Exit(f"{message} {error.strerror}", 2) from None
    _set_path(os.path.dirname(os.path.realpath(absolute)))
    names: dict[str, Any] = {"__file__": absolute, "__cached__": None}
    if absolute.endswith(".pyc"):
        if source[:4] != importlib.util.MAGIC_NUMBER:
            raise RuntimeError("Bad magic number in .pyc file")
        names["__loader__"] = SourcelessFileLoader("__main__", absolute)
        return marshal.loads(source[_PYC_HEADER:]), names
    names["__loader__"] = SourceFileLoader("__main__", absolute)
    _check_encoding(source, absolute)
    return compile(source, absolute, "exec", dont_inherit=True), names


# Bytes before the code of a compiled file.
_PYC_HEADER = 16


def _check_encoding(source: bytes, path: str) -> None:
    """Tells of bytes that are not UTF-8 as Python does of a file, not of a text."""
    try:
        source.decode()
    except UnicodeDecodeError as error:
        if any(map(_declares_encoding, source.split(b"\n", 2)[:2])):
            return
        line = source.count(b"\n", 0, error.start) + 1
        byte = f"\\x{source[error.start]:02x}"
        raise SyntaxError(
            f"Non-UTF-8 code starting with '{byte}' in file {path} on line {line}, but "
            "no encoding declared; see https://peps.python.org/pep-0263/ for details"
        ) from None


def _declares_encoding(line: bytes) -> bool:
    return re.match(rb"[ \t\f]*#.*?coding[:=][ \t]*[-\w.]+", line) is not None


def _code(text: str, arguments: list[str]) -> Found:
    sys.argv[:] = ["-c", *arguments]
    _set_path("")
    return compile(text, "<string>", "exec", dont_inherit=True), {}


def _module(name: str, arguments: list[str]) -> Found:
    sys.argv[:] = ["-m", *arguments]
    _set_path(os.getcwd())
    real = _alias.shim_name(name) if name.split(".")[0] == "torch" else name
    if name.startswith("."):
        raise _Exit("Relative module names not supported", 1)
    spec = _find(real, name)
    if spec.submodule_search_locations is not None:
        spec = _find(f"{real}.__main__", name, package=name)
    found = _from_spec(spec, name)
    sys.argv[0] = spec.origin or name
    return found


def _find(
    real: str, name: str, package: str | None = None
) -> importlib.machinery.ModuleSpec:
    try:
        spec = importlib.util.find_spec(real)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{real}.".startswith(f"{error.name}."):
            raise  # a parent package exists, and fails by itself
        message = f"Error while finding module specification for {name!r}"
        message += f" (ModuleNotFoundError: {error})"
        if name.endswith(".py"):
            message += (
                f". Try using {name[:-3]!r} instead of {name!r} as the module name."
            )
        raise _Exit(message, 1) from None
    if spec is None and package is not None:
        message = f"No module named {package}.__main__; {package!r} is a package"
        raise _Exit(f"{message} and cannot be directly executed", 1)
    if spec is None:
        raise _Exit(f"No module named {name}", 1)
    return spec


def _from_spec(spec: importlib.machinery.ModuleSpec, name: str) -> Found:
    get_code = getattr(spec.loader, "get_code", None)
    code = get_code(spec.name) if get_code is not None else None
    if code is None:
        raise _Exit(f"No code object available for {name}", 1)
    return code, {
        "__file__": spec.origin,
        "__cached__": spec.cached,
        "__loader__": spec.loader,
        "__package__": spec.parent,
        "__spec__": spec,
    }


if __name__ == "__main__":
    main()
