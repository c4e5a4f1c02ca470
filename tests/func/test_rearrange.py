"""`torch.func.rearrange`: its patterns and what it says of wrong ones."""

from __future__ import annotations

import importlib

from tests.oracle import attempt, case

PATTERNS = """
a b c -> c b a
a b c -> (c b) a
a b (c d) -> d a (b c)
a (b c) d -> b a d c
... c -> c ...
a ... -> (...) a
a ... c -> a (...) c
... -> (...)
a b c -> a 1 b c 1
a b c -> a b c ()
a b c -> (a 1) (b c)
a b c
a b -> a b -> a b
a b c -> a b
a b c -> a b c d
a a c -> a c
a b -> a b
a b c d -> a b c d
a b c d ... -> a b c d ...
a b c -> ... a b c
a (b ...) c -> a b ... c
a ((b)) c -> a b c
a b) c -> a b c
a (b c -> a b c
a b 4 -> a b 4
a b 0 -> a b 0
a _b c -> a _b c
a 3b c -> a 3b c
a . c -> a . c
a ... ... -> a
a * c -> a c
a if c -> if a c
""".strip().splitlines()


@case(stride=True).over(*PATTERNS)
def patterns(torch, pattern):
    x = torch.arange(24).view(2, 3, 4)
    lengths = {"c": 2} if "d" in pattern and "(c d)" in pattern else {}
    if "(b c)" in pattern.partition("->")[0]:
        lengths = {"b": 3}
    return torch.func.rearrange(x, pattern, **lengths)


@case
def sizes(torch):
    rearrange = torch.func.rearrange
    x = torch.arange(6).view(2, 3)
    yield rearrange(x, "a (b c) -> a b c", b=3, c=1), rearrange(x, "a b -> b a", b=3)
    yield attempt(rearrange, x, "a b -> a b", c=2)
    yield attempt(rearrange, x, "a b -> a b", b=2.5)
    yield rearrange([x, x + 1], "n a b -> a (n b)")
    yield rearrange(torch.ones(()), "->"), rearrange(x[:1], "1 b -> b")
    y = torch.ones(2, 3, requires_grad=True)
    (rearrange(y, "a b -> (b a)") * torch.arange(6.0)).sum().backward()
    yield y.grad


@case(message=False)
def wrong_sizes(torch):
    """PyTorch names the dimensions by numbers."""
    x = torch.arange(6).view(2, 3)
    for lengths in ({}, {"b": 2}, {"b": 2, "c": 2}):
        found = attempt(torch.func.rearrange, x, "a (b c) -> a b c", **lengths)
        yield type(found).__name__


def _parsing(torch):
    shim = "torchshim." if torch.__name__ == "torchshim" else ""
    return importlib.import_module(f"{shim}functorch.einops._parsing")


def _shown(side):
    names = sorted(map(str, side.identifiers)), str(side.composition)
    ellipsis = side.has_ellipsis, side.has_ellipsis_parenthesized
    return *names, *ellipsis, side.has_non_unitary_anonymous_axes


EXPRESSIONS = [side for pattern in PATTERNS for side in pattern.split("->")] + [
    *("", "_ a", "a_ b", "2 3", "a 1 1 (1 2)", "(a)(b)", "()", "...a", "a.b", "0"),
    *("a-b", "a\tb", "é a"),
]


@case.over(*dict.fromkeys(EXPRESSIONS))
def expressions(torch, text):
    def parsed(**options):
        return _shown(_parsing(torch).ParsedExpression(text, **options))

    yield attempt(parsed), attempt(parsed, allow_underscore=True)
    yield attempt(parsed, allow_duplicates=True)


@case
def names_and_validation(torch):
    parsing = _parsing(torch)
    for name in ("a", "_", "_a", "a_", "1", "a b", "if", "a1", ""):
        expression = parsing.ParsedExpression
        yield expression.check_axis_name(name)
        yield expression.check_axis_name_return_reason(name, allow_underscore=True)
    yield [repr(parsing.AnonymousAxis(n)) for n in "123"]
    yield attempt(parsing.AnonymousAxis, "-3"), parsing._ellipsis
    yield [
        parsing.comma_separate(c)
        for c in ([], ["a"], [["a", "b"], "c"], {"x"}, [("a",), ["b"]])
    ]
    for pattern, lengths in (
        ("a b -> b a", {"a": 3}),
        ("a b -> b a", {"a": "x"}),
        ("a b -> b a", {"b": True}),
        ("(a b) -> a b", {"c": 3}),
        ("a -> a ...", {}),
        ("(a ...) -> ...", {}),
    ):

        def sides(pattern=pattern, lengths=lengths):
            left, right = parsing.parse_pattern(pattern, lengths)
            parsing.validate_rearrange_expressions(left, right, lengths)
            return left.composition, right.composition

        yield attempt(sides)


def test_functorch_has_it_too() -> None:
    from torchshim.func import rearrange
    from torchshim.functorch import einops

    assert einops.rearrange is rearrange
