"""`torch.jit`: what traced functions may give; types that are asked about."""

from __future__ import annotations

import typing

from tests.oracle import attempt, case

RESULTS = """
a
(a, a)
[a, a]
(a, (a, [a]))
a.shape
()
[]
{}
{"x": a}
(a, {"x": a})
[{"x": a}]
5
True
1.5
"s"
None
[a, None]
(a, None)
(a, (a, 5))
[[a], [a]]
a.tolist()
torch.float32
"""


@case(warnings=False).lines(RESULTS)
def traced(torch, line):
    function = eval(f"lambda a: {line}", {"torch": torch, "__name__": "there"})
    x = torch.ones(2)
    yield attempt(lambda: type(torch.jit.trace(function, x)).__name__)


@case(warnings=False)
def traced_otherwise(torch):
    def as_dict(a):
        return {"a": a + 1}

    x = torch.ones(2)
    yield torch.jit.trace(as_dict, x, strict=False)(x)
    yield attempt(torch.jit.trace, 5, x), attempt(torch.jit.trace, "a", x)
    for example in (None, ()):
        yield attempt(torch.jit.trace, as_dict, example)


@case(warnings=False).lines("""
5, List
5, Dict
5, Tuple
5, Optional
[5], list
{}, dict
[5], List[int]
{5: 1}, Dict[int, int]
(5,), Tuple[int]
None, Optional[int]
5, (int, List)
5, int
""")
def types(torch, line):
    given = eval(line, {**vars(typing), "int": int})
    yield attempt(torch.jit.isinstance, *given)
