"""Tensor's autograd attributes: `.grad`, `requires_grad`, leaves, nodes."""

from tests.oracle import attempt, case


def leaf(torch, *values):
    data = list(values) if len(values) > 1 else values[0]
    return torch.tensor(data, requires_grad=True)


@case
def assigning_grad(torch):
    x = leaf(torch, 1.0, 2.0)
    for value in (
        3,
        "a",
        torch.tensor([1.0, 2.0, 3.0]),
        torch.tensor([1.0, 2.0], dtype=torch.float64),
        torch.tensor([1, 2]),
        x,
    ):
        yield attempt(setattr, x, "grad", value)
    yield attempt(setattr, torch.tensor([1, 2]), "grad", torch.tensor([1.0, 1.0]))
    g = torch.tensor([5.0, 5.0])
    x.grad = g
    yield x.grad is g
    (x * 2).sum().backward()
    yield g
    del x.grad
    yield x.grad
    x.grad = None
    x._grad = g
    yield x.grad is g


@case
def grad_of_non_leaf(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    yield y.grad
    y.retain_grad()
    yield y.grad, y.retains_grad, x.retains_grad
    y.sum().backward()
    yield y.grad
    (y * y).sum().backward()
    yield y.grad, x.grad


@case
def retained_through_writes(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3.0)
    yield y.retains_grad
    (y * y).sum().backward()
    yield y.grad, x.grad
    y = x * 2
    y.mul_(3.0)
    y.retain_grad()
    yield y.tolist()
    y.add_(1.0)
    (y * y).sum().backward()
    yield y.grad, x.grad


@case
def retain_grad_errors(torch):
    x = leaf(torch, 1.0, 2.0)
    yield attempt(torch.tensor([1.0]).retain_grad)
    yield attempt(x.retain_grad), x.retains_grad


@case
def requires_grad(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    yield attempt(setattr, y, "requires_grad", False)
    yield attempt(y.requires_grad_, False)
    yield attempt(y.requires_grad_)
    yield attempt(torch.tensor([1]).requires_grad_)
    yield attempt(setattr, torch.tensor([1]), "requires_grad", True)
    yield attempt(setattr, torch.tensor([1.0]), "requires_grad", "a")
    yield attempt(torch.tensor, [1], requires_grad=True)
    z = torch.tensor([1.0])
    w = z * 2
    z.requires_grad_()
    (z * 3).sum().backward()
    yield z.grad, w.requires_grad
    z.requires_grad_(False)
    yield z.requires_grad, (z * 2).requires_grad


@case
def leaves(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    yield x.is_leaf, y.is_leaf, torch.tensor(1.0).is_leaf, y.detach().is_leaf
    yield x.grad_fn, x.output_nr, x._version, x._base, x._is_view(), x._backward_hooks
    for name in ("is_leaf", "grad_fn", "_version", "output_nr", "retains_grad"):
        yield attempt(setattr, x, name, True)


@case
def detach_in_place(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    yield y.detach_(), y.requires_grad, y.is_leaf, y.grad_fn
    z = leaf(torch, 1.0, 2.0)
    z.detach_()
    yield z.requires_grad
    yield attempt((x * 2).select(0, 0).detach_)
    yield attempt(x.select(0, 0).detach_)
    y = x * 2
    w = y * y
    y.detach_()
    w.sum().backward()
    yield x.grad


@case
def in_place_errors(torch):
    x = leaf(torch, 1.0, 2.0)
    yield attempt(x.add_, 1)
    yield attempt(x.select(0, 0).add_, 1)
    yield attempt((x * 1).unbind()[1].add_, 1)
    yield attempt(x.unbind()[0].add_, 1)
    yield torch.zeros(2).unbind()[1].add_(1)
    for value in (torch.ones(5), torch.ones(2, 3), torch.ones(1), 1.0):
        for at in (slice(0, 2, 2), 0, None, ..., [0]):
            yield attempt(x.__setitem__, at, value)
            yield attempt(x.view(2).__setitem__, at, value)
    y = x * 1
    with torch.no_grad():
        v = y.select(0, 0)
    yield attempt(v.add_, 1)
    with torch.no_grad():
        x.add_(1)
    yield x, x.is_leaf
    (x * x).sum().backward()
    yield x.grad


@case
def nodes(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    fn = y.grad_fn
    yield fn.name(), type(fn).__name__, fn is y.grad_fn, fn.metadata
    yield isinstance(fn, torch.autograd.graph.Node)
    (a, i), (b, j) = fn.next_functions
    yield a is b, i, j, a.name(), type(a).__name__, a.variable is x, a.next_functions
    yield isinstance(a, torch.autograd.graph.Node)
    yield [n for n, _ in (x * 2).grad_fn.next_functions if n is not None] == [a]
    yield len((x * 2).grad_fn.next_functions), len((x**2).grad_fn.next_functions)
    yield fn._sequence_nr() < (y + 1).grad_fn._sequence_nr()
    yield (y + 1).grad_fn.next_functions[0][0] is fn
    fn.metadata["a"] = 1
    yield y.grad_fn.metadata


@case
def saved_values(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    yield y.grad_fn._saved_self is x, y.grad_fn._saved_other
    yield (x * 2).grad_fn._saved_self, (x * 2).grad_fn._saved_other
    yield (x * 2.5).grad_fn._saved_other
    z = y**3
    yield z.grad_fn._saved_self, z.grad_fn._saved_exponent
    yield y.tolist(), z.tolist()
    yield z.grad_fn._saved_self
    z.sum().backward()
    yield attempt(lambda: z.grad_fn._saved_self)
    yield attempt(lambda: y.grad_fn._saved_self)
    yield hasattr(y.grad_fn, "_raw_saved_self"), hasattr(y.grad_fn, "_saved_nothing")


@case
def calling_a_node(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * x
    one = torch.tensor([1.0, 1.0])
    a, b = y.grad_fn(one)
    yield a.tolist(), b.tolist(), a.requires_grad
    with torch.no_grad():
        yield y.grad_fn(one)
    yield attempt(y.grad_fn, one, one)
    yield attempt(y.grad_fn)
    yield attempt(y.grad_fn, 3)


@case
def edges(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    edge = torch.autograd.graph.get_gradient_edge(y)
    yield edge.node is y.grad_fn, edge.output_nr, edge.ownership_token
    a, b = (x * 2).unbind()
    yield a.output_nr, b.output_nr
    yield torch.autograd.graph.get_gradient_edge(b).output_nr


@case
def versions(torch):
    x = torch.tensor([1.0, 2.0])
    torch.autograd.graph.increment_version(x)
    yield x._version
    x.add_(1)
    v = x.select(0, 0)
    v.mul_(2)
    yield x._version, v._version, x.detach()._version
    torch.autograd.graph.increment_version([x, v])
    yield x._version


@case
def nodes_after_writes(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 1.0
    v = y.select(0, 0)
    yield v
    v.mul_(3.0)
    yield y, v
    y.add_(1.0)
    yield y, v
    (y * y).sum().backward()
    yield x.grad
    b = torch.tensor([1.0, 1.0])
    v = b.select(0, 1)
    b.mul_(x)
    yield b, v, v.requires_grad
    v.backward()
    yield x.grad


@case
def edges_after_writes(torch):
    def edges(tensor):
        fn = tensor.grad_fn
        return fn.name(), [n and n.name() for n, _ in fn.next_functions]

    x = torch.ones(2, 2, requires_grad=True)
    for write in (
        lambda v: v.zero_(),
        lambda v: v.mul_(2),
        lambda v: v.mul_(x[0]),
        lambda v: v.copy_(x[1]),
        lambda v: v.add_(x[0], alpha=2),
    ):
        for view in (lambda b: b[0], lambda b: b.t()[0], lambda b: b.view(4)[1:3]):
            base = x.clone()
            v = view(base)
            write(v)
            yield edges(base), edges(v)
    y = torch.zeros(2, 2)
    y[1].mul_(x[0])
    yield edges(y)


@case
def names_of_gradients(torch):
    x, i = torch.ones(2, 3, requires_grad=True), torch.tensor([[0, 1, 1]])
    for f in (
        lambda x: x.permute(1, 0),
        lambda x: x.flip(0),
        lambda x: x.tril(),
        lambda x: torch.nn.functional.pad(x, (1, 1)),
        lambda x: x.gather(0, i),
        lambda x: x.index_select(0, i[0]),
        lambda x: x.double(),
        lambda x: x.split(1)[0],
        lambda x: x.max(0)[0],
        lambda x: torch.nn.functional.mse_loss(x, x.detach()),
        lambda x: torch.nn.functional.layer_norm(x, (3,)),
    ):
        y = f(x)
        ones = torch.ones_like(y, requires_grad=True)
        yield torch.autograd.grad(y, x, ones, create_graph=True)[0].grad_fn.name()


@case.over(
    "F.avg_pool2d(x, 2)",
    "F.adaptive_avg_pool2d(x, 1)",
    "F.adaptive_max_pool1d(x[0], 2)",
    "F.max_pool2d(x, 2)",
    "F.max_pool1d(x[0], 2)",
    "F.pad(x, (1, 1), 'reflect')",
    "F.pad(x, (1, 1, 1, 1), 'replicate')",
    "F.conv2d(x, x[:1].reshape(1, 1, 4, 4))",
    "F.conv1d(x[0], x[:1, 0].reshape(1, 1, 4, 4)[0])",
    "F.conv_transpose2d(x, torch.ones(1, 2, 2, 2))",
    "F.batch_norm(x, torch.zeros(1), torch.ones(1))",
    "F.group_norm(x, 1)",
    "F.rms_norm(x, (4,))",
    "F.local_response_norm(x, 2)",
    "F.glu(x)",
    "F.binary_cross_entropy(x, x.detach())",
    "F.nll_loss(x[0, 0], i)",
    "F.nll_loss(x.reshape(1, 4, 4, 1), i.reshape(1, 4, 1) * 0)",
    "F.linear(x[0, 0], x[0, 0].detach())",
    "F.grid_sample(x, torch.zeros(1, 2, 2, 2), align_corners=False)",
    "F.cosine_similarity(x[0, 0], x[0, 0].detach() + 1)",
    "torch.cdist(x[0, 0], x[0, 0].detach() + 1)",
    "torch.linalg.inv(x[0, 0] + torch.eye(4))",
    "torch.linalg.slogdet(x[0, 0] + torch.eye(4))[1]",
    "torch.linalg.cholesky(x[0, 0] @ x[0, 0].mT + torch.eye(4))",
    "torch.linalg.cross(x[0, 0, :3], x[0, 0, 1:])",
    "x.log2()",
    "x.exp2()",
    "x.logit()",
    "x.sinc()",
    "x.hypot(x.detach())",
    "torch.logaddexp(x, x.detach())",
    "x.logcumsumexp(0)",
    "2 / x",
    "1 - x",
    "x.detach() - x",
    "x.detach() / x",
    "torch.xlogy(x, x.detach() + 1)",
    "torch.xlogy(x.detach(), x + 1)",
    "x[0, 0, 0, 0] * x.detach()",
    "x[0, 0, 0] * x.detach()",
    "x[0, 0, :, :1] * x[0, 0].detach()",
    "torch.kron(x[0, 0, 0], x[0, 0, 1].detach())",
)
def names_of_more_gradients(torch, text):
    x = (torch.arange(16.0).reshape(1, 1, 4, 4) + 1) / 20
    names = {"torch": torch, "F": torch.nn.functional, "x": x.requires_grad_()}
    names["i"] = torch.tensor([0, 1, 2, 0])
    y = eval(text, names)
    ones = torch.ones_like(y, requires_grad=True)
    (found,) = torch.autograd.grad(y, x, ones, create_graph=True)
    yield found.requires_grad, found.grad_fn.name()


@case
def saved_values_that_were_detached(torch):
    x = leaf(torch, 1.0, 2.0)
    a = x.clone()
    y = a * a
    fn = y.grad_fn
    a.detach_()
    yield fn._saved_self, fn._raw_saved_other.data
    yield attempt(y.sum().backward)
    a = x.clone()
    y = torch.utils.checkpoint.checkpoint(lambda a: a * a, a, use_reentrant=False)
    a.detach_()
    yield attempt(y.sum().backward)


@case
def edges_of_a_layer(torch):
    x, bias = leaf(torch, 1.0, 2.0), leaf(torch, 3.0)
    weight = torch.tensor([[1.0, 2.0]], requires_grad=True)
    hidden = torch.relu(x.view(1, 2))
    fn = torch.nn.functional.linear(hidden, weight, bias).grad_fn
    nodes = [node for node, _ in fn.next_functions]
    yield fn.name(), [node.name() for node in nodes[:2]], nodes[0].variable is bias
    yield nodes[1] is hidden.grad_fn, len(nodes)
    seen = []
    fn.register_hook(lambda given, _: seen.extend(g.shape for g in given[:2]))
    fn(torch.ones(1, 1))
    yield seen
    frozen = torch.nn.functional.linear(x.view(1, 2), weight, torch.ones(1)).grad_fn
    yield [node and node.name() for node, _ in frozen.next_functions[:2]]


OF_ONE = """
abs amax amin clamp cummax cummin exp max median min mode msort nanmedian neg relu sin
sort square sum tanh topk
"""
OF_TWO = """
add addcdiv addcmul copysign div fmod lerp maximum minimum mul pow remainder sub where
"""


@case
def gradients_that_require_grad(torch):
    """Under create_graph: those computed from something that does."""
    for name in OF_ONE.split():
        x = torch.tensor([[0.3, 0.9], [0.5, 0.6]], requires_grad=True)
        more = {"clamp": (0.4, 0.7), "topk": (1,), "cummax": (0,), "cummin": (0,)}
        made = getattr(torch, name)(x, *more.get(name, ()))
        made = made if isinstance(made, torch.Tensor) else made[0]
        (grad,) = torch.autograd.grad(made.sum(), x, create_graph=True)
        yield name, grad.requires_grad
    for name in OF_TWO.split():
        x, y, z = (torch.tensor([0.3, n], requires_grad=True) for n in (0.7, 0.8, 0.9))
        wrt, args = (x, y), (x, y)
        if name in ("addcdiv", "addcmul", "lerp"):
            wrt = args = x, y, z
        elif name == "where":
            args = (x > 0.5, x, y)
        made = getattr(torch, name)(*args)
        grads = torch.autograd.grad(made.sum(), wrt, create_graph=True)
        yield name, [grad.requires_grad for grad in grads]
        if name in ("mul", "div"):
            grads = torch.autograd.grad(
                sum(g.sum() for g in grads), wrt, create_graph=True
            )
            yield [(grad.tolist(), grad.requires_grad) for grad in grads]


@case
def gradients_of_what_was_overwritten_whole(torch):
    """Zeros: with a history where PyTorch zeroes a piece of the one that arrives."""
    one = torch.tensor(1.0)
    writes = {
        "index": lambda t: t.__setitem__(0, 1.0),
        "tensor": lambda t: t.__setitem__(0, torch.zeros(3)),
        "slice": lambda t: t.__setitem__(slice(0, 1), 1.0),
        "none": lambda t: t.__setitem__(None, 1.0),
        "all": lambda t: t.__setitem__(..., one),
        "of a view": lambda t: t.view(3).__setitem__(..., 1.0),
        "fill a view": lambda t: t[:, :].fill_(1.0),
        "fill": lambda t: t.fill_(1.0),
        "copy": lambda t: t.copy_(torch.ones(3)),
        "select": lambda t: t.select_scatter(torch.zeros(3), 0, 0),
        "range": lambda t: t.slice_scatter(torch.zeros(1, 3)),
        "diagonal": lambda t: t.view(3, 1)[:1].diagonal_scatter(torch.zeros(1)),
    }
    for name, write in writes.items():
        x = torch.ones(1, 3, requires_grad=True)
        w = torch.ones(1, 3, requires_grad=True)
        t = x * 1
        made = write(t)
        t = t if made is None else made
        (grad,) = torch.autograd.grad((t * w).sum(), x, create_graph=True)
        edges = [name if node is None else node.name() for node, _ in edges_of(t)]
        yield name, grad.requires_grad, t.grad_fn.name(), edges


def edges_of(tensor):
    return tensor.grad_fn.next_functions


@case
def out_where_gradients_flow(torch):
    """What autograd refuses comes before what is wrong otherwise."""
    g, plain = torch.ones(2, 3, requires_grad=True), torch.ones(2, 3)
    yield attempt(torch.mul, g, g[:1], out=g)
    yield attempt(torch.mul, g, torch.ones(7), out=torch.ones(2))
    yield attempt(torch.mul, plain, torch.ones(7), out=g)
    yield attempt(torch.max, torch.ones(3), 0, out=(g, torch.ones(2).long()))
    yield attempt(torch.cat, [g, torch.ones(1)], out=torch.ones(2))
    yield attempt(torch.masked_select, g, plain, out=torch.ones(2))
    yield attempt(torch.sort, g, out=(torch.ones(2), torch.ones(2)))
    # Nothing flows through these.
    yield torch.eq(g, g, out=torch.zeros(2, 3) > 1)
    yield torch.argmax(g, 1, out=torch.zeros(2).long())
    with torch.no_grad():
        yield torch.mul(g, 2, out=plain)


STALE_USES = {
    "retain_grad": lambda torch, v: v.retain_grad(),
    "register_hook": lambda torch, v: v.register_hook(lambda g: None).id > 0,
    "is_leaf": lambda torch, v: v.is_leaf,
    "requires_grad": lambda torch, v: v.requires_grad,
    "requires_grad_": lambda torch, v: v.requires_grad_(),
    "detach": lambda torch, v: v.detach(),
    "backward": lambda torch, v: v.backward(torch.ones_like(v)),
    "its element": lambda torch, v: v[0].backward(),
    "root": lambda torch, v: torch.autograd.grad(v, v._base, torch.ones_like(v)),
    "input": lambda torch, v: torch.autograd.grad(v._base.sum(), v, allow_unused=True),
    "after": lambda torch, v: v.register_post_accumulate_grad_hook(print),
    "edge": lambda torch, v: torch.autograd.graph.get_gradient_edge(v).node.name(),
    "grad": lambda torch, v: v.grad,
}


@case(warnings=False).over(made=["custom", "unbind", "no_grad"], use=list(STALE_USES))
def of_views_that_are_outdated(torch, made, use):
    """After a write to its base such a view has no node, and what asks for it fails."""

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_()
    y = x * 2
    if made == "custom":
        v = Same.apply(y)
    elif made == "unbind":
        v = y.unbind(0)[1]
    else:
        with torch.no_grad():
            v = y[1:]
    yield attempt(STALE_USES[use], torch, v if use == "detach" else v[...])
    y.mul_(2)
    yield attempt(STALE_USES[use], torch, v)
