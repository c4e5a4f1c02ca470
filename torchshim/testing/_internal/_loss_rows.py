"""The rows of losses that `common_nn` makes tests of."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torchshim as torch
from torchshim import nn
from torchshim.nn import functional as F
from torchshim.testing._internal._loss_references import loss_reference_fns

Row = dict[str, Any]


def wrap_functional(fn: Any, **kwargs: Any) -> Any:
    """A class of modules that call a function."""

    class FunctionalModule(torch.nn.Module):
        def forward(self, *args: Any) -> Any:
            return fn(*args, **kwargs)

    return FunctionalModule


def _log_probabilities(*shape: int, floor: float = 0.0) -> Any:
    return torch.rand(shape).add(floor).log()


def _labels(count: int, *shape: int) -> Any:
    return torch.empty(shape).uniform_().mul(count).floor().long()


def losses() -> Iterator[Row]:
    """Losses without reduction."""
    for name, row in (*_entropies(), *_regressions(), *_labelled(), *_margins()):
        yield {"fullname": name, "pickle": False, **row}


def _loss(
    fn: Callable[..., Any],
    target: Any,
    made: Callable[[], Any],
    reference: Callable[..., Any] | str,
    integers: bool = False,
    more: Row | None = None,
    **given: Any,
) -> Row:
    """A row: `given` are arguments of the function, `more` those of the test."""

    def arguments(i: Any) -> Row:
        here = lambda v: v.type_as(i) if isinstance(v, torch.Tensor) else v  # noqa: E731
        return {k: here(v) for k, v in given.items()} | {"reduction": "none"}

    def cast(i: Any) -> Any:
        return target.type_as(i).long() if integers else target.type_as(i)

    def called(i: Any) -> Any:
        return fn(i, cast(i), **arguments(i))

    def expected(i: Any, *_: Any) -> Any:
        if callable(reference):
            return reference(i, target.type_as(i))
        return loss_reference_fns[reference](i, cast(i), **arguments(i))

    return {
        "constructor": wrap_functional(called),
        "input_fn": made,
        "reference_fn": expected,
        "default_dtype": torch.double,
    } | (more or {})


def _entropies() -> Iterator[tuple[str, Row]]:
    rand = functools.partial(torch.rand, dtype=torch.double)
    row = _loss(
        F.poisson_nll_loss,
        torch.randn(10, 10),
        lambda: torch.rand(10, 10),
        lambda i, t: i.exp() - t.mul(i),
    )
    yield "PoissonNLLLoss_no_reduce", row

    def entropy(i: Any, t: Any) -> Any:
        return -(t * i.log() + (1 - t) * (1 - i).log())

    def logits(i: Any, t: Any) -> Any:
        return entropy(i.sigmoid(), t)

    bce, with_logits = F.binary_cross_entropy, F.binary_cross_entropy_with_logits
    for tail, shape, width in (("", (15, 10), 10), ("_scalar", (), None)):
        made = functools.partial(_probabilities, shape)
        target = torch.randn(shape, dtype=torch.double).gt(0).to(torch.double)
        weights = rand(() if width is None else (width,))
        row = _loss(bce, target, made, entropy, more={"precision": 7e-4})
        yield f"BCELoss_no_reduce{tail}", row
        weighed = functools.partial(_times, entropy, weights)
        row = _loss(bce, target, made, weighed, weight=weights)
        yield f"BCELoss_weights_no_reduce{tail}", row | {"precision": 3e-4}
        plain = {"check_gradgrad": False}
        if not tail:

            def legacy(i: Any, t: Any = target) -> Any:
                return with_logits(i, t.type_as(i), reduce=False)

            row = _loss(with_logits, target, made, logits, more=plain)
            row["constructor"] = wrap_functional(legacy)
            yield "BCEWithLogitsLoss_legacy_enum", row
        row = _loss(with_logits, target, made, logits, more=plain)
        yield f"BCEWithLogitsLoss_no_reduce{tail}", row
    forward = {"supports_forward_ad": True}
    for name, shape, logs in (
        ("KLDivLoss_with_target_no_reduce", (10, 10), False),
        ("KLDivLoss_no_reduce", (10, 10), False),
        ("KLDivLoss_no_reduce_scalar", (), False),
        ("KLDivLoss_with_log_target_no_reduce", (10, 10), True),
        ("KLDivLoss_no_reduce_log_target", (10, 10), True),
        ("KLDivLoss_no_reduce_scalar_log_target", (), True),
    ):
        made = functools.partial(_log_probabilities, *shape)
        target = rand(shape)
        target = target.log() if logs else target
        option = {"log_target": True} if logs else {}
        yield name, _loss(F.kl_div, target, made, "KLDivLoss", more=forward, **option)


def _probabilities(shape: Any) -> Any:
    return torch.rand(shape).clamp_(2.8e-2, 1 - 2.8e-2)


def _times(fn: Callable[..., Any], weights: Any, i: Any, t: Any) -> Any:
    return fn(i, t) * weights


def _regressions() -> Iterator[tuple[str, Row]]:
    forward = {"supports_forward_ad": True}

    def distance(i: Any, t: Any) -> Any:
        return (i - t).abs()

    def square(i: Any, t: Any) -> Any:
        return (i - t).pow(2)

    for tail, shape, dtype in (
        ("", (2, 3, 4), torch.double),
        ("_complex", (2, 3, 4), torch.cdouble),
        ("_scalar", (), torch.double),
    ):
        made = functools.partial(torch.randn, shape, dtype=dtype)
        target = torch.randn(shape, dtype=dtype)
        row = _loss(F.l1_loss, target, made, distance, more=forward)
        yield f"L1Loss_no_reduce{tail}", row
    for tail, shape in (("", (2, 3, 4, 5)), ("_scalar", ())):
        target = torch.randn(shape, dtype=torch.double)
        made = functools.partial(torch.randn, shape, dtype=torch.double)
        row = _loss(F.mse_loss, target, made, square, more=forward)
        row["input_size"] = shape
        del row["input_fn"]
        yield f"MSELoss_no_reduce{tail}", row
    for name, fn, shape, given in (
        ("SmoothL1Loss_no_reduce", F.smooth_l1_loss, (2, 3, 4), {}),
        ("SmoothL1Loss_no_reduce_scalar", F.smooth_l1_loss, (), {}),
        ("SmoothL1Loss_beta", F.smooth_l1_loss, (2, 3, 4), {"beta": 0.5}),
        ("SmoothL1Loss_zero_beta", F.smooth_l1_loss, (2, 3, 4), {"beta": 0}),
        ("HuberLoss_delta", F.huber_loss, (2, 3, 4), {"delta": 0.5}),
    ):
        made = functools.partial(torch.randn, shape)
        target = torch.randn(shape, dtype=torch.double)
        options: Row = {"more": forward, **given}
        yield name, _loss(fn, target, made, name.partition("_")[0], **options)


def _labelled() -> Iterator[tuple[str, Row]]:
    for kind, name, shape, classes, ignored in (
        ("NLLLoss", "NLLLoss", (15, 10), 10, 2),
        ("NLLLossNd", "NLLLoss2d", (2, 3, 5, 5), 3, 1),
        ("NLLLossNd", "NLLLossNd", (2, 3, 5, 5, 2, 2), 3, 1),
    ):
        labels = _labels(classes, shape[0], *shape[2:])
        weights = torch.rand(shape[1])
        made = functools.partial(_log_probabilities, *shape)
        apart = functools.partial(_log_probabilities, *shape, floor=1e-2)
        loss = functools.partial(_loss, F.nll_loss, labels, integers=True)
        yield f"{name}_no_reduce", loss(made, kind)
        row = loss(made, kind, ignore_index=ignored)
        yield f"{name}_no_reduce_ignore_index", row
        chosen = apart if name == "NLLLoss" else made
        yield f"{name}_no_reduce_weights", loss(chosen, kind, weight=weights)
        if name == "NLLLoss":
            row = loss(apart, kind, weight=weights, ignore_index=ignored)
            yield f"{name}_no_reduce_weights_ignore_index", row
            row = loss(apart, kind, weight=weights, ignore_index=-1)
            yield f"{name}_no_reduce_weights_ignore_index_neg", row


def _margins() -> Iterator[tuple[str, Row]]:
    checked = {"check_sum_reduction": True, "check_gradgrad": False}
    randn = functools.partial(functools.partial, torch.randn)
    fn, kind = F.multilabel_margin_loss, "MultiLabelMarginLoss"
    for name, shape, target in (
        ("0d_no_reduce", (), torch.zeros((), dtype=torch.long)),
        ("1d_no_reduce", (10,), _labels(10, 10)),
        ("index_neg", (5, 10), torch.clamp(_labels(20, 5, 10).add(-10), min=-1)),
        ("no_reduce", (5, 10), _labels(10, 5, 10)),
    ):
        row = _loss(fn, target, randn(shape), kind, integers=True, more=checked)
        yield f"{kind}_{name}", row
    signs = torch.randn(10, dtype=torch.double).gt(0).to(torch.double).mul_(2).sub_(1)
    for name, given in (("no_reduce", {}), ("margin_no_reduce", {"margin": 0.5})):
        kind = "HingeEmbeddingLoss"
        options: Row = {"more": {"check_sum_reduction": True}, **given}
        row = _loss(F.hinge_embedding_loss, signs, randn((10,)), kind, **options)
        yield f"{kind}_{name}", row
    target = torch.randn(5, 5, dtype=torch.double)
    forward = {"supports_forward_ad": True}
    row = _loss(
        F.soft_margin_loss, target, randn((5, 5)), "SoftMarginLoss", more=forward
    )
    yield "SoftMarginLoss_no_reduce", row
    bits, weights = torch.rand(5, 10).mul(2).floor(), torch.rand(10)

    def soft(i: Any, t: Any, weight: Any = 1.0) -> Any:
        each = t * i.sigmoid().log() + (1 - t) * (-i).sigmoid().log()
        return -(each * weight).sum(dim=1) / i.size(-1)

    fn = F.multilabel_soft_margin_loss
    name = "MultiLabelSoftMarginLoss"
    row = _loss(fn, bits, randn((5, 10)), soft, more={"check_gradgrad": False})
    yield f"{name}_no_reduce", row
    weighed = functools.partial(soft, weight=weights)
    row = _loss(fn, bits, randn((5, 10)), weighed, more=checked, weight=weights)
    yield f"{name}_weights_no_reduce", row
    kind, eight = "MultiMarginLoss", torch.rand(5).mul(8).floor().long()
    one = torch.rand(1).mul(8).floor().long()
    for name, shape, target, given in (
        ("MultiMarginLoss_no_reduce", (5, 10), eight, {}),
        ("MultiMarginLoss_1d_no_reduce", (10,), one, {}),
        ("multimarginloss_1d_input_0d_target_no_reduce", (10,), one[0], {}),
        ("MultiMarginLoss_p_no_reduce", (5, 10), eight, {"p": 2}),
        ("MultiMarginLoss_margin_no_reduce", (5, 10), eight, {"margin": 0.5}),
        (
            *("MultiMarginLoss_weights_no_reduce", (5, 10), eight),
            {"weight": torch.rand(10, dtype=torch.double)},
        ),
    ):
        made = _inner if "p" in given else randn(shape)
        options = {"integers": True, "more": checked, **given}
        yield name, _loss(F.multi_margin_loss, target, made, kind, **options)


def _inner() -> Any:
    return torch.randn(5, 10).clamp_(1e-2, 1 - 1e-2)


# Losses without a batch ---------------------------------------------------------------

regression_criterion_no_batch = [
    *("L1Loss", "MSELoss", "PoissonNLLLoss", "HuberLoss", "SmoothL1Loss"),
]
_double = functools.partial(torch.randn, dtype=torch.double)
_signs = lambda: torch.tensor([-1, 1, 1] * 3)  # noqa: E731

#: The class, a function that makes an input, and one that makes a target.
classification_criterion_no_batch: list[tuple[str, Any, Any]] = [
    (
        "BCELoss",
        lambda: torch.sigmoid(_double(9)),
        lambda: _double(9).gt(0).to(torch.double),
    ),
    ("BCEWithLogitsLoss", lambda: _double(9), lambda: _double(9)),
    ("HingeEmbeddingLoss", lambda: _double(9), _signs),
    ("MultiLabelMarginLoss", lambda: _double(4), lambda: torch.tensor([3, 0, -1, 1])),
    ("SoftMarginLoss", lambda: _double(9), _signs),
    ("NLLLoss", lambda: F.log_softmax(_double(3), dim=0), lambda: torch.tensor(1)),
    (
        "CosineEmbeddingLoss",
        lambda: (_double(9), _double(9)),
        lambda: torch.tensor(1, dtype=torch.double),
    ),
    (
        "MarginRankingLoss",
        lambda: (torch.randn(()), torch.randn(())),
        lambda: torch.randn(()).sign(),
    ),
    ("TripletMarginLoss", lambda: (_double(9), _double(9)), lambda: _double(9)),
    ("MultiLabelSoftMarginLoss", lambda: _double(9), lambda: torch.randn(9)),
]
_WITHOUT_CPP = {"BCELoss", "BCEWithLogitsLoss", "HingeEmbeddingLoss", "NLLLoss"}
_WITHOUT_CPP.add("SoftMarginLoss")


def single_batch_reference_criterion_fn(*args: Any) -> Any:
    """What a loss gives for a batch of one, without the batch."""
    *given, criterion = args

    def batch(x: Any) -> Any:
        if isinstance(x, torch.Tensor):
            return x.unsqueeze(0)
        return tuple(each.unsqueeze(0) for each in x)

    flat: list[Any] = []
    for each in map(batch, given):
        flat += each if isinstance(each, tuple) else [each]
    found = criterion(*flat)
    return found if criterion.reduction != "none" else found.squeeze(0)


def criterion_rows() -> list[Row]:
    """The rows of `criterion_tests`: each loss and reduction, without a batch."""
    rows = []
    kinds = ("none", "mean", "sum")

    def add(name: str, reduction: str, **row: Any) -> None:
        cls = getattr(nn, name)
        rows.append(
            {
                "fullname": f"{name}_no_batch_dim_{reduction}",
                "constructor": lambda *args: cls(reduction=reduction),
                "reference_fn": single_batch_reference_criterion_fn,
                "default_dtype": torch.double,
                **row,
            }
        )

    for name in regression_criterion_no_batch:
        for kind in kinds:
            sizes = {"input_size": (3,), "target_size": (3,)}
            add(name, kind, test_cpp_api_parity=False, **sizes)
    for kind in kinds:
        made = {
            "input_fn": lambda: torch.rand((3,)).log(),
            "target_fn": lambda: torch.rand((3,)),
        }
        add("KLDivLoss", kind, test_cpp_api_parity=False, **made)
    for name, input_fn, target_fn in classification_criterion_no_batch:
        for kind in kinds:
            row: Row = {"input_fn": input_fn, "target_fn": target_fn}
            row |= {"test_cpp_api_parity": True}
            row["has_parity"] = name not in _WITHOUT_CPP
            if name == "MultiLabelMarginLoss":
                row["check_gradgrad"] = False
            add(name, kind, **row)
    return rows
