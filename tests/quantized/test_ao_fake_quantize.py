"""Modules that round while a model is trained, and their settings."""

from tests.oracle import attempt, case

_SETUP = (
    "A = torch.ao.quantization; T = torch.tensor; "
    "x = T([[-1., .5, .25], [2., 3.3, -.75]]); y = T([[-4., 0., 1.], [.125, 9., 2.]]); "
)
KINDS = """
FakeQuantize()
FakeQuantize(quant_min=0, quant_max=15)
FakeQuantize(observer=A.MinMaxObserver, dtype=torch.qint8, reduce_range=True)
FakeQuantize(A.MinMaxObserver.with_args(dtype=torch.qint8), -128, 127)
FakeQuantize(observer=A.PerChannelMinMaxObserver, ch_axis=1)
FakeQuantize(observer=A.HistogramObserver)
FusedMovingAvgObsFakeQuantize()
FusedMovingAvgObsFakeQuantize(averaging_constant=.5)
default_fake_quant()
default_weight_fake_quant()
default_dynamic_fake_quant()
default_fixed_qparams_range_neg1to1_fake_quant()
default_fixed_qparams_range_0to1_fake_quant()
default_per_channel_weight_fake_quant()
default_embedding_fake_quant()
default_embedding_fake_quant_4bit()
default_histogram_fake_quant()
default_fused_act_fake_quant()
default_fused_wt_fake_quant()
default_fused_per_channel_wt_fake_quant()
fused_wt_fake_quant_range_neg_127_to_127()
fused_per_channel_wt_fake_quant_range_neg_127_to_127()
"""


@case.lines(KINDS)
def kinds(torch, line):
    exec(_SETUP, names := {"torch": torch})
    x, y = names["x"], names["y"].requires_grad_()
    fake = eval(f"names['A'].{line}", {**names, "names": names})
    yield repr(fake)
    yield fake(x)
    made = fake(y)
    made.sum().backward()
    yield made, y.grad
    yield attempt(fake.calculate_qparams)
    yield dict(fake.state_dict())
    fake.disable_observer()
    yield fake(x * 3)
    fake.disable_fake_quant()
    yield fake(x * 3)
    fake.apply(names["A"].enable_observer)
    yield fake(x * 5)
    fake.apply(names["A"].enable_fake_quant)
    yield fake(x), repr(fake)
    other = eval(f"names['A'].{line}", {**names, "names": names})
    yield other.load_state_dict(fake.state_dict())
    yield repr(other)
    fake.apply(names["A"].disable_observer).apply(names["A"].disable_fake_quant)
    yield fake.observer_enabled, fake.fake_quant_enabled


@case.lines("""
FakeQuantize(quant_min=5, quant_max=2)
FakeQuantize(quant_min=-1, quant_max=2)
FakeQuantize(quant_min=0, quant_max=256)
FakeQuantize(observer=A.NoopObserver)
FixedQParamsFakeQuantize(observer=A.MinMaxObserver)
FixedQParamsFakeQuantize()
FusedMovingAvgObsFakeQuantize(observer=A.MinMaxObserver)
FakeQuantizeBase()
FakeQuantize().load_state_dict({})
enable_observer(torch.nn.ReLU())
FakeQuantize()(x.double())
FakeQuantize()(x.half())
FakeQuantize()(x[:0])
FusedMovingAvgObsFakeQuantize()(x.half())
FakeQuantize.with_args(quant_min=0).__module__.rpartition('.')[2]
""")
def refused(torch, line):
    exec(_SETUP, names := {"torch": torch})
    yield attempt(eval, f"A.{line}", names)
