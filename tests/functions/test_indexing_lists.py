"""Indices in lists that hold tensors, as numbers: those of one element are one."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate

INDICES = """
(t([0]), 1), (1, 2)
[t([0]), 1],
[t([0]), t([1])], 0
[[t([0])], [t([1])]],
[[t([0]), 1]],
[t([0, 1]), 1],
(1, t([0])),
(t([True]), False),
[t(True), t(False)],
(t(0.), 1),
(t([0]), 1.),
[t([0]), None],
(t([0]), slice(1)),
(t([[0]]), 1),
(t([]), 1),
slice(None), [t([0]), 1]
..., [t([0]), 1]
[t([0]), 1]
[[t([0]), 1], [0, 1]]
t([0]), (t([1]), 2)
[1., 0],
[0.5, 1.],
[],
[[]],
[True, False],
[True, 1],
[[1], 2],
[1, [2]],
[None],
[2**70],
["a"],
range(2),
"""


@case.over(*INDICES.strip().splitlines())
def indices(torch, index):
    names = {"x": torch.arange(6).view(2, 3), "t": torch.tensor}
    yield attempt(evaluate, torch, f"x[{index}]", **names)
    for value in ("9", "t(8)"):
        yield attempt(evaluate, torch, f"x[{index}] = {value}", **names), names["x"]


@case.over("int64", "uint8", "bool", "float32")
def elements(torch, kind):
    t = torch.tensor
    for one in (t(1.5), t([1.5]), t(1j), t([1, 2]), t(True), t(3), t([]), t(2.0)):
        for data in ([one, 1], [1, one], [[one]]):
            yield attempt(torch.tensor, data, dtype=getattr(torch, kind))
