"""What a report of an error says of the machine."""

from __future__ import annotations

import importlib
from typing import Any

from tests.oracle import case


def module(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.utils.collect_env")


@case
def names(torch):
    """The fields, and what both engines find."""
    found = module(torch).SystemEnv._fields
    yield found
    env = module(torch).get_env_info()
    yield env.is_cuda_available, env.is_xpu_available, env.pip_version
    yield env.is_debug_build, env.hip_runtime_version
    titles = [
        line.partition(":")[0] for line in module(torch).pretty_str(env).split("\n")
    ]
    yield titles[: titles.index("CPU")]


def test_report(capsys):
    import torchshim

    module(torchshim).main()
    text = capsys.readouterr().out
    assert f"PyTorch version: {torchshim.__version__}" in text
    assert "[pip3] jax==" in text and "[pip3] numpy==" in text


def test_commands():
    import torchshim

    assert module(torchshim).run("echo one; exit 3") == (3, "one", "")
    assert module(torchshim).run(["echo", "two"]) == (0, "two", "")
