"""`torchrun`, of one process: `python -m torchshim -m torch.distributed.run script.py`.

https://docs.pytorch.org/docs/2.13/elastic/run.html
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

__all__ = ["get_args_parser", "main", "parse_args", "run"]

_ONE = "torchshim runs one process: --nnodes=1 --nproc-per-node=1"


def get_args_parser() -> argparse.ArgumentParser:
    """What the command line takes."""
    parser = argparse.ArgumentParser(description="Torch Distributed Elastic Launcher")

    def add(name: str, default: str | None = None, *more: str) -> None:
        names = dict.fromkeys((*more, f"--{name}", f"--{name.replace('-', '_')}"))
        parser.add_argument(*names, default=os.getenv(_variable(name), default))

    def flag(name: str, *more: str) -> None:
        names = dict.fromkeys((*more, f"--{name}", f"--{name.replace('-', '_')}"))
        parser.add_argument(*names, action="store_true")

    add("nnodes", "1:1")
    add("nproc-per-node", "1")
    add("rdzv-backend", "static")
    add("rdzv-endpoint", "")
    add("rdzv-id", "none")
    add("rdzv-conf", "")
    flag("standalone")
    add("max-restarts", "0")
    add("monitor-interval", "0.1")
    add("start-method", "spawn")
    add("role", "default")
    flag("module", "-m")
    flag("no-python")
    flag("run-path")
    add("log-dir")
    add("redirects", "0", "-r")
    add("tee", "0", "-t")
    add("local-ranks-filter", "")
    add("node-rank", "0")
    add("master-addr", "127.0.0.1")
    add("master-port", "29500")
    add("local-addr")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def _variable(name: str) -> str:
    return f"PET_{name.replace('-', '_').upper()}"


def parse_args(args: Sequence[str] | None = None) -> argparse.Namespace:
    """The arguments of the command line."""
    return get_args_parser().parse_args(args)


def run(args: argparse.Namespace) -> None:
    """Runs the script as a process that is told it is alone; ends as it ended."""
    least = str(args.nnodes).partition(":")[0]
    count = str(args.nproc_per_node)
    if least != "1" or args.node_rank != "0" or count not in ("1", "auto", "cpu"):
        raise NotImplementedError(_ONE)
    if args.module and args.no_python:
        raise ValueError(
            "Don't use both the '--no-python' flag and the '--module' flag at the same "
            "time."
        )
    command = [] if args.no_python else [sys.executable, "-u", "-m", "torchshim"]
    command += ["-m"] if args.module else []
    command.append(args.training_script)
    if not getattr(args, "use_env", True):  # only `launch` asks
        command.append("--local-rank=0")
    command += args.training_script_args
    names = "RANK LOCAL_RANK GROUP_RANK ROLE_RANK TORCHELASTIC_RESTART_COUNT".split()
    sizes = "WORLD_SIZE LOCAL_WORLD_SIZE GROUP_WORLD_SIZE ROLE_WORLD_SIZE".split()
    told = {
        **dict.fromkeys(names, "0"),
        **dict.fromkeys(sizes, "1"),
        "ROLE_NAME": args.role,
        "MASTER_ADDR": args.master_addr,
        "MASTER_PORT": args.master_port,
        "TORCHELASTIC_MAX_RESTARTS": args.max_restarts,
        "TORCHELASTIC_RUN_ID": args.rdzv_id,
        "TORCHELASTIC_USE_AGENT_STORE": "False",
    }
    done = subprocess.run(command, env={**os.environ, **told}, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def main(args: Sequence[str] | None = None) -> None:
    """What `torchrun` does."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
