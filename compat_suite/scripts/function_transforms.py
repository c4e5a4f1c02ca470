# compat: rtol=1e-3 atol=1e-4 seconds=3 (float32 sums in another order)
"""Jacobians, Hessians, ensembles, tangent kernels and forward mode: `torch.func`."""

import copy

import torch
import torch.autograd.forward_ad as fwAD
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

_ = torch.manual_seed(0)


def predict(weight, bias, x):
    return F.linear(x, weight, bias).tanh()


D = 16
weight = torch.randn(D, D)
bias = torch.randn(D)
x = torch.randn(D)
Din, Dout = 32, 256
weight2 = torch.randn(Dout, Din)
bias2 = torch.randn(Dout)
x2 = torch.randn(Din)
print(
    jacfwd(predict, argnums=2)(weight2, bias2, x2).shape,
    jacrev(predict, argnums=2)(weight2[:32], bias2[:32], x2).shape,
)
hess_api = hessian(predict, argnums=2)(weight, bias, x)
hess_fwdrev = jacfwd(jacrev(predict, argnums=2), argnums=2)(weight, bias, x)
hess_revrev = jacrev(jacrev(predict, argnums=2), argnums=2)(weight, bias, x)
print(
    torch.allclose(hess_api, hess_fwdrev, atol=1e-6),
    torch.allclose(hess_revrev, hess_fwdrev, atol=1e-6),
    hess_api.shape,
)
batch_size = 8
x = torch.randn(batch_size, D)
compute_batch_jacobian = vmap(jacrev(predict, argnums=2), in_dims=(None, None, 0))
bj0 = compute_batch_jacobian(weight, bias, x)


def predict_with_output_summed(weight, bias, x):
    return predict(weight, bias, x).sum(0)


bj1 = jacrev(predict_with_output_summed, argnums=2)(weight, bias, x).movedim(1, 0)
print(torch.allclose(bj0, bj1, atol=1e-6), bj0.shape)
compute_batch_hessian = vmap(hessian(predict, argnums=2), in_dims=(None, None, 0))
print(compute_batch_hessian(weight, bias, x).shape)


def hvp(f, primals, tangents):
    return jvp(grad(f), primals, tangents)[1]


def f(x):
    return x.sin().sum()


xx = torch.randn(256)
tangent = torch.randn(256)
print(torch.allclose(hvp(f, (xx,), (tangent,)), -xx.sin() * tangent))


# ensembling
class SimpleMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(784, 128)
        self.fc2 = nn.Linear(128, 128)
        self.fc3 = nn.Linear(128, 10)

    def forward(self, x):
        x = x.flatten(1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


device = "cpu"
num_models = 10
data = torch.randn(10, 16, 1, 28, 28, device=device)
targets = torch.randint(10, (160,), device=device)
models = [SimpleMLP().to(device) for _ in range(num_models)]
predictions_diff_minibatch_loop = [
    model(minibatch) for model, minibatch in zip(models, data, strict=True)
]
params, buffers = stack_module_state(models)
base_model = copy.deepcopy(models[0]).to("meta")


def fmodel(params, buffers, x):
    return functional_call(base_model, (params, buffers), (x,))


print([p.size(0) for p in params.values()])
predictions1_vmap = vmap(fmodel)(params, buffers, data)
assert torch.allclose(
    predictions1_vmap,
    torch.stack(predictions_diff_minibatch_loop),
    atol=1e-3,
    rtol=1e-5,
)
predictions2_vmap = vmap(fmodel, in_dims=(0, 0, None))(params, buffers, data[0])
print(
    predictions2_vmap.shape,
    params["fc1.weight"].requires_grad,
    params["fc1.weight"].is_leaf,
)


# NTK
class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, (3, 3))
        self.conv2 = nn.Conv2d(8, 8, (3, 3))
        self.conv3 = nn.Conv2d(8, 8, (3, 3))
        self.fc = nn.Linear(8 * 6 * 6, 10)

    def forward(self, x):
        x = self.conv1(x).relu()
        x = self.conv2(x).relu()
        x = self.conv3(x)
        x = x.flatten(1)
        return self.fc(x)


x_train = torch.randn(6, 3, 12, 12)
x_test = torch.randn(3, 3, 12, 12)
net = CNN()
params = {k: v.detach() for k, v in net.named_parameters()}


def fnet_single(params, x):
    return functional_call(net, params, (x.unsqueeze(0),)).squeeze(0)


def empirical_ntk_jacobian_contraction(fnet_single, params, x1, x2, compute="full"):
    jac1 = vmap(jacrev(fnet_single), (None, 0))(params, x1)
    jac1 = [j.flatten(2) for j in jac1.values()]
    jac2 = vmap(jacrev(fnet_single), (None, 0))(params, x2)
    jac2 = [j.flatten(2) for j in jac2.values()]
    einsum_expr = {
        "full": "Naf,Mbf->NMab",
        "trace": "Naf,Maf->NM",
        "diagonal": "Naf,Maf->NMa",
    }[compute]
    result = torch.stack(
        [torch.einsum(einsum_expr, j1, j2) for j1, j2 in zip(jac1, jac2, strict=True)]
    )
    return result.sum(0)


result = empirical_ntk_jacobian_contraction(fnet_single, params, x_train, x_test)
print(result.shape)


def empirical_ntk_ntk_vps(func, params, x1, x2, compute="full"):
    def get_ntk(x1, x2):
        def func_x1(params):
            return func(params, x1)

        def func_x2(params):
            return func(params, x2)

        output, vjp_fn = vjp(func_x1, params)

        def get_ntk_slice(vec):
            vjps = vjp_fn(vec)
            _, jvps = jvp(func_x2, (params,), vjps)
            return jvps

        basis = torch.eye(
            output.numel(), dtype=output.dtype, device=output.device
        ).view(output.numel(), -1)
        return vmap(get_ntk_slice)(basis)

    result = vmap(vmap(get_ntk, (None, 0)), (0, None))(x1, x2)
    if compute == "full":
        return result
    if compute == "trace":
        return torch.einsum("NMKK->NM", result)
    if compute == "diagonal":
        return torch.einsum("NMKK->NMK", result)


with torch.backends.cudnn.flags(allow_tf32=False):
    result_from_ntk_vps = empirical_ntk_ntk_vps(
        fnet_single, params, x_test, x_train, "trace"
    )
print(
    torch.allclose(
        empirical_ntk_jacobian_contraction(
            fnet_single, params, x_test, x_train, "trace"
        ),
        result_from_ntk_vps,
        atol=1e-4,
    )
)
# forward AD usage
primal = torch.randn(10, 10)
tangent = torch.randn(10, 10)


def fn(x, y):
    return x**2 + y**2


with fwAD.dual_level():
    dual_input = fwAD.make_dual(primal, tangent)
    assert fwAD.unpack_dual(dual_input).tangent is tangent
    dual_input_alt = fwAD.make_dual(primal, tangent.T)
    print(fwAD.unpack_dual(dual_input_alt).tangent is not tangent)
    plain_tensor = torch.randn(10, 10)
    dual_output = fn(dual_input, plain_tensor)
    jvp_ = fwAD.unpack_dual(dual_output).tangent
print(jvp_.sum(), fwAD.unpack_dual(dual_output).tangent)
model = nn.Linear(5, 5)
input = torch.randn(16, 5)
params = dict(model.named_parameters())
tangents = {name: torch.rand_like(p) for name, p in params.items()}
with fwAD.dual_level():
    for name, p in params.items():
        delattr(model, name)
        setattr(model, name, fwAD.make_dual(p, tangents[name]))
    out = model(input)
    jvp_ = fwAD.unpack_dual(out).tangent
print(jvp_.abs().mean(), out.grad_fn.name())


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, foo):
        result = torch.exp(foo)
        ctx.result = result
        return result

    @staticmethod
    def jvp(ctx, gI):
        gO = gI * ctx.result
        del ctx.result
        return gO


fn = Fn.apply
primal = torch.randn(10, 10, dtype=torch.double, requires_grad=True)
tangent = torch.randn(10, 10)
with fwAD.dual_level():
    dual_input = fwAD.make_dual(primal, tangent.double())
    dual_output = fn(dual_input)
    jvp_ = fwAD.unpack_dual(dual_output).tangent
print(jvp_[0, :3])
print(
    torch.autograd.gradcheck(
        Fn.apply,
        (primal,),
        check_forward_ad=True,
        check_backward_ad=False,
        check_undefined_grad=False,
        check_batched_grad=False,
    )
)
primal0 = torch.randn(10, 10)
tangent0 = torch.randn(10, 10)
primal_out, tangent_out = torch.func.jvp(
    lambda x: (x**2).sum(), (primal0,), (tangent0,)
)
print(primal_out, tangent_out)
