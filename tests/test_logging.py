"""`torch._logging`: levels of loggers, and how their messages are shown."""

from __future__ import annotations

import contextlib
import io
import logging
import re

from tests.oracle import attempt, case

NAMES = (
    "torch",
    "torch._dynamo",
    "torch._inductor",
    "torch.onnx",
    "torch.mine.__graph",
)


def state():
    loggers = [logging.getLogger(name) for name in NAMES]
    return [(x.level, x.getEffectiveLevel(), x.propagate) for x in loggers]


@case
def levels(torch):
    set_logs = torch._logging.set_logs
    torch._logging.getArtifactLogger("torch.mine", "graph")
    set_logs(all=logging.ERROR)
    yield state()
    set_logs(dynamo=logging.INFO, graph=True, inductor=None, modules={"json": 10})
    yield state(), logging.getLogger("json").level
    set_logs(export=logging.DEBUG, output_code=True)
    yield state()
    set_logs()
    yield state(), logging.getLogger("json").level
    yield attempt(set_logs, foo=1)
    yield attempt(set_logs, verbose_guards=True)
    yield attempt(set_logs, graph=3)
    yield attempt(set_logs, dynamo=7)
    yield attempt(set_logs, modules={"no_such_module": 10})
    yield attempt(torch._logging.getArtifactLogger, "torch.mine", "foo")
    set_logs()


@case
def messages(torch):
    shown = io.StringIO()
    with contextlib.redirect_stderr(shown):
        torch._logging.set_logs(dynamo=logging.INFO, graph=True)
        mine = torch._logging.getArtifactLogger("torch._dynamo.mine", "graph")
        apart = torch._logging.getArtifactLogger("torch._dynamo.mine", "bytecode")
        mine.debug("a\nb %s", 3)
        apart.debug("not shown")
        log = logging.getLogger("torch._dynamo")
        log.info("told")
        log.debug("not shown")
        for _ in range(2):
            torch._logging.warning_once(log, "once %s", 1)
        logging.getLogger("torch.other").warning("of the root")
        logging.getLogger("torch.other").info("not shown")
        try:
            raise ValueError("why")
        except ValueError:
            log.error("failed", exc_info=True)
    lines = re.sub(r"\d{4} [\d:.]{15} \d+ \S+?:\d+\]", "DATE PLACE]", shown.getvalue())
    yield re.sub(r'File ".*", line \d+', "FILE", lines)
    torch._logging.set_logs()
