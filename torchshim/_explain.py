"""`torchshim.explain()`: which programs were compiled, from where, and why."""

from __future__ import annotations

from torchshim._core import program
from torchshim._core.program import Compiled


class Explanation:
    """The programs compiled since some moment, oldest first.

    `programs` is a list; each entry has `line` (file and line number of the script
    that caused it), `events` (operators, gradients included), `outputs`, `seconds`
    (tracing and compiling) and `reason` (the first event that differed from what was
    recorded before at that place).
    """

    def __init__(self, programs: list[Compiled], end: int) -> None:
        self.programs = programs
        self.end = end

    def __len__(self) -> int:
        return len(self.programs)

    def __repr__(self) -> str:
        n = len(self.programs)
        head = f"{n} program{'' if n == 1 else 's'} compiled"
        lines = [f"{i:3d}  {entry}" for i, entry in enumerate(self.programs)]
        return "\n".join([head, *lines])


def explain(since: Explanation | int = 0) -> Explanation:
    """The programs compiled so far, or since an earlier call's result.

    >>> import torchshim as torch
    >>> before = torch.explain()
    >>> torch.ones(40, 3).sum().item()
    120.0
    >>> len(torch.explain(before).programs)
    1
    """
    start = since.end if isinstance(since, Explanation) else since
    return Explanation(program.compiled_since(start), program.count())
