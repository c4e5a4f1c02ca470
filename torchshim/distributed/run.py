"""`torchrun`: `python -m torchshim -m torch.distributed.run script.py`.

https://docs.pytorch.org/docs/2.13/elastic/run.html
"""

from __future__ import annotations

import argparse
import os
import sys
import uuid
from collections.abc import Sequence

from torchshim import cuda
from torchshim.distributed._launcher import Launch
from torchshim.distributed._tcp_store import TCPStore

__all__ = ["get_args_parser", "main", "parse_args", "run"]

_PORT = "29500"
_OMP = (
    "\n*****************************************\n"
    "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, "
    "to avoid your system being overloaded, please further tune the variable for "
    "optimal performance in your application as needed. \n"
    "*****************************************"
)


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
    add("master-port", _PORT)
    add("local-addr")
    parser.add_argument("training_script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER)
    return parser


def _variable(name: str) -> str:
    return f"PET_{name.replace('-', '_').upper()}"


def parse_args(args: Sequence[str] | None = None) -> argparse.Namespace:
    """The arguments of the command line."""
    return get_args_parser().parse_args(args)


def _nodes(told: str) -> int:
    """The number of machines. NotImplementedError where it may change."""
    least, _, most = str(told).partition(":")
    if most and most != least:
        raise NotImplementedError(
            f"torch.distributed.run: --nnodes={told} is not supported, only a number "
            "of nodes that stays"
        )
    return int(least)


def _processes(told: str) -> int:
    """The number of processes on this machine. ValueError for none."""
    if told in ("cpu", "auto", "gpu"):
        accelerators = 0 if told == "cpu" else cuda.device_count()
        if told == "gpu" and not accelerators:
            raise ValueError("Cuda is not available.")
        return accelerators or os.cpu_count() or 1
    try:
        return int(told)
    except ValueError:
        raise ValueError(f"Unsupported nproc_per_node value: {told}") from None


def _check(args: argparse.Namespace) -> None:
    if args.module and args.no_python:
        raise ValueError(
            "Don't use both the '--no-python' flag and the '--module' flag at the same "
            "time."
        )
    refused = {"redirects": "0", "tee": "0", "local_ranks_filter": "", "log_dir": None}
    for name, default in refused.items():
        if getattr(args, name) != default:
            option = name.replace("_", "-")
            raise NotImplementedError(
                f"torch.distributed.run: --{option} is not supported, what processes "
                "print is the launcher's"
            )


def _meeting(args: argparse.Namespace, nodes: int) -> tuple[str, int, str]:
    """Host, port and name of the run: a free port if this machine is alone."""
    host, _, port = args.rdzv_endpoint.partition(":")
    if args.standalone or (
        nodes == 1 and not host and args.master_port == _PORT and args.rdzv_id == "none"
    ):
        return "localhost", 0, str(uuid.uuid4())
    if nodes > 1 and args.rdzv_backend != "static":
        raise NotImplementedError(
            f"torch.distributed.run: --rdzv-backend={args.rdzv_backend} of several "
            "nodes is not supported, only static"
        )
    if host:
        return host, int(port or _PORT), args.rdzv_id
    return args.master_addr, int(args.master_port), args.rdzv_id


def run(args: argparse.Namespace) -> None:
    """Runs the script in processes that are told about one another.

    The launcher of the first node serves the store that they meet at. SystemExit when
    one of them fails; the others are ended then.
    """
    _check(args)
    nodes, count = _nodes(args.nnodes), _processes(args.nproc_per_node)
    host, port, name = _meeting(args, nodes)
    node = int(args.node_rank)
    world = nodes * count
    store = TCPStore(host, port, None, True) if node == 0 else None
    told = {
        "GROUP_RANK": str(node),
        "GROUP_WORLD_SIZE": str(nodes),
        "ROLE_NAME": args.role,
        "MASTER_ADDR": host,
        "MASTER_PORT": str(port if store is None else store.port),
        "TORCHELASTIC_RUN_ID": name,
        "TORCHELASTIC_USE_AGENT_STORE": str(True),
    }
    if count > 1 and "OMP_NUM_THREADS" not in os.environ:
        print(_OMP, file=sys.stderr)
        told["OMP_NUM_THREADS"] = "1"

    def command(local: int) -> list[str]:
        made = [] if args.no_python else [sys.executable, "-u", "-m", "torchshim"]
        made += ["-m"] if args.module else []
        made.append(args.training_script)
        if not getattr(args, "use_env", True):  # only `launch` asks
            made.append(f"--local-rank={local}")
        return [*made, *args.training_script_args]

    restarts = int(args.max_restarts)
    failure = Launch(command, told, count, node * count, world, restarts).run()
    if failure is not None:
        print(f"{args.training_script} FAILED\n{failure}", file=sys.stderr)
        raise SystemExit(1)


def main(args: Sequence[str] | None = None) -> None:
    """What `torchrun` does."""
    run(parse_args(args))


if __name__ == "__main__":
    main()
