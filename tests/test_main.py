"""`python -m torchshim` runs a program as `python` would.

But for the last tests, the runner stands in a package that has nothing else: the tests
are about the runner alone, and start many processes.
"""

from __future__ import annotations

import os
import py_compile
import shutil
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def start(
    command: list[str], place: Path, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a Python command line in a directory, with torchshim importable."""
    light = place / "light"
    root = light if light.exists() else ROOT
    return subprocess.run(
        [sys.executable, *command],
        cwd=place,
        input=stdin,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
    )


def shim(
    arguments: list[str], place: Path, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    return start(["-m", "torchshim", *arguments], place, stdin)


PROGRAM = """
import sys
print(__name__, __file__, __package__, __spec__ and __spec__.name)
print(sys.argv)
print(sys.path[0])
print(sys.modules["__main__"].__dict__ is globals())
print(sorted(globals()), globals().get("__annotations__"))
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    tmp_path = tmp_path.resolve()
    package = tmp_path / "light" / "torchshim"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '2.13.0+torchshim.light'")
    for name in ("_alias.py", "_version.py", "_well_known.py", "__main__.py"):
        shutil.copy(ROOT / "torchshim" / name, package)
    (package / "_kept_programs.py").write_text("def keep_programs(): pass\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    (tmp_path / "nothing").mkdir()
    for path in ("script.py", "-script.py", "package/part.py", "package/__main__.py"):
        (tmp_path / path).write_text(PROGRAM)
    py_compile.compile(str(tmp_path / "script.py"), str(tmp_path / "compiled.pyc"))
    (tmp_path / "faulty.pyc").write_bytes(b"faulty")
    (tmp_path / "latin.py").write_bytes(b"x = 1\ny = '\xe9'\n")
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", PROGRAM)
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ["script.py", "a", "-b", "--help"],
        ["package/part.py", "-m"],
        ["package", "x"],
        ["app.zip", "x"],
        ["-m", "package.part", "a", "-b"],
        ["-mpackage.part"],
        ["-m", "package"],
        ["--", "-script.py", "x"],
        ["compiled.pyc", "x"],
    ],
)
def test_the_program_sees_what_python_shows_it(
    place: Path, arguments: list[str]
) -> None:
    expected, seen = start(arguments, place), shim(arguments, place)
    assert expected.returncode == 0, expected.stderr
    assert (seen.stdout, seen.stderr) == (expected.stdout, "")
    assert seen.returncode == 0


def test_code_and_standard_input(place: Path) -> None:
    code = "import sys; print(__name__, sys.argv, repr(sys.path[0]), __annotations__)"
    code += "; print(globals().get('__file__'), sorted(globals()))"
    for arguments, stdin in ((["-c", code, "-c", "x"], None), (["-", "x"], code)):
        expected = start(arguments, place, stdin)
        seen = shim(arguments, place, stdin)
        assert (seen.stdout, seen.stderr) == (expected.stdout, expected.stderr)


def test_collections_do_not_look_at_what_was_imported_before(place: Path) -> None:
    seen = shim(["-c", "import gc; print(gc.get_freeze_count())"], place)
    assert int(seen.stdout) > 10_000, seen.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.py"],
        ["-m", "missing"],
        ["-m", "missing.part"],
        ["-m", "package.missing"],
        ["-m", "package.part.missing"],
        ["-m", ".package"],
        ["-m", "package/part.py"],
        ["nothing"],
        ["faulty.pyc"],
        ["latin.py"],
    ],
)
def test_what_cannot_be_started_is_told_as_python_tells_it(
    place: Path, arguments: list[str]
) -> None:
    expected, seen = start(arguments, place), shim(arguments, place)
    assert (seen.stdout, seen.stderr) == (expected.stdout, expected.stderr)
    assert seen.returncode == expected.returncode != 0


@pytest.mark.parametrize(
    "code",
    [
        "raise SystemExit",
        "raise SystemExit(3)",
        "raise SystemExit('told')",
        "import sys; sys.exit(True)",
        "import os; os._exit(7)",
        "import atexit; atexit.register(print, 'last'); 1 / 0",
        "raise KeyboardInterrupt",
        "def f():\n    return f.x\n\nf()",
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['a']",
        "raise ValueError('outer') from KeyError('inner')",
        "raise ExceptionGroup('several', [ValueError(1), TypeError(2)])",
        "x = (1,\ny = 2",
        "import package.faulty",
        "import sys\nsys.excepthook = lambda *a: print('own', a[2].tb_lineno)\n1 / 0",
        "import threading as t\na = t.Thread(target=lambda: 1/0)\na.start(); a.join()",
        "assert False, 'no'",
    ],
)
def test_ends_and_tracebacks_are_those_of_python(place: Path, code: str) -> None:
    (place / "ends.py").write_text(code)
    (place / "package" / "faulty.py").write_text("import sys\n\nsys.nothing\n")
    expected, seen = start(["ends.py"], place), shim(["ends.py"], place)
    assert seen.stdout == expected.stdout
    assert seen.returncode == expected.returncode
    if "Thread" not in code:
        assert seen.stderr == expected.stderr
    elif expected.stderr:
        assert seen.stderr.splitlines()[-1] == expected.stderr.splitlines()[-1]


def test_ctrl_c_ends_the_program_by_its_signal(place: Path) -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    seen = shim(["-c", code], place)
    assert seen.returncode == -signal.SIGINT
    assert seen.stderr.endswith("KeyboardInterrupt\n")
    assert "torchshim" not in seen.stderr


def test_a_script_pickles_what_it_defines(place: Path) -> None:
    code = """
        import pickle
        class Point:
            x: int = 1
        copy = pickle.loads(pickle.dumps(Point()))
        print(type(copy).__module__, type(copy) is Point)
    """
    (place / "own.py").write_text(textwrap.dedent(code))
    assert shim(["own.py"], place).stdout == "__main__ True\n"


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_child_processes_have_the_alias(place: Path, method: str) -> None:
    code = f"""
        import multiprocessing
        import torch
        def work(queue):
            queue.put((torch.__spec__.name, __name__))
        if __name__ == "__main__":
            context = multiprocessing.get_context({method!r})
            queue = context.Queue()
            process = context.Process(target=work, args=(queue,))
            process.start()
            process.join()
            print(process.exitcode, queue.get(timeout=10))
    """
    (place / "children.py").write_text(textwrap.dedent(code))
    seen = shim(["children.py"], place)
    assert seen.stdout == "0 ('torchshim', '__mp_main__')\n", seen.stderr


def test_a_torch_imported_before_is_refused(place: Path) -> None:
    code = "import sys, types; sys.modules['torch'] = types.ModuleType('torch');"
    code += "sys.argv[1:] = ['script.py']; from torchshim.__main__ import main; main()"
    seen = start(["-c", code], place)
    assert seen.returncode == 1
    assert "PyTorch is imported already" in seen.stderr
    assert "Traceback" not in seen.stderr


def test_help_version_and_wrong_usage(place: Path) -> None:
    assert shim(["--help"], place).stdout.startswith("usage: python -m torchshim")
    assert shim(["--version"], place).stdout == "torchshim 0.1.0 (PyTorch 2.13.0)\n"
    for arguments in ([], ["--nothing"], ["-m"], ["-c"]):
        seen = shim(arguments, place)
        assert (seen.returncode, seen.stdout) == (2, "")
        assert "usage: python -m torchshim" in seen.stderr


def test_import_torch_is_torchshim(tmp_path: Path) -> None:
    (tmp_path / "imports.py").write_text(
        textwrap.dedent(
            """
            import logging
            import sys
            logging.basicConfig(level=logging.DEBUG)
            from torch.distributions import Normal
            import torch
            assert sys.modules["torch"] is sys.modules["torchshim"] is torch
            assert torch.distributions.utils.torch is torch  # as PyTorch imports it
            logging.info("a message of the script's")
            print(torch.__version__, torch.ones(3).sum().item())
            """
        )
    )
    seen = shim(["imports.py"], tmp_path)
    assert seen.stdout.startswith("2.13.0+torchshim."), seen.stderr
    assert seen.stdout.endswith(" 3.0\n")
    # A script that logs everything is not told what JAX does.
    assert seen.stderr == "INFO:root:a message of the script's\n"


def test_modules_that_are_called_otherwise_here(tmp_path: Path) -> None:
    program = "from torch._ops import HigherOrderOperator, OpOverload as o; print(o)"
    done = shim(["-c", program], tmp_path)
    assert done.stdout == "<class 'torch._ops.OpOverload'>\n", done.stderr
