"""Command line of the suite: `python -m compat_suite scripts [--match REGEX]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial

from compat_suite.script import TORCH_VERSION, Failure, Script, has_torch, scripts


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line names; 1 when something differs."""
    parser = argparse.ArgumentParser(prog="python -m compat_suite")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("scripts", help="compare what whole scripts print")
    run.add_argument("--match", default="", metavar="REGEX", help="choose by name")
    run.add_argument(
        "--seconds",
        type=float,
        default=float("inf"),
        metavar="N",
        help="leave out scripts that say they take longer",
    )
    for name in ("--rtol", "--atol"):
        run.add_argument(
            name,
            type=float,
            default=0.0,
            help="let printed numbers differ by so much (by default the text is exact, "
            "but for scripts that ask for a tolerance)",
        )
    mode = run.add_mutually_exclusive_group()
    mode.add_argument(
        "--live", action="store_true", help="compare with PyTorch run now"
    )
    mode.add_argument(
        "--record", action="store_true", help="write what PyTorch prints to expected/"
    )
    options = parser.parse_args(arguments)
    chosen = scripts(options.match, options.seconds)
    if not chosen:
        parser.error("no script is chosen by --match and --seconds")
    if (options.live or options.record) and not has_torch():
        parser.error(f"this needs torch {TORCH_VERSION}")
    if options.record:
        return run_scripts(chosen, record)
    check = partial(
        Script.check, live=options.live, rtol=options.rtol, atol=options.atol
    )
    return run_scripts(chosen, check)


def record(script: Script) -> None:
    """Write what PyTorch prints."""
    script.expected_path.parent.mkdir(exist_ok=True)
    script.expected_path.write_text(script.run(shim=False))


def run_scripts(chosen: list[Script], act: Callable[[Script], None]) -> int:
    """Check or record scripts one by one, a line for each; 1 when one fails."""
    failed = 0
    for script in chosen:
        start = time.perf_counter()
        try:
            act(script)
            result = "ok"
        except Failure as failure:
            failed += 1
            result = f"FAILED\n{failure}"
        elapsed = time.perf_counter() - start
        print(f"{script.name} ({elapsed:.1f} s): {result}", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} scripts: ok")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
