"""What optimizers written by hand take from PyTorch's modules."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from tests.optim.test_functional import NAMES, given
from tests.oracle import attempt, case


def module(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.optim.{name}")


KINDS = ("single_tensor", "multi_tensor", "fused")


@case.over(*[n for n in NAMES if n != "adamw"])
def implementations(torch, name):
    for kind in KINDS:
        function = getattr(module(torch, name), f"_{kind}_{name}", None)
        if function is None:
            yield kind, None
            continue
        parameters = inspect.signature(function).parameters.values()
        yield (
            kind,
            sorted((p.name, str(p.kind), p.default is p.empty) for p in parameters),
        )
        lists, keywords = given(torch, name)
        public = inspect.signature(getattr(module(torch, name), name)).parameters
        for known in inspect.signature(function).parameters:
            if known not in keywords and known in public:
                default = public[known].default
                if default is not inspect.Parameter.empty and known[:5] not in (
                    "grad_",
                    "found",
                ):
                    keywords[known] = default
        scaled = [None, None] if "grad_scale" in public else []
        function(*lists, *scaled, **keywords)
        yield lists
        yield type(attempt(lambda: function(*lists, *scaled)))  # noqa: B023


def matrices(torch: Any) -> tuple[Any, Any]:
    torch.manual_seed(0)
    return [torch.randn(3, 4), torch.randn(4, 2)], [
        torch.randn(3, 4),
        torch.randn(4, 2),
    ]


@case
def muon(torch):
    function = module(torch, "_muon").muon
    params, grads = matrices(torch)
    buffers = [torch.zeros_like(p) for p in params]
    options = {"lr": 0.1, "weight_decay": 0.1, "momentum": 0.9, "nesterov": True}
    options |= {"ns_coefficients": (3.4445, -4.7750, 2.0315), "ns_steps": 5}
    options |= {"eps": 1e-7, "adjust_lr_fn": None, "has_complex": False}
    function(params, grads, buffers, **options)
    module(torch, "_muon")._single_tensor_muon(params, grads, buffers, **options)
    yield [(p * 100).round() for p in params], buffers
    yield attempt(lambda: function(params, grads, buffers, foreach=True, **options))
    options["has_complex"] = True
    yield attempt(lambda: function(params, grads, buffers, **options))
    options["has_complex"] = False
    vectors = [[torch.ones(3)] for _ in range(3)]
    yield attempt(lambda: function(*vectors, **options))


@case
def adafactor(torch):
    params, grads = matrices(torch)
    params, grads = [*params, torch.ones(3)], [*grads, torch.tensor([1.0, -2.0, 3.0])]
    rows = [torch.zeros(3, 1), torch.zeros(4, 1), None]
    columns = [torch.zeros(1, 4), torch.zeros(1, 2), None]
    variances = [None, None, torch.zeros(3)]
    steps = [torch.tensor(0.0) for _ in params]
    options = {"d": 1.0, "lr": 0.01, "beta2_decay": -0.8, "weight_decay": 0.1}
    options |= {"eps1": None, "eps2": 1e-3, "maximize": False}
    lists = params, grads, rows, columns, variances, steps
    function = module(torch, "_adafactor").adafactor
    function(*lists, **options)
    function(*lists, **options)
    yield lists
    yield attempt(lambda: function(*lists[:-1], [1, 2, 3], **options))


@case
def sparse_adam(torch):
    rows = torch.tensor([[0, 2]]), torch.tensor([[1.0, 2.0], [-3.0, 4.0]])
    grad = torch.sparse_coo_tensor(*rows, (3, 2), check_invariants=False)
    params, grads = [torch.ones(3, 2)], [grad]
    states = [torch.zeros(3, 2)], [torch.zeros(3, 2)]
    options = {"eps": 1e-8, "beta1": 0.9, "beta2": 0.99, "lr": 0.1, "maximize": False}
    for step in (1, 2):
        module(torch, "_functional").sparse_adam(
            params, grads, *states, [step], **options
        )
        yield params, states


@case
def functions_by_name(torch):
    functional = module(torch, "_functional")
    return [
        getattr(functional, name) is getattr(module(torch, name), name)
        for name in NAMES
    ]


@case
def on_lists(torch):
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    for name in ("Adam", "SGD", "RMSprop"):
        optimizer = getattr(module(torch, "_multi_tensor"), name)([weight], lr=0.5)
        weight.grad = torch.ones(2)
        optimizer.step()
        yield type(optimizer).__name__, optimizer.param_groups[0]["foreach"], weight


@case
def small_parts(torch):
    parts = module(torch, "optimizer")
    yield [parts._get_value(v) for v in (1.5, torch.tensor(2.5), None)]
    yield [parts._to_scalar(v) for v in (1.5, torch.tensor(2.5), torch.ones(1, 1))]
    yield [parts._get_scalar_dtype(fused) for fused in (None, False, True)]
    torch.set_default_dtype(torch.float64)
    try:
        yield [parts._get_scalar_dtype(fused) for fused in (None, False, True)]
    finally:
        torch.set_default_dtype(torch.float32)
    yield parts._get_capturable_supported_devices()
    yield parts._get_capturable_supported_devices(supports_xla=False)
    yield parts._get_fused_kernels_supported_devices()
    steps = [torch.tensor(1.0)]
    yield parts._stack_if_compiling(steps) is steps
    for name in (
        "params",
        "foreach",
        "fused",
        "capturable",
        "differentiable",
        "maximize",
    ):
        yield getattr(parts, f"_{name}_doc").partition(" ")[0]


@case
def choices(torch):
    parts = module(torch, "optimizer")
    for params in ([], [torch.ones(2)], [None], [torch.ones(2, dtype=torch.int32)]):
        for differentiable in (False, True):
            for fused in (False, True):
                yield parts._default_to_fused_or_foreach(params, differentiable, fused)
    yield parts._device_dtype_check_for_fused(torch.ones(2))
    yield attempt(
        lambda: parts._device_dtype_check_for_fused(torch.ones(2, dtype=torch.int64))
    )
    yield attempt(
        lambda: parts._device_dtype_check_for_fused(torch.ones(2, device="meta"), True)
    )


@case
def real_views(torch):
    parts = module(torch, "optimizer")
    params = [torch.tensor([1 + 2j]), torch.tensor([3.0])]
    states = [torch.tensor([5 + 6j]), torch.tensor([7.0])]
    parts._view_as_real(params, states)
    params[0][0, 1] = 9.0
    return params, states, params[0]._is_view()


@case
def undone_decorators(torch):
    parts = module(torch, "optimizer")

    @parts._disable_dynamo_if_unsupported(single_tensor_fn=len)
    def twice(x: int, state_steps: Any = ()) -> int:
        return 2 * x

    return twice(3), twice.__name__, str(inspect.signature(twice))


@case
def cubic(torch):
    find = module(torch, "lbfgs")._cubic_interpolate
    g = [torch.tensor(v) for v in (-2.0, 1.5, 0.25)]
    yield find(0.0, 3.0, g[0], 1.0, 2.0, g[1])
    yield find(1.0, 2.0, g[1], 0.0, 3.0, g[0])
    yield find(0.0, 3.0, g[0], 1.0, 2.0, g[1], bounds=(0.8, 0.9))
    yield find(0.0, 3.0, g[2], 1.0, 3.1, g[2])


@case.over(0.01, 1.0, 30.0)
def line_search(torch, first):
    calls: list[float] = []

    def at(x, t, d):
        calls.append(float(t))
        point = (x + t * d).detach().requires_grad_()
        loss = (point**4).sum() - 3 * point.sum() + point.cos().sum()
        loss.backward()
        return float(loss), point.grad

    x = torch.tensor([2.0, -1.0])
    f, g = at(x, 0.0, x)
    d = -g
    f, g, t, evaluations = module(torch, "lbfgs")._strong_wolfe(
        at, x, first, d, f, g, g.dot(d)
    )
    return f, g, float(t), evaluations, calls


@case
def schedulers(torch):
    import warnings

    schedules = module(torch, "lr_scheduler")
    rates = [torch.tensor(0.5), 0.25]
    groups = [{"params": [torch.ones(1)], "lr": rate} for rate in rates]
    optimizer = torch.optim.SGD(groups)
    assert isinstance(optimizer, schedules.Optimizer)
    found = schedules._param_groups_val_list(optimizer, "lr")
    yield found, found[0] is rates[0]
    yield (
        schedules._format_param("name", optimizer, 3),
        attempt(lambda: schedules._format_param("name", optimizer, [3])),
    )

    class Halving(schedules.LRScheduler):
        def get_lr(self):
            schedules._warn_get_lr_called_within_step(self)
            return [group["lr"] * 0.5 for group in self.optimizer.param_groups]

    scheduler = Halving(torch.optim.SGD([torch.ones(1)], lr=1.0))
    scheduler.step()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scheduler.get_lr()
    yield scheduler.get_last_lr(), [str(w.message) for w in caught]
    with schedules._initial_mode(scheduler):
        yield scheduler._is_initial
    yield scheduler._is_initial
