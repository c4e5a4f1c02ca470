"""Command line of the suite: `python -m compat_suite COMMAND`."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from compat_suite.script import TORCH_VERSION, Failure, Script, has_torch, scripts


def main(arguments: list[str] | None = None) -> int:
    """Run what the command line names; 1 when something differs."""
    parser = argparse.ArgumentParser(prog="python -m compat_suite")
    commands = parser.add_subparsers(dest="command", required=True)
    _scripts_parser(commands.add_parser("scripts", help="compare what scripts print"))
    _ops_parser(commands.add_parser("ops", help="compare PyTorch's operator database"))
    _database_parser(
        commands.add_parser("modules", help="compare PyTorch's module database"),
        "modules",
    )
    _database_parser(
        commands.add_parser("optimizers", help="compare PyTorch's optimizer database"),
        "optimizers",
    )
    features = commands.add_parser("features", help="run the tests of features")
    features.set_defaults(run=_features)
    features.add_argument(
        "--keep", action="store_true", help="keep the results for the report"
    )
    _report_parser(commands.add_parser("report", help="make a page of the results"))
    _names_parser(commands.add_parser("names", help="list the public names"))
    _fuzz_parser(commands.add_parser("fuzz", help="compare random programs"))
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except UsageError as error:
        parser.error(str(error))


class UsageError(Exception):
    """The command line asks for something that cannot be done."""


def _scripts_parser(run: argparse.ArgumentParser) -> None:
    run.set_defaults(run=_scripts)
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
    mode.add_argument(
        "--keep", action="store_true", help="keep what is printed for the report"
    )


def _scripts(options: argparse.Namespace) -> int:
    chosen = scripts(options.match, options.seconds)
    if not chosen:
        raise UsageError("no script is chosen by --match and --seconds")
    if options.live or options.record:
        _need_torch()
    if options.record:
        return run_scripts(chosen, record)
    if options.keep:
        from compat_suite import outputs

        return run_scripts(chosen, outputs.keep)
    check = partial(
        Script.check, live=options.live, rtol=options.rtol, atol=options.atol
    )
    return run_scripts(chosen, check)


def _need_torch() -> None:
    if not has_torch():
        raise UsageError(f"this needs torch {TORCH_VERSION}")


def _ops_parser(run: argparse.ArgumentParser) -> None:
    _database_parser(run, "operators")
    run.add_argument("--grad", action="store_true", help="compare gradients")
    run.add_argument(
        "--gradgrad", action="store_true", help="compare second gradients, too"
    )
    run.add_argument(
        "--kind",
        action="append",
        metavar="KIND",
        help="make these checks only; layouts, tangents, vmap and third (gradients) "
        "are made only where they are named",
    )
    run.add_argument(
        "--references",
        type=int,
        metavar="N",
        help="reference inputs (extreme values, other shapes) of an entry in a dtype",
    )
    run.set_defaults(run=_ops)
    mode = run.add_mutually_exclusive_group()
    mode.add_argument(
        "--recorded",
        action="store_true",
        help="compare with recorded results (so it is where there is no torch)",
    )
    mode.add_argument(
        "--record", action="store_true", help="write what PyTorch gives for samples"
    )


def _ops(options: argparse.Namespace) -> int:
    if options.record:
        _need_torch()
        from compat_suite.recorded import recording

        print(f"{recording.record(options.match) / 1e6:.1f} MB")
        return 0
    if options.recorded or not has_torch():
        options.package = "recorded"
    return _database(options)


def _database_parser(run: argparse.ArgumentParser, package: str) -> None:
    run.set_defaults(run=_database, package=package)
    run.add_argument("--match", default="", metavar="REGEX", help="choose by name")
    run.add_argument(
        "--dtype",
        action="append",
        default=[],
        metavar="NAME",
        help="compare in this dtype only; several may be given",
    )
    run.add_argument(
        "--samples",
        type=int,
        default=4,
        metavar="N",
        help="sample inputs of an entry in a dtype",
    )
    run.add_argument(
        "--jobs", type=int, default=os.cpu_count(), metavar="N", help="processes"
    )
    run.add_argument(
        "--seed", type=int, default=0, metavar="S", help="of samples and cotangents"
    )
    run.add_argument(
        "--seconds",
        type=float,
        default=120.0,
        metavar="N",
        help="end a check that takes longer (per entry and dtype)",
    )
    run.add_argument("--json", type=Path, metavar="FILE", help="write the results")
    run.add_argument(
        "--keep", action="store_true", help="keep the results for the report"
    )


def _database(options: argparse.Namespace) -> int:
    if options.package != "recorded":
        _need_torch()
    from compat_suite.operators import run

    chosen = {
        "dtypes": options.dtype,
        "samples": options.samples,
        "seed": options.seed,
    }
    if options.package in ("operators", "recorded"):
        chosen["grad"] = options.grad or options.gradgrad
        chosen["gradgrad"] = options.gradgrad
    if options.package == "operators":
        chosen |= {"kinds": options.kind} if options.kind else {}
        chosen["references"] = options.references
    return run.run(
        options.package,
        options.match,
        chosen,
        jobs=options.jobs,
        seconds=options.seconds,
        written=options.json,
        keep=options.keep and options.package != "recorded",
    )


def _names_parser(run: argparse.ArgumentParser) -> None:
    run.set_defaults(run=_names)
    run.add_argument("--match", default="", metavar="REGEX", help="choose by name")
    run.add_argument(
        "--lacking", action="store_true", help="show only the names that are missing"
    )
    run.add_argument(
        "--record", action="store_true", help="list the names of the installed PyTorch"
    )


def _names(options: argparse.Namespace) -> int:
    from compat_suite.public import coverage, listing

    if options.record:
        _need_torch()
        listing.write()
    found = coverage.coverage()
    for path, states in found.items():
        for name, state in states.items():
            full = f"{path}.{name}"
            lacks = state == coverage.LACKS
            if re.search(options.match, full) and (lacks or not options.lacking):
                known = state in (coverage.HAS, coverage.LACKS)
                print(f"{full}: {'' if known else 'left out: '}{state}")
    print()
    print(coverage.table(found))
    return 0


def _fuzz_parser(run: argparse.ArgumentParser) -> None:
    from tests import fuzz_core

    run.set_defaults(run=_fuzz)
    run.add_argument("--programs", type=int, default=100, metavar="N")
    run.add_argument("--seed", type=int, default=0, metavar="S", help="the first one")
    run.add_argument(
        "--record", action="store_true", help="write what PyTorch gives for the tests"
    )
    fuzz_core.arguments(run)


def _fuzz(options: argparse.Namespace) -> int:
    from tests import fuzz_core

    _need_torch()
    if options.record:
        seeds = range(options.seed, options.seed + options.programs)
        print(f"{fuzz_core.record(seeds)} programs")
        return 0
    return fuzz_core.report(options.seed, options.programs, options)


def _features(options: argparse.Namespace) -> int:
    from compat_suite.features import running

    run = running.run()
    if options.keep:
        run.write(running.RECORDED)
    print(running.table(run))
    return 1 if any("failed" in found.values() for found in run.tests.values()) else 0


def _report_parser(run: argparse.ArgumentParser) -> None:
    run.set_defaults(run=_report)
    run.add_argument("--out", type=Path, required=True, metavar="FILE")
    run.add_argument(
        "--results",
        type=Path,
        metavar="FILE",
        help="what `ops --json` wrote (by default the results in the repository)",
    )


def _report(options: argparse.Namespace) -> int:
    from compat_suite.report.build import kept, page

    if options.results and not options.results.exists():
        raise UsageError(f"there is no {options.results}: make it with `ops --json`")
    options.out.write_text(page(kept(options.results)), encoding="utf-8")
    return 0


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
