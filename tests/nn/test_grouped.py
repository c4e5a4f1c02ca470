"""Products of groups of rows with a matrix each: `grouped_mm`."""

from __future__ import annotations

from tests.oracle import attempt, case

ENDS = {"rows": [1, 4], "columns": [8, 16], "shared": [0, 16]}
SHAPES = {
    "rows": ((4, 8), (2, 8, 8)),
    "columns": ((2, 8, 8), (8, 16)),
    "shared": ((8, 16), (16, 8)),
    "batch": ((2, 8, 8), (2, 8, 8)),
}


def operands(torch, kind, dtype="float32", grad=True):
    made = [
        torch.randn(s, dtype=getattr(torch, dtype), requires_grad=grad)
        for s in SHAPES[kind]
    ]
    ends = ENDS.get(kind)
    return *made, None if ends is None else torch.tensor(ends, dtype=torch.int32)


@case.over(kind=list(SHAPES), dtype=["float32", "bfloat16", "float16"])
def products_and_gradients(torch, kind, dtype):
    a, b, ends = operands(torch, kind, dtype)
    for _ in range(3):  # recorded, and found again
        made = torch.nn.functional.grouped_mm(a, b, offs=ends)
        grads = torch.autograd.grad(made, (a, b), torch.randn_like(made))
    yield made, made.stride(), grads
    yield torch.equal(torch._grouped_mm(a, b, ends), made)


@case.over(*SHAPES)
def second_derivatives(torch, kind):
    a, b, ends = operands(torch, kind)
    made = torch.nn.functional.grouped_mm(a, b, offs=ends)
    weights, more = torch.randn_like(made), torch.randn(a.shape)
    first = torch.autograd.grad(made, (a, b), weights, create_graph=True)
    yield [grad.shape for grad in first]
    yield torch.autograd.grad(first[0], b, more, retain_graph=True)
    yield torch.autograd.grad(first[1], a, torch.randn(b.shape))


@case(message=False, warnings=False)
def forward_mode(torch):
    a, b, ends = operands(torch, "rows", grad=False)
    with torch.autograd.forward_ad.dual_level():
        a = torch.autograd.forward_ad.make_dual(a, a)
        yield attempt(torch.nn.functional.grouped_mm, a, b, offs=ends)


@case
def errors(torch):
    def refused(a, b, offs=None, **options):
        return attempt(torch.nn.functional.grouped_mm, a, b, offs=offs, **options)

    a, b, ends = operands(torch, "rows", grad=False)
    stack = torch.randn(2, 8, 8)
    yield refused(a, b), refused(stack, b, ends), refused(a, b, ends.long())
    yield refused(a, b, ends[:1]), refused(a, b[:, :4], ends), refused(a[0], b, ends)
    yield refused(a, b[0, 0], ends), refused(a, b, ends[None]), refused(stack[:1], b)
    yield refused(a.double(), b, ends), refused(a, b.int(), ends)
    yield refused(a.bfloat16(), b, ends), refused(a, b.half(), ends)
    yield refused(a, b, ends, bias=b), refused(a, b, ends, out_dtype=torch.float16)
    yield torch.nn.functional.grouped_mm(a, b, offs=ends, out_dtype=torch.float32)
