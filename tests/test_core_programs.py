"""Small programs that once went wrong, most of them found by `tests.fuzz_core`.

Each runs its steps several times over where what was recorded before decides how the
next time goes: known paths, learnt integers, remembered backward passes.
"""

from __future__ import annotations

import pickle
import threading

from tests.oracle import attempt, case


def in_thread(work):
    found = []
    worker = threading.Thread(target=lambda: found.append(work()))
    worker.start()
    worker.join()
    return found[0]


@case
def numpy_of_a_view_by_a_learnt_index(torch):
    for k in (0, 1, 0, 1):
        x = torch.arange(6.0).reshape(2, 3).clone().requires_grad_()
        part = x.narrow(0, k, 1)
        yield part.detach().numpy()
        row = x.detach()[k]
        row.numpy()[0] = 9.0
        yield row, x


@case
def pickle_of_a_view_by_a_learnt_index(torch):
    for k in (0, 1, 2, 1):
        x = torch.arange(6.0).reshape(3, 2).clone()
        yield pickle.loads(pickle.dumps(x[k])), x[k].storage_offset()


@case
def data_counts_versions_by_itself(torch):
    x = torch.ones(3).requires_grad_()
    d = x.data
    d[0] = 5.0
    d.mul_(2)
    yield d, d._version, x, x._version
    x.data.zero_()
    yield d, d._version, x, x._version


@case
def view_of_another_thread_written_to_under_hooks(torch):
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    for _ in range(2):
        x = torch.tensor([1.0, 2.0, 3.0]).requires_grad_()
        y = x * x
        array = y.detach().numpy()
        z = in_thread(lambda y=y: y.view(1, 3))
        with hooks:
            z.mul_(2)
        yield y, z, array
        (y * 3).sum().backward()
        yield x.grad


@case
def value_of_another_thread_used_again(torch):
    """Where the same has entered before, but another value stands in its place."""
    for _ in range(2):
        x = torch.arange(6.0).reshape(2, 3).clone().requires_grad_()
        y = x * 2
        z = in_thread(lambda x=x, y=y: x * y)
        yield x.detach().tolist(), z.detach().tolist()
        rows = z.index_select(0, torch.tensor([0, 1, 0]))
        product = y @ rows
        yield rows.detach().tolist(), product.detach().tolist()
        yield z.index_select(0, torch.tensor([0, 1, 0]))


@case
def view_made_in_another_thread(torch):
    x = torch.tensor(1.5).requires_grad_()
    y = x.square()
    z = in_thread(lambda: y.view_as(y))
    yield z, y
    y2 = z + 1
    y2.backward()
    yield x.grad


@case
def data_of_a_result_of_another_thread(torch):
    x = torch.ones(3).requires_grad_()
    y = in_thread(lambda: x * 3)
    y.data.copy_(torch.arange(3.0))
    yield y
    y.sum().backward()
    yield x.grad


@case
def untracked_write_to_a_result_of_another_thread(torch):
    x = torch.ones(3).requires_grad_()
    y = in_thread(lambda: x * 3)
    with torch.no_grad():
        y.mul_(4)
    yield y
    (y * 2).sum().backward()
    yield x.grad


@case
def numpy_of_a_result_of_another_thread(torch):
    x = torch.ones(3).requires_grad_()
    y = in_thread(lambda: x * 3)
    yield y.detach().numpy(), y
    (y * 2).sum().backward()
    yield x.grad


@case
def freed_in_another_thread(torch):
    x = torch.tensor([1.0, 2.0]).requires_grad_()
    y = x.exp()
    in_thread(lambda: y.sum().backward())
    yield x.grad
    yield attempt(lambda: in_thread(lambda: attempt(y.sum().backward)))


@case
def hook_on_a_leaf_that_is_asked_for(torch):
    x = torch.tensor([1.0, 2.0]).requires_grad_()
    for step in range(4):
        if step == 2:
            handle = x.register_hook(lambda g: g * 10)
        if step == 3:
            handle.remove()
        yield torch.autograd.grad((x * x).sum(), x)


@case
def hook_on_the_accumulation_of_a_leaf(torch):
    x = torch.tensor([1.0, 2.0]).requires_grad_()
    seen = []
    for step in range(4):
        x.grad = None
        if step == 2:
            node = x.view_as(x).grad_fn.next_functions[0][0]
            node.register_prehook(lambda g: seen.append(1))
        (x * x).sum().backward()
        yield x.grad, len(seen)


@case
def second_backward_through_a_written_view(torch):
    x = torch.tensor([1.0, 2.0]).requires_grad_()
    y = torch.zeros(2, 2).reshape(4).view(2, 2)
    y += x
    y.sum().backward()
    yield x.grad
    yield attempt(y.sum().backward)


@case
def second_backward_with_a_number_saved(torch):
    x = torch.tensor([1.0, 2.0]).requires_grad_()
    y = x.lerp(x.clone(), 0.5)
    y.sum().backward()
    y.sum().backward()
    yield x.grad
    z = (x * 2).sum()
    z.backward()
    yield attempt(z.backward)


@case
def leaf_that_is_a_view(torch):
    x = torch.arange(4.0).reshape(2, 2).requires_grad_()
    yield attempt(lambda: x.add_(1))
    yield attempt(lambda: x[0].add_(1))
    yield attempt(lambda: x.view(-1).zero_())
    with torch.no_grad():
        x[0] += 1
    yield x
    y = torch.ones(3).requires_grad_()
    v = y[...]
    y.requires_grad_(False)
    yield attempt(lambda: v.sub_(1))


@case
def views_of_views_that_may_not_be_written(torch):
    x = torch.ones(2, 3).requires_grad_()
    a, _ = x.unbind()
    yield attempt(lambda: a[1:].mul_(2))
    b, _ = (x * 1).chunk(2)
    yield attempt(lambda: b.mT.relu_())


@case
def retained_gradient_is_its_own(torch):
    x = torch.ones(2).requires_grad_()
    y = x * 2
    y.retain_grad()
    given = torch.tensor([1.0, 2.0])
    y.backward(given)
    y.grad.zero_()
    yield given, y.grad, x.grad


@case
def history_on_memory_shared_with_numpy(torch):
    x = torch.tensor([0.5, 1.0]).requires_grad_()
    for _ in range(3):
        y = x * 3
        array = y.detach().numpy()
        y.tanh_()
        yield array, y
        y.sum().backward()
        yield x.grad


@case
def versions_when_memory_changes_hands(torch):
    x = torch.tensor([0.5, 1.0]).requires_grad_()
    for read_first in (False, True):
        y = x.sin()
        x.data_ptr()
        if read_first:
            yield y.tolist()
        with torch.no_grad():
            x -= 0.5
        yield attempt(y.sum().backward), x.grad
        z = x.sin()
        yield z.tolist()
        alias = x.detach()
        with torch.no_grad():
            x.add_(0.25)
        yield attempt(z.sum().backward), x.grad, alias


@case
def grad_required_of_a_result_of_another_thread(torch):
    x = in_thread(lambda: torch.ones(2).sigmoid())
    y = in_thread(lambda: x.mean(0))
    y.requires_grad_()
    yield y
    (y * 2).backward()
    yield y.grad


@case
def result_saved_and_overwritten_after_a_read(torch):
    x = torch.tensor([0.5, 1.0]).requires_grad_()
    for f in ("exp", "tanh", "sigmoid", "sqrt"):
        for read_first in (False, True):
            y = getattr(x, f)()
            if read_first:
                yield y.tolist()
            y.add_(1)
            yield attempt(y.sum().backward), x.grad


@case
def aliases_that_come_and_go(torch):
    x = torch.tensor([0.5, 1.0]).requires_grad_()
    y = x.exp()
    yield y.detach().tolist()
    y.clamp_(min=0.1)
    yield attempt(y.sum().backward), x.grad
    z = x.exp()
    yield z.detach().tolist(), z.detach().tolist()
    z.tolist()
    yield z.detach().tolist()
    with torch.no_grad():
        z.zero_()
    yield attempt(z.sum().backward), x.grad


@case
def leaf_that_no_longer_requires_grad(torch):
    x = torch.tensor([0.5, 1.0]).requires_grad_()
    w = torch.tensor([2.0, 3.0]).requires_grad_()
    for step in range(4):
        y = (x * w).sum()
        if step % 2:
            yield y.item()
        x.requires_grad_(step in (0, 1))
        y.backward()
        x.requires_grad_()
        yield x.grad, w.grad


@case.over(
    {
        "relu of clamp": lambda t, w: t.clamp_(min=-0.4).relu_(),
        "product": lambda t, w: t.mul_(w).mul_(w),
        "product of a view": lambda t, w: t.view(2).mul_(w).mul_(w),
        "clamps of a view": lambda t, w: t.view(2).clamp_(-0.4).clamp_(max=0.7),
        "many": lambda t, w: t.pow_(2).sub_(1).pow_(3).sin_().abs_(),
        "itself": lambda t, w: t.mul_(t),
        "result": lambda t, w: t.exp_().add_(1),
    }
)
def in_place_one_after_the_other(torch, written):
    for read_first in (False, True):
        x = torch.tensor([0.5, 1.0], requires_grad=True)
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        y = written(x * 1, w)
        if read_first:
            yield y.tolist()
        yield attempt(y.sum().backward), x.grad, w.grad


@case
def sign_of_zero_among_the_arguments(torch):
    x = torch.tensor([-1.0, float("nan"), 2.0])
    for zero in (0.0, -0.0, 0.0):
        filled = torch.nan_to_num(x, nan=zero)
        yield filled, 1 / filled
        kept = torch.nn.functional.threshold(torch.tensor([-1.0, 2.0]), 0.5, zero)
        yield kept, 1 / kept


@case
def products_with_truth_values(torch):
    """XLA makes selections of them, which lose NaN * 0 and -1 * 0."""
    x = torch.tensor([-1.0, 2.0, float("nan"), float("inf"), -3.0])
    keep = torch.tensor([False, True, False, False, True])
    yield repr(x * keep), repr(keep.float() * x), repr((x < 0).to(x.dtype) * x)
    yield repr(x * keep.double()), repr(x.mul_(keep))
    y = torch.tensor([-1.0, float("nan")], requires_grad=True)
    (y * (y > 0)).sum().backward()
    yield repr(y.grad)


@case.over("amax", "amin", "aminmax", "max", "argmax")
def extreme_of_joined_tensors(torch, kind):
    """XLA took it from each of them, rounded otherwise: nothing equalled it."""
    side = torch.linspace(-1, 1, 12)
    x, y = torch.meshgrid(side, side, indexing="xy")
    corners = torch.tensor([[-0.5, -0.5], [0.5, -0.5], [0.0, 0.6]], requires_grad=True)

    def distance(a, b):
        return (x - a[0]) * (b[1] - a[1]) - (y - a[1]) * (b[0] - a[0])

    distances = [distance(corners[i], corners[(i + 1) % 3]) for i in range(3)]
    found = getattr(torch.stack(distances), kind)(dim=0)
    if kind == "argmax":
        return found
    found = found if kind in ("amax", "amin") else found[0]
    torch.sigmoid(-20 * found).pow(2).mean().backward()
    return corners.grad
