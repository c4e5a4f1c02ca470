"""Functions that autocast knows, with arguments to call them with.

A list is a row of entries: name, arguments and what else a test needs, which is the
result's dtype, named arguments, or whether to skip it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torchshim as torch
from torchshim.nn._reduction import get_enum
from torchshim.testing._internal.common_utils import TEST_WITH_ROCM, TestCase

_SIZE = 8
_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
_ARITHMETIC = ("add", "div", "mul")


class _Drawn:
    """Random arguments on one device; a text gives several, one by one.

    `v` is a vector, `m` a matrix, `b` a batch of matrices, and `s` a single element, of
    float32, and in capitals of the half type.
    """

    def __init__(self, device: Any, half: Any) -> None:
        self.device = device
        self.half = half

    def normal(self, *shape: int, dtype: Any = torch.float32) -> Any:
        return torch.randn(shape, dtype=dtype, device=self.device)

    def uniform(self, *shape: int, dtype: Any = torch.float32) -> Any:
        return torch.rand(shape, dtype=dtype, device=self.device)

    def ones(self, *shape: int, dtype: Any) -> Any:
        return torch.ones(shape, dtype=dtype, device=self.device)

    def tensor(self, values: Any, dtype: Any) -> Any:
        return torch.tensor(values, dtype=dtype, device=self.device)

    def __call__(self, kinds: str) -> tuple[Any, ...]:
        n = _SIZE
        shapes = {"s": (1,), "v": (n,), "m": (n, n), "b": (n, n, n)}
        return tuple(
            self.normal(
                *shapes[kind.lower()],
                dtype=self.half if kind.isupper() else torch.float32,
            )
            for kind in kinds
        )

    def clamped(self, low: float, high: float) -> Any:
        return self("V")[0].clamp(low, high)

    def convolutions(self) -> list[tuple[Any, Any]]:
        n = _SIZE
        return [
            (self.normal(*shape), self.normal(*shape))
            for shape in ((n,) * 3, (n,) * 4, (n,) * 5)
        ]

    def labels(self, *shape: int) -> Any:
        return torch.zeros(shape, dtype=torch.long, device=self.device)


def _losses(draw: _Drawn) -> list[tuple[Any, ...]]:
    """Losses of `torch` that are computed in float32."""
    mean = get_enum("mean")
    half, n = draw.half, _SIZE
    vectors = [draw.tensor([row], half) for row in ([1, 2, 3], [1, 3, 4])]
    signs = draw.tensor([1], torch.int)
    return [
        ("poisson_nll_loss", (*draw("MM"), True, False, 1e-8, mean)),
        ("cosine_embedding_loss", (*vectors, signs)),
        ("hinge_embedding_loss", (*draw("M"), draw.ones(n, dtype=torch.int))),
        ("margin_ranking_loss", (*draw("MM"), draw.ones(n, dtype=half))),
        ("triplet_margin_loss", draw("MMM")),
        (
            "binary_cross_entropy_with_logits",
            (*draw("M"), draw.uniform(n, n, dtype=half)),
        ),
    ]


def _nn_losses(draw: _Drawn, scores: Any) -> list[tuple[Any, ...]]:
    """Losses of `torch._C._nn` that are computed in float32."""
    n = _SIZE
    images = draw.uniform(n, n, n, n, dtype=draw.half)
    ones, each = draw.ones(n, n, dtype=torch.long), draw.ones(n, dtype=torch.long)
    return [
        ("nll_loss", (scores, draw.labels(n))),
        ("nll_loss2d", (images, draw.labels(n, n, n))),
        ("l1_loss", draw("MM")),
        ("smooth_l1_loss", draw("MM")),
        ("mse_loss", draw("MM")),
        ("multilabel_margin_loss", (*draw("M"), ones)),
        ("soft_margin_loss", (*draw("M"), ones)),
        ("multi_margin_loss", (*draw("M"), each)),
    ]


class AutocastTestLists:
    """The lists for accelerators, whose half type is float16."""

    def __init__(self, dev: Any) -> None:
        super().__init__()
        draw = _Drawn(dev, torch.float16)
        single = torch.float32
        self.torch_expect_builtin_promote = [
            *((name, draw("vV"), torch.bool) for name in _COMPARISONS),
            *((name, draw("vV"), single) for name in _ARITHMETIC),
            ("cat", (draw("Vv"),), single),
            ("equal", draw("vV"), single),
            ("stack", (draw("Vv"),), single),
        ]
        self.methods_expect_builtin_promote = [
            *((f"__{name}__", draw("vV"), torch.bool) for name in _COMPARISONS),
            *((f"__{name}__", draw("vV"), single) for name in _ARITHMETIC),
        ]
        self.torch_fp16 = self._products(draw)
        self.torch_fp32 = self._singles(draw)
        self.torch_need_autocast_promote = self._mixed(draw)
        self.nn_fp16 = [("linear", draw("mmm"))]
        scores = draw.uniform(_SIZE, _SIZE)
        self.nn_fp32 = [("softplus", draw("V")), *_nn_losses(draw, scores)]
        factors = draw("m")
        self.linalg_fp16 = [
            ("linalg_vecdot", factors * 2),
            ("linalg_multi_dot", (draw("mmm"),)),
        ]
        self.methods_fp16 = [("__matmul__", draw("mm"))]
        self.methods_fp32 = [
            ("__pow__", (draw.uniform(_SIZE, dtype=torch.float16), 1.5))
        ]
        pair = draw.uniform(_SIZE, _SIZE), draw.uniform(_SIZE, _SIZE)
        self.banned = [("binary_cross_entropy", pair, torch._C._nn)]

    def _rnn_cell_args(
        self, n: int, num_chunks: int, is_lstm: bool, dev: Any, dtype: Any
    ) -> tuple[Any, ...]:
        """Input, state and weights of a recurrent cell."""
        draw = _Drawn(dev, dtype)
        state = draw.normal(n, n)
        rows = num_chunks * n
        weights = draw.normal(rows, n), draw.normal(rows, n)
        biases = draw.normal(rows), draw.normal(rows)
        hidden = (state, draw.normal(n, n)) if is_lstm else state
        return draw.normal(n, n), hidden, *weights, *biases

    def _products(self, draw: _Drawn) -> list[tuple[Any, ...]]:
        line, plane, solid = draw.convolutions()
        bias = draw("v")
        steps = (1, 1), (0, 0), (1, 1), False, (0, 0), 1
        flags = False, True, True
        ahead = (0, 0), (1, 1), (1, 1), 1, *flags
        back = (0, 0), (0, 0), (1, 1), (1, 1), 1, *flags

        def cell(chunks: int, is_lstm: bool = False) -> tuple[Any, ...]:
            return self._rnn_cell_args(
                _SIZE, chunks, is_lstm, draw.device, torch.float32
            )

        return [
            ("_convolution", (*plane, *bias, *steps, *flags)),
            ("_convolution", (*plane, *bias, *steps, *flags, True)),
            ("conv1d", line),
            ("conv2d", plane),
            ("conv3d", solid),
            ("conv_tbc", (*line, *bias)),
            ("conv_transpose1d", line),
            ("conv_transpose2d", plane),
            ("conv_transpose3d", solid),
            ("convolution", (*plane, *bias, *steps)),
            ("cudnn_convolution", (*plane, *ahead), TEST_WITH_ROCM),
            ("cudnn_convolution_transpose", (*plane, *back), TEST_WITH_ROCM),
            ("prelu", draw("vs")),
            ("addmm", draw("mmm")),
            ("addmv", draw("vmv")),
            ("addr", draw("mvv")),
            ("matmul", draw("mm")),
            ("einsum", "bkhd,bqhd->bqkh", draw("mm")),
            ("mm", draw("mm")),
            ("mv", draw("mv")),
            ("chain_matmul", draw("mmm")),
            ("addbmm", draw("mbb")),
            ("baddbmm", draw("bbb")),
            ("bmm", draw("bb")),
            ("lstm_cell", cell(4, True)),
            ("gru_cell", cell(3)),
            ("rnn_tanh_cell", cell(1)),
            ("rnn_relu_cell", cell(1)),
        ]

    def _singles(self, draw: _Drawn) -> list[tuple[Any, ...]]:
        inner, above = (-0.9, 0.9), (0.1, 100.0)
        base = (draw("V")[0] + 1.0).clamp(0.0, 100.0)
        clamped: Iterable[tuple[str, tuple[float, float] | None]] = (
            *(("acos", inner), ("asin", inner), ("cosh", None), ("erfinv", inner)),
            *(("exp", None), ("expm1", None), ("log", above), ("log10", above)),
            *(("log2", above), ("log1p", (-0.9, 100.0)), ("reciprocal", None)),
            *(("rsqrt", (0.0, 100.0)), ("sinh", None), ("tan", (-1.55, 1.55))),
        )
        first, *losses = _losses(draw)
        cosine, hinge, ranking, triplet, logits = losses
        other = draw.uniform(_SIZE, _SIZE, dtype=draw.half)
        return [
            *(
                (name, draw("V") if limits is None else (draw.clamped(*limits),))
                for name, limits in clamped
            ),
            ("pow", (base, *draw("V"))),
            ("pow", (base, 1.7)),
            ("softmax", (*draw("V"), 0)),
            ("log_softmax", (*draw("V"), 0)),
            ("layer_norm", (*draw("V"), (_SIZE,))),
            ("rms_norm", (*draw("V"), (_SIZE,))),
            ("group_norm", (*draw("M"), 1)),
            ("norm", draw("V")),
            ("norm", draw("V"), {"dim": 0}),
            ("norm", draw("V"), {"p": 1}),
            ("norm", draw("V"), {"p": 1, "dim": 0}),
            ("cosine_similarity", draw("MM")),
            *(first, cosine, hinge, ("kl_div", (*draw("M"), other))),
            *(ranking, triplet, logits),
            ("cumprod", (*draw("V"), 0)),
            ("cumsum", (*draw("V"), 0)),
            ("dist", draw("VV")),
            ("pdist", draw("M")),
            ("cdist", draw("MM")),
            ("prod", draw("V")),
            ("prod", (*draw("V"), 0)),
            ("renorm", (*draw("M"), 2, 0, 1.0)),
            ("sum", draw("V")),
            ("sum", (*draw("M"), 1)),
            ("logsumexp", (*draw("M"), 1)),
        ]

    def _mixed(self, draw: _Drawn) -> list[tuple[Any, ...]]:
        half, single = torch.float16, torch.float32

        def drawn(dtype: Any, *shape: int) -> Any:
            return draw.normal(*shape, dtype=dtype)

        def scattered(dtype: Any, other: Any) -> tuple[Any, ...]:
            base = torch.zeros(2, 2, 2, dtype=dtype, device=draw.device)
            places = torch.randint(0, 2, (2, 2, 2), device=draw.device)
            return base, 0, places, drawn(other, 2, 2, 2)

        place = (draw.tensor([1], torch.long),)
        factors = drawn(half, 1, 2), drawn(single, 1, 2), drawn(half, 1, 2, 2)
        grid = drawn(half, 2, 3, 33, 22), drawn(single, 2, 22, 11, 2)
        return [
            ("addcdiv", (*draw("vV"), draw.clamped(0.1, 100))),
            ("addcmul", draw("vVV")),
            ("atan2", (*draw("v"), draw.clamped(0.1, 100))),
            ("bilinear", (*factors, drawn(single, 1))),
            ("cross", (drawn(single, 3), drawn(half, 3))),
            ("dot", draw("Vv")),
            ("vdot", draw("Vv")),
            ("grid_sampler", (*grid, 0, 0, False)),
            ("index_put", (*draw("v"), place, drawn(half, 1))),
            ("index_put", (*draw("V"), place, drawn(single, 1))),
            ("tensordot", (drawn(single, 2, 2, 2), drawn(half, 2, 2, 2))),
            ("scatter_add", scattered(single, half)),
            ("scatter_add", scattered(half, single)),
        ]


class AutocastCPUTestLists:
    """The lists for the CPU, whose half type is bfloat16; some have float16, too."""

    def __init__(self, dev: Any) -> None:
        super().__init__()
        draw, other = _Drawn(dev, torch.bfloat16), _Drawn(dev, torch.float16)
        n, single = _SIZE, torch.float32

        def promoted(form: str) -> list[tuple[Any, ...]]:
            kinds = [(name, torch.bool) for name in _COMPARISONS]
            kinds += [(name, single) for name in _ARITHMETIC]
            return [
                (form.format(name), draw("vV"), other("vV"), dtype)
                for name, dtype in kinds
            ]

        self.torch_expect_builtin_promote = promoted("{}")
        self.methods_expect_builtin_promote = promoted("__{}__")
        line, plane, solid = draw.convolutions()
        attention = (
            *(*draw("bbb"), n, 4, draw.normal(3 * n, n), draw.normal(3 * n)),
            *draw("mv"),
        )
        gelu = {"beta": 1, "alpha": 1, "use_gelu": True}
        table = draw.normal(10, 7, 3), draw.normal(5, 3, 5), draw.normal(5), 0
        self.torch_16 = [
            ("conv1d", line),
            ("conv2d", plane),
            ("conv3d", solid),
            ("bmm", draw("bb")),
            ("mm", draw("mm")),
            ("matmul", draw("mm")),
            ("baddbmm", draw("bbb")),
            ("addmm", draw("mmm")),
            ("_addmm_activation", draw("mmm"), gelu),
            ("addbmm", draw("mbb")),
            ("conv_tbc", table),
            ("conv_transpose1d", line),
            ("conv_transpose2d", plane),
            ("conv_transpose3d", solid),
            ("prelu", draw("vs")),
            ("_native_multi_head_attention", attention),
        ]
        self.torch_fp32 = _losses(draw)
        self.nn_16 = [("linear", draw("mm"), {})]
        volume = draw.normal(n, n, n, n, dtype=draw.half)
        window = {"kernel_size": (3, 3, 3), "stride": (1, 1, 1)}
        even = [draw.uniform(n, n, dtype=draw.half) for _ in range(3)]
        self.nn_fp32 = [
            ("avg_pool3d", (volume,), window),
            ("binary_cross_entropy", (even[0], even[1])),
            ("reflection_pad1d", draw("B"), {"padding": (3, 3)}),
            *_nn_losses(draw, even[2]),
            ("huber_loss", draw("MM")),
        ]
        self.torch_need_autocast_promote = [
            (name, (draw("Vv"),), (other("Vv"),)) for name in ("cat", "stack")
        ]


class TestAutocast(TestCase):
    """Calls within autocast, compared with calls whose arguments are cast by hand."""

    def args_maybe_kwargs(self, op_with_args: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        """Name, arguments and named arguments of an entry."""
        name, args, *rest = op_with_args
        return name, args, rest[0] if rest else {}

    def _run_autocast_outofplace(
        self,
        op: str,
        args: tuple[Any, ...],
        run_as_type: Any,
        device: str,
        out_type: Any = None,
        module: Any = torch,
        add_kwargs: dict[str, Any] | None = None,
        amp_dtype: Any = torch.bfloat16,
    ) -> None:
        named = add_kwargs or {}
        out_type = run_as_type if out_type is None else out_type
        function = getattr(module, op, None) if module is not None else None
        method = getattr(torch.Tensor, op, None)

        def told(result: Any, name: str) -> Any:
            if isinstance(result, torch.Tensor):
                text = f"autocast for {name} produced {result.dtype}"
                self.assertTrue(
                    result.dtype == out_type, f"{text}, should produce {out_type}"
                )
            return result

        def active() -> bool:
            return torch.is_autocast_enabled(device_type=device)

        self.assertFalse(active())
        with torch.amp.autocast(device_type=device, dtype=amp_dtype):
            self.assertTrue(active())
            results = []
            if function is not None:
                results.append(told(function(*args, **named), f"torch.{op}"))
            if method is not None:
                result = getattr(args[0], op)(*args[1:], **named)
                results.append(told(result, f"Tensor.{op}"))
            self.assertTrue(
                any(result is not None for result in results),
                f"{op} not found as an attribute on either Tensor or the requested "
                f"module {module}",
            )
            if len(results) == 2:
                self.assertTrue(type(results[0]) is type(results[1]))
                text = f"torch.{op} result did not match Tensor.{op} result"
                self.assertTrue(_same(*results), text)
            with torch.amp.autocast(device_type=device, enabled=False):
                self.assertFalse(active())
                cast = _cast(args, run_as_type)
                if function is not None:
                    control = function(*cast, **named)
                else:
                    control = getattr(cast[0], op)(*cast[1:], **named)
                self.assertTrue(type(results[0]) is type(control))
                text = f"torch.{op} result did not match control"
                self.assertTrue(_same(results[0], control), text)
            self.assertTrue(active())
        self.assertFalse(active())


def _cast(value: Any, dtype: Any) -> Any:
    """Floating-point tensors in another dtype, within tuples and lists too."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, Iterable):
        return type(value)(_cast(each, dtype) for each in value)  # type: ignore[call-arg]
    return value


def _same(first: Any, second: Any) -> bool:
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, Iterable):
        return all(map(_same, first, second))
    return first == second
