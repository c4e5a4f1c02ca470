"""Observers: ranges, scales and zero points, states, arguments and errors."""

import io
import warnings

from tests.oracle import attempt, case

_SETUP = (
    "A = torch.ao.quantization; T = torch.tensor; inf = float('inf'); "
    "x = T([[-1., .5, .25], [2., 3.3, -.75]]); y = T([[-4., 0., 1.], [.125, 9., 2.]]); "
)
KINDS = """
MinMaxObserver()
MinMaxObserver(dtype=torch.qint8)
MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
MinMaxObserver(dtype=torch.quint8, qscheme=torch.per_tensor_symmetric)
MinMaxObserver(qscheme=torch.per_tensor_symmetric, quant_min=0, quant_max=100)
MinMaxObserver(dtype=torch.qint8, quant_min=-8, quant_max=7)
MinMaxObserver(dtype=torch.quint8, reduce_range=True)
MinMaxObserver(dtype=torch.qint8, reduce_range=True)
MinMaxObserver(dtype=torch.qint8, reduce_range=True, quant_min=-8, quant_max=7)
MinMaxObserver(dtype=torch.qint32)
MinMaxObserver(dtype=torch.int16, qscheme=torch.per_tensor_symmetric)
MinMaxObserver(dtype=torch.uint16, qscheme=torch.per_tensor_symmetric)
MinMaxObserver(dtype=torch.uint16)
MinMaxObserver(dtype=torch.uint8, eps=.5)
MinMaxObserver(dtype=torch.quint4x2)
MinMaxObserver(dtype=torch.int32)
MinMaxObserver(factory_kwargs={'dtype': torch.float64})
MinMaxObserver(is_dynamic=True)
MovingAverageMinMaxObserver()
MovingAverageMinMaxObserver(averaging_constant=.5, dtype=torch.qint8)
MovingAverageMinMaxObserver(averaging_constant=1, is_dynamic=True)
PerChannelMinMaxObserver()
PerChannelMinMaxObserver(ch_axis=1)
PerChannelMinMaxObserver(dtype=torch.qint8, qscheme=torch.per_channel_symmetric)
PerChannelMinMaxObserver(qscheme=torch.per_channel_affine_float_qparams)
PerChannelMinMaxObserver(reduce_range=True, quant_min=0, quant_max=200)
MovingAveragePerChannelMinMaxObserver(averaging_constant=.25)
MovingAveragePerChannelMinMaxObserver(ch_axis=-1)
HistogramObserver(bins=8)
HistogramObserver(bins=100, dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
HistogramObserver(quant_min=0, quant_max=15)
HistogramObserver(reduce_range=True)
FixedQParamsObserver(.5, 3)
FixedQParamsObserver(.5, 3, torch.qint8, torch.per_tensor_symmetric, -5, 5)
PlaceholderObserver()
PlaceholderObserver(torch.float16, 'name', None, 1, 2, torch.per_channel_affine, .5)
PlaceholderObserver(compute_dtype=torch.quint8)
RecordingObserver()
NoopObserver()
NoopObserver(torch.float32, 'op')
ReuseInputObserver()
"""


def _text(value):
    """The repr of what names classes, which are of another package here."""
    return repr(value).replace("torchshim.", "torch.")


def _made(torch, line):
    exec(_SETUP, names := {"torch": torch})
    return eval(f"A.{line}", names), names


@case.lines(KINDS)
def kinds(torch, line):
    observer, names = _made(torch, line)
    yield repr(observer), observer.dtype, observer.is_dynamic
    yield [getattr(observer, n, None) for n in ("qscheme", "quant_min", "quant_max")]
    yield attempt(observer.calculate_qparams)
    yield observer(names["x"]) is names["x"]
    yield repr(observer)
    yield attempt(observer.calculate_qparams)
    observer(names["y"].requires_grad_())
    yield attempt(observer.calculate_qparams)
    yield {key: observer.state_dict()[key] for key in observer.state_dict()}
    observer(names["x"][:0])
    yield attempt(observer.reset_min_max_vals) if "Max" in line else None
    yield attempt(observer.calculate_qparams)
    yield repr(observer)


@case.lines("""
MinMaxObserver(qscheme=torch.per_channel_affine)
MinMaxObserver(qscheme=torch.per_tensor_symmetric, reduce_range=True)
MinMaxObserver(dtype=torch.float32)
MinMaxObserver(dtype=torch.quint2x4)
MinMaxObserver(quant_min=5, quant_max=10)
MinMaxObserver(quant_min=0, quant_max=0)
MinMaxObserver(dtype=torch.qint8, quant_min=-200, quant_max=200)
MinMaxObserver(factory_kwargs={'a': 1})
MinMaxObserver(a=1)
MovingAverageMinMaxObserver(qscheme=torch.per_channel_affine)
MovingAverageMinMaxObserver(is_dynamic=True)
PerChannelMinMaxObserver(qscheme=torch.per_tensor_affine)
PerChannelMinMaxObserver(is_dynamic=True)
PerChannelMinMaxObserver(qscheme=torch.per_channel_symmetric, reduce_range=True)
MovingAveragePerChannelMinMaxObserver(qscheme=torch.per_tensor_affine)
MovingAveragePerChannelMinMaxObserver(is_dynamic=True)
HistogramObserver(qscheme=torch.per_channel_affine)
HistogramObserver(is_dynamic=True)
FixedQParamsObserver(.5, 3, is_dynamic=True)
ObserverBase(torch.quint8)
UniformQuantizationObserverBase()
MinMaxObserver()(x.long()[:, 5])
MinMaxObserver().load_state_dict({})
PerChannelMinMaxObserver().load_state_dict({})
HistogramObserver().load_state_dict({})
HistogramObserver().reset_min_max_vals()
QConfig(MinMaxObserver(), MinMaxObserver)
QConfig(MinMaxObserver, MinMaxObserver())
get_default_qconfig('a')
get_default_qconfig('x86', 1)
get_default_qat_qconfig('a')
get_default_qat_qconfig('x86', 2)
""")
def refused(torch, line):
    exec(_SETUP, names := {"torch": torch})
    yield attempt(eval, f"A.{line}", names)


@case
def wrong_ranges(torch):
    observer = torch.ao.quantization.MinMaxObserver()
    observer.min_val.fill_(2.0)
    observer.max_val.fill_(1.0)
    yield attempt(observer.calculate_qparams)
    observer = torch.ao.quantization.PerChannelMinMaxObserver()
    observer(torch.eye(2))
    observer.min_val[1] = 3.0
    yield attempt(observer.calculate_qparams)
    observer = torch.ao.quantization.HistogramObserver(bins=4)
    observer(torch.tensor([float("inf"), 1.0, 2.0]))
    yield observer.histogram, repr(observer)
    observer(torch.tensor([float("inf"), float("inf")]))
    observer(torch.tensor([5.0, float("-inf")]))
    yield observer.histogram, repr(observer)
    observer.bins = 5
    yield attempt(observer.calculate_qparams)


@case
def histograms(torch):
    """Ranges that grow, a constant first, and what is cut off."""
    kind = torch.ao.quantization.HistogramObserver
    torch.manual_seed(3)
    draws = [torch.randn(500) * scale + 0.5 * scale for scale in (1, 0.5, 3, 10)]
    observer = kind(bins=64)
    for each in draws:
        observer(each)
        yield observer.histogram, observer.min_val, observer.max_val
        yield observer.calculate_qparams()
        yield observer._non_linear_param_search()
    outlier = torch.cat([draws[0], torch.tensor([100.0])])
    for settings in ({}, {"bins": 256}, {"quant_max": 15, "quant_min": 0}):
        observer = kind(**settings)
        observer(outlier)
        yield observer.calculate_qparams()
    observer = kind(bins=4)
    for each in (1.0, 1.0, 0.5, 3.0):
        observer(torch.full((3,), each))
        yield observer.histogram, observer.calculate_qparams()
    yield observer._compute_quantization_error(0, 2)


@case
def states(torch):
    """States of any number of channels are loaded, and those of older versions."""
    A = torch.ao.quantization
    x = torch.tensor([[-1.0, 0.5], [2.0, 3.0]])
    for kind in (A.MinMaxObserver, A.PerChannelMinMaxObserver, A.HistogramObserver):
        observer = kind()
        observer(x)
        file = io.BytesIO()
        torch.save(observer.state_dict(), file)
        file.seek(0)
        other = kind()
        yield other.load_state_dict(torch.load(file))
        yield repr(other), other.calculate_qparams()
        if kind is A.PerChannelMinMaxObserver:
            continue
        state = observer.state_dict()
        del state["eps"]
        state._metadata[""]["version"] = 1
        other = kind()
        yield other.load_state_dict(state), repr(other)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    model.qconfig = A.default_qconfig
    with warnings.catch_warnings(action="ignore"):
        first, second = A.prepare(model), A.prepare(model)
    first(x)
    found = A.get_observer_state_dict(first)
    yield list(found), list(found._metadata)
    A.load_observer_state_dict(second, found)
    yield [repr(m) for m in second.modules() if isinstance(m, A.ObserverBase)]
    yield attempt(A.load_observer_state_dict, second, {})


@case
def makers(torch):
    """`with_args`, `with_callable_args`, and their texts."""
    A = torch.ao.quantization
    made = A.MinMaxObserver.with_args(dtype=torch.qint8)
    yield _text(made), made().dtype, made(dtype=torch.quint8).dtype
    yield _text(made.with_args(quant_min=-8, quant_max=7)())
    calls = []
    late = made.with_callable_args(eps=lambda: calls.append(1) or 0.5)
    yield "with_callable_args" in dir(late), late().eps, late(eps=0.25).eps, len(calls)
    yield A.observer._with_args(A.MinMaxObserver, eps=1.0)().eps
    yield sorted(late.callable_args), type(late).__name__, late.p.keywords
    yield A.qconfig_equals(A.QConfig(made, made), A.QConfig(made, made))
    yield A.qconfig_equals(A.QConfig(made, made), A.QConfig(made, late))
    yield A.qconfig_equals(None, A.default_qconfig), A.qconfig_equals(None, None)
    yield A.qconfig_equals(
        A.get_default_qconfig("x86"), A.get_default_qconfig("onednn")
    )
    one, two = (A.get_default_qat_qconfig("fbgemm") for _ in range(2))
    yield one == two, A.qconfig_equals(one, two)


@case
def settings(torch):
    q = torch.ao.quantization.qconfig

    A = torch.ao.quantization
    for name in sorted(q.__all__):
        if isinstance(getattr(q, name), q.QConfig):
            yield name, _text(getattr(q, name))
    for backend in ("x86", "fbgemm", "qnnpack", "onednn"):
        yield _text(A.get_default_qconfig(backend))
        for version in (0, 1):
            yield _text(A.get_default_qat_qconfig(backend, version))
        for mapping in (
            A.get_default_qconfig_mapping(backend),
            A.get_default_qat_qconfig_mapping(backend),
        ):
            yield [
                (getattr(k, "__name__", k), _text(v))
                for k, v in mapping.object_type_qconfigs.items()
            ]
    mapping = A.QConfigMapping().set_global(A.default_qconfig)
    mapping.set_module_name_regex("a.*", None).set_module_name("b", A.default_qconfig)
    mapping.set_module_name_object_type_order("c", torch.nn.Linear, 1, None)
    mapping.set_object_type(torch.nn.Linear, None)
    yield _text(mapping), _text(mapping.to_dict())
    yield _text(A.QConfigMapping.from_dict(mapping.to_dict())) == _text(mapping)
    yield _text(A.QConfigMapping.from_dict({}))
    yield list(A.get_default_qconfig_dict()), A.get_default_qat_qconfig_dict().keys()
    yield _text(A.QConfigDynamic(weight=A.MinMaxObserver))


@case.lines("""
calculate_qmin_qmax(-8, 7, True, torch.qint8, False)
calculate_qmin_qmax(-8, 7, True, torch.qint8, True)
calculate_qmin_qmax(None, None, False, torch.quint8, True)
calculate_qmin_qmax(None, None, False, torch.qint32, True)
calculate_qmin_qmax(-300, 300, True, torch.qint8, False)
calculate_qmin_qmax(-300, 2**33, True, torch.qint32, False)
calculate_qmin_qmax(-300, 300, True, torch.quint8, False)
calculate_qmin_qmax(None, None, False, torch.float8_e5m2, False)
to_underlying_dtype(torch.quint4x2), U.to_underlying_dtype(torch.int16)
to_underlying_dtype(torch.float32)
get_combined_dict({1: 2}, {3: 4})
getattr_from_fqn(torch, 'nn.ReLU').__name__
is_per_tensor(torch.per_tensor_affine), U.is_per_channel(torch.per_tensor_affine)
get_qparam_dict(seen)
get_qparam_dict(channels)
get_qparam_dict(A.PlaceholderObserver())
get_quant_type(A.default_qconfig), U.get_quant_type(A.default_dynamic_qconfig)
get_quant_type(A.float16_static_qconfig), U.get_quant_type(A.float16_dynamic_qconfig)
get_quant_type(A.float_qparams_weight_only_qconfig)
get_quant_type(A.QConfig(A.NoopObserver, A.PlaceholderObserver))
get_quant_type(None)
activation_dtype(A.default_qconfig), U.weight_dtype(A.default_qconfig)
activation_dtype(None)
weight_dtype(None)
get_qconfig_dtypes(A.default_dynamic_qconfig)
activation_is_statically_quantized(A.default_qconfig)
activation_is_statically_quantized(A.default_dynamic_qconfig)
activation_is_int8_quantized(A.default_qconfig)
activation_is_int32_quantized(A.default_qconfig)
weight_is_quantized(A.float16_static_qconfig)
weight_is_statically_quantized(A.float16_static_qconfig)
op_is_int8_dynamically_quantized(A.default_dynamic_qconfig)
check_min_max_valid(T(1.), T(2.)), U.check_min_max_valid(T([]), T([]))
check_min_max_valid(T(inf), T(-inf))
check_min_max_valid(T(3.), T(2.))
check_min_max_valid(T([3., 1.]), T([2., 2.]))
validate_qmin_qmax(1, 2)
validate_qmin_qmax(0, 0)
determine_qparams(T(-1.), T(2.), 0, 255, torch.quint8, T([.1]), False)
determine_qparams(T(-1.), T(2.), 0, 9, torch.quint8, E, True, S)
determine_qparams(T([-1., 0]), T([2., 3.]), 0, 9, torch.qint8, E, True)
determine_qparams(T(inf), T(-inf), 0, 9, torch.qint8, E, True)
determine_qparams(T(-1.), T(2.), 0, 9, torch.quint8, E, True, F)
has_no_children_ignoring_parametrizations(torch.nn.ReLU())
has_no_children_ignoring_parametrizations(torch.nn.Sequential(torch.nn.ReLU()))
get_fqn_to_example_inputs(torch.nn.Sequential(torch.nn.ReLU()), (T(1.),))
_normalize_kwargs(lambda a, key1=3, key2=3: 0, {'key2': 6})
_parent_name('a.b.c'), U._parent_name('a')
_assert_and_get_unique_device(torch.nn.ReLU())
_assert_and_get_unique_device(torch.nn.Linear(1, 1))
""")
def utilities(torch, line):
    setup = _SETUP + (
        "U = A.utils; E = T([1e-6]); "
        "F, S = torch.per_channel_affine_float_qparams, torch.per_tensor_symmetric; "
        "seen, channels = A.MinMaxObserver(), A.PerChannelMinMaxObserver(); "
        "seen(x); channels(x)"
    )
    exec(setup, names := {"torch": torch})
    found = attempt(eval, f"U.{line}", names)
    return dict(found) if hasattr(found, "popitem") else found


@case
def blocks(torch):
    o = torch.ao.quantization.observer

    for granularity in (
        *(o.PerTensor(), o.PerAxis(1), o.PerRow(), o.PerToken(), o.PerGroup(2)),
        *(o.PerBlock((1, 2)), o.Granularity(), o.PerTensor),
    ):
        yield repr(granularity) if not isinstance(granularity, type) else 0
        yield attempt(o.get_block_size, (2, 4), granularity)
    yield attempt(o.get_block_size, (2, 4, 3), o.PerGroup(2))
    yield o.PerAxis(1) == o.PerAxis(1), list(o.MappingType), list(o.ZeroPointDomain)
    yield [each.name for each in o.TorchAODType], list(torch.ao.quantization.QuantType)
    yield attempt(setattr, o.PerAxis(1), "axis", 2)
