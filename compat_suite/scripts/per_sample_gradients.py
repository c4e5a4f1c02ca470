# compat: rtol=1e-3 atol=1e-5 seconds=9 (products in another order)
"""Gradients per sample, Jacobians, an ensemble and a tangent kernel by torch.func."""

import copy
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import (
    functional_call,
    grad,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    stack_module_state,
    vjp,
    vmap,
)

torch.manual_seed(0)


class SimpleCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, 1)
        self.conv2 = nn.Conv2d(4, 8, 3, 1)
        self.fc1 = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = torch.flatten(x, 1)
        x = self.fc1(x)
        return F.log_softmax(x, dim=1)


def loss_fn(predictions, targets):
    return F.nll_loss(predictions, targets)


batch_size = 6
data = torch.randn(batch_size, 1, 12, 12)
targets = torch.randint(10, (batch_size,))
model = SimpleCNN()
predictions = model(data)
loss = loss_fn(predictions, targets)
loss.backward()


def compute_grad(sample, target):
    sample = sample.unsqueeze(0)
    target = target.unsqueeze(0)
    prediction = model(sample)
    loss = loss_fn(prediction, target)
    return torch.autograd.grad(loss, list(model.parameters()))


def compute_sample_grads(data, targets):
    sample_grads = [compute_grad(data[i], targets[i]) for i in range(batch_size)]
    sample_grads = zip(*sample_grads, strict=False)
    sample_grads = [torch.stack(shards) for shards in sample_grads]
    return sample_grads


per_sample_grads = compute_sample_grads(data, targets)
print(per_sample_grads[0].shape)
params = {k: v.detach() for k, v in model.named_parameters()}
buffers = {k: v.detach() for k, v in model.named_buffers()}


def compute_loss(params, buffers, sample, target):
    batch = sample.unsqueeze(0)
    targets = target.unsqueeze(0)
    predictions = functional_call(model, (params, buffers), (batch,))
    loss = loss_fn(predictions, targets)
    return loss


ft_compute_grad = grad(compute_loss)
ft_compute_sample_grad = vmap(ft_compute_grad, in_dims=(None, None, 0, 0))
ft_per_sample_grads = ft_compute_sample_grad(params, buffers, data, targets)
for per_sample_grad, ft_per_sample_grad in zip(
    per_sample_grads, ft_per_sample_grads.values(), strict=False
):
    assert torch.allclose(per_sample_grad, ft_per_sample_grad, atol=3e-3, rtol=1e-5)
print({k: f"{v.norm():.4f}" for k, v in ft_per_sample_grads.items()})
# jacobians, hessians
D = 5


def predict(weight, bias, x):
    return F.linear(x, weight, bias).tanh()


weight = torch.randn(D, D)
bias = torch.randn(D)
x = torch.randn(D)
xp = x.clone().requires_grad_()
unit_vectors = torch.eye(D)


def compute_jac(xp):
    jacobian_rows = [
        torch.autograd.grad(predict(weight, bias, xp), xp, vec)[0]
        for vec in unit_vectors
    ]
    return torch.stack(jacobian_rows)


jacobian = compute_jac(xp)
print(jacobian.shape)
print(jacobian[0])
_, vjp_fn = vjp(partial(predict, weight, bias), x)
(ft_jacobian,) = vmap(vjp_fn)(unit_vectors)
assert torch.allclose(ft_jacobian, jacobian)
ft_jacobian = jacrev(predict, argnums=2)(weight, bias, x)
assert torch.allclose(ft_jacobian, jacobian)
ft_jac_weight, ft_jac_bias = jacrev(predict, argnums=(0, 1))(weight, bias, x)
print(ft_jac_weight.shape, ft_jac_bias)
h = hessian(predict, argnums=2)(weight, bias, x)
hr = jacfwd(jacfwd(predict, argnums=2), argnums=2)(weight, bias, x)
hrr = jacrev(jacrev(predict, argnums=2), argnums=2)(weight, bias, x)
print(torch.allclose(h, hr, atol=1e-5), torch.allclose(h, hrr, atol=1e-5), h[0])
B = 3
xb = torch.randn(B, D)
batch_jacobian = vmap(jacrev(predict, argnums=2), in_dims=(None, None, 0))(
    weight, bias, xb
)
print(batch_jacobian.shape, batch_jacobian.sum())


def predict_with_output_summed(weight, bias, x):
    return predict(weight, bias, x).sum(0)


bj = jacrev(predict_with_output_summed, argnums=2)(weight, bias, xb).movedim(1, 0)
print(torch.allclose(bj, batch_jacobian))


def hvp(f, primals, tangents):
    return jvp(grad(f), primals, tangents)[1]


def f(x):
    return x.sin().sum()


print(hvp(f, (x,), (torch.ones(D),)), -x.sin())


def hvp_revrev(f, primals, tangents):
    _, vjp_fn = vjp(grad(f), *primals)
    return vjp_fn(*tangents)


print(hvp_revrev(f, (x,), (torch.ones(D),)))


# ensembling
class SimpleMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 8)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        x = x.flatten(1)
        return self.fc2(F.relu(self.fc1(x)))


models = [SimpleMLP() for _ in range(4)]
d = torch.randn(4, 5, 20)
preds = torch.stack([m(mb) for mb, m in zip(d, models, strict=False)])
params, buffers = stack_module_state(models)
base_model = copy.deepcopy(models[0])


def fmodel(params, buffers, x):
    return functional_call(base_model, (params, buffers), (x,))


print([p.size(0) for p in params.values()])
pv = vmap(fmodel)(params, buffers, d)
assert torch.allclose(preds, pv, atol=1e-3, rtol=1e-5)
pv2 = vmap(fmodel, in_dims=(0, 0, None), randomness="error")(params, buffers, d[0])
print(pv2.shape, pv2.mean())


# NTK
def fnet_single(params, x):
    return functional_call(base_model, params, (x.unsqueeze(0),)).squeeze(0)


p0 = {k: v.detach() for k, v in base_model.named_parameters()}


def empirical_ntk_jacobian_contraction(fnet_single, params, x1, x2):
    jac1 = vmap(jacrev(fnet_single), (None, 0))(params, x1)
    jac1 = [j.flatten(2) for j in jac1.values()]
    jac2 = vmap(jacrev(fnet_single), (None, 0))(params, x2)
    jac2 = [j.flatten(2) for j in jac2.values()]
    result = torch.stack(
        [
            torch.einsum("Naf,Mbf->NMab", j1, j2)
            for j1, j2 in zip(jac1, jac2, strict=False)
        ]
    )
    return result.sum(0)


r = empirical_ntk_jacobian_contraction(fnet_single, p0, d[0], d[1])
print(r.shape, r[0, 0])
