"""gradcheck and gradgradcheck of functions that are right, wrong and odd."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate


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


FAST = {
    "right": lambda ctx, g: 2 * g * ctx.saved_tensors[0].conj(),
    "wrong": lambda ctx, g: 3 * g * ctx.saved_tensors[0].conj(),
    "slightly": lambda ctx, g: 2.00002 * g * ctx.saved_tensors[0].conj() + 2e-5,
    "second": lambda ctx, g: 2 * g * ctx.saved_tensors[0].detach().conj(),
    "another time": lambda ctx, g: g * g.new(g.shape).uniform_(),
    "several": lambda x: (x * 2, x.abs(), x.real),
    "as it is": lambda x: x,
    "integers": lambda x: x.real.long(),
    "constant": lambda x: x.detach() * 0,
}
FORWARD = {"check_forward_ad": True, "check_backward_ad": False}


@case(warnings=False, numbers_in_text=True).over(kind=list(FAST), fast=[True, False])
def between_random_vectors(torch, kind, fast):
    function = FAST[kind]
    if function.__code__.co_argcount == 2:
        function = square(torch, function)
    for point in (*POINTS.values(), lambda torch: torch.ones(0).double()):
        x = point(torch).requires_grad_()
        for options in ({}, {"check_grad_dtypes": True}, FORWARD):
            if options is FORWARD and not x.numel():
                continue
            torch.manual_seed(0)
            yield attempt(
                torch.autograd.gradcheck, function, x, fast_mode=fast, **options
            )
        if kind != "another time":
            torch.manual_seed(0)
            yield attempt(torch.autograd.gradgradcheck, function, x, fast_mode=fast)


@case(warnings=False, numbers_in_text=True).over(fast=[True, False])
def tangents_that_are_wrong(torch, fast):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, t):
            return 3 * t * ctx.saved_tensors[0].detach()

    for point in POINTS.values():
        x = point(torch).requires_grad_()
        options = FORWARD | {"fast_mode": fast}
        yield attempt(torch.autograd.gradcheck, Square.apply, x, **options)


@case
def of_many_elements(torch):
    """Fast mode makes no Jacobian, which had no place in memory."""
    x = torch.rand(100_000, dtype=torch.float64).requires_grad_()
    yield torch.autograd.gradcheck(torch.exp, x, fast_mode=True)
    yield torch.autograd.gradgradcheck(
        torch.exp, x, fast_mode=True, check_fwd_over_rev=True
    )


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


@case(warnings=False)
def an_input_among_the_outputs(torch):
    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    y = torch.rand(2, dtype=torch.float64, requires_grad=True)

    def run(x, y):
        return x + y, y

    def dual(x, y):  # all inputs have tangents
        forward = torch.autograd.forward_ad
        if forward._current_level >= 0:
            y = forward.make_dual(*(part * 1.0 for part in forward.unpack_dual(y)))
        return x + y, y

    for function in (run, dual):
        for fast in (False, True):
            yield torch.autograd.gradcheck(
                function,
                (x, y),
                check_forward_ad=True,
                check_undefined_grad=False,
                fast_mode=fast,
            )


@case
def outputs_that_change_with_the_values(torch):
    def size(x):
        return torch.cat([x, x]) if torch.all(x >= 1) else x

    def kind(x):
        return x.to(torch.float32) if torch.all(x >= 1) else x

    for function in (size, kind):
        for shape in ((1,), (2, 2), ()):
            x = torch.ones(shape or 1, dtype=torch.float64)
            x = (x if shape else x[0]).detach().requires_grad_()
            if shape or function is kind:
                yield attempt(torch.autograd.gradcheck, function, (x,))


@case(warnings=False).over(fast=[False, True], both=[False, True])
def undefined_tangents(torch, fast, both):
    calls = []

    class Add(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x + y

        @staticmethod
        def jvp(ctx, a, b):
            calls.append((a is None, b is None))
            return b if a is None else a if b is None else a + b

    class Wrong(Add):
        @staticmethod
        def jvp(ctx, a, b):
            return b * 3 if a is None else a if b is None else a + b

    def check(function, x, **options):
        calls.clear()
        y = torch.rand(1, dtype=torch.float64, requires_grad=both)
        options = {"check_forward_ad": True, "fast_mode": fast} | options
        found = attempt(
            *(torch.autograd.gradcheck, function.apply, (x, y)),
            **{"check_backward_ad": False} | options,
        )
        if isinstance(found, RuntimeError):
            found = type(found).__name__, [type(part).__name__ for part in found.args]
        return found, list(calls)

    for kind in (torch.float64, torch.complex128):
        x = torch.rand(1, dtype=kind, requires_grad=True)
        for undefined in (False, True):
            for batched in (False, True):
                yield check(
                    *(Add, x),
                    check_undefined_grad=undefined,
                    check_batched_forward_grad=batched,
                )
        yield check(Wrong, x), check(Wrong, x, raise_exception=False)
        yield check(Wrong, x, check_undefined_grad=False)


@case(warnings=False).lines("""
check(lambda t: t.to_dense(), s, masked=True)
check(lambda t: t.to_dense(), s, masked=True, fast_mode=True)
check(lambda t: t * 2, s, masked=True)
check(lambda t: t.to_sparse(), x, masked=True)
check(lambda t, v: torch.sparse.mm(t, v), (s, w), masked=True)
check(lambda t, v: torch.sparse.mm(t, v), (c, w), masked=True, fast_mode=True)
check(lambda t: torch.sparse.softmax(t, 1).to_dense(), s, masked=True)
check(lambda t: t.to_dense().detach() * 1, s, masked=True)
sparse_check(lambda t: t * t, u, masked=True)
sparse_check(lambda t: (t * 2, t.to_dense()), c, masked=True)
torch.autograd.gradgradcheck(lambda t: (t * t).to_dense(), s, masked=True)
""")
def of_sparse_tensors(torch, line):
    x = torch.tensor([[1.0, 0, 2], [0, 0, 3]], dtype=torch.float64)
    i = torch.tensor([[0, 0, 1], [1, 1, 2]])
    names = {
        "check": torch.autograd.gradcheck,
        "sparse_check": torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck),
        "c": x.to_sparse_csr().requires_grad_(),
        "s": x.to_sparse().requires_grad_(),
        "u": torch.sparse_coo_tensor(i, x[x > 0], (2, 3)).requires_grad_(),
        "w": torch.arange(6.0, dtype=torch.float64).view(3, 2).requires_grad_(),
        "x": x.clone().requires_grad_(),
    }
    return evaluate(torch, line, **names)
