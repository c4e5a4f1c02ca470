"""What `test_placement` runs in a process whose CPU shows as two devices of JAX.

The second one stands for a GPU. What each case raises is printed.
"""

from __future__ import annotations

import io
import json
import os
import traceback

import jax

import torchshim as torch
import torchshim.nn.functional as F
from torchshim import nn
from torchshim._core import device as devices
from torchshim._core import stepwise
from torchshim._core.record import local
from torchshim._core.walk import Walk

CASES = {}
# It is asked on which device programs run: NumPy computes nothing in their place.
stepwise._EXACT_EVENTS = 0


def case(function):
    CASES[function.__name__] = function
    return function


def place(tensor):
    """JAX's device that a tensor's array is on; None: it is NumPy's."""
    local.rec.flush()
    tensor = tensor.detach()
    array = tensor._array if tensor._storage is None else tensor._storage.array
    return next(iter(array.devices())) if isinstance(array, jax.Array) else None


def made_in(step, times):
    """How many programs are made while a step is repeated, and walks walked."""
    before, walks = torch.explain(), []
    begin = Walk.begin
    Walk.begin = lambda walk, roots: (walks.append(walk), begin(walk, roots))[1]
    try:
        for _ in range(times):
            step()
    finally:
        Walk.begin = begin
    return len(torch.explain(before).programs), len(walks)


@case
def each_program_runs_on_the_device_of_its_tensors():
    host, gpu = torch.ones(4) * 2, torch.ones(4, device="cuda") * 3
    more, gpu_more = host + 1, gpu + 1
    assert {place(host), place(more)} == {HOST}
    assert {place(gpu), place(gpu_more)} == {GPU}
    assert more.tolist() == [3.0] * 4 and gpu_more.tolist() == [4.0] * 4


@case
def numbers_on_the_cpu_are_computed_with_anywhere():
    gpu, two = torch.ones(4, device="cuda") * 3, torch.tensor(2.0) * 1
    for made in (gpu * two, two * gpu):
        assert made.device.type == "cuda" and place(made) is GPU
        assert made.tolist() == [6.0] * 4


@case
def tensors_of_two_devices_are_refused():
    try:
        torch.ones(2) + torch.ones(2, device="cuda")
    except RuntimeError as error:
        assert "found at least two devices, cpu and cuda:0!" in str(error), error
    else:
        raise AssertionError


@case
def the_default_device():
    with torch.device("cuda"):
        made = [torch.zeros(3) + 1, torch.rand(3) * 2, torch.arange(3) + 1]
    assert all(x.device == torch.device("cuda:0") for x in made)
    assert all(place(x) is GPU for x in made)
    assert (torch.zeros(3) + 1).device.type == "cpu"
    x = torch.arange(4.0)
    with torch.device("cuda"):
        state = torch.get_rng_state()
        assert state.device.type == "cpu"
        torch.set_rng_state(state)
        assert x[[1, 2]].tolist() == [1.0, 2.0] and x[x > 1].tolist() == [2.0, 3.0]
        x[0] = 5
        counts = torch.tensor([1, 2])
        assert torch.repeat_interleave(counts).device.type == "cuda"
    assert x.device.type == "cpu" and x[0].item() == 5


@case
def gradients_come_back():
    w = torch.ones(3, requires_grad=True)
    v = torch.full((3,), 3.0, device="cuda", requires_grad=True)
    moved = (w * 2).to("cuda")
    assert str(moved.grad_fn).startswith("<ToCopyBackward0")
    assert str(moved.grad_fn.next_functions[0][0]).startswith("<MulBackward0")
    loss = (moved * v).sum().cpu() * 2
    assert loss.device.type == "cpu" and place(loss) is HOST
    loss.backward()
    assert w.grad.tolist() == [12.0] * 3 and w.grad.device.type == "cpu"
    assert v.grad.tolist() == [4.0] * 3 and v.grad.device.type == "cuda"
    assert place(w.grad) is HOST and place(v.grad) is GPU


@case
def a_leaf_that_is_moved():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    moved = w.cuda()
    assert not moved.is_leaf and moved.requires_grad
    edge = moved.grad_fn.next_functions[0][0]
    assert edge.variable is w
    (moved**2).sum().backward()
    (moved * 3).sum().backward()
    assert w.grad.tolist() == [5.0, 7.0] and w.grad.device.type == "cpu"


@case
def a_dtype_and_a_device_at_once():
    w = torch.ones(2, requires_grad=True)
    moved = w.to("cuda", torch.float64)
    assert moved.dtype is torch.float64 and moved.device.type == "cuda"
    (moved * 2).sum().backward()
    assert w.grad.dtype is torch.float32 and w.grad.tolist() == [2.0, 2.0]


@case
def nothing_is_moved_where_nobody_wants_gradients():
    w = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        moved = (w * 2).cuda()
    assert not moved.requires_grad and moved.is_leaf
    assert w.detach().cuda().grad_fn is None


@case
def hooks_see_gradients_where_their_tensors_are():
    seen = []
    w = torch.ones(2, requires_grad=True)
    inner = w * 2
    inner.register_hook(lambda g: seen.append(("inner", g.device.type, g.tolist())))
    moved = inner.cuda()
    moved.register_hook(lambda g: seen.append(("moved", g.device.type, g.tolist())))
    moved.retain_grad()
    (moved * 5).sum().backward()
    assert seen == [("moved", "cuda", [5.0, 5.0]), ("inner", "cpu", [5.0, 5.0])], seen
    assert moved.grad.device.type == "cuda" and w.grad.tolist() == [10.0, 10.0]


@case
def second_derivatives_through_a_move():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x.cuda() ** 3).cpu().sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    assert first.tolist() == [3.0, 12.0] and first.device.type == "cpu"
    (first * torch.tensor([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [6.0, 120.0]


@case
def a_second_backward():
    x = torch.ones(2, requires_grad=True)
    y = (x.cuda() * 2).exp().cpu().sum()
    y.backward(retain_graph=True)
    y.backward()
    expected = 4 * torch.tensor(2.0).exp().item()
    assert abs(x.grad[0].item() - expected) < 1e-4, x.grad
    try:
        y.backward()
    except RuntimeError as error:
        assert "backward through the graph a second time" in str(error)
    else:
        raise AssertionError


@case
def a_number_on_the_cpu_gets_its_gradient_there():
    scale = torch.tensor(2.0, requires_grad=True)
    x = torch.ones(3, device="cuda", requires_grad=True)
    (scale * x).sum().backward()
    assert scale.grad.item() == 3.0 and scale.grad.device.type == "cpu"
    assert x.grad.tolist() == [2.0] * 3 and x.grad.device.type == "cuda"


class Halves(nn.Module):
    """A model of which one half is on each device."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.second = nn.Linear(8, 3).to("cuda")

    def forward(self, x):
        return self.second(F.relu(self.first(x)).to("cuda"))


def trained(model, device, steps=6):
    torch.manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    x, y = torch.randn(16, 4), torch.randint(0, 3, (16,))
    losses = []

    def step():
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out.to(device), y.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    step()
    step()
    return losses, made_in(step, steps - 2)


@case
def half_of_a_model_on_each_device():
    torch.manual_seed(0)
    model = Halves()
    losses, _ = trained(model, "cpu")
    assert {p.device.type for p in model.parameters()} == {"cpu", "cuda"}
    assert all(p.grad.device == p.device for p in model.parameters())
    assert place(model.first.weight) is HOST and place(model.second.weight) is GPU
    torch.manual_seed(0)
    alone = Halves()
    alone.second.cpu()
    alone.forward = lambda x: alone.second(F.relu(alone.first(x)))
    expected, _ = trained(alone, "cpu")
    assert all(abs(a - b) < 1e-5 for a, b in zip(losses, expected, strict=True)), losses


@case
def nothing_is_compiled_again():
    torch.manual_seed(0)
    for device in ("cuda", "cpu"):
        _, more = trained(Halves(), device)
        assert more == (0, 0), more


@case
def a_loss_on_the_cpu_is_read_in_each_step():
    torch.manual_seed(0)
    model = nn.Linear(4, 1).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.randn(8, 4, device="cuda")
    total, losses = torch.zeros(()), []

    def step():
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total.add_(loss.detach().cpu())
        losses.append(loss.cpu().item())

    step()
    step()
    assert made_in(step, 4) == (0, 0)
    assert abs(total.item() - sum(losses)) < 1e-5
    assert losses[-1] < losses[0] and place(model.weight) is GPU


@case
def devices_in_turns_between_reads():
    a, b = torch.ones(3), torch.ones(3, device="cuda")
    for k in range(4):
        a = a * 2 + k
        b = b * 2 + k
    assert a.tolist() == b.tolist() == [27.0] * 3
    assert place(a) is HOST and place(b) is GPU


@case
def writes_in_place_on_both_devices():
    a, b = torch.zeros(3), torch.zeros(3, device="cuda")
    a += 1
    b += 2
    a[0] = 5
    b[1:] *= 3
    assert a.tolist() == [5.0, 1.0, 1.0] and b.tolist() == [2.0, 6.0, 6.0]
    assert place(a) in (HOST, None) and place(b) is GPU


@case
def indices_may_come_from_the_cpu():
    x, at = torch.zeros(4, device="cuda"), torch.tensor([0, 2])
    x[at] = 1.0
    x[torch.tensor([False, True, False, True])] = torch.tensor(5.0)
    x.index_put_((at,), torch.ones(2, device="cuda"), accumulate=True)
    assert x.tolist() == [2.0, 5.0, 2.0, 5.0] and x[at].tolist() == [2.0, 2.0]
    assert place(x) is GPU and x[at].device.type == "cuda"
    try:
        torch.zeros(3)[torch.tensor([0], device="cuda")]
    except RuntimeError as error:
        assert "on the same device as the indexed tensor (cpu)" in str(error)
    else:
        raise AssertionError


@case
def gradients_are_checked_on_the_device():
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, device="cuda", requires_grad=True)
    for fast in (False, True):
        assert torch.autograd.gradcheck(torch.sin, x, fast_mode=fast)
    assert torch.autograd.gradcheck(lambda x: x.cpu().exp(), x, check_forward_ad=True)
    assert x.device.type == "cuda" and place(x) is GPU


@case
def one_optimizer_for_parameters_on_both():
    for kind in (torch.optim.SGD, torch.optim.Adam):
        here = torch.ones(3, requires_grad=True)
        there = torch.ones(3, device="cuda", requires_grad=True)
        optimizer = kind([here, there], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            for p in (here, there):
                ((p - 2) ** 2).sum().backward()
            optimizer.step()
        assert here.tolist() == there.tolist() != [1.0] * 3
        assert place(here) is HOST and place(there) is GPU


@case
def mixed_precision():
    torch.manual_seed(0)
    model = nn.Linear(4, 2).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    x = torch.randn(8, 4)
    for _ in range(2):
        with torch.autocast("cuda", dtype=torch.float16):
            out = model(x.to("cuda", non_blocking=True))
        assert out.dtype is torch.float16
        scaler.scale(out.float().square().mean()).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 65536.0 and place(model.weight) is GPU


@case
def a_transform_around_a_move():
    def f(x):
        return (x.cuda() ** 2).cpu().sum()

    x = torch.tensor([1.0, 3.0])
    assert torch.func.grad(f)(x).tolist() == [2.0, 6.0]
    assert torch.func.vmap(f)(x).tolist() == [1.0, 9.0]
    assert torch.func.vmap(torch.func.grad(f))(x).tolist() == [2.0, 6.0]
    value, tangent = torch.func.jvp(f, (x,), (torch.tensor([1.0, 10.0]),))
    assert value.item() == 10.0 and tangent.item() == 62.0
    assert tangent.device.type == "cpu"
    assert torch.func.hessian(f)(x).tolist() == [[2.0, 0.0], [0.0, 2.0]]


@case
def checkpoints_across_devices():
    model = Halves()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    again = torch.load(file)
    assert again["second.weight"].device.type == "cuda"
    file.seek(0)
    there = torch.load(file, map_location="cpu")
    assert {v.device.type for v in there.values()} == {"cpu"}


def main():
    global HOST, GPU
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
    HOST, GPU = jax.devices("cpu")
    devices._jax_devices.update(cpu=(HOST,), cuda=(GPU,))
    found = {}
    for name, run in CASES.items():
        try:
            run()
        except BaseException:
            found[name] = traceback.format_exc()
        else:
            found[name] = None
    print(json.dumps(found))


if __name__ == "__main__":
    main()
