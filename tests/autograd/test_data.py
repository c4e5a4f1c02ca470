"""Writes through `.data`, which no version counts: gradients use the new values."""

from __future__ import annotations

from itertools import product

from tests.oracle import attempt, case


def leaf(torch, *values):
    return torch.tensor(values, requires_grad=True)


@case.over(read=[False, True], how=["write", "piece", "fill", "copy", "assign"])
def between_forward_and_backward(torch, read, how):
    x = leaf(torch, 1.0, 2.0)
    w = torch.tensor([3.0, 4.0])
    y = (x * x * w).sum() + (x[1:] * w[1:]).sum()
    if read:
        yield y.item()
    for tensor in (x, w):
        if how == "write":
            tensor.data.mul_(10)
        elif how == "piece":
            tensor.data[1:].add_(1)
        elif how == "fill":
            tensor.data.fill_(7.0)
        elif how == "copy":
            tensor.data.copy_(torch.tensor([5.0, 6.0]))
        else:
            tensor.data = torch.tensor([5.0, 6.0])
        yield tensor._version
    y.backward(retain_graph=True)
    yield x.grad
    w.data.zero_()
    y.backward(retain_graph=True)
    yield x.grad
    if how != "assign":
        with torch.no_grad():
            w.add_(1)
        yield attempt(y.backward)


@case
def of_inner_values(torch):
    x = leaf(torch, 1.0, 2.0)
    z = x * 1
    y = z * z
    z.data.zero_()
    y.sum().backward()
    yield x.grad, z
    x.grad = None
    z = x * 1
    y = z * z
    print(y.tolist())
    z.view(2).data[0] = 5.0
    y.sum().backward()
    yield x.grad, z
    x.grad = None
    y = x.exp()
    x.data.zero_()
    y.sum().backward()
    yield x.grad


@case
def with_create_graph(torch):
    x = leaf(torch, 1.0, 2.0)
    y = (x * x * x).sum()
    x.data.mul_(2)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    yield g
    g.sum().backward()
    yield x.grad


@case
def steps(torch):
    """The same again and again, as a training loop would: values are never stale."""
    x = leaf(torch, 1.0, 2.0)
    for i in range(4):
        y = (x * x).sum()
        if i % 2:
            print(y.item())
        x.data.add_(1)
        y.backward()
        yield x.grad.clone()
        x.grad.zero_()


@case
def other_errors(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    z = y * y
    with torch.no_grad():
        y.view(-1).zero_()
    yield attempt(z.sum().backward)
    x = leaf(torch, 1.0, 2.0, 3.0)
    view = x.unsqueeze(0)
    z = view.abs()
    print(z.tolist())
    x.detach().zero_()
    yield attempt(z.backward, torch.ones(1, 3))
    y = x * 1
    print(y.tolist())
    y *= y
    print(y.tolist())
    yield attempt((y * y).sum().backward)
    x, w = leaf(torch, 1.0), leaf(torch, 2.0)
    y = x * w
    with torch.no_grad():
        w.neg_()
    # What only the other gradient needs is looked at, too.
    yield attempt(torch.autograd.grad, y, [w])


@case
def swapping(torch):
    a, b = torch.ones(2), torch.zeros(3, requires_grad=True)
    a.note = "a's"
    same, told = a, (a._cdata, b._cdata)
    torch.utils.swap_tensors(a, b)
    yield (b._cdata, a._cdata) == told, a.detach()._cdata in told
    yield a, b, a is same, hasattr(a, "note"), b.note
    (a * 2).sum().backward()
    yield a.grad, b.requires_grad_(), torch.add(a, 1)
    alias = b.detach()
    torch.utils.swap_tensors(a, b)
    alias.add_(1)
    yield a, b, alias
    weight, plain = torch.nn.Parameter(torch.ones(1)), torch.zeros(1)
    torch.utils.swap_tensors(weight, plain)
    yield type(weight).__name__, type(plain).__name__, weight, plain
    base = torch.ones(2)
    view = base[:1]
    with torch.no_grad():
        base.requires_grad_()
    yield attempt(torch.utils.swap_tensors, base, plain)
    torch.utils.swap_tensors(torch.nn.Linear(1, 1).weight, torch.zeros(1, 1))
    yield view


@case
def converted_with_history(torch):
    """float() and complex() warn, but not what PyTorch has for it."""
    x = torch.tensor(2.0, requires_grad=True)
    for convert in (
        float,
        complex,
        int,
        bool,
        str,
        lambda x: x.item(),
        "{:.1f}".format,
    ):
        yield convert(x)
        with torch.no_grad():
            convert(x)
        convert(x.detach())


@case
def answers_of_accumulation_hooks(torch):
    for answer in ((1, 2), (), 1, "text", torch.ones(2)):
        x, w = leaf(torch, 1.0, 2.0), leaf(torch, 3.0, 4.0)
        x.register_post_accumulate_grad_hook(lambda leaf, answer=answer: answer)
        yield attempt((x * w * 2).sum().backward), x.grad


@case
def versions_of_what_was_assigned(torch):
    x = torch.zeros(1, 2)
    x.add_(1)
    x.data = torch.ones(2, 3)
    yield x._version, x.add_(1)._version, x[0]._version, x.data._version
    x = torch.zeros(3)
    x.set_(torch.ones(2))
    yield x._version, x.mul_(2)._version
    for given in (lambda p: p.data, lambda p: torch.zeros(2).add_(1)):
        p = leaf(torch, 1.0, 2.0)
        p.data = given(p)
        z = p * p
        yield p._version
        with torch.no_grad():
            p.add_(1)
        yield p._version, attempt(z.sum().backward)


@case
def in_place_after_an_untracked_write(torch):
    """The same when the recording is found again."""
    for _ in range(3):
        x = leaf(torch, 1.0, -4.0)
        y = x + 2
        with torch.no_grad():
            y.add_(x)
        z = y * 2
        y.relu_()
        yield y.tolist(), y.grad_fn.name()
        (y.sum() + z.sum()).backward()
        yield x.grad


@case
def views_stay_on_the_memory_that_was_left(torch):
    def addresses(*tensors):
        found = [t.untyped_storage().data_ptr() for t in tensors]
        return [found.index(each) for each in found], tensors[0].data_ptr() == found[0]

    for grad in (False, True):
        x = torch.ones(2, 3, requires_grad=grad) * 2
        part, other = x[0], x.detach()
        new = torch.zeros(2, 3)
        yield addresses(x, part, other, new)
        x.data = new.clone()
        yield addresses(x, part, other, new)
        with torch.no_grad():
            x.add_(7)
            other.sub_(1)
        yield x, part, other, addresses(x, part, other, new)
        x.data = new
        yield addresses(x, part, other, new)


@case
def written_to_beside_hooks(torch):
    """What `.data` writes leaves views on the node that they have."""
    seen = []
    for write in (
        lambda x, p, q: q.data.copy_(q),
        lambda x, p, q: p.data.mul_(2),
        lambda x, p, q: x.data.mul_(2),
        lambda x, p, q: q.data.zero_(),
    ):
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        p, q, _ = x.split(1)
        q.register_hook(lambda grad: seen.append(grad))
        node = p.grad_fn
        write(x, p, q)
        yield p.grad_fn is node, q.grad_fn is node
        (p * p).sum().backward()
        yield seen, x.grad, p, q
        seen.clear()


@case.over(
    by=["itself", "its piece", "x", "x.data", "its data", "its alias", "with history"],
    use=["it", "its piece", "its alias"],
)
def versions_of_its_own(torch, by, use):
    """What `.data` gives counts its own writes, and gradients ask for these alone."""
    for read in (False, True):
        q = leaf(torch, 1.0, 2.0, 3.0)
        x = leaf(torch, 1.0, 2.0, 3.0) * 1
        d = x.data
        if read:
            yield x.tolist()
        used = {"it": d, "its piece": d[1:], "its alias": d.detach()}[use]
        y = used * q[: len(used)]
        if by == "with history":
            d.mul_(x)
        else:
            written = {
                "itself": d,
                "its piece": d[:2],
                "x": x,
                "x.data": x.data,
                "its data": d.data,
                "its alias": d.detach(),
            }
            written[by].mul_(2)
        yield attempt(y.sum().backward), q.grad, d._version, x._version


@case
def a_piece_whose_place_varies(torch):
    """The index of the view is that of this time, also in a walk that is repeated."""
    for i in (0, 1, 2, 0, 1, 2, 2, 0):
        x, q = leaf(torch, 1.0, 2.0, 3.0, 4.0), leaf(torch, 1.0, 2.0)
        y = x.detach()[i : i + 2] * q
        x.data.mul_(2)
        y.sum().backward()
        yield q.grad


@case.over(read=["", "before", "between"])
def versions_of_its_own_with_a_history(torch, read):
    for own in (False, True):
        w, q = leaf(torch, 1.0, 2.0, 3.0), leaf(torch, 1.0, 2.0, 3.0)
        x = w * 1
        d = x.data
        d.mul_(w)
        if read == "before":
            yield d.tolist()
        whole, piece = d * q, d[1:] * q[1:]
        if read == "between":
            yield whole.tolist()
        (d if own else x.data).mul_(2)
        for y in (whole, piece):
            yield attempt(torch.autograd.grad, y.sum(), [q])


@case.over(viewed=[False, True], read=["", "before", "after", "last"])
def assigned_after_a_read(torch, viewed, read):
    """The graph has the tensor, whose memory is another one by then."""
    for _ in range(2):
        x = leaf(torch, 0.5, 0.75, 1.0)
        y = torch.stack([x, x])[0]
        view = x[None] if viewed else None
        if read == "before":
            yield y.tolist()
        z = x * y
        if read == "after":
            yield z.tolist()
        x.data = x.data - 0.1
        if read == "last":
            yield z.tolist()
        yield torch.autograd.grad([(y * y).sum(), z.sum()], [x])
        yield view


@case.over(leaf=[True, False], view=["slice", "mT", "split"])
def views_of_what_moved(torch, leaf, view):
    """They stay on the memory that their base has left, written to or not."""
    for written in ("no", "before", "after", "both"):
        for use in ("before", "after", "both"):
            x = torch.tensor([[-1.0, -0.75], [0.0, 0.25]], requires_grad=True)
            base = x if leaf else x * 1
            v = {
                "slice": lambda base=base: base[:, 1],
                "mT": lambda base=base: base.mT,
                "split": lambda base=base: base.split(1)[0],
            }[view]()
            y = None if use == "after" else v * 2
            for at in ("before", "after"):
                if written in (at, "both"):
                    with torch.no_grad():
                        v.mul_(2)
                if at == "before":
                    base.data = base.data - 0.1
            if use != "before":
                yield attempt(lambda v=v: v.tanh().tolist())
            yield v.tolist(), base.tolist()
            if y is not None:
                yield attempt(y.sum().backward), x.grad


@case
def onto_its_own_memory(torch):
    base = torch.tensor([1.0, 2.0, 3.0, 4.0])
    for t in (base.reshape(2, 2), base.reshape(2, 2).clone(), base[1:3]):
        t.requires_grad_()
        (t * 2).sum().backward()
        result, place = t.sin(), t.data_ptr()
        t.data -= 0.25 * t.grad
        yield t._is_view(), t._version, t.data_ptr() == place, t, base.tolist()
        t.data = t.data
        t.data.mul_(2)
        yield t._is_view(), t._version, t, base.tolist()
        with torch.no_grad():
            t.mul_(2)
        yield t, t._version, base.tolist(), attempt(result.sum().backward)


@case.over(noted=["no", "no_grad", "split"])
def views_of_what_it_gave(torch, noted):
    """They go by its counter, not by that of the tensor itself."""

    def pieces(whole):
        with torch.set_grad_enabled(noted != "no_grad"):
            return whole.split([1, 2])[1] if noted == "split" else whole[1:]

    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    d = x.data
    v = pieces(d)
    with torch.no_grad():
        x.add_(1)
    d.requires_grad_()
    yield v.grad_fn, v.requires_grad, v.is_leaf
    with torch.no_grad():
        d.add_(1)
    yield attempt(lambda: v.grad_fn), v.requires_grad
    yield attempt(lambda: (v * 2).sum().backward()), d.grad, x.grad
    yield v._version, d._version, x._version

    x, b = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3, requires_grad=True)
    d = x.data
    v = pieces(d)
    yield x.mul_(b), v.requires_grad, attempt(lambda: v.grad_fn), d.requires_grad
    yield d.mul_(b), v.requires_grad, attempt(lambda: v.grad_fn), d.requires_grad
    yield attempt(lambda: v.sum().backward()), b.grad


class Doubled:
    """In place, as a custom function marks it."""

    @staticmethod
    def of(torch):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                x.mul_(2)
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def backward(ctx, grad):
                return 2 * grad

        return Double


@case
def other_ways_to_count(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    d = x.data
    torch.autograd.graph.increment_version(d)
    yield x._version, d._version
    torch._C._autograd._unsafe_set_version_counter((d,), (5,))
    yield x._version, d._version
    with torch.autograd._unsafe_preserve_version_counter(d):
        d.add_(1)
    yield x._version, d._version, x
    y = x * 1
    d = y.data
    Doubled.of(torch).apply(d)
    yield x._version, y._version, d._version, d


@case(warnings=False)
def gradients_of_the_shape_before(torch):
    for shape in (2, 3), (1, 2, 3), (2, 2, 3), (2, 2, 2, 3), (1, 1, 2, 2, 3), (12,), ():
        for create in False, True:
            for before in None, shape, (2, 2, 3), (2, 3):
                x = torch.ones(2, 2, 3, requires_grad=True)
                y = x.sum(0)
                x.data = torch.ones(shape)
                if before is not None and before != shape:
                    yield attempt(setattr, x, "grad", torch.ones(before))
                elif before is not None:
                    x.grad = torch.ones(before)
                grad = x.grad
                yield attempt(y.sum().backward, create_graph=create)
                yield x.grad, x.grad is grad
                if grad is not None:
                    yield grad._version
    x = torch.ones(2, 2, 3, requires_grad=True)
    x.grad = torch.ones(2, 2, 3)
    y = x.sum(0)
    for shape in (2, 2, 3), (2, 3), (2, 2, 3), (1, 2, 2, 3), (2, 3), (2, 2, 3):
        x.data = torch.ones(shape)
        yield attempt(y.sum().backward, retain_graph=True)
        yield x.grad, torch.autograd.grad(y.sum(), x, retain_graph=True)
        x.grad = None


HIDDEN = {
    "nothing": lambda t, x: None,
    "copy": lambda t, x: t.data.copy_(x),
    "product": lambda t, x: t.data.mul_(x),
    "piece": lambda t, x: t.data.view(-1)[:1].copy_(x[:1]),
    "constant": lambda t, x: t.data.fill_(1.0),
}
COUNTED = {
    "write": lambda torch, t: t.mul_(2),
    "no grad": lambda torch, t: torch.no_grad()(t.mul_)(2),
    "view": lambda torch, t: t.view(-1).mul_(2),
    "detached": lambda torch, t: t.detach().mul_(2),
    "data": lambda torch, t: t.data.mul_(2),
}


@case.over(hidden=list(HIDDEN), counted=list(COUNTED))
def histories_through_data(torch, hidden, counted):
    """A write through `.data` of what has a history, then one that versions count."""
    for use in (lambda t: t / t, lambda t: t * 3 * t, lambda t: t.sum()):
        for read in range(3):
            x = leaf(torch, 1.0, 2.0)
            t = x * 2
            HIDDEN[hidden](t, x)
            if read == 1:
                yield t.tolist()
            y = use(t)
            if read == 2:
                yield t.tolist()
            COUNTED[counted](torch, t)
            yield t._version, attempt((y.sum() + x.sum()).backward), x.grad


@case
def views_of_leaves_that_numpy_shares(torch):
    """A write through `.data` does not bring back the node from before another."""
    for shared, seen in product((False, True), repeat=2):
        for unseen in (lambda x: x.data.add_(1), lambda x: x.detach().mul_(2)):
            x = torch.tensor([0.5, 0.75, 1.0], requires_grad=True)
            array = x.detach().numpy() if shared else None
            view = x[...]
            (view * 2).sum().backward()
            with torch.no_grad():
                view[:1].neg_()
            if seen:
                yield str(view.grad_fn).partition(" ")[0]
            unseen(x)
            yield str(view.grad_fn).partition(" ")[0], view._version
            x.grad = None
            (view * view).sum().backward()
            yield x.grad, None if array is None else array.tolist()


@case.over(dtype=["float32", "float16", "int32"])
def seen_as_another_dtype(torch, dtype):
    """`view(dtype)` is no view to autograd: it has neither base nor history."""
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    b = x * 1
    v = b[1:].view(getattr(torch, dtype))
    yield v, v._base is None, v._is_view(), v.is_leaf, v._version
    w = v[:, 1:]
    yield w._base is v, w._is_view()
    w.zero_()
    yield b, b._version, v._version
    x.view(getattr(torch, dtype)).zero_()
    yield x, x._version
    if v.is_floating_point():
        v.add_(torch.ones((), dtype=v.dtype, requires_grad=True))
        yield v, w, b
    b.sum().backward()
    yield x.grad
