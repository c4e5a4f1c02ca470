"""gradcheck and gradgradcheck of functions that are right, wrong and odd."""

from __future__ import annotations

from tests.oracle import attempt, case


def square(torch, backward):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

    Square.backward = staticmethod(backward)
    return Square.apply


FUNCTIONS = {
    "right": lambda ctx, g: 2 * g * ctx.saved_tensors[0].conj(),
    "wrong": lambda ctx, g: 3 * g * ctx.saved_tensors[0].conj(),
    "none": lambda ctx, g: None,
    "zero": lambda ctx, g: g * 0,
    "shape": lambda ctx, g: g.sum(),
    "raises": lambda ctx, g: 1 / 0,
    "second": lambda ctx, g: 2 * g * ctx.saved_tensors[0].detach().conj(),
    "operators": lambda x: x.exp() * x,
    "detached": lambda x: x.detach(),
    "integers": lambda x: x.real.long(),
    "constant": lambda x: x.detach() * 0,
    "several": lambda x: (x * 2, x.abs()),
    "raising": lambda x: x.nothing,
}
OPTIONS = {
    "": {},
    "forward": {"check_forward_ad": True},
    "forward alone": {"check_forward_ad": True, "check_backward_ad": False},
    "defined": {"check_undefined_grad": False},
    "batched": {"check_batched_grad": True},
    "quiet": {"raise_exception": False},
}
POINTS = {
    "real": lambda torch: torch.tensor([1.0, 2.0], dtype=torch.float64),
    "complex": lambda torch: torch.tensor([1 + 1j, 2.0], dtype=torch.complex128),
}


# PyTorch imports what is deprecated for forward mode.
@case(warnings=False).over(kind=list(FUNCTIONS))
def checked(torch, kind):
    function = FUNCTIONS[kind]
    if function.__code__.co_argcount == 2:
        function = square(torch, function)
    for point in POINTS:
        x = POINTS[point](torch).requires_grad_()
        for name, options in OPTIONS.items():
            yield point, name, attempt(torch.autograd.gradcheck, function, x, **options)
        for options in ({}, {"raise_exception": False}):
            torch.manual_seed(0)  # gradients of outputs are drawn
            yield attempt(torch.autograd.gradgradcheck, function, x, **options)


@case
def parameters_that_the_function_knows_otherwise(torch):
    layer = torch.nn.Linear(2, 3).double()
    x = torch.arange(8.0, dtype=torch.float64).reshape(4, 2).requires_grad_()
    params = tuple(layer.parameters())

    def run(x, *_):
        return layer(x).sin()

    before = [p.detach().clone() for p in params]
    yield torch.autograd.gradcheck(run, (x, *params))
    yield torch.autograd.gradgradcheck(run, (x, *params))
    yield all(torch.equal(a, b) for a, b in zip(before, params, strict=True))
