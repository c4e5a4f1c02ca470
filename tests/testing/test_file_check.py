"""`torch.testing.FileCheck`."""

from __future__ import annotations

import importlib

from tests.oracle import attempt, case

TEXT = "first line\nsecond line, second part\n           ~~~~\nthird"


@case
def checks(torch):
    new = importlib.import_module(f"{torch.__name__}.testing").FileCheck

    def run(check, text=TEXT):
        found = attempt(check.run, text)  # PyTorch's texts show pieces of the text
        return found if found is None else type(found).__name__, found is None

    yield run(new().check("first").check("third")), run(new().check("nothing"))
    yield run(new().check("third").check("first"))
    yield run(new().check("first").check_next("second"))
    yield run(new().check("first").check_next("third"))
    yield run(new().check("second").check_same("part"))
    yield run(new().check("first").check_same("second"))
    yield run(new().check("first").check_not("second").check("third"))
    yield run(new().check("second").check_not("first").check("third"))
    yield run(new().check_not("third")), run(new().check_not("fourth"))
    yield run(new().check_count("second", 2)), run(new().check_count("second", 3))
    yield run(new().check_count("second", 1, exactly=True))
    yield run(new().check_count("second", 2, exactly=True))
    yield run(new().check_dag("third").check_dag("first"))
    yield run(new().check_regex(r"l\w+e").check("second"))
    yield run(new().check("a"), 3)


@case.over(
    "# CHECK: first\n# CHECK-SAME: line\n# CHECK-NEXT: second\n# CHECK: third",
    "#CHECK: first\n code # CHECK-NOT: fourth",
    "# CHECK-COUNT-2: second\n# CHECK-DAG: third",
    "# CHECK-COUNT-EXACTLY-1: second",
    "# CHECK-COUNT-EXACTLY-2: second",
    "# CHECK-DAG: third\n# CHECK-DAG: first",
    "# CHECK-REGEX: l.*e\n# CHECK-SOURCE-HIGHLIGHTED: part",
    "# CHECK: nothing",
    "# CHECK-SOME: first",
    "# CHECK:first",
    "nothing to check",
)
def checks_in_comments(torch, comments):
    new = importlib.import_module(f"{torch.__name__}.testing").FileCheck
    yield type(attempt(new().run, comments, TEXT)).__name__
    yield type(attempt(new().check("third").run, comments, TEXT)).__name__
    yield type(attempt(new().run, TEXT)).__name__
