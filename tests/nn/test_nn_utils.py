"""The rest of `torch.nn.utils`, and what functions refuse: norms, formats, calls."""

from __future__ import annotations

import warnings

from tests.nn.test_functional import failures
from tests.nn.test_parametrize import layer
from tests.oracle import attempt, case


@case
def weight_norm_by_a_hook(torch):
    utils = torch.nn.utils
    for dim in (0, 1, None):
        m = utils.weight_norm(layer(torch), dim=dim)
        yield m.weight, list(m.state_dict().items()), m(torch.ones(1, 2))
    yield attempt(utils.weight_norm, m)
    m(torch.ones(1, 2)).sum().backward()
    yield [p.grad for p in m.parameters()]
    yield utils.remove_weight_norm(m).weight, list(m.state_dict())
    yield attempt(utils.remove_weight_norm, m)
    yield attempt(utils.weight_norm, torch.nn.LazyLinear(2))
    yield torch.norm_except_dim(torch.ones(2, 3, 4), 2, 1)


@case
def spectral_norm_by_a_hook(torch):
    utils = torch.nn.utils
    m = utils.spectral_norm(torch.nn.Linear(3, 4), n_power_iterations=2)
    x = torch.randn(2, 3)
    for _ in range(2):
        m(x).sum().backward()
        yield m.weight.detach(), m.weight_orig.grad, m.weight_u
    m.eval()
    yield m(x).detach(), m.state_dict(), m.state_dict()._metadata
    yield attempt(utils.spectral_norm, m)
    twin = utils.spectral_norm(torch.nn.Linear(3, 4))
    yield twin.load_state_dict(m.state_dict()), twin.eval()(x).detach()
    old = {k: v for k, v in m.state_dict().items() if k != "weight_v"}
    old["weight"] = m.weight.detach()
    yield twin.load_state_dict(old), twin.weight_v
    yield attempt(twin.load_state_dict, {"bias": m.bias})
    yield utils.remove_spectral_norm(m).weight, list(m.state_dict())
    yield attempt(utils.remove_spectral_norm, m)
    yield attempt(utils.spectral_norm, m, n_power_iterations=0)
    conv = utils.spectral_norm(torch.nn.ConvTranspose2d(2, 3, 2))
    yield conv.weight_u.shape, conv.weight_v.shape


@case
def fused(torch):
    utils, nn = torch.nn.utils, torch.nn
    bn = nn.BatchNorm1d(3).eval()
    for value, tensor in zip(
        (0.5, 2.0, 1.5, 0.25), bn.state_dict().values(), strict=False
    ):
        tensor.fill_(value)
    x = torch.randn(2, 2, 4)
    for bias in (True, False):
        conv = nn.Conv1d(2, 3, 2, bias=bias).eval()
        made = utils.fuse_conv_bn_eval(conv, bn)
        yield made, made(x) - bn(conv(x)), made.bias
    conv = nn.ConvTranspose1d(2, 3, 2).eval()
    yield utils.fuse_conv_bn_eval(conv, bn, transpose=True)(x) - bn(conv(x))
    linear = nn.Linear(4, 3).eval()
    yield utils.fuse_linear_bn_eval(linear, bn)(x[0]) - bn(linear(x[0]))
    yield attempt(utils.fuse_conv_bn_eval, conv.train(), bn)
    yield attempt(utils.fuse_linear_bn_eval, nn.Linear(1, 2).eval(), bn)
    bare = nn.BatchNorm1d(3, affine=False, track_running_stats=False).eval()
    yield attempt(utils.fuse_linear_bn_eval, linear, bare)
    weights = utils.fuse_conv_bn_weights(
        conv.weight, None, bn.running_mean, bn.running_var, 1e-5, None, None, True
    )
    yield weights
    yield utils.fuse_linear_bn_weights(
        linear.weight, None, bn.running_mean, bn.running_var, 1e-5, bn.weight, bn.bias
    )


@case
def memory_formats(torch):
    utils, nn = torch.nn.utils, torch.nn
    net = nn.Sequential(
        nn.Conv2d(2, 3, 2), nn.ConvTranspose2d(3, 2, 2), nn.Conv1d(2, 2, 1)
    )
    weight = net[0].weight
    values = weight.detach().clone()
    yield utils.convert_conv2d_weight_memory_format(net, torch.channels_last) is net
    yield [m.weight.stride() for m in net], net[0].weight is weight
    yield torch.equal(weight, values), weight.requires_grad
    conv = nn.Conv3d(2, 3, 2)
    utils.convert_conv3d_weight_memory_format(conv, torch.channels_last_3d)
    yield conv.weight.stride()


@case
def not_initialized(torch):
    m = torch.nn.utils.skip_init(torch.nn.Linear, 2, 3, bias=False)
    yield m, m.weight.shape, str(m.weight.device), m.weight.requires_grad
    yield torch.rand(1)
    m = torch.nn.utils.skip_init(
        torch.nn.Linear, 2, 3, device="cpu", dtype=torch.float64
    )
    yield m.weight.dtype
    yield attempt(torch.nn.utils.skip_init, torch.nn.ReLU)
    yield attempt(torch.nn.utils.skip_init, int)


@case
def stateless(torch):
    call = torch.nn.utils.stateless.functional_call
    m = torch.nn.Sequential(layer(torch), torch.nn.BatchNorm1d(2))
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    weight = torch.ones(2, 2, requires_grad=True)
    out = call(m, {"0.weight": weight}, x)
    yield out, torch.autograd.grad((out**2 * torch.arange(2.0)).sum(), weight)
    yield m[0].weight, m[1].running_mean
    given = {"1.running_mean": torch.zeros(2), "1.num_batches_tracked": torch.tensor(5)}
    call(m, given, (x,), {})
    yield given, m[1].num_batches_tracked
    yield attempt(call, m, {"2.weight": weight}, x)
    yield attempt(call, m, {"0.nothing": weight}, x)
    yield attempt(call, m, {"0.weight": weight}, x, strict=True)
    yield attempt(call, m, {"0.training": weight}, x)
    m[0].tied = m[0].weight
    yield call(m, {"0.weight": torch.zeros(2, 2)}, x).shape, m[0].tied is m[0].weight
    two = {"0.weight": torch.zeros(2, 2), "0.tied": torch.ones(2, 2)}
    yield attempt(call, m, two, x), call(m, two, x, tie_weights=False).shape
    yield attempt(call, m, {"0.weight": torch.ones(3, 3)}, x)
    yield m[0].weight


REFUSED = """
F.normalize(C(2,3),p='a')
F.normalize(C(2,3),p='fro')
F.normalize(C(2,3),p='nuc')
F.local_response_norm(C(2,3,4),0)
F.local_response_norm(C(2,3,4,4),0)
F.dropout(C(2)*1j)
F.dropout(C(2)*1j,0.0)
F.dropout(C(2)*1j,training=False)
F.alpha_dropout(C(2)*1j,training=True)
torch.dropout(C(2)*1j,0.5,True)
F.unfold(I(1,1,4,4),2)
F.unfold(I(1,1,4,4),9)
F.unfold(I(1,1,4,4)>0,2)
F.fold(I(1,4,1),(2,2),2)
F.fold(C(1,4,1)*1j,(2,2),2)
torch.norm_except_dim(C(2,3),2,5)
torch.norm_except_dim(C(2,3),2,-2)
torch.norm_except_dim(C(2,3),2,-3)
torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2,3),dim=5)
torch.nn.utils.weight_norm(torch.nn.Linear(2,3),dim=-3)
"""


@case
def values_and_dtypes_without_kernels(torch):
    yield failures(REFUSED, torch)
    for p in ("fro", "nuc"):
        values = torch.arange(1.0, 7.0).reshape(2, 3)
        yield attempt(torch.nn.functional.normalize, values, p)
    yield torch.norm_except_dim(torch.arange(6.0).reshape(2, 3), 2, -2)


@case.over("sum", "mean")
def gradients_of_examples(torch, reduction):
    from importlib import import_module

    nn = torch.nn
    utils = import_module(f"{torch.__name__}.nn.utils._per_sample_grad")
    call = utils.call_for_per_sample_grads
    torch.manual_seed(0)
    nets = (
        nn.Linear(2, 3),
        nn.Sequential(nn.Conv1d(1, 2, 2), nn.GroupNorm(1, 2)),
        nn.Sequential(nn.Embedding(4, 2), nn.LayerNorm(2)),
    )
    words = torch.tensor([[1], [2]])
    inputs = torch.ones(3, 2), torch.arange(12.0).view(3, 1, 4), words
    for net, x in zip(nets, inputs, strict=True):
        y = call(net, loss_reduction=reduction)(x)
        weights = torch.arange(float(y.numel())).view(y.shape).sin()
        getattr(y * weights, reduction)().backward()
        yield y.detach(), [(p.grad_sample, p.grad) for p in net.parameters()]
        yield attempt(call, net)


@case
def gradients_of_examples_refused(torch):
    from importlib import import_module

    utils = import_module(f"{torch.__name__}.nn.utils._per_sample_grad")
    call = utils.call_for_per_sample_grads
    net = torch.nn.Bilinear(2, 2, 1)
    yield attempt(call, 3), attempt(call, net, loss_reduction="max")
    yield attempt(call, net, batch_size=0), attempt(call, net, batch_size=2.0)
    yield attempt(call(net), torch.ones(2, 2), torch.ones(3, 2))
    yield attempt(call(net), 3)


@case
def warnings_that_are_not_of_the_script(torch):
    """They are told once, however many lines of a script bring them about."""
    heads, mask = torch.nn.MultiheadAttention(2, 1), torch.zeros(1, 3)
    x = torch.ones(3, 1, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.nn.utils.weight_norm(torch.nn.Linear(1, 1))
        heads(x, x, x, attn_mask=torch.zeros(3, 3).bool(), key_padding_mask=mask)
    yield [(str(w.message), w.filename == __file__) for w in caught]
