"""The launcher before `torchrun`: `python -m torch.distributed.launch script.py`.

https://docs.pytorch.org/docs/2.13/distributed.html#launch-utility
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from torchshim import _warnings as warnings
from torchshim.distributed import run as _run

__all__ = ["launch", "main", "parse_args"]

_DEPRECATED = (
    "The module torch.distributed.launch is deprecated\n"
    "and will be removed in future. Use torchrun.\n"
    "Note that --use-env is set by default in torchrun.\n"
    "If your script expects `--local-rank` argument to be set, please\n"
    "change it to read from `os.environ['LOCAL_RANK']` instead. See \n"
    "https://pytorch.org/docs/stable/distributed.html#launch-utility for \n"
    "further instructions\n"
)


def parse_args(args: Sequence[str] | None) -> argparse.Namespace:
    """`torchrun`'s arguments, and whether the environment alone tells the rank."""
    parser = _run.get_args_parser()
    parser.add_argument("--use-env", "--use_env", action="store_true")
    return parser.parse_args(args)


def launch(args: argparse.Namespace) -> None:
    """Runs the script; without `--use-env` it is told its rank by `--local-rank`."""
    if args.no_python and not args.use_env:
        raise ValueError(
            "When using the '--no-python' flag, you must also set the '--use-env' flag."
        )
    _run.run(args)


def main(args: Sequence[str] | None = None) -> None:
    """What `torchrun` does, for scripts that expect an argument `--local-rank`."""
    warnings.warn(_DEPRECATED, FutureWarning, stacklevel=2)
    launch(parse_args(args))


if __name__ == "__main__":
    main()
