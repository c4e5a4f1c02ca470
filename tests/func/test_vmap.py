"""`torch.vmap`: what is mapped, what is refused, random numbers, views and writes."""

import copy
import io
import pickle

import numpy as np

from tests.oracle import attempt, case


def batch(torch):
    return torch.arange(6.0).reshape(2, 3)


@case
def dimensions(torch):
    vmap, x, v = torch.vmap, batch(torch), torch.tensor([1.0, 2.0, 3.0])
    m = torch.arange(9.0).reshape(3, 3) / 10
    yield vmap(torch.dot)(x, x)
    yield vmap(lambda a: a.sum(), in_dims=1)(x)
    yield vmap(lambda a: a * 2, in_dims=-1, out_dims=-1)(x)
    yield vmap(lambda a, b: a @ b, in_dims=(None, 0))(m, x)
    yield vmap(lambda a: (a, a.sum()), out_dims=(1, 0))(x)
    yield vmap(lambda d: d["p"] * d["q"][0], in_dims=({"p": 0, "q": (None,)},))(
        {"p": x, "q": (v,)}
    )
    yield vmap(lambda a, k: a * k, in_dims=(0, None))(x, 3)
    yield vmap(lambda a: torch.zeros(2), out_dims=1)(x)
    yield vmap(lambda a: {"s": a.sum(), "t": a}, out_dims={"s": 0, "t": 1})(x)
    yield vmap(lambda a: (a, 3), out_dims=(0, None))(x)
    yield vmap(lambda a, *, k: a + k)(x, k=v)
    yield vmap(lambda a: a * 2, chunk_size=1)(x)
    yield vmap(lambda a: (a * 2, a.sum()), chunk_size=4, out_dims=(1, 0))(x)


@case
def nested(torch):
    vmap, x, v = torch.vmap, batch(torch), torch.tensor([1.0, 2.0, 3.0])

    def product(a, b):
        return a * b

    yield vmap(vmap(product, (0, None)), (None, 0))(v, x)
    yield vmap(vmap(product, (0, None)), (None, 0), out_dims=2)(v, x)
    yield vmap(vmap(product))(x, x + 1)
    yield vmap(vmap(vmap(torch.sin)))(x.reshape(1, 2, 3))
    yield vmap(lambda a: vmap(lambda b: a.sum() + b)(v))(x)


@case
def dimensions_of_results(torch):
    restore_vmap = torch._functorch.vmap.restore_vmap

    def f(x, y):
        return {"a": x[0] + x[1], "b": y, "c": 3, "d": torch.ones(2)}

    x, y = torch.arange(6.0).reshape(2, 3), torch.arange(8.0).reshape(4, 2)
    outs, dims = restore_vmap(f, ((0, 0), 1), 2, "error")((x, x.sum(1)), y)
    yield outs, dims, outs["b"] is y
    yield restore_vmap(lambda x: x + 1, (None,), 3, "error")(x)
    yield attempt(restore_vmap(f, (0,), 2, "error"), x, y)
    yield torch.vmap(lambda x: x)(x) is x, torch.vmap(lambda x: x, 1)(x) is x
    yield torch._vmap_internals._vmap(lambda x: x * 2, 1, 1)(x)


class Boxed:
    """What holds a tensor, is no pytree, and knows of dimensions itself."""

    def __init__(self, held):
        self.held = held


@case
def replaced_steps(torch):
    """Libraries replace the steps of `vmap`, so that it takes their own classes."""
    module = torch._functorch.vmap
    add, leave = torch._C._functorch._add_batch_dim, module._maybe_remove_batch_dim
    names = ("_process_batched_inputs", "_create_batched_inputs", "_unwrap_batched")
    usual = {name: getattr(module, name) for name in names}
    told = []

    def inputs(in_dims, args, func):
        flat, spec = module.tree_flatten(args)
        told.append((module._get_name(func), len(flat)))
        dims = module._broadcast_to_and_flatten(in_dims, spec)
        return flat[0].held.size(dims[0]), dims, flat, spec

    def enter(dims, flat, level, spec):
        told.append(level)
        found = [Boxed(add(x.held, d, level)) for x, d in zip(flat, dims, strict=True)]
        return module.tree_unflatten(found, spec)

    def results(outputs, out_dims, level, size, func):
        return Boxed(leave("f", outputs.held, level, size, out_dims))

    def product(a, b):
        told.append((tuple(a.held.shape), torch._C._functorch.maybe_get_level(a.held)))
        return Boxed(a.held * b.held.sum())

    x = batch(torch).requires_grad_()
    for name, step in zip(names, (inputs, enter, results), strict=True):
        setattr(module, name, step)
    try:
        out = torch.vmap(product, (0, 1), 1)(Boxed(x), Boxed(x.T))
    finally:
        for name, step in usual.items():
            setattr(module, name, step)
    (grad,) = torch.autograd.grad(out.held.sin().sum(), x)
    yield out.held.detach(), grad, told
    yield torch.vmap(lambda a: a * 2)(x)
    yield attempt(leave, "f", 3, 1, 2, 0)
    yield attempt(leave, "f", 3, 1, 2, None)


@case
def strided_views(torch):
    vmap, x = torch.vmap, torch.arange(6.0).reshape(3, 2)
    for dim in (0, 1):
        yield vmap(lambda a: a.as_strided((2, 2), (1, 0)), in_dims=dim)(x)
        yield vmap(lambda a: torch.as_strided_copy(a, (2,), (1,)), in_dims=dim)(x)
    for size, strides, start in (
        ((2,), (1,), 1),
        ((1,), (1,), 1),
        ((2,), (1,), 0),
        ((0,), (1,), 1),
        ((2,), (1, 2), 1),
    ):
        yield attempt(vmap(lambda a: a[1:].as_strided(size, strides, start)), x)  # noqa: B023
    deep = torch.arange(12.0).reshape(2, 2, 3)
    both = vmap(vmap(lambda a: a.as_strided((2,), (2,)), in_dims=-1), in_dims=1)
    yield both(deep)
    vmap(lambda a: a.as_strided((1,), (1,)).mul_(-1), in_dims=1)(x)
    yield x


# PyTorch warns where a rule of its own is slow: `warnings=False`.
@case(warnings=False)
def mapped_lengths_of_segments(torch):
    x, n = batch(torch), torch.tensor([[2, 1], [0, 3]])
    reduced = torch.vmap(lambda a, n: torch.segment_reduce(a, "sum", lengths=n))
    yield reduced(x, n)
    yield attempt(reduced, x, n + 1)


@case
def operators(torch):
    vmap, x = torch.vmap, batch(torch)
    f = torch.nn.functional
    yield vmap(lambda a: a.sort(descending=True).values)(x)
    yield vmap(lambda a: torch.cat([a, a.flip(0)]))(x)
    yield vmap(lambda a: torch.stack([a, a]))(x)
    yield vmap(lambda a: a.unfold(0, 2, 1))(x)
    yield vmap(lambda a: a.max(0))(x)
    yield vmap(lambda a: torch.where(a > 2, a, -a))(x)
    yield vmap(lambda a: a.softmax(-1).log())(x)
    yield vmap(lambda a: f.layer_norm(a, (3,)))(x)
    yield vmap(lambda a: f.conv1d(a[None, None], torch.ones(2, 1, 2)))(x)
    yield vmap(lambda i: f.one_hot(i, 3))(torch.tensor([0, 2]))
    yield vmap(lambda t, i: t.index_select(0, i), in_dims=(0, None))(
        x, torch.tensor([2, 0])
    )
    yield vmap(lambda t, i: t.gather(0, i))(x, torch.tensor([[0, 1], [2, 2]]))
    yield vmap(lambda i: x[:, i])(torch.tensor([[0, 1], [2, 2]]))
    yield vmap(lambda a: torch.einsum("i,j->ij", a, a))(x)
    yield vmap(lambda a: torch.linalg.inv(torch.diag(a + 1)))(x)
    yield vmap(lambda a: f.cross_entropy(a, torch.tensor(1)))(x)
    yield vmap(lambda a: a.new_zeros(2) + torch.zeros_like(a).sum())(x)
    yield vmap(lambda a: (a.shape, a.dim(), a.numel())[1] * a)(x)


@case
def writes(torch):
    vmap, x = torch.vmap, batch(torch)

    def fill(a):
        b = a.clone()
        b[0] = 5.0
        b[1:].mul_(a[1:])
        return b

    def scattered(a):
        z = torch.zeros_like(a)
        z[1:] += a[:2]
        z.view(-1)[0] = a.sum()
        return z

    yield vmap(fill)(x)
    yield vmap(scattered)(x)
    yield vmap(lambda a: a.add_(1))(x)
    yield x
    yield attempt(vmap(lambda a: torch.zeros(3).mul_(a).sum()), x.clone())
    z = torch.zeros(())
    yield attempt(vmap(lambda a: z.add_(a)), torch.ones(2))


@case
def gradients(torch):
    vmap, x = torch.vmap, batch(torch)
    w = torch.ones(3, requires_grad=True)
    out = vmap(lambda a: (a * w).sin())(x)
    yield out
    out.sum().backward()
    yield w.grad
    z = x.clone().requires_grad_()
    y = z**2
    rows = vmap(lambda u: torch.autograd.grad(y, z, u, retain_graph=True)[0])
    yield rows(torch.eye(6).reshape(6, 2, 3)[:2])
    with torch.no_grad():
        yield vmap(lambda a: a * w)(x)
    yield vmap(lambda a: a.detach() * 2)(z)


@case
def refusals(torch):
    vmap, x = torch.vmap, batch(torch)
    yield attempt(vmap(lambda a: a.sum().item()), x)
    yield attempt(vmap(lambda a: a if a.sum() > 0 else -a), x)
    yield attempt(vmap(lambda a: float(a.sum())), x)
    yield attempt(vmap(lambda a: a.tolist()), x)
    yield attempt(vmap(lambda a: a.numpy()), x)
    yield attempt(vmap(lambda a: a.data_ptr()), x)
    yield attempt(vmap(torch.nonzero), x)
    yield attempt(vmap(lambda a: a[a > 0]), x)
    yield attempt(vmap(lambda a: a.requires_grad_()), x)
    yield attempt(vmap(lambda a: 3), x)
    yield attempt(vmap(lambda a: a, out_dims=None), x)
    yield attempt(vmap(lambda a: a, out_dims=(0, 0)), x)
    yield attempt(vmap(lambda a: (a, a), out_dims=(0, 0, 0)), x)
    yield attempt(vmap(lambda a: a, out_dims="x"), x)
    yield attempt(vmap(lambda a: a, out_dims=3), x)
    yield attempt(vmap(lambda a: a, in_dims=[0]), x)
    yield attempt(vmap(lambda a: a, in_dims=(0, 0)), x)
    yield attempt(vmap(lambda a: a, in_dims=2), x)
    yield attempt(vmap(lambda a: a, in_dims=("x",)), x)
    yield attempt(vmap(lambda a: a), 3)
    yield attempt(vmap(lambda a: a))
    yield attempt(vmap(lambda a, b: a, in_dims=None), x, x)
    yield attempt(vmap(lambda a, b: a), x, torch.ones(3))
    yield attempt(vmap, lambda a: a, chunk_size=0)
    yield attempt(vmap, lambda a: a, randomness="some")
    yield vmap(torch.sin).__name__


@case(warnings=False)
def shown(torch):
    def look(a):
        print(a)
        print(a.sum())
        return a

    torch.vmap(look)(batch(torch))
    torch.vmap(torch.vmap(look))(batch(torch).unsqueeze(2))
    torch.func.grad(lambda a: (look(a) * 2).sum())(torch.ones(2))
    torch.func.jvp(look, (torch.ones(2),), (torch.ones(2),))
    yield torch.vmap(lambda a: torch.func.debug_unwrap(a).sum(), out_dims=None)(
        batch(torch)
    )


DRAWN = {
    "rand": lambda t, a: t.rand(3),
    "randn_like": lambda t, a: t.randn_like(a),
    "normal_": lambda t, a: t.zeros(3).normal_(),
    "uniform_": lambda t, a: a.clone().uniform_(),
    "bernoulli": lambda t, a: t.bernoulli(a * 0.5),
    "randperm": lambda t, a: t.randperm(4),
    "randint": lambda t, a: t.randint(5, (3,)),
    "dropout": lambda t, a: t.nn.functional.dropout(a),
    "normal": lambda t, a: t.normal(a, 1.0),
    "multinomial": lambda t, a: t.multinomial(a, 2),
    "gumbel": lambda t, a: t.nn.functional.gumbel_softmax(a),
    "poisson": lambda t, a: t.poisson(a * 3),
    "poisson, not mapped": lambda t, a: t.poisson(t.full((2,), 3.0)),
    "binomial": lambda t, a: t.binomial(a + 4, a / 2),
    "gamma": lambda t, a: t._standard_gamma(a + 1),
    "Normal": lambda t, a: t.distributions.Normal(a, a * 2).sample(),
    "Categorical": lambda t, a: t.distributions.Categorical(logits=a).sample(),
}


@case.over(randomness=["error", "same", "different"])
def random_numbers(torch, randomness):
    x = torch.ones(2, 3)
    for draw in DRAWN.values():
        torch.manual_seed(0)
        mapped = torch.vmap(lambda a, draw=draw: draw(torch, a), randomness=randomness)
        yield attempt(mapped, x)


@case
def random_numbers_nested(torch):
    x = torch.ones(2, 3, 1)
    for outer in ("same", "different"):
        for inner in ("same", "different"):
            torch.manual_seed(0)
            rows = torch.vmap(lambda a: torch.rand(2), randomness=inner)
            yield torch.vmap(rows, randomness=outer)(x)
    torch.manual_seed(0)
    yield torch.vmap(lambda a: torch.rand(1), chunk_size=1, randomness="same")(x)


@case
def numbers_of_each(torch):
    x = torch.arange(12.0).view(3, 2, 2)
    i = torch.tensor([0, 1, -1])

    def written(a, i, v):
        a = a.clone()
        a[i] = v
        a[:, i] += 1
        return a

    for f in (
        lambda a, i: a[i],
        lambda a, i: a[:, i],
        lambda a, i: a[i, 0],
        lambda a, i: a[..., i, None],
        lambda a, i: torch.arange(4.0)[i],
    ):
        yield torch.vmap(f)(x, i)
    yield torch.vmap(written)(x, i, torch.arange(3.0))
    rows = torch.vmap(lambda a, i: a[i], in_dims=(None, 0))
    yield torch.vmap(rows)(x[0], torch.tensor([[0, 1], [1, 1]]))
    yield attempt(torch.vmap(lambda a, i: a[i]), x, i > 0)


@case
def memory_of_each(torch):
    """`.data` of what the innermost transform maps over is refused."""
    x = batch(torch)

    def assign(t):
        t.data = t * 2
        return t

    yield attempt(torch.vmap(lambda t: t.data * 2), x)
    yield attempt(torch.vmap(assign), x)
    yield torch.vmap(lambda t: x.data.sum() + t)(x)
    yield torch.vmap(torch.func.grad(lambda t: (t.data * t).sum()))(x)


@case
def as_many_as_values_say(torch):
    """What would give each example another shape, or a truth, is refused by name."""
    x = batch(torch)
    for f in (
        lambda t: torch.where(t > 0),
        lambda t: t.nonzero(),
        lambda t: t.nonzero(as_tuple=True),
        torch.unique,
        lambda t: t.unique(dim=0),
        lambda t: t.unique_consecutive(),
        lambda t: t.unique_consecutive(dim=0),
        lambda t: t.masked_select(t > 0),
        lambda t: torch.ones(3).masked_select(t > 0),
        lambda t: t.masked_select(torch.tensor([True, False, True])),
        lambda t: torch.allclose(t, t),
        lambda t: torch.allclose(torch.ones(3), t),
        lambda t: torch.equal(t, t),
        lambda t: t.equal(torch.ones(3)),
    ):
        yield attempt(torch.vmap(f), x)


@case
def writes_to_memory_that_numpy_shares(torch):
    memory = np.arange(6.0).reshape(3, 2)
    x = torch.from_numpy(memory)
    yield torch.vmap(lambda x: x.mul_(2))(x), x, memory.copy()
    yield torch.vmap(lambda x: x.add_(1), 1, 1)(x), x, memory.copy()
    yield torch.vmap(torch.vmap(lambda x: x.add_(2)))(x), x, memory.copy()

    def failing(x):
        x.zero_()
        raise ValueError("after a write")

    yield attempt(torch.vmap(failing), x), x, memory.copy()


VALUES = """
    x.item(); x[0].item(); bool(x); bool(x.sum()); x.is_nonzero(); float(x[0])
    x.tolist(); f"{x[0]:.2f}"; x[0] in x; 1.0 in x; x.numpy(); x.data_ptr(); x.storage()
    x.untyped_storage(); x.share_memory_(); copy.deepcopy(x); pickle.dumps(x)
    torch.save(x, io.BytesIO()); x[x > 0.5]; x.nonzero(); x.unique()
    [1, 2][x[0].long()]
"""


# Some are said once in a process.
@case(warnings=False).over(
    *[each.strip() for each in VALUES.replace("\n", ";").split(";") if each.strip()]
)
def values_and_memory_of_one_example(torch, line):
    names = {"torch": torch, "copy": copy, "pickle": pickle, "io": io}
    x = torch.arange(6.0).reshape(3, 2)
    yield attempt(torch.vmap(lambda x: eval(line, names, {"x": x})), x)


@case(warnings=False).over(
    *"add_ sub_ mul_ copy_ atan2_ clamp_min_ clamp_max_ copysign_ hypot_ pow_".split(),
    *"bitwise_and_ gcd_ lcm_ bitwise_left_shift_ logical_and_ logical_or_".split(),
)
def writes_of_examples_to_what_has_none(torch, name):
    dtype = torch.int64 if name[:3] in ("bit", "gcd", "lcm") else torch.float32
    zeros, x = torch.zeros(3, dtype=dtype), torch.ones(2, 3, dtype=dtype)
    return attempt(torch.vmap(lambda each: getattr(zeros, name)(each)), x)


@case(warnings=False).lines("""
zeros[i] = x
zeros[0:3] = x
zeros[m] = x[0]
zeros.fill_(x[0])
zeros.index_put_((i,), x)
zeros.masked_fill_(x > 0, 1.0)
zeros.scatter_(0, torch.arange(3) * (x > 0), 1.0)
zeros.scatter_add_(0, i, x)
zeros.index_add_(0, i, x)
zeros.index_fill_(0, i, x[0])
zeros.scatter_reduce_(0, i, x, "sum")
""")
def pieces_of_examples_in_what_has_none(torch, line):
    def write(x):
        names = {"torch": torch, "zeros": torch.zeros(3), "x": x}
        names["i"] = torch.tensor([0, 1, 2])
        names["m"] = torch.tensor([True, False, True])
        exec(line, names)
        return x

    return attempt(torch.vmap(write), torch.ones(2, 3))


@case(warnings=False)
def histograms_and_classes(torch):
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 9.0]])
    yield torch.vmap(lambda each: torch.histc(each, 3, 0, 9))(x)
    yield torch.vmap(lambda each: torch.histc(each, 3))(x)
    yield attempt(torch.vmap(torch.nn.functional.one_hot), x.long())


@case
def distributions_validate_all_examples(torch):
    made = torch.distributions
    x = torch.tensor([0.5, 1.0])
    yield torch.vmap(lambda a: made.Normal(a, a).log_prob(a))(x)
    yield torch.vmap(lambda a: made.Bernoulli(a).log_prob(torch.ones(())))(x)
    yield torch.vmap(lambda a: made.MultivariateNormal(a, torch.eye(2)).log_prob(a))(
        torch.ones(3, 2)
    )


# PyTorch warns that its fallback is slow.
@case(warnings=False)
def mapped_repeats(torch):
    vmap, repeat = torch.vmap, torch.repeat_interleave
    x = torch.arange(6.0).reshape(2, 3)
    counts = torch.tensor([[1, 2, 1], [2, 1, 1]])
    yield vmap(repeat)(counts)
    yield vmap(repeat)(x, counts)
    yield vmap(repeat)(x, torch.tensor([2, 2]))
    yield vmap(lambda each: repeat(x, each, 1), out_dims=1)(counts)
    yield vmap(vmap(repeat))(torch.stack([x, x + 1]), torch.stack([counts, counts]))
    nested = vmap(vmap(repeat, in_dims=(None, 0)), in_dims=(0, None))
    yield nested(x, counts)
    squares = torch.func.grad(lambda a, b: (repeat(a, b) ** 2).sum())
    yield vmap(squares)(x, counts)
    sized = vmap(lambda a, b: repeat(a, b, output_size=4))
    yield sized(x, counts)
    yield attempt(sized, x, torch.tensor([[1, 2, 1], [2, 2, 1]]))
    yield attempt(vmap(repeat), torch.tensor([[1, 2, 1], [2, 2, 1]]))
    yield attempt(vmap(repeat), torch.tensor([[1, -2, 5], [2, 1, 1]]))
    yield attempt(vmap(repeat), torch.zeros(0, 3, dtype=torch.int64))
    yield attempt(vmap(repeat), x)


@case(stride=True)
def views_of_arguments_are_views_of_what_was_given(torch):
    vmap = torch.vmap
    x = torch.arange(24.0).reshape(2, 3, 4)
    rows = vmap(lambda a: a[1:], in_dims=1, out_dims=2)(x)
    yield rows, rows._base is x, rows.storage_offset()
    rows.add_(100)
    x[0] = 0
    yield [t._base is x for t in vmap(lambda a: a.chunk(2))(x)]
    yield x, rows
    x = torch.arange(24.0).reshape(2, 3, 4)
    turned = vmap(vmap(lambda a: a), in_dims=2, out_dims=1)(x)
    yield vmap(lambda a: a.mul_(2), in_dims=1)(x), turned, x
    c = torch.tensor([[1 + 2j, 3 - 1j]])
    shown = vmap(torch.conj, 1)(c), vmap(torch.imag, 1)(c)
    vmap(lambda a: a.imag)(c).fill_(9)
    yield shown, c


@case(stride=True)
def writes_to_mapped_views_have_gradients(torch):
    vmap, f = torch.vmap, torch.func
    y = torch.ones(2, 3, requires_grad=True)
    z = y * 2
    vmap(lambda a: a[1:])(z).mul_(3)
    z.sum().backward()
    yield y.grad

    def sines(x):
        rows = vmap(lambda a: a[::2], in_dims=1)(x.clone())
        rows.sin_()
        return rows.sum()

    x = torch.arange(8.0).reshape(4, 2)
    yield f.grad(sines)(x), f.jvp(sines, (x,), (torch.ones(4, 2),))
    yield vmap(f.grad(sines))(x.reshape(2, 2, 2))


@case(stride=True)
def strides_of_results(torch):
    x = torch.arange(18.0).reshape(2, 3, 3)
    for out in (0, 1, 2):
        yield torch.vmap(lambda a: a.mm(a), out_dims=out)(x)
        yield torch.vmap(lambda a: a.sum(0), out_dims=min(out, 1))(x)


@case
def examples_of_subclasses(torch):
    class Named(torch.Tensor):
        pass

    x, seen = torch.arange(4.0).as_subclass(Named), []

    def double(x, y=1):
        seen.append(type(x).__name__)
        return x * 2 * y

    made = torch.vmap(double)(x), torch.vmap(double, in_dims=(0, None))(x.sin(), x)
    yield made, [type(each).__name__ for each in made], seen
    torch.vmap(lambda each: each.add_(1))(x)
    yield x, x._version
