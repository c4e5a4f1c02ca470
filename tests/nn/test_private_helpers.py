"""Helpers of `torch.nn`'s modules that libraries call."""

from __future__ import annotations

import importlib

from tests.oracle import attempt, case


def module(torch, name):
    return importlib.import_module(f"{torch.__name__}.{name}")


@case
def checks_of_functional(torch):
    F = torch.nn.functional
    for size in ([2, 3], [1, 3], [1, 3, 1], [1, 3, 2]):
        yield attempt(F._verify_batch_size, size)
        yield attempt(F._verify_spatial_size, size)
    x = torch.zeros(1, 1, 3, 3)
    for output in (None, [5, 5], [1, 1, 6, 6], (6, 7), [9, 6], [6]):
        yield attempt(F._unpool_output_size, x, [2, 2], [2, 2], [0, 0], output)
    yield attempt(F._unpool_output_size, x, [1, 1], [1, 1], [3, 0], [-1, 3])
    yield attempt(F._unpool_output_size, x, [1, 1], [1, 1], [3, 0], None)
    mask = torch.zeros(2, 5)
    for src, batch in ((5, 2), (5, 3), (4, 2)):
        yield attempt(F._check_key_padding_mask, mask, src, batch)
    for value in (1, 1.0, True, torch.tensor(2), torch.tensor(2.0), None):
        yield F._is_integer(value)
    for value in (None, 1, [1, 2], []):
        yield F._expand_single_value(value), F._list_or_empty(value)
    yield attempt(F._list_with_default, [None, 3], [4, 5, 6])
    yield F._pair(2), F._triple((1, 2, 3)), F._single(4)
    for value in (1, [1, 2], [1, 2, 3]):
        yield attempt(F.assert_int_or_pair, value, "size", "expected a pair for {}")


@case
def halves_of_functions(torch):
    F = torch.nn.functional
    x = torch.randn(1, 2, 4, 4)
    yield F._max_pool1d(x[0], 2, ceil_mode=True), F._max_pool2d(x, 2, 1, 1)
    yield F._max_pool3d(x, (1, 2, 2), return_indices=True)
    yield F._adaptive_max_pool1d(x[0], 2), F._adaptive_max_pool2d(x, (2, None))
    yield F._adaptive_max_pool3d(x, 1), F._threshold(x, 0.1, 20)
    samples = torch.full((1, 2, 2), 0.5)
    yield F._fractional_max_pool2d(x, 2, output_size=2, _random_samples=samples)
    weight = torch.ones(3, 2)
    yield F._no_grad_embedding_renorm_(weight, torch.tensor([0, 2]), 1.0, 2.0), weight


@case
def choice_by_an_argument(torch):
    F = torch.nn.functional

    def first(x, both=False):
        return x

    def second(x, both=False):
        return x, x

    chosen = F.boolean_dispatch("both", 1, False, second, first, "m", "chosen")
    yield chosen(1), chosen(1, True), chosen(1, both=True), chosen.__name__


@case
def functions_of_layers(torch):
    functions = module(torch, "nn.modules._functions")
    x = torch.randn(1, 4, 2, 2, requires_grad=True)
    for size in (1, 2, 3, 5):
        y = functions.CrossMapLRN2d.apply(x, size, 0.1)
        yield y, attempt(torch.autograd.grad, y.square().sum(), x)
    yield attempt(functions.CrossMapLRN2d.apply, x[0], 3)
    a, b = torch.ones(2, requires_grad=True), torch.ones(2)
    one, two = functions.BackwardHookFunction.apply(a, b)
    yield one, two.requires_grad, torch.autograd.grad((one * 3).sum(), a)
    layer = torch.nn.modules.conv._ConvTransposeNd
    yield issubclass(torch.nn.modules.conv._ConvTransposeMixin, layer)
    yield torch.nn.modules.rnn._apply_permutation(x, torch.tensor([1, 0]), 2)
    constant = torch.nn.init._make_deprecate(torch.nn.init.constant_)
    yield constant.__name__
    check, grad = (
        torch.nn.modules.activation._check_arg_device,
        torch.nn.modules.activation._arg_requires_grad,
    )
    yield check(None), check(x), check(x.to("meta")), grad(None), grad(x), grad(b)


@case
def accessor(torch):
    made = module(torch, "nn.utils._named_member_accessor")
    net = torch.nn.Sequential(
        torch.nn.Linear(1, 1, bias=False), torch.nn.BatchNorm1d(1)
    )
    net.fn = len
    access = made.NamedMemberAccessor(net)
    yield [name for name, _ in access.named_tensors()]
    yield [name for name, _ in access.named_parameters()]
    yield [name for name, _ in access.named_buffers()]
    yield [name for name, _ in access.named_modules()]
    yield access.check_keys(["0.weight", "2.weight", "1.bias"])
    one, two = torch.ones(1, 1), torch.full((1,), 2.0)
    access.set_tensor("0.weight", torch.nn.Parameter(one))
    yield access.get_tensor("0.weight"), access.get_tensors(["1.weight", "1.bias"])
    yield access.swap_tensor("1.running_mean", two), net[1].running_mean
    yield attempt(access.swap_tensor, "1.nothing", two)
    yield attempt(access.get_tensor, "1.nothing"), attempt(access.get_tensor, "fn")
    yield attempt(access.get_tensor, "5.weight"), attempt(access.get_tensor, "fn.x")
    yield attempt(access.swap_tensor, "fn", two), attempt(access.set_tensor, "", two)
    yield attempt(access.set_tensor, "0.weight", 3)
    yield attempt(access.set_tensors, ["0.weight"], [])
    yield attempt(access.swap_tensors, ["0.weight"], [])
    names = {"1.running_var": two, "1.new": two}
    yield attempt(access.swap_tensors_dict, names), net[1].running_var
    before, absent = access.swap_tensors_dict(names, allow_missing=True)
    yield absent, before["1.running_var"], net[1].running_var, net[1].new
    access.swap_tensors_dict(before, allow_missing=True)
    yield hasattr(net[1], "new"), net[1].running_var
    access.del_tensor("0.weight")
    yield attempt(access.del_tensor, "0.weight"), list(net.state_dict())
    relu = torch.nn.ReLU()
    yield access.swap_submodule("1", relu) is not relu, net[1] is relu
    for name, value in (("", relu), ("7", relu), ("1", two), ("a.b", relu)):
        yield attempt(made.swap_submodule, net, name, value)
    for name, value in (("a.b", two), ("", two), ("x", 3)):
        yield attempt(made.set_tensor, net, name, value)
        yield attempt(made.swap_tensor, net, name, value)
    yield attempt(made.set_tensor, 3, "x", two)


@case
def parallel_helpers(torch):
    ddp = torch.nn.parallel.distributed
    a, b = torch.ones(1), torch.zeros(1)
    yield list(ddp._find_tensors({"a": a, "b": [b, (a, 3)], "c": "x"}))
    flat, spec, remote = ddp._tree_flatten_with_rref({"a": a, "b": [b]})
    yield flat, remote, ddp._tree_unflatten_with_rref(flat, spec, remote)
    yield ddp._MixedPrecision(torch.float16)
    functions = module(torch, "nn.parallel._functions")
    yield attempt(functions.Gather.apply, 0, 0, a, b)
    yield attempt(functions.Broadcast.apply, [0], a)
    yield functions._get_stream(torch.device("cpu"))
    index = module(torch, "_utils")._get_device_index
    for device in (2, "cpu", "cuda", "cuda:1", torch.device("cuda", 3), None):
        yield attempt(index, device), attempt(index, device, allow_cpu=True)
    cuda = module(torch, "cuda._utils")._get_device_index
    for device in (2, "cpu", "cuda", "cuda:1", "mps", None):
        yield attempt(cuda, device), attempt(cuda, device, allow_cpu=True)
    yield attempt(module(torch, "_utils")._get_device_module, "nothing")


@case
def clipping_helpers(torch):
    clip = torch.nn.utils.clip_grad
    x = torch.ones(2, requires_grad=True)

    @clip._no_grad
    def double(x):
        """Twice."""
        return x * 2

    yield double(x).requires_grad, double.__name__, double.__doc__
    yield clip._get_total_norm([x, x])
    packed = torch.nn.utils.rnn._packed_sequence_init_args
    yield packed((x, torch.tensor([2]))), attempt(packed, x)
