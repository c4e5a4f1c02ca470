"""`backward` and `grad`: values, accumulation, arguments, errors."""

from tests.oracle import attempt, case


def leaf(torch, *values):
    data = list(values) if len(values) > 1 else values[0]
    return torch.tensor(data, requires_grad=True)


@case
def accumulates_in_place(torch):
    x = leaf(torch, 1.0, 2.0)
    for _ in range(3):
        (x * x).sum().backward()
        yield x.grad
    first = x.grad
    (x * 3).sum().backward()
    yield first is x.grad, first


@case.over(dtype=["bfloat16", "float16"])
def sums_of_broadcast_gradients(torch, dtype):
    kind = getattr(torch, dtype)
    x = torch.ones(1, dtype=kind, requires_grad=True)
    left, right = torch.ones(2, 40, 1, dtype=kind), torch.ones(2, 1, 50, dtype=kind)
    for y in (
        x.expand(40, 50),
        x.broadcast_to(2, 40, 50),
        torch.addmm(x, left[0], right[0]),
        torch.addmv(x, torch.ones(2000, 1, dtype=kind), x.detach()),
        torch.addr(x, torch.ones(40, dtype=kind), torch.ones(50, dtype=kind)),
        torch.baddbmm(x, left, right),
        torch.matmul(x.view(1, 1, 1), torch.ones(2000, 1, 1, dtype=kind)),
        torch.zeros(40, 50, dtype=kind).index_put((torch.arange(40),), x),
        x.gather(0, torch.zeros(2000, dtype=torch.int64)),
        x.as_strided((40, 50), (0, 0)),
    ):
        yield torch.autograd.grad(y.sum(), x)
    z = torch.zeros(40, 50, dtype=kind)
    z[:] = x
    yield torch.autograd.grad(z.sum(), x)


@case
def several_backwards(torch):
    x = leaf(torch, 1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    yield x.grad
    yield attempt(y.backward)
    z = (x + 1).sum()
    z.backward()
    z.backward()
    yield x.grad
    w = (x * 2).sum()
    w.backward()
    yield attempt(w.backward), x.grad


@case
def across_reads(torch):
    x = leaf(torch, 1.0, 2.0)
    for _ in range(4):
        y = (x * x) * 0.5
        yield y.tolist()
        z = (y * x).sum()
        yield z.item()
        z.backward()
        yield x.grad
        x.grad = None
    y = (x * x).sum()
    y.item()
    y.backward()
    y.item()
    yield attempt(y.backward)


@case
def create_graph(torch):
    x = leaf(torch, 1.0, 2.0)
    y = (x**3).sum()
    y.backward(create_graph=True)
    first = x.grad
    yield first
    first.sum().backward()
    yield x.grad, x.grad is first
    x = leaf(torch, 1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad
    (x * x * x).sum().backward(create_graph=True)
    yield x.grad, x.grad is first


@case
def third_order(torch):
    x = leaf(torch, 2.0)
    y = x**4
    for _ in range(3):
        x.grad = None
        y.backward(create_graph=True)
        y = x.grad
        yield y.item(), y.requires_grad


@case
def given_gradient(torch):
    x = leaf(torch, 1.0, 2.0)
    g = torch.tensor([1.0, 1.0])
    x.backward(g)
    yield x.grad is g
    x.grad.mul_(3.0)
    yield g
    x.grad = None
    y = x * x
    y.backward(torch.tensor([1, 2]))
    yield x.grad
    y = x * x
    y.backward(torch.tensor([1.0, 2.0], dtype=torch.float64))
    yield x.grad


@case
def leaf_as_root(torch):
    x = leaf(torch, 3.0)
    x.backward()
    yield x.grad
    x.backward()
    yield x.grad


@case
def backward_errors(torch):
    backward = torch.autograd.backward
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    one = torch.tensor([1.0, 1.0])
    yield attempt(backward, [y], [None])
    yield attempt(y.backward)
    yield attempt(backward, torch.tensor([1.0]))
    yield attempt(torch.tensor([1.0]).backward)
    yield attempt(backward, 3)
    yield attempt(backward, [])
    yield attempt(backward, [y, y], [one])
    yield attempt(backward, [y], [3])
    yield attempt(backward, y, 3)
    yield attempt(y.backward, "a")
    yield attempt(y.backward, torch.tensor([1.0]))
    yield attempt(y.backward, torch.tensor([1j, 1]))
    yield attempt(leaf(torch, 1j).backward)
    yield attempt(leaf(torch, 1j).backward, torch.tensor(1.0))
    yield attempt(y.backward, one, inputs=[])
    yield attempt(y.backward, one, inputs=[torch.tensor([1.0])])
    yield attempt(y.backward, one, inputs=[3])
    yield attempt(y.backward, one, inputs=3)
    yield attempt(y.backward, one, retain_graph="a")
    yield attempt(y.backward, one, create_graph="a")
    yield x.grad
    y.backward(one)
    yield x.grad


@case
def deprecated_arguments(torch):
    x = leaf(torch, 1.0, 2.0)
    y = (x * x).sum()
    one = torch.tensor(1.0)
    torch.autograd.backward(y, grad_variables=one, retain_graph=True)
    yield x.grad
    yield attempt(torch.autograd.backward, y, one, grad_variables=one)
    yield torch.autograd.grad(y, x, only_inputs=False)


@case
def several_roots(torch):
    x, w = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    torch.autograd.backward(
        [(x * w).sum(), x * 2, w.sum()], [None, torch.tensor([1.0, 10.0]), None]
    )
    yield x.grad, w.grad


@case
def chosen_inputs(torch):
    x, w = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    y = x * w
    z = (y * y).sum()
    z.backward(inputs=[x], retain_graph=True)
    yield x.grad, w.grad
    z.backward(inputs=w, retain_graph=True)
    yield x.grad, w.grad
    z.backward(inputs=[y, x], retain_graph=True)
    yield x.grad, w.grad, y.grad, y.retains_grad
    z.backward(inputs={"w": w})
    yield w.grad


@case
def grad_of_inputs(torch):
    grad = torch.autograd.grad
    x, w = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
    y = x * w
    z = (y * y).sum()
    yield grad(z, [x, x, y], retain_graph=True)
    yield grad([y, z], [x], [torch.tensor([1.0, 1.0]), None], retain_graph=True)
    yield grad(z, {"a": x}, retain_graph=True)
    yield grad(x, x, torch.tensor([3.0, 4.0]))
    yield grad(y, y, torch.tensor([3.0, 4.0]), retain_graph=True)
    yield x.grad, w.grad
    g = grad(z, x, create_graph=True)[0]
    yield g.requires_grad
    yield grad(g.sum(), w)


@case
def grad_after_reading(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    z = (y * y).sum()
    yield z.item()
    yield torch.autograd.grad(z, y, retain_graph=True)
    yield torch.autograd.grad(z, [x, y], retain_graph=True)
    z.backward()
    yield x.grad


@case
def grad_of_unused(torch):
    grad = torch.autograd.grad
    x, other = leaf(torch, 1.0, 2.0), leaf(torch, 1.0)
    z = (x * x).sum()
    yield attempt(grad, z, other, retain_graph=True)
    yield grad(z, other, allow_unused=True, retain_graph=True)
    yield grad(z, [x, other], materialize_grads=True, retain_graph=True)
    yield grad(z, other, materialize_grads=True, create_graph=True)
    yield attempt(grad, z, other, allow_unused=False, materialize_grads=True)
    yield attempt(grad, x.sum(), x.sum())


@case
def grad_errors(torch):
    grad = torch.autograd.grad
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    z = y.sum()
    yield attempt(grad, y, x)
    yield attempt(grad, z, [])
    yield attempt(grad, z, torch.tensor([1.0]))
    yield attempt(grad, z, 3)
    yield attempt(grad, z, [3])
    yield attempt(grad, torch.tensor(1.0), x)
    yield attempt(grad, x.detach().sum(), x, allow_unused=True)


@case
def batched_vectors(torch):
    grad = torch.autograd.grad
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    rows = torch.tensor([[3.0, 4.0], [1.0, 1.0]])
    yield grad(y, x, rows, retain_graph=True, is_grads_batched=True)
    yield attempt(grad, y, x, rows[0], is_grads_batched=True)


@case
def gradient_edges(torch):
    grad, edge = torch.autograd.grad, torch.autograd.graph.get_gradient_edge
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    z = y.sum()
    v = torch.tensor([3.0, 4.0])
    yield grad(y, edge(x), v, retain_graph=True)
    yield grad(edge(y), x, v, retain_graph=True)
    yield grad(edge(z), x, retain_graph=True)
    yield grad(edge(y), edge(y), v, retain_graph=True)
    other = edge(leaf(torch, 1.0))
    yield attempt(grad, edge(y), other, v, retain_graph=True)
    yield attempt(grad, edge(y), other, v, retain_graph=True, materialize_grads=True)
    z.backward(inputs=edge(x))
    yield x.grad
    yield attempt(edge, torch.tensor([1.0]))


@case
def modified_values(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 1.0
    z = y * y
    y.add_(1)
    yield attempt(z.sum().backward)
    y = x * 1.0
    z = y * y
    z.tolist()
    y.add_(1)
    y.tolist()
    yield attempt(z.sum().backward)
    y = x * 1.0
    z = y**2
    z.add_(1)
    z.sum().backward()
    yield x.grad
    y = x * x
    x.detach().mul_(5.0)
    yield attempt(y.sum().backward)


@case
def dtypes_and_mixes(torch):
    x = leaf(torch, 1.0, 2.0)
    w = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    n = torch.tensor([2, 3])
    (x * w * n).sum().backward()
    yield x.grad, w.grad
    c = torch.tensor([1 + 2j, 3.0], requires_grad=True)
    s = c * c * x
    s.backward(torch.tensor([1.0 + 0j, 1j]))
    yield x.grad, c.grad


@case
def power_of_tensor(torch):
    x, y = leaf(torch, 3.0), leaf(torch, 4.0)
    z = x**y
    yield z
    z.backward()
    yield x.grad, y.grad


@case
def create_graph_after_a_leaf_was_updated(torch):
    """What is differentiated by its result does not mind, nor do its gradients."""
    for update in ("no_grad", "data", "assigned"):
        x = leaf(torch, 1.0, 2.0)
        y = x.exp()
        y.tolist()
        if update == "no_grad":
            with torch.no_grad():
                x.sub_(0.5)
        elif update == "data":
            x.data.mul_(0.5)
        else:
            x.data = torch.ones(2)
        (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        yield g, torch.autograd.grad(g.sum(), x)


@case
def one_object_for_what_is_asked_twice(torch):
    """Also where the walk is remembered."""
    for _ in range(3):
        x = leaf(torch, 1.0, 2.0)
        y = x * 2
        a, b, c = torch.autograd.grad(y.sum(), [x, x, y])
        yield a is b, a is c, a.tolist()


@case
def retained_after_it_was_freed(torch):
    """A walk that was seen before is refused where its graph is gone by now."""
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0], requires_grad=True)
    for freed in (False, False, True, True):
        x.grad = w.grad = None
        y, other = (x * w).sum(), x * w
        print(y.item(), other.sum().item())
        if freed:
            y.backward()
            print(x.grad.tolist())
            x.grad = w.grad = None
        yield attempt(lambda y=y: y.backward(retain_graph=True)), x.grad


@case
def a_second_backward_through_a_written_piece(torch):
    def add(y):
        y[0] += 1

    def tracked(y):
        y[0] = torch.ones(2, requires_grad=True)

    writes = [
        lambda y: y.__setitem__(0, 0.5),
        lambda y: y.__setitem__(0, torch.ones(2)),
        lambda y: y.__setitem__(torch.tensor([0]), 0.5),
        lambda y: y.__setitem__(slice(None), 0.5),
        lambda y: y[0].copy_(torch.ones(2)),
        add,
        tracked,
    ]
    for write in writes:
        for read in (False, True):
            x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
            y = x.clone()
            write(y)
            total = y.sum()
            if read:
                print(total.item())
            total.backward()
            yield attempt(total.backward), x.grad


@case
def gradients_whose_elements_are_one(torch):
    """An expanded `.grad` is refused where it would be written to."""
    for given in (torch.ones(1).expand(3), torch.ones(3).expand(2, 3)[0]):
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        x.grad = given
        for _ in range(3):
            yield attempt((x * 2 + y).sum().backward)
            yield attempt(torch.nn.utils.clip_grad_norm_, [x], 0.5)
            yield attempt(torch.nn.utils.clip_grad_value_, [x], 0.5)
            yield x.grad, y.grad
        x.grad = given.clone()
        (x * 2 + y).sum().backward()
        yield x.grad, y.grad
        x.grad = given
        (x * x * y).sum().backward(create_graph=True)
        yield x.grad.detach(), x.grad.requires_grad


@case
def gradients_of_linear_operators(torch):
    """Under `create_graph` they require grad as far as PyTorch's formulas say so."""
    grad = torch.autograd.grad
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    changes = (
        lambda t: t.clone().fill_(2.0),
        lambda t: t.clone().zero_(),
        lambda t: t * 1,
        lambda t: t / 2,
        lambda t: -t,
        lambda t: t[None] - t[None],
        lambda t: t.view(1, 2).expand(3, 2).sum(0),
        lambda t: t.cumsum(0).flip(0),
        lambda t: t.clone().index_fill_(0, torch.tensor([0]), 3.0),
        lambda t: t.double().mean(),
        lambda t: torch.cat([t, t]),
        lambda t: t**2,
        lambda t: t.exp(),
    )
    for change in changes:
        y = change(x)
        (first,) = grad((y * y).sum(), x, create_graph=True)
        yield first.detach(), first.requires_grad
        if first.requires_grad:
            (second,) = grad(first.sum(), x, create_graph=True)
            yield second.detach(), second.requires_grad
            third = change(first)
            (third,) = grad((third * third).sum(), x, create_graph=True)
            yield third.detach(), third.requires_grad


@case.over(
    "a * b",
    "a @ b",
    "a / b",
    "torch.where(a > 0, a, b)",
    "a**b",
    "torch.lerp(a, b, 0.5)",
    "torch.addcmul(a, a.detach(), b)",
    "torch.atan2(a, b)",
    "F.mse_loss(a, b)",
    "torch.dot(a, b)",
    "torch.outer(a, b)",
    "torch.cat([a, b])",
)
def gradients_that_one_operand_has_no_part_in(torch, line):
    a, b = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 5.0)
    out = eval(line, {"torch": torch, "F": torch.nn.functional, "a": a, "b": b})
    first = torch.autograd.grad(out.sum(), (a, b), create_graph=True)
    for each in first:
        if not each.requires_grad:
            continue
        for leaves in ((a, b), (a,), (b,)):
            for unused in (False, True):
                given = each.sum(), leaves, None, True
                yield attempt(torch.autograd.grad, *given, allow_unused=unused)
        each.sum().backward(retain_graph=True)
        yield a.grad, b.grad
        a.grad = b.grad = None
