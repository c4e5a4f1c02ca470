"""The examples print under torchshim what they print under PyTorch.

`examples/expected/NAME.txt` holds the output of PyTorch 2.13.0. Where torch is
installed it runs them, too, and must still print that. To record again:

    python tests/test_examples.py --record
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
EXPECTED = EXAMPLES / "expected"
TOLERANCE = 1e-3

# Short settings: enough steps to see that the training goes the same way.
ARGUMENTS = {
    "autograd_tour": [],
    "char_lm": ["--steps", "100"],
    "digits": ["--epochs", "3"],
    "second_derivatives": ["--steps", "100"],
}
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")
# What depends on the machine, not on the mathematics.
CLOCK = re.compile(r"\s*[\d,.]+ images/s|trained in [\d.]+ s")


def run(*command: str) -> str:
    """What the command prints, run from the root of the repository."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    result = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def script(name: str) -> list[str]:
    return [str(EXAMPLES / f"{name}.py"), *ARGUMENTS[name]]


def assert_same_output(actual: str, expected: str) -> None:
    """Equal text around equal numbers, up to TOLERANCE."""
    actual, expected = CLOCK.sub("", actual), CLOCK.sub("", expected)
    assert NUMBER.sub("#", actual) == NUMBER.sub("#", expected)
    numbers = [float(number) for number in NUMBER.findall(actual)]
    assert numbers == pytest.approx(
        [float(number) for number in NUMBER.findall(expected)], rel=0, abs=TOLERANCE
    )


def accuracy(output: str) -> float:
    match = re.search(r"test accuracy ([\d.]+)%", output)
    assert match, output
    return float(match[1])


def without_accuracy(output: str) -> str:
    """An image on the border between two digits may fall either way."""
    return re.sub(r"test accuracy .*\n", "", output)


def compare(name: str, actual: str, expected: str) -> None:
    if name == "digits":
        # 359 images are held out: 0.6 percentage points are two of them.
        assert accuracy(actual) == pytest.approx(accuracy(expected), abs=0.6)
        actual, expected = without_accuracy(actual), without_accuracy(expected)
    assert_same_output(actual, expected)


def test_every_example_is_here():
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(ARGUMENTS)


def recorded(name: str) -> str:
    return (EXPECTED / f"{name}.txt").read_text()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_prints_what_was_recorded(name):
    compare(name, run("-m", "torchshim", *script(name)), recorded(name))


@pytest.mark.live
@pytest.mark.parametrize("name", ARGUMENTS)
def test_pytorch_still_prints_what_was_recorded(name, real_torch):
    compare(name, run(*script(name)), recorded(name))


def test_digits_learns_to_read():
    output = run("-m", "torchshim", str(EXAMPLES / "digits.py"))
    assert accuracy(output) >= 97


@pytest.mark.parametrize("name", sorted(set(ARGUMENTS) - {"digits"}))
def test_small_examples_stay_small(name):
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) < 60


def test_the_comparison_sees_a_difference():
    same = "epoch 1  loss 0.1234     900 images/s\n"
    assert_same_output("epoch 1  loss 0.1239   1,200 images/s\n", same)
    for other in ("epoch 1  loss 0.1250\n", "epoch 2  loss 0.1234\n", "loss 0.1234\n"):
        with pytest.raises(AssertionError):
            assert_same_output(other, same)


def record() -> None:
    """Write the expected outputs with the torch that is installed."""
    import torch

    assert torch.__version__.partition("+")[0] == "2.13.0", torch.__version__
    EXPECTED.mkdir(exist_ok=True)
    for name in ARGUMENTS:
        output = CLOCK.sub("", run(*script(name)))
        (EXPECTED / f"{name}.txt").write_text(output)
        print(f"recorded {name}")


if __name__ == "__main__":
    if sys.argv[1:] != ["--record"]:
        sys.exit("usage: python tests/test_examples.py --record")
    record()
