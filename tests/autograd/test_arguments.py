"""What backward passes, nodes and tensors are given: odd values, numbers and names."""

from __future__ import annotations

import numpy as np

from tests.oracle import attempt, case

FLAGS = (None, 0, 2, True, 1.5, "a", [], (), {}, np.ones(2), "tensor", "integer")


def flags(torch):
    made = {"tensor": torch.ones(2), "integer": torch.tensor(1)}
    return [made.get(f, f) if isinstance(f, str) else f for f in FLAGS]


@case.over("retain_graph", "create_graph", "allow_unused", "materialize_grads")
def flags_of_grad(torch, name):
    for flag in flags(torch):
        x = torch.ones(2, requires_grad=True)
        yield attempt(torch.autograd.grad, (x * x).sum(), x, **{name: flag})


@case
def roots_and_targets(torch):
    x = torch.ones(2, requires_grad=True)
    unused = torch.ones(2, requires_grad=True)
    out = (x * 2).sum()
    for outputs in ([], (), [out], iter([out]), [out, None], 5, None):
        yield attempt(torch.autograd.grad, outputs, x)
    for inputs in (np.ones(2), [np.ones(2)], [5], [None], {"x": x}, [x, unused]):
        yield attempt(torch.autograd.grad, (x * 2).sum(), inputs)
        yield attempt((x * 2).sum().backward, inputs=inputs)
    yield attempt(torch.autograd.backward, []), x.grad
    yield attempt((x * 2).backward, torch.ones(2), only_inputs=True)
    yield attempt((x * 2).backward, torch.ones(2), False, False, [x], 5)


@case
def gradients_on_another_device(torch):
    x = torch.ones(2, requires_grad=True)
    meta = torch.ones(2, device="meta")
    yield attempt(torch.autograd.grad, x * 2, x, meta)
    yield attempt((x * 2).backward, meta), x.grad
    yield attempt(torch.autograd.backward, [x * 2, x * 3], [torch.ones(2), meta])


@case
def attributes_by_hand(torch):
    x = torch.ones(2, requires_grad=True)
    for tensor in (x, x * 1, (x * 1)[:1], x[:1], torch.ones(2)):
        for value in (True, False, 1, None):
            yield attempt(setattr, tensor, "requires_grad", value)
        for value in (np.ones(2), 5, [1.0], "a"):
            yield attempt(setattr, tensor, "grad", value)


@case
def tensors_of_tensors_keep_their_history(torch):
    for make in (lambda x: x, lambda x: x * 2, lambda x: (x * 2)[1:]):
        leaf = torch.tensor([1.0, 2.0], requires_grad=True)
        x = make(leaf)
        for kind in (torch.Tensor, torch.FloatTensor, x.new, torch.DoubleTensor):
            made = attempt(kind, x)
            yield made
            if isinstance(made, torch.Tensor):
                yield torch.autograd.grad(made.sum(), leaf, retain_graph=True)
        with torch.no_grad():
            torch.Tensor(x).mul_(3)
        yield leaf.detach()


@case
def tensors_made_in_inference_mode(torch):
    class Saving(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return None, grad * ctx.saved_tensors[0]

    with torch.inference_mode():
        made = torch.ones(3)
    w = torch.ones(3, requires_grad=True)
    yield attempt(Saving.apply, made, w), attempt(Saving.apply, w, made)
    yield attempt(torch.nn.Parameter, made)
    yield torch.nn.Parameter(made, requires_grad=False)
    for mode in (torch.enable_grad, torch.no_grad):
        with mode():
            yield attempt(made.zero_), attempt(made.fill_, 2), attempt(made.add_, 1)
            yield attempt(made.copy_, torch.ones(3)), attempt(made.requires_grad_)
    weight = torch.nn.Parameter(torch.zeros(3))
    weight.data = torch.ones(3)
    version = weight._version
    with torch.inference_mode():
        made = torch.ones(3)
    weight.data = made
    yield weight, weight._version == version


@case
def order_of_memory_of_gradients(torch):
    policy = torch.autograd.enforce_grad_layout_policy
    for enforced in (True, False, True, False):
        for weight in (torch.ones(2, 3), torch.ones(3, 2).t()):
            w = weight.detach().requires_grad_()
            grad = torch.ones(3, 2).t() if w.is_contiguous() else torch.ones(2, 3)
            for _ in range(2):
                with policy(enforced):
                    (w + 0).backward(grad)
                yield w.grad, w.grad.stride()
    yield torch.autograd.is_multithreading_enabled()
    yield torch.autograd.is_view_replay_enabled()
    with torch.autograd.set_multithreading_enabled(False):
        yield torch.autograd.is_multithreading_enabled()


NODES = {
    "clamp": (lambda x, y: x.clamp(0.5, 1.5), ("min", "max", "self")),
    "clamp min": (lambda x, y: x.clamp(min=0.5), ("min", "max")),
    "mm": (lambda x, y: x @ y.t(), ("self", "mat2", "mat2_sym_sizes")),
    "mv": (lambda x, y: x @ y[0], ("self", "vec")),
    "mean": (lambda x, y: x.mean(), ("self_sym_sizes", "self_sym_numel")),
    "add": (lambda x, y: x.add(y, alpha=3), ("alpha",)),
    "mul": (lambda x, y: x.clone().mul_(2), ("self", "other")),
    "where": (lambda x, y: torch_where(x, y), ("condition",)),
    "pow": (lambda x, y: x**3, ("self", "exponent")),
    "copy": (lambda x, y: x.clone().copy_(2), ()),
}


def torch_where(x, y):
    return x.where(x > 1, y)


@case.over(*NODES)
def what_nodes_show(torch, name):
    make, names = NODES[name]
    x = torch.tensor([[1.0, 2.0], [0.1, 4.0]], requires_grad=True)
    y = torch.tensor([[1.0, 3.0], [5.0, 4.0]], requires_grad=True)
    for _ in range(2):
        out = make(x, y)
        node = out.grad_fn
        yield node.name(), [(n and n.name(), k) for n, k in node.next_functions]
        yield [getattr(node, f"_saved_{each}") for each in names]
        out.sum().backward()
        yield [attempt(getattr, node, f"_saved_{each}") for each in names]


@case
def nodes_of_tensors_and_edges(torch):
    find = torch.autograd.graph._get_grad_fn_or_grad_acc
    x = torch.ones(2, requires_grad=True)
    for given in (x, x * 2, torch.autograd.graph.get_gradient_edge(x)):
        yield find(given).name()
    yield type(attempt(find, torch.ones(2))).__name__


@case(warnings=False)  # PyTorch imports what is deprecated
def levels_of_forward_mode(torch):
    forward_ad = torch.autograd.forward_ad
    x = torch.ones(2)
    with forward_ad.dual_level() as level:
        for each in (None, level, 1, -1):
            dual = attempt(forward_ad.make_dual, x, x, level=each)
            yield isinstance(dual, torch.Tensor) or dual
        dual = forward_ad.make_dual(x, x)
        for each in (None, level, 1, -1):
            yield attempt(forward_ad.unpack_dual, dual, level=each)
            dual.detach().numpy()


@case
def what_is_no_tensor_and_no_flag(torch):
    auto = torch.autograd
    x, z = torch.ones(3, requires_grad=True), torch.ones(3)
    y = x * 2
    yield attempt(auto.grad, y.sum(), auto.graph.GradientEdge(1, 2))
    for flag in (auto.set_detect_anomaly, auto.set_multithreading_enabled):
        yield attempt(flag, "a")
    yield attempt(auto.forward_ad._set_fwd_grad_enabled, "a")
    yield attempt(auto.graph.saved_tensors_hooks(1, 2).__enter__)
    yield attempt(auto.graph.disable_saved_tensors_hooks(1).__enter__)
    for given in (1, None, [z, 1]):
        yield attempt(auto.graph.increment_version, given)
    yield attempt(auto.Variable, 1), auto.Variable()
    yield attempt(auto.Variable, z, requires_grad="a")
    yield attempt(torch.func.functional_call, torch.nn.Linear(3, 2), {"": z}, z)
    yield torch.func.vjp(lambda x: (x, x * 2), z)[1]((z.double(), z.double()))
    yield attempt(y.backward, z.double()), x.grad.dtype
