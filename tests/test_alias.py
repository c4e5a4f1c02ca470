"""`import torch` as torchshim, in fresh interpreters.

The alias is tested on a small package that has torchshim's name and its `_alias`
module, so that these tests say something about the alias alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "torchshim"

MODULES = {
    "torchshim/__init__.py": """
        from torchshim._alias import install, uninstall
        from torchshim import nn, utils
        class Tensor: pass
        __version__ = "2.13.0+torchshim"
    """,
    "torchshim/_core/__init__.py": "",
    "torchshim/nn/__init__.py": "from torchshim.nn import functional\nclass Module: 0",
    "torchshim/nn/functional.py": "import torchshim\ndef relu(x): return x",
    "torchshim/utils/__init__.py": "",
    "torchshim/utils/data/__init__.py": "class DataLoader: 0",
    "torchshim/lazy.py": "loads = []\nloads.append(__name__)",
    "torchshim/broken.py": "import nowhere_to_be_found",
}

REAL = {
    "torch/__init__.py": "import torch.nn\nreal = True",
    "torch/nn/__init__.py": "import torch\nfrom torch import nn as _self\nreal = True",
}


def write(place: Path, modules: dict[str, str]) -> None:
    for name, text in modules.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write(tmp_path, MODULES)
    for name in ("_alias.py", "_version.py", "_well_known.py", "__main__.py"):
        shutil.copy(PACKAGE / name, tmp_path / "torchshim" / name)
    return tmp_path


def run(place: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-S", "-c", textwrap.dedent(code)],
        cwd=place,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_form_of_import_gives_the_same_module_objects(place: Path) -> None:
    run(
        place,
        """
        import torchshim
        torchshim.install()
        import torch
        import torch.nn as nn_1
        from torch import nn as nn_2
        from torch.nn import functional as F_1
        import torch.nn.functional as F_2
        from torch.utils.data import DataLoader
        import importlib, sys
        import torchshim.nn.functional, torchshim.utils.data
        assert torch is torchshim is sys.modules["torch"]
        assert torch.__name__ == "torch" and torch.__spec__.name == "torchshim"
        try:
            torch.nothing
        except AttributeError as error:
            assert str(error) == "module 'torch' has no attribute 'nothing'"
        assert nn_1 is nn_2 is torchshim.nn is sys.modules["torch.nn"]
        assert F_1 is F_2 is torchshim.nn.functional
        assert DataLoader is torchshim.utils.data.DataLoader
        assert importlib.import_module("torch.utils") is torchshim.utils
        assert importlib.import_module(".data", "torch.utils") is torchshim.utils.data
        """,
    )


def test_a_module_runs_once_under_either_name_and_keeps_its_spec(place: Path) -> None:
    run(
        place,
        """
        import torchshim
        torchshim.install()
        import torch.lazy
        import torchshim.lazy
        assert torch.lazy.loads == ["torchshim.lazy"]
        assert torchshim.lazy is torch.lazy
        for name in ("torchshim", "torchshim.lazy", "torchshim.nn"):
            import importlib
            module = importlib.import_module(name)
            assert module.__spec__.name == name
            shown = "torch" if name == "torchshim" else name
            assert module.__name__ == shown
            assert not isinstance(module.__loader__, torchshim._alias._AliasLoader)
        import importlib
        assert importlib.reload(torch.lazy) is torchshim.lazy
        """,
    )


def test_what_does_not_exist_is_named(place: Path) -> None:
    run(
        place,
        """
        import torchshim
        torchshim.install()

        def message(statement):
            try:
                exec(statement)
            except ImportError as error:
                assert isinstance(error, ModuleNotFoundError) or "from" in statement
                return str(error)

        assert message("import torch.foo") == "No module named 'torch.foo'"
        assert message("import torch.foo.bar") == "No module named 'torch.foo'"
        assert message("import torch.nn.foo") == "No module named 'torch.nn.foo'"
        assert message("from torch.foo import x") == "No module named 'torch.foo'"
        assert message("from torch import foo").startswith(
            "cannot import name 'foo' from 'torch"
        )
        assert message("import torch.lazy.x") == (
            "No module named 'torch.lazy.x'; 'torch.lazy' is not a package"
        )
        # A module of ours that lacks something of its own says what that is.
        assert message("import torch.broken") == (
            "No module named 'nowhere_to_be_found'"
        )
        """,
    )


def test_private_modules_are_not_modules_of_torch(place: Path) -> None:
    run(
        place,
        """
        import torchshim, torchshim._core
        torchshim.install()
        for name in ("torch._core", "torch._alias", "torch.__main__"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                assert str(error) == f"No module named {name!r}"
                assert error.name == name
            else:
                raise AssertionError(name)
        """,
    )


def test_find_spec_and_metadata(place: Path) -> None:
    run(
        place,
        """
        import importlib.metadata, importlib.util, sys
        assert importlib.util.find_spec("torch") is None
        import torchshim
        torchshim.install()
        assert "torch" not in sys.modules
        spec = importlib.util.find_spec("torch")
        assert spec.name == "torch"
        assert spec.origin == torchshim.__file__
        assert importlib.util.find_spec("torch.foo") is None
        assert importlib.util.find_spec("torch.nn.functional") is not None
        assert importlib.metadata.version("torch").startswith("2.13.0+torchshim.")
        names = [d.metadata["Name"] for d in importlib.metadata.distributions()]
        assert names.count("torch") == 1
        import torch
        assert importlib.util.find_spec("torch") is torchshim.__spec__
        torchshim.uninstall()
        assert importlib.util.find_spec("torch") is None
        try:
            importlib.metadata.version("torch")
        except importlib.metadata.PackageNotFoundError:
            pass
        else:
            raise AssertionError
        """,
    )


def test_pickles_cross_in_both_directions(place: Path) -> None:
    run(
        place,
        """
        import pickle, torchshim
        plain = pickle.dumps(torchshim.nn.Module)
        torchshim.install()
        import torch
        assert pickle.loads(plain) is torch.nn.Module
        assert pickle.loads(b"ctorch.nn\\nModule\\n.") is torchshim.nn.Module
        assert pickle.loads(pickle.dumps(torch.Tensor())).__class__ is torchshim.Tensor
        """,
    )


def test_uninstall_gives_torch_back(place: Path) -> None:
    write(place, REAL)
    run(
        place,
        """
        import sys, torchshim
        torchshim.uninstall()
        torchshim.install()
        torchshim.install()
        import torch, torch.nn
        assert torch is torchshim
        torchshim.uninstall()
        assert torchshim.__name__ == "torchshim"
        assert not [n for n in sys.modules if n.split(".")[0] == "torch"]
        import torch.nn
        assert torch.real and torch.nn.real and torchshim.nn.Module
        """,
    )


def test_an_imported_torch_is_never_mixed_with_ours(place: Path) -> None:
    write(place, REAL)
    run(
        place,
        """
        import torch, torchshim
        assert torch.real
        try:
            torchshim.install()
        except ImportError as error:
            assert "PyTorch is imported already" in str(error), error
            assert torch.__file__ in str(error)
        else:
            raise AssertionError
        assert __import__("torch") is torch
        """,
    )


def test_an_installed_torch_is_not_shadowed_unless_asked(place: Path) -> None:
    write(place, REAL)
    run(place, "import torchshim, torch\nassert torch.real")


LIMITED = {
    "chosen/__init__.py": """
        import torch
        import torch.nn as nn
        from torch.nn import functional as F
        from torch.utils.data import DataLoader
        def later():
            import torch.lazy
            import importlib
            assert importlib.import_module("torch.lazy") is torch.lazy
            return torch
    """,
    "chosen/part.py": "from torch import nn",
    "chosen/wrong.py": "import torch.foo",
    "chosen/private.py": "import torch._core",
    "chosenish.py": "import torch",
    "other.py": """
        import torch, importlib
        assert importlib.import_module("torch") is torch
    """,
}


@pytest.mark.parametrize("limits", ["only=['chosen']", "block=['other', 'chosenish']"])
def test_chosen_importers_get_torchshim_the_others_torch(
    place: Path, limits: str
) -> None:
    write(place, REAL | LIMITED)
    run(
        place,
        f"""
        import builtins, importlib, sys
        before = builtins.__import__, importlib.import_module
        import torchshim
        torchshim.install({limits})
        torchshim.install({limits})
        import chosen, chosen.part, chosenish, other
        assert chosen.torch is torchshim and chosen.nn is torchshim.nn
        assert chosen.F is torchshim.nn.functional
        assert chosen.later() is torchshim
        assert chosen.part.nn is torchshim.nn
        assert other.torch.real and other.torch.nn.real
        assert chosenish.torch is other.torch is sys.modules["torch"]
        for name, missing in (("wrong", "foo"), ("private", "_core")):
            try:
                importlib.import_module(f"chosen.{{name}}")
            except ModuleNotFoundError as error:
                assert str(error) == f"No module named 'torch.{{missing}}'", error
            else:
                raise AssertionError(name)
        torchshim.uninstall()
        assert (builtins.__import__, importlib.import_module) == before
        import torch
        assert torch.real
        """,
    )


def test_the_others_get_what_they_would_get_without_torchshim(place: Path) -> None:
    write(place, LIMITED)
    run(
        place,
        """
        import torchshim
        torchshim.install(only=["chosen", "__main__"])
        import chosen, torch
        assert torch is chosen.torch is torchshim
        try:
            import other
        except ModuleNotFoundError as error:
            assert str(error) == "No module named 'torch'"
        else:
            raise AssertionError
        """,
    )


def test_block_wins_over_only(place: Path) -> None:
    write(place, REAL | LIMITED)
    run(
        place,
        """
        import torchshim
        torchshim.install(only="chosen", block="chosen.part")
        import chosen.part
        assert chosen.nn is torchshim.nn and chosen.part.nn.real
        """,
    )


def test_limits_refuse_a_package_that_holds_torch(place: Path) -> None:
    write(place, REAL | LIMITED | {"holds.py": "import torch.nn as nn"})
    run(
        place,
        """
        import other, holds, torchshim
        torchshim.install(only=["chosen"])
        import chosen
        assert chosen.torch is torchshim
        torchshim.uninstall()
        try:
            torchshim.install(only=["chosen", "holds"])
        except ImportError as error:
            assert str(error).startswith("holds has imported PyTorch already"), error
        else:
            raise AssertionError
        """,
    )


def test_other_arguments_while_installed_are_an_error(place: Path) -> None:
    run(
        place,
        """
        import torchshim
        for first, second in (({}, {"only": "a"}), ({"only": "a"}, {}),
                              ({"only": "a"}, {"only": "b"})):
            torchshim.install(**first)
            try:
                torchshim.install(**second)
            except RuntimeError as error:
                assert "call torchshim.uninstall() first" in str(error)
            else:
                raise AssertionError
            torchshim.uninstall()
        try:
            torchshim.install(only=[torchshim])
        except TypeError as error:
            assert str(error) == (
                "install() argument 'only' takes names of packages, not module"
            )
        else:
            raise AssertionError
        """,
    )


def test_a_wrapper_put_around_ours_survives_uninstall(place: Path) -> None:
    write(place, REAL)
    run(
        place,
        """
        import builtins, torchshim
        torchshim.install(only="__main__")
        inner = builtins.__import__
        def wrapper(*args, **kwargs):
            return inner(*args, **kwargs)
        builtins.__import__ = wrapper
        torchshim.uninstall()
        assert builtins.__import__ is wrapper
        import torch
        assert torch.real
        """,
    )


def test_the_package_itself_under_its_alias() -> None:
    """The same on the real package: the imports that scripts begin with."""
    run(
        PACKAGE.parent,
        f"""
        import sys
        sys.path[1:1] = {[p for p in sys.path if p]!r}
        import torchshim
        torchshim.install()
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        import torch.optim as optim
        from torch import Tensor, nn as same
        from torch.utils.data import DataLoader, TensorDataset
        from torch.autograd import grad
        assert torch is torchshim and nn is same is torchshim.nn
        assert F is torchshim.nn.functional and optim is torchshim.optim
        assert isinstance(torch.zeros(2), torchshim.Tensor)
        assert torch.__version__.startswith("2.13.0+torchshim.")
        assert tuple(int(n) for n in torch.__version__.split(".")[:2]) >= (2, 0)
        """,
    )


def test_classes_and_functions_say_torch() -> None:
    """In what is printed and pickled, as long as the alias stands."""
    run(
        PACKAGE.parent,
        f"""
        import sys
        sys.path[1:1] = {[p for p in sys.path if p]!r}
        import inspect, pickle, torchshim
        own = torchshim.nn.Linear.__module__
        torchshim.install()
        assert torchshim.nn.Linear.__module__ == own
        import torch, torch.distributions
        shown = {{
            torch.nn.Linear: "torch.nn.modules.linear",
            torch.nn.LazyConv1d: "torch.nn.modules.conv",
            torch.optim.lr_scheduler.ReduceLROnPlateau: "torch.optim.lr_scheduler",
            torch.autograd.function.FunctionCtx: "torch.autograd.function",
            torch.distributions.Normal: "torch.distributions.normal",
            torch.Size: "torch",
            torch.dtype: "torch",
            torch.save: "torch.serialization",
            torch.autograd.grad: "torch.autograd",
            torch.nn.functional.relu: "torch.nn.functional",
        }}
        for value, module in shown.items():
            assert value.__module__ == module, (value, module)
            assert pickle.loads(pickle.dumps(value)) is value
            assert inspect.getmodule(value) is sys.modules[module]
        assert str(torch.nn.Linear) == "<class 'torch.nn.modules.linear.Linear'>"
        assert inspect.getsource(torch.nn.Linear).startswith("class Linear(Module)")
        assert inspect.getsource(torch.autograd.grad).startswith("def grad")
        torchshim.uninstall()
        assert torchshim.nn.Linear.__module__ == own == "torchshim.nn.modules.linear"
        assert all("torchshim" in value.__module__ for value in shown)
        """,
    )
