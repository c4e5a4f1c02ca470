"""What PyTorch's own test files do with functions, by what went wrong with it."""

from __future__ import annotations

import importlib

import numpy as np

from tests.oracle import attempt, case, evaluate


@case.lines(
    """
    torch.linalg.matrix_exp(torch.empty(0, 0))
    torch.linalg.matrix_exp(torch.empty(2, 0, 0)).shape
    torch.ones(2, 2, dtype=torch.float64).view(float).dtype
    torch.ones(2, dtype=torch.int64).view(int)
    torch.ones(2, dtype=torch.complex128).view(float)
    x = torch.ones(1, 2, 2, 2); x.resize_as_(x, memory_format=LAST); x.stride()
    torch.arange(6.0).view(2, 3).t().resize_(3, 2).stride()
    torch.ones(2, 3).t().resize_(3, 2, memory_format=torch.contiguous_format).stride()
    torch.arange(6.0).view(2, 3).t().resize_as_(torch.ones(3, 2)).stride()
    torch.nn.functional.dropout3d(torch.ones(2), 1.0)
    torch.nn.functional.dropout3d(torch.ones(2, 3, 4), 1.0).shape
    torch.svd(torch.ones(2))
    torch.svd(torch.tensor(1.0))
    torch.ones(3, 3).index_fill(5, torch.tensor([0]), torch.ones(1, 3))
    torch.ones(3, 3).index_fill_(0, torch.tensor([[0]]), torch.ones(1, 3))
    torch.ones(3, 3).index_fill(0, torch.tensor([0.0]), torch.ones(1, 3))
    torch.ones(3, 3).index_fill(0, torch.tensor([0.0]), 1)
    torch.sub(True, torch.ones(2))
    torch.sub(True, torch.tensor(2, dtype=torch.uint8))
    torch.add(True, torch.ones(2, dtype=torch.uint8))
    torch.mul(True, torch.ones(2, dtype=torch.float64))
    torch.add(True, torch.ones(1) > 0)
    torch.ldexp(torch.ones(2), torch.ones(2) > 0)
    torch.ldexp(torch.ones(2).int(), torch.ones(2) > 0)
    torch.ldexp(torch.ones(2) > 0, torch.ones(2) > 0)
    torch.linalg.cross(torch.ones(2, 3).int(), torch.ones(4, 3))
    torch.linalg.cross(torch.ones(2).int(), torch.ones(2))
    torch.linalg.cross(torch.ones(3) > 0, torch.ones(3))
    torch.linalg.cross(torch.ones(3), torch.ones(3) > 0)
    torch.logsumexp(torch.empty(0), ())
    torch.logsumexp(torch.empty(2, 0), ())
    torch.logsumexp(torch.ones(2), ())
    torch.repeat_interleave(torch.tensor(2))
    torch.repeat_interleave(torch.ones(2, 3))
    """
)
def short(torch, line):
    return evaluate(torch, line.replace("LAST", "torch.channels_last"))


@case.lines(
    """
    ([0], [5])
    ([-3], [0])
    ([0, 0], [0, 1])
    ([0, 1], [1, 0])
    ([1.0], [0])
    (1, 0)
    [1]
    [[1], [0], [1]]
    torch.tensor(1)
    torch.tensor([1.0])
    torch.tensor([[1], [0]])
    torch.tensor([1, 2])
    """
)
def dimensions_of_tensordot(torch, line):
    x = torch.arange(9.0).view(3, 3)
    return torch.tensordot(x, x, dims=evaluate(torch, line))


@case
def segments_by_lengths_and_offsets(torch):
    x, lengths = torch.arange(6.0), torch.tensor([1, 5])
    wide = torch.arange(12.0).view(2, 6)
    reduce = torch.segment_reduce
    yield reduce(x, "sum", lengths=lengths, offsets=lengths)
    for axis in (1, -1, -2):
        yield attempt(reduce, x, "sum", lengths=lengths, axis=axis)
    for name in ("lengths", "offsets"):
        yield attempt(reduce, x, "sum", **{name: lengths[None]})
        yield attempt(reduce, x, "sum", axis=3, **{name: lengths})
        yield attempt(reduce, torch.tensor(1.0), "sum", **{name: lengths})
        yield attempt(reduce, wide, "sum", axis=1, **{name: lengths})
    rows = torch.tensor([[1, 5], [2, 4]])
    yield reduce(wide, "sum", lengths=rows, axis=-1)
    yield attempt(reduce, x.long(), "sum", lengths=lengths.float())


@case
def sequences_that_do_not_fit(torch):
    pad = torch.nn.utils.rnn.pad_sequence
    shapes = [(2,), (2, 2)], [(2, 2), (2,)], [(2, 2), (3, 3)], [(2, 3), (3, 1)]
    for one in (*shapes, [(2, 1), (3, 3)], [(2, 2, 2), (3,)]):
        yield attempt(pad, [torch.ones(shape) for shape in one])


@case
def factors_of_scaled_gradients(torch):
    grads = [torch.ones(2), torch.ones(3)]
    unscale = torch._amp_foreach_non_finite_check_and_unscale_
    one, two = torch.ones(1), torch.ones(2)
    for given in (
        (grads, two, one),
        (grads, one, two),
        (grads, one.double(), one),
        (grads, one, one.double()),
        (grads, two.double(), two),
        ([torch.ones(2).int()], one, one),
        ([torch.ones(2) * 1j], one, one),
        ([], two, one),
        (grads, torch.zeros(()), torch.full((), 3.0)),
    ):
        yield attempt(unscale, *given)
    yield grads
    tracker = torch.zeros(1, dtype=torch.int32)
    update = torch._amp_update_scale_
    yield attempt(update, one, torch.zeros(1), one, 2.0, 0.5, 1)
    yield attempt(update, one, torch.zeros(2).int(), one, 2.0, 0.5, 1)
    yield attempt(update, two, tracker, one, 2.0, 0.5, 1)
    yield attempt(update, one.double(), tracker, one, 2.0, 0.5, 1)
    yield attempt(update, one, tracker, two, 2.0, 0.5, 1)


@case
def what_an_exporter_is_asked(torch):
    """Libraries' `__dlpack__` may know less than NumPy passes on."""

    class Owner:
        def __init__(self, tensor):
            self.tensor, self.asked = tensor, []

        def __dlpack__(self, **options):
            self.asked.append(options)
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    owner = Owner(torch.arange(3.0))
    yield torch.from_dlpack(owner), owner.asked
    yield attempt(torch.utils.dlpack.to_dlpack, 1)
    C = torch._C
    yield C._from_dlpack(C._to_dlpack(torch.ones(2))), torch.utils.dlpack.__all__
    kind, index = C._torchDeviceToDLDevice(torch.device("cpu"))
    yield int(kind), index


LOSSES = "l1_loss mse_loss soft_margin_loss smooth_l1_loss huber_loss".split()


@case.over(*LOSSES, "binary_cross_entropy")
def losses_of_the_dispatcher(torch, name):
    x = torch.tensor([[0.2, 0.7], [0.9, 0.4]])
    y = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    more = [None] if name == "binary_cross_entropy" else []
    for space in (torch._C._nn, torch.ops.aten):
        loss = getattr(space, name)
        for reduction in (0, 1, 2):
            yield loss(x, y, *more, reduction), loss(x, y, reduction=reduction)


@case
def classes_of_the_dispatcher(torch):
    nn = torch._C._nn
    x = torch.tensor([[0.2, 0.7, 0.1], [0.9, 0.4, 0.3]])
    y, weight = torch.tensor([1, 2]), torch.tensor([1.0, 2.0, 3.0])
    for reduction in (0, 1, 2):
        yield torch.ops.aten.multi_margin_loss(x, y, 1, 1.0, None, reduction)
        yield nn.nll_loss_nd(x, y, weight, reduction, 1)
        yield nn.nll_loss(x, y, None, reduction, -100)
        yield nn.cross_entropy_loss(x, y, weight, reduction, -100, 0.1)
    images = x.view(1, 3, 2, 1)
    yield nn.nll_loss2d(images, torch.ones(1, 2, 1, dtype=torch.long), None, 1, -100)


@case
def layers_of_the_dispatcher(torch):
    nn = torch._C._nn
    x = torch.arange(-4.0, 4.0).view(1, 2, 2, 2)
    yield nn.silu(x), nn.relu6(x), nn.elu(x, 2.0), nn.elu(x, 1.0, 2.0, 0.5)
    yield nn.gelu_(x.clone()), nn.relu6_(x.clone()), nn.elu_(x.clone(), 3.0)
    yield nn.pad(x, [1, 0]), nn.pad(x, [1, 0], "constant", 2.0)
    yield nn.pad_sequence([torch.ones(2), torch.ones(1)], True, 3.0)
    flat = nn.flatten_dense_tensors([x, torch.ones(3)])
    yield flat, nn.unflatten_dense_tensors(flat, [x, torch.ones(3)])
    yield nn.max_pool2d_with_indices(x, [2, 2]), nn.adaptive_max_pool2d(x, [1, 1])
    big = torch.arange(1.0, 2.0)  # a gradient where the exponential overflows
    big = (big * 1000).requires_grad_()
    nn.elu(big, 1.0, 2.0, 3.0).sum().backward()
    yield big.grad


@case
def convolutions_of_the_dispatcher(torch):
    nn = torch._C._nn
    x = torch.arange(50.0).view(1, 2, 5, 5)
    w = torch.arange(8.0).view(1, 2, 2, 2)
    yield nn.thnn_conv2d(x, w, [2, 2]), nn.thnn_conv2d(x, w, 2, torch.ones(1), 2, 1)
    yield nn.slow_conv_dilated2d(x, w, 2, None, 1, 0, 2)
    back = w.view(2, 1, 2, 2)
    yield nn.slow_conv_transpose2d(x, back, 2, None, 2, 0, 1)
    y, v = x.view(1, 2, 5, 5, 1), torch.arange(4.0).view(1, 2, 2, 1, 1)
    yield nn.slow_conv3d(y, v, [2, 1, 1]), nn.slow_conv_dilated3d(y, v, [2, 1, 1])
    yield nn.slow_conv_transpose3d(y, v.view(2, 1, 2, 1, 1), [2, 1, 1])
    for wrong in ([], [1], [1, 1, 1, 1]):
        yield attempt(lambda wrong=wrong: nn.thnn_conv2d(x, w, wrong))
        yield attempt(lambda wrong=wrong: nn.thnn_conv2d(x, w, [2, 2], None, wrong))
        yield attempt(lambda wrong=wrong: nn.thnn_conv2d(x, w, 2, None, 1, wrong))
        yield attempt(lambda wrong=wrong: nn.slow_conv3d(y, v, wrong))
        yield attempt(lambda wrong=wrong: nn.slow_conv3d(y, v, [2, 1, 1], None, wrong))
        yield attempt(lambda wrong=wrong: nn.slow_conv_dilated2d(x, w, wrong))


@case
def submodules_without_an_import(torch):
    names = """
    _linalg_utils _lobpcg _refs _prims _decomp _utils_internal monitor
    utils._contextlib utils._typing_utils utils._stats utils.backend_registration
    utils.throughput_benchmark testing._internal optim._functional
    nn.parallel.comm nn.modules.pixelshuffle ao.quantization.observer sparse
    jit._script testing._internal.common_dtype quantization.stubs
    """
    for name in names.split():
        found = torch
        for part in name.split("."):
            found = getattr(found, part)
        yield found is importlib.import_module(f"{torch.__name__}.{name}")
    yield type(attempt(lambda: torch.testing.nothing)).__name__


@case
def names_of_the_compiled_core(torch):
    C = torch._C
    yield C._VariableFunctions.add is torch.add, C._SDPBackend.MATH.value
    yield type(attempt(lambda: C._VariableFunctions.nothing)).__name__
    for name in "Stream Event Future get_num_threads is_anomaly_enabled".split():
        yield getattr(C, name) is getattr(torch, name)
    yield C._special.special_erf(torch.tensor(0.5)), C._LinalgBackend.Default.value
    yield C._linalg.linalg_matrix_exp(torch.zeros(1, 1))
    grouped = C._group_tensors_by_device_and_dtype([[torch.ones(1)]], True)
    yield [(str(kind), where) for kind, (_, where) in grouped.items()]
    yield torch.nn.functional._Reduction.get_enum("sum")
    kinds = torch.return_types.all_return_types
    yield torch.return_types.max in kinds, type(kinds)


@case
def hubs_of_this_machine(torch):
    hub = torch.hub
    yield hub._parse_repo_info("a/b:c"), attempt(hub._parse_repo_info, "a/b:c:d")
    yield hub._check_module_exists("json"), hub._check_module_exists("not_there")
    conf = type("conf", (), {"dependencies": ["not_there", "json"], "model": len})
    yield attempt(hub._check_dependencies, conf)
    for name in ("model", "other", 3):
        yield attempt(hub._load_entry_from_hubconf, conf, name)
    yield hub._TRUSTED_REPO_OWNERS, hub.ENV_GITHUB_TOKEN


@case
def sizes_of_transposed_convolutions(torch):
    """Modules of programs' own call this with sizes of their own."""
    m = torch.nn.ConvTranspose2d(2, 2, 3, stride=2)
    x = torch.zeros(1, 2, 4, 4)
    for size, dilation in (([9, 9], None), ([10, 9], [1, 1]), ([13, 14], [3, 3])):
        found = m._output_padding(x, size, [2, 2], [0, 0], [3, 3], 2, dilation)
        yield list(found)
    yield attempt(m._output_padding, x, [1, 1], [2, 2], [0, 0], [3, 3], 2)
    yield attempt(m._output_padding, x, [1], [2, 2], [0, 0], [3, 3], 2)
    yield torch.nn.LazyConv2d(2, 2)._get_num_spatial_dims()


@case
def initial_values_are_overridden(torch):
    seen = []

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if str(getattr(func, "__module__", "")).endswith("nn.init"):
                seen.append((func.__name__, len(args), sorted(kwargs or {})))
            return super().__torch_function__(func, types, args, kwargs or {})

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(f"mode: {func.__name__}")
            return func(*args, **(kwargs or {}))

    x = torch.zeros(2, 3).as_subclass(Seen)
    init = torch.nn.init
    yield init.constant_(x, 2.0) is x, x.tolist()
    for fill in (init.uniform_, init.normal_, init.kaiming_uniform_):
        fill(x)
    for fill in (init.ones_, init.xavier_uniform_):
        fill(x)
    yield seen
    seen.clear()
    with Mode():
        init.constant_(torch.zeros(1), 3.0)
    yield seen


@case
def numbers_of_numpy_are_no_masks(torch):
    x = torch.arange(3.0)
    yield attempt(lambda: x[np.bool_(True)]), attempt(x.__setitem__, 0, np.float32(1))


METHODS = """
    split norm unique lu unflatten register_hook backward __reversed__ __contains__
    __format__ __array__ __deepcopy__ __repr__ share_memory_ is_shared storage dim_order
    __dlpack__ resize_as
"""


@case.over(*METHODS.split())
def methods_in_python_name_their_module(torch, name):
    class Silent(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    x = torch.ones(2, 2).as_subclass(Silent)
    needed = {"unflatten": (0, (1, 2)), "resize_as": (x,), "__deepcopy__": ({},)}
    one = "split register_hook __contains__ __format__".split()
    getattr(x, name)(*needed.get(name, ("",) if name in one else ()))
