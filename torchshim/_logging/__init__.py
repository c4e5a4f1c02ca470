"""Which of PyTorch's logs are shown: `torch._logging`.

The loggers are Python's, by PyTorch's names. What its compiler would log (guards,
graphs, output code) is not made here, so a script that asks for it sees nothing of it.
"""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import sys
from collections.abc import Iterable
from typing import Any

__all__ = [
    "getArtifactLogger",
    "get_loggers",
    "register_artifact",
    "register_log",
    "set_logs",
    "warning_once",
]

_DYNAMIC = (
    "torch.fx.experimental.symbolic_shapes",
    "torch.fx.experimental.sym_node",
    "torch.fx.experimental.recording",
)
_DDP = ("torch.nn.parallel.distributed", "torch._dynamo.backends.distributed")
_AOT = ("torch._functorch.aot_autograd", "torch._functorch._aot_autograd")
_C10D = ("torch.distributed.distributed_c10d", "torch.distributed.rendezvous")

# The loggers that a setting stands for.
_logs: dict[str, tuple[str, ...]] = {
    "aot": _AOT,
    "autograd": ("torch.autograd",),
    "c10d": _C10D,
    "ddp": _DDP,
    "distributed": ("torch.distributed", *_DDP),
    "dtensor": ("torch.distributed._tensor", "torch.distributed.tensor"),
    "dynamic": _DYNAMIC,
    "dynamo": ("torch._dynamo", *_DYNAMIC),
    "export": ("torch._dynamo", "torch.export", *_DYNAMIC),
    "fsdp": ("torch.distributed.fsdp", "torch.distributed._composable.fsdp"),
    "inductor": ("torch._inductor",),
    "onnx": ("torch.onnx",),
    "torch": ("torch",),
}

# What may be logged besides messages: each has loggers of its own.
_artifacts: set[str] = set(
    "annotation aot_graphs aot_graphs_effects aot_joint_graph autotuning benchmarking "
    "bytecode caching compiled_autograd compiled_autograd_verbose compute_dependencies "
    "cudagraph_static_inputs cudagraphs ddp_graphs fusion graph graph_breaks "
    "graph_code graph_code_verbose graph_region_expansion graph_sizes guards "
    "hierarchical_compile incremental inductor_metrics ir_post_fusion ir_pre_fusion "
    "kernel_code "
    "loop_ordering onnx_diagnostics output_code overlap perf_hints post_grad_graphs "
    "pre_grad_graphs recompiles recompiles_verbose schedule side_effects sym_node "
    "trace_bytecode trace_call trace_source verbose_guards".split()
)
# Those shown only if they are asked for by name.
_apart: set[str] = set(
    "annotation autotuning benchmarking bytecode caching compiled_autograd_verbose "
    "compute_dependencies cudagraph_static_inputs fusion graph_region_expansion "
    "hierarchical_compile incremental inductor_metrics ir_post_fusion ir_pre_fusion "
    "kernel_code loop_ordering onnx_diagnostics output_code overlap perf_hints "
    "recompiles_verbose schedule sym_node verbose_guards".split()
)
# Settings of `modules=` only, not keywords of their own.
_NOT_KEYWORDS = {
    *("annotation", "aot_graphs_effects", "loop_ordering", "verbose_guards"),
    "torch",
}

_asked: set[str] = set()
_of_artifacts: dict[str, str] = {}
_SHORT = {"DEBUG": "V", "INFO": "I", "WARNING": "W", "ERROR": "E", "CRITICAL": "C"}


class _Formatter(logging.Formatter):
    """One line for each of the message's: level, date and time, process, place."""

    def format(self, record: logging.LogRecord) -> str:
        artifact = _of_artifacts.get(record.name)
        name = "" if artifact is None else f" [__{artifact}]"
        text = record.getMessage()
        for rest in (
            record.exc_info and self.formatException(record.exc_info),
            record.stack_info and self.formatStack(record.stack_info),
        ):
            if rest:
                text = f"{text.rstrip(chr(10))}\n{rest}"
        place = record.pathname
        for folder in sorted(sys.path, key=len, reverse=True):
            if folder and place.startswith(os.path.join(folder, "")):
                place = os.path.relpath(place, folder)
                break
        short = _SHORT.get(record.levelname, record.levelname)
        when = self.formatTime(record, "%m%d %H:%M:%S")
        head = f"{short}{when}.{int(record.msecs * 1000):06d} {record.process} "
        lines = text.split("\n")
        return "\n".join(f"{head}{place}:{record.lineno}]{name} {s}" for s in lines)


class _Shown(logging.StreamHandler):
    """The handler that `set_logs` gives a logger."""


def _names() -> Iterable[str]:
    return dict.fromkeys(name for names in _logs.values() for name in names)


def logger(name: str) -> logging.Logger:
    """One of the loggers, after all of them have their handlers."""
    if not any(isinstance(h, _Shown) for h in logging.getLogger("torch").handlers):
        _set_levels({})
    return logging.getLogger(name)


def get_loggers() -> list[logging.Logger]:
    """The loggers that settings stand for."""
    return [logging.getLogger(name) for name in _names()]


def register_log(setting_name: str, log_name: str | list[str]) -> None:
    """Lets `set_logs(modules={setting_name: level})` set these loggers' level."""
    names = [log_name] if isinstance(log_name, str) else log_name
    _logs[setting_name] = tuple(names)


def register_artifact(
    setting_name: str,
    description: str,
    visible: bool = False,
    off_by_default: bool = False,
) -> None:
    """A further artifact. `description` and `visible` are for PyTorch's help text."""
    _artifacts.add(setting_name)
    if off_by_default:
        _apart.add(setting_name)


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of an artifact within a module: it shows all if it was asked for.

    ValueError for an artifact that there is not.

    >>> getArtifactLogger("torch.mine", "graph").name
    'torch.mine.__graph'
    """
    if artifact_name not in _artifacts:
        raise ValueError(
            f"Artifact name: {artifact_name!r} not registered,please call "
            f"register_artifact({artifact_name!r}) in torch._logging.registrations."
        )
    name = f"{module_qname}.__{artifact_name}"
    _of_artifacts[name] = artifact_name
    log = logging.getLogger(name)
    log.artifact_name = artifact_name  # type: ignore[attr-defined]
    _set_artifact(log, artifact_name)
    return log


def _set_artifact(log: logging.Logger, artifact: str) -> None:
    if artifact in _apart:
        log.propagate = False
    if artifact in _asked:
        log.setLevel(logging.DEBUG)
        log.propagate = True


@functools.cache
def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """`logger_obj.warning(...)`, once for each message."""
    logger_obj.warning(*args, **kwargs)


def _levels_of(settings: Iterable[tuple[str, Any]]) -> dict[str, int]:
    """The levels that are asked for, by logger; notes the artifacts."""
    levels: dict[str, int] = {}
    for name, value in settings:
        if value is None:
            continue
        if name in _artifacts:
            if not isinstance(value, bool):
                raise ValueError(
                    f"Expected bool to enable artifact {name}, received {value}"
                )
            if value:
                _asked.add(name)
        elif name in _logs:
            known = logging.getLevelNamesMapping().values()
            if value not in known:
                shown = ",".join(str(k) for k in dict.fromkeys(known))
                raise ValueError(
                    f"Unrecognized log level for log {name}: {value}, valid level "
                    f"values are: {shown}"
                )
            levels.update((each, value) for each in _logs[name])
        elif importlib.util.find_spec(name) is not None:
            _logs[name] = (name,)
            levels[name] = value
        else:
            raise ValueError(
                f"Unrecognized log or artifact name passed to set_logs: {name}"
            )
    return levels


def set_logs(
    *, all: int | None = None, modules: dict[str, Any] | None = None, **settings: Any
) -> None:
    """Sets which logs are shown, and takes back what an earlier call set.

    A level for each component (`dynamo=logging.DEBUG`, `all=` for all of them), a bool
    for each artifact (`graph_code=True`), and of other modules `modules={name: level}`.
    ValueError for what is no level and for a module that there is not. Where the
    variable TORCH_LOGS is set, a call only warns, as PyTorch's does. Follows
    https://docs.pytorch.org/docs/2.13/generated/torch._logging.set_logs.html.

    >>> set_logs(all=logging.ERROR)
    >>> logging.getLogger("torch").level == logging.ERROR
    True
    >>> set_logs()
    """
    for name in settings:
        if name in _NOT_KEYWORDS or not (name in _artifacts or name in _logs):
            raise TypeError(f"set_logs() got an unexpected keyword argument '{name}'")
    if "TORCH_LOGS" in os.environ:
        logger("torch._logging._internal").warning(
            "Using TORCH_LOGS environment variable for log settings, ignoring call to "
            "set_logs"
        )
        return
    _asked.clear()
    settings = {"torch": all, **settings, **(modules or {})}
    _set_levels(_levels_of(settings.items()))


def _set_levels(levels: dict[str, int]) -> None:
    for name in _names():
        log = logging.getLogger(name)
        log.setLevel(logging.WARNING if name == "torch" else logging.NOTSET)
        log.propagate = False
        for handler in [h for h in log.handlers if isinstance(h, _Shown)]:
            log.removeHandler(handler)
        handler = _Shown()
        handler.setFormatter(_Formatter())
        log.addHandler(handler)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    for name, artifact in _of_artifacts.items():
        log = logging.getLogger(name)
        log.setLevel(logging.NOTSET)
        log.propagate = True
        _set_artifact(log, artifact)
