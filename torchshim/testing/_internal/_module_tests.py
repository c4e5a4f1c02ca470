"""The rows that `common_nn` makes tests of: modules with arguments and inputs.

A row has the arguments of a `NewModuleTest`: `module_name` or `constructor`, and how
its input is made. Every call gives new rows, since test files change them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torchshim as torch
from torchshim import nn
from torchshim.nn import functional as F
from torchshim.testing._internal._conditions import never_skipped
from torchshim.testing._internal._loss_rows import losses, wrap_functional
from torchshim.testing._internal.common_utils import freeze_rng_state

Row = dict[str, Any]


def single_batch_reference_fn(input: Any, parameters: Any, module: Any) -> Any:
    """What a module gives for a batch of one, without the batch."""
    batch = lambda x: x.unsqueeze(0) if isinstance(x, torch.Tensor) else x  # noqa: E731
    given = (
        [batch(x) for x in input]
        if isinstance(input, (list, tuple))
        else [batch(input)]
    )
    with freeze_rng_state():
        return module(*given).squeeze(0)


def _row(name: str, args: Any = (), size: Any = None, desc: Any = None, **more: Any):
    """A row of a class of `torch.nn`."""
    row: Row = {"module_name": name, "default_dtype": torch.double}
    if args:
        row["constructor_args"] = args
    if size is not None:
        row["input_size"] = size
    if desc is not None:
        row["desc"] = desc
    return row | more


def _named(fullname: str, cls: Any, size: Any, *args: Any, **options: Any) -> Row:
    """A row with a name of its own; `options` of the class, and those of `_KEPT`."""
    kept = {k: options.pop(k) for k in list(options) if k in _KEPT}
    return {
        "fullname": fullname,
        "constructor": lambda: cls(*args, **options),
        "input_size": size,
        "default_dtype": torch.double,
    } | kept


_KEPT = ("check_gradgrad", "check_with_long_tensor", "cudnn", "ref", "test_cuda")


def module_rows() -> list[Row]:
    """The rows of `module_tests`."""
    linear = lambda i, p, _: torch.mm(i, p[0].t())  # noqa: E731
    tf32 = {"with_tf32": True, "tf32_precision": 0.005}
    return [
        _row(
            "Linear",
            (10, 8),
            (4, 10),
            reference_fn=lambda i, p, m: linear(i, p, m) + p[1].view(1, -1),
            **tf32,
        ),
        _row("Linear", (10, 8, False), (4, 10), "no_bias", reference_fn=linear, **tf32),
        _row("RReLU", (), (1, 2, 2), test_cuda=False),
        _row("RReLU", (0.1, 0.9), (4, 4, 5), "with_up_down", test_cuda=False),
        _row(
            "Flatten",
            (),
            (2, 3, 4, 5),
            reference_fn=lambda i, *_: torch.flatten(i, 1),
        ),
        _row(
            "CrossMapLRN2d",
            (5, 5e-3, 1e-3, 2),
            (2, 3, 6, 6),
            check_gradgrad=False,
            check_batched_grad=False,
        ),
    ]


def new_module_rows() -> list[Row]:
    """The rows of `get_new_module_tests`."""
    return [
        *losses(),
        *_convolutions(),
        *_padding_and_embedding(),
        *_interpolations(),
        *_softmaxes(),
        *_others(),
        *_padding_modes(),
        *_without_batch(),
    ]


def _convolutions() -> Iterator[Row]:
    cudnn = {"cudnn": True, "with_tf32": True, "tf32_precision": 0.02}
    for args, size, desc in (
        ((4, 5, 3), (2, 4, 10), None),
        ((4, 5, 3, 2), (2, 4, 10), "stride"),
        ((4, 5, 3, 1, 1), (2, 4, 10), "pad1"),
        ((4, 5, 5, 1, 2), (2, 4, 10), "pad2"),
        ((4, 4, 3, 1, 1), (1, 4, 1), "pad1size1"),
        ((4, 4, 5, 1, 2), (1, 4, 1), "pad2size1"),
        ((4, 5, 3), (0, 4, 10), "zero_batch"),
    ):
        yield _row("Conv1d", args, size, desc, **cudnn)
    one, two, three = nn.Conv1d, nn.Conv2d, nn.Conv3d
    yield _named("Conv1d_dilated", one, (2, 4, 10), 4, 5, kernel_size=3, dilation=2)
    yield _named("Conv1d_groups", one, (2, 4, 6), 4, 6, kernel_size=3, groups=2)
    yield from _paddings("Conv1d", one, (2, 4, 10), (4, 5, 3), (4, 5, 4), same2=True)
    yield _named(
        *("ConvTranspose1d", nn.ConvTranspose1d, (1, 3, 7), 3, 4),
        **{"kernel_size": 3, "stride": (3,), "padding": 1, "output_padding": (1,)},
    )
    for args, desc in (
        ((3, 4, 3, 2, 1, 1, 1, False), "no_bias"),
        ((3, 4, 3, 2, 1, 1, 1, True, 2), "dilated"),
    ):
        yield _row("ConvTranspose1d", args, (1, 3, 6), desc, **cudnn)
    yield _named(
        *("ConvTranspose1d_groups", nn.ConvTranspose1d, (2, 4, 7), 4, 6, 3),
        **{"stride": (3,), "padding": 1, "output_padding": (1,), "groups": 2},
    )
    long = {"check_with_long_tensor": True}
    for args, size, desc in (
        ((3, 4, (3, 2)), (2, 3, 7, 5), None),
        ((3, 4, (3, 3), (2, 2)), (2, 3, 6, 6), "strided"),
        ((3, 4, (3, 3), (2, 2), (1, 1)), (2, 3, 6, 6), "padding"),
        ((3, 2, (3, 3), (2, 2), (1, 1), (2, 2)), (2, 3, 8, 8), "dilated"),
        ((3, 4, (3, 2), 1, 0, 1, 1, False), (2, 3, 6, 5), "no_bias"),
        ((3, 4, (3, 2)), (0, 3, 7, 5), "zero_batch"),
    ):
        yield _row("Conv2d", args, size, desc, **cudnn, **long)
    for name in ("Conv2d_groups", "Conv2d_groups_thnn"):
        yield _named(name, two, (2, 4, 6, 5), 4, 6, (3, 2), groups=2, **long)
    yield from _paddings("Conv2d", two, (2, 2, 6, 5), (2, 4, (3, 4)), (2, 4, (3, 4)))
    for args, size, desc in (
        ((3, 4, 3, (3, 2), 1, (1, 1)), (1, 3, 7, 6), None),
        ((3, 4, 3, (2, 3), 1, (1, 1), 1, False, (2, 2)), (1, 3, 6, 7), "dilated"),
        ((3, 4, 3, (2, 3), 1, (1, 1), 1, False), (1, 3, 6, 7), "no_bias"),
    ):
        yield _row("ConvTranspose2d", args, size, desc, **cudnn, **long)
    yield _named(
        *("ConvTranspose2d_groups", nn.ConvTranspose2d, (1, 2, 4, 5), 2, 4, (2, 3)),
        **{"groups": 2},
        **long,
    )
    for tail, channels, kernel, side, options in (
        ("", 4, (3, 3), 6, {}),
        ("_with_multiplier", 8, (3, 3), 6, {}),
        ("_strided", 4, (3, 3), 6, {"stride": (2, 2)}),
        ("_padded", 4, (3, 3), 6, {"padding": (1, 1)}),
        ("_dilated", 4, (2, 2), 5, {"dilation": (2, 2)}),
    ):
        name, size = f"Conv2d_depthwise{tail}", (2, 4, side, side)
        yield _named(name, two, size, 4, channels, kernel, groups=4, **options)
    for args, size, desc, integers in (
        ((2, 3, (2, 3, 2)), (1, 2, 4, 5, 4), None, True),
        ((2, 3, (2, 3, 4), 1, 0, 1, 1, False), (1, 2, 3, 4, 5), "no_bias", True),
        ((2, 3, (1, 1, 1), 1, 0, 1, 1, False), (1, 2, 3, 4, 5), "1x1x1_no_bias", False),
        ((3, 4, 2, 2), (2, 3, 5, 5, 5), "stride", True),
        ((3, 4, 2, 2, 1), (2, 3, 5, 5, 5), "stride_padding", True),
        ((3, 4, (2, 3, 4)), (0, 3, 3, 4, 5), "zero_batch", True),
    ):
        row = _row("Conv3d", args, size, desc, **cudnn)
        yield row | {"check_with_long_tensor": integers}
    size = (1, 2, 4, 5, 4)
    yield _named("Conv3d_groups", three, size, 2, 4, kernel_size=3, groups=2, **long)
    for name, options in (("dilated", {}), ("dilated_strided", {"stride": 2})):
        yield _named(
            f"Conv3d_{name}",
            *(three, (2, 3, 5, 5, 5), 3, 4),
            **{"kernel_size": 2, "dilation": 2, **options},
        )
    args = (3, 4, (2, 3, 4))
    yield from _paddings("Conv3d", three, (2, 3, 6, 5, 4), args, args)
    for args, desc in (
        ((2, 3, (2, 3, 2)), None),
        ((2, 3, (2, 3, 2), 1, 0, 0, 1, True, (2, 2, 2)), "dilated"),
    ):
        yield _row("ConvTranspose3d", args, (1, 2, 4, 5, 4), desc, **cudnn)


def _paddings(
    name: str, cls: Any, size: Any, args: Any, wide: Any, same2: bool = False
) -> Iterator[Row]:
    """Paddings that are given by name."""
    yield _named(f"{name}_pad_valid", cls, size, *args, padding="valid")
    yield _named(f"{name}_pad_same", cls, size, *args, padding="same")
    if same2:
        yield _named(f"{name}_pad_same2", cls, size, *wide, padding="same")
    yield _named(
        f"{name}_pad_same_dilated", cls, size, *wide, padding="same", dilation=2
    )


def _padding_and_embedding() -> Iterator[Row]:
    pad = ((1, 2, 3, 3, 2, 1),)
    yield _row("ReplicationPad3d", pad, (2, 3, 2, 2, 2))
    yield _row(
        *("ReplicationPad3d", pad, (3, 2, 2, 2), "no_batch_dim"),
        reference_fn=single_batch_reference_fn,
    )
    yield _row(
        *("ReplicationPad3d", pad, None, "complex"),
        input_fn=lambda: torch.rand(
            2, 3, 2, 2, 2, dtype=torch.complex128, requires_grad=True
        ),
        skip_half=True,
    )
    small = lambda: torch.empty(2, 3, dtype=torch.long).random_(4)  # noqa: E731
    spread = lambda: (  # noqa: E731
        torch.empty(1, 512, dtype=torch.long).random_(4).expand(7, 512)
    )
    permuted = lambda: torch.stack([torch.randperm(3), torch.randperm(3)])  # noqa: E731
    plain = {"check_gradgrad": False}
    for made, desc in ((small, None), (spread, "discontiguous")):
        yield _row(
            *("Embedding", (4, 3), None, desc),
            input_fn=made,
            decorator=never_skipped,
            **plain,
        )
    for made, desc, args in (
        (small, "mean", ()),
        (spread, "discontiguous", ()),
        (small, "sum", (None, 2.0, False, "sum")),
        (small, "max", (None, 2.0, False, "max")),
    ):
        yield _row("EmbeddingBag", (4, 3, *args), None, desc, input_fn=made, **plain)
    for mode in ("mean", "sum", "max"):
        args = () if mode == "mean" else (None, 2.0, False, mode)
        row = _named(
            f"EmbeddingBag_{mode}_padding_idx",
            *(nn.EmbeddingBag, None, 4, 3, *args),
            padding_idx=1,
        )
        yield _without(row, "input_size") | {"input_fn": permuted, **plain}
    for cls in (nn.EmbeddingBag, nn.Embedding):
        row = _named(
            *(f"{cls.__name__}_sparse", cls, None, 4, 3),
            sparse=True,
            dtype=torch.double,
        )
        yield _without(row, "input_size", "default_dtype") | {
            "input_fn": lambda: torch.randperm(2).repeat(1, 2),
            "has_sparse_gradients": True,
            **plain,
        }
    yield _row("PixelShuffle", (3,), (1, 9, 4, 4))
    yield _row("PixelUnshuffle", (3,), (1, 1, 12, 12))


def _without(row: Row, *names: str) -> Row:
    return {k: v for k, v in row.items() if k not in names}


def _call(fullname: str, fn: Any, shape: Any, **kwargs: Any) -> Row:
    """A row of a function."""
    return {
        "constructor": wrap_functional(fn, **kwargs),
        "input_size": shape,
        "fullname": fullname,
        "pickle": False,
        "default_dtype": torch.double,
    }


# The mode, the size of the input, what is added to the name; sizes or factors.
_INTERPOLATIONS: tuple[tuple[Any, ...], ...] = (
    ("nearest", (1, 2, 4), "1d", 12),
    ("nearest", (0, 2, 4), "1d_zero_dim", 12),
    ("nearest", (1, 2, 3), "tuple_1d", (12,)),
    ("nearest", (1, 2, 4), "scale_1d", None, 4.0),
    ("linear", (1, 2, 4), "1d", 12),
    ("linear", (1, 2, 3), "tuple_1d", (4,)),
    ("linear", (1, 2, 4), "scale_1d", None, 4.0),
    ("linear", (0, 2, 4), "1d_zero_dim", 12),
    ("linear", (1, 2, 4), "1d_align_corners", 12),
    ("linear", (1, 2, 4), "scale_1d_align_corners", None, 4.0),
    ("nearest", (1, 128, 1, 1), "2d_launch_configs", 2),
    ("nearest", (1, 2, 4, 4), "2d", 12),
    ("nearest", (1, 2, 3, 4), "tuple_2d", (12, 16)),
    ("nearest", (1, 2, 4, 4), "scale_2d", None, 4.0),
    ("nearest", (0, 2, 4, 4), "2d_zero_dim", 12),
    *(
        row
        for mode, small in (("bilinear", (1, 2, 2, 3)), ("bicubic", (1, 2, 2, 3)))
        for row in (
            (mode, (1, 2, 4, 4), "2d", 12),
            (mode, (0, 2, 4, 4), "2d_zero_dim", 12),
            (mode, small, "tuple_2d", (4, 6)),
            (mode, (1, 2, 4, 4), "scale_2d", None, 4.0),
            (mode, (1, 2, 4, 4), "scale_tuple_shared_2d", None, (2.0, 2.0)),
            (mode, (1, 2, 4, 4), "scale_tuple_skewed_2d", None, (2.0, 1.0)),
            (mode, (1, 2, 4, 4), "tuple_2d_align_corners", (4, 6)),
            (
                *(mode, (1, 2, 4, 4), "scale_tuple_skewed_2d_align_corners"),
                *(None, (2.0, 1.0)),
            ),
        )
    ),
    ("nearest", (1, 2, 4, 4, 4), "3d", 12),
    ("nearest", (0, 2, 4, 4, 4), "3d_zero_dim", 12),
    ("nearest", (1, 2, 3, 4, 4), "tuple_3d", (12, 16, 16)),
    ("nearest", (1, 2, 4, 4, 4), "scale_3d", None, 4.0),
    ("trilinear", (1, 2, 4, 4, 4), "3d", 12),
    ("trilinear", (0, 2, 4, 4, 4), "3d_zero_dim", 12),
    ("trilinear", (1, 2, 2, 3, 3), "tuple_3d", (4, 6, 6)),
    ("trilinear", (1, 2, 3, 4, 5), "scale_3d", None, 3.0),
    ("trilinear", (1, 2, 2, 3, 3), "tuple_3d_align_corners", (4, 6, 6)),
    ("trilinear", (1, 2, 3, 4, 4), "scale_3d_align_corners", None, 3.0),
)


def _interpolations() -> Iterator[Row]:
    for mode, shape, tail, size, *factor in _INTERPOLATIONS:
        given: Row = {"size": size, "scale_factor": factor[0] if factor else None}
        given["mode"] = mode
        if mode != "nearest":
            given["align_corners"] = tail.endswith("align_corners")
        row = _call(f"interpolate_{mode}_{tail}", F.interpolate, shape, **given)
        if mode == "trilinear" and factor:
            row["precision"] = 3e-4
        yield row


def _softmaxes() -> Iterator[Row]:
    double = {"dtype": torch.float64}
    for fn, name, shape, given in (
        (F.softmax, "softmax_lastdim", (2, 128), {"dim": -1}),
        (F.softmax, "softmax_lastdim_dtype", (2, 128), {"dim": 1, **double}),
        (F.softmax, "softmax_spatial_special", (2, 128, 2, 2), {"dim": 1}),
        (F.softmax, "softmax_spatial", (2, 2, 4, 4), {"dim": 1}),
        (F.softmax, "softmax_spatial_dtype", (2, 2, 4, 4), {"dim": 1, **double}),
        (F.softmax, "softmax_functional_dim0", (2, 3, 4, 5), {"dim": 0}),
        (F.softmax, "softmax_functional_dim3", (2, 3, 4, 5), {"dim": 3}),
        (F.softmax, "softmax_functional_scalar", (), {"dim": -1}),
        (F.log_softmax, "log_softmax_lastdim", (2, 128), {"dim": -1}),
        (F.log_softmax, "log_softmax_spatial_special", (2, 128, 2, 2), {"dim": 1}),
        (F.log_softmax, "log_softmax_spatial", (2, 2, 4, 4), {"dim": 1}),
        (F.log_softmax, "log_softmax_dim0", (2, 3, 4, 5), {"dim": 0}),
        (F.log_softmax, "log_softmax_dim3", (2, 3, 4, 5), {"dim": 3}),
        (F.log_softmax, "log_softmax_scalar", (), {"dim": 0}),
    ):
        row = _call(name, fn, shape, **given)
        if name.endswith("scalar"):
            del row["default_dtype"]
        yield row


def _others() -> Iterator[Row]:
    plain = {"check_gradgrad": False}
    fold, two = ((3, 3), (2, 2), (1, 1), (0, 0), (1, 1)), (2, 2)
    no_batch = {"ref": single_batch_reference_fn}
    one = (1, 1)
    yield _named("Unfold", nn.Unfold, (2, 4, 3, 3), two, one, (0, 0), one, **plain)
    yield _named("Fold", nn.Fold, (2, 16, 4), *fold, **plain)
    name = "Fold_no_batch_dim"
    yield _named(f"{name}_input", nn.Fold, (16, 4), *fold, **plain, **no_batch)
    yield _named("Unfold_int_input", nn.Unfold, (2, 4, 3, 3), 2, 1, 0, 1, **plain)
    whole = (3, 2, 1, 0, 1)
    yield _named("Fold_int_input", nn.Fold, (2, 16, 4), *whole, **plain)
    yield _named(f"{name}_int_input", nn.Fold, (16, 4), *whole, **plain, **no_batch)
    yield _row("RReLU", (0.1, 0.9), (), "with_up_down_scalar", test_cuda=False)
    for desc, args, shapes in (
        (None, (), ((10, 8), (10, 8))),
        ("broadcast_lhs", (), ((10, 1), (10, 8))),
        ("broadcast_rhs", (), ((10, 8), (1, 8))),
        ("with_non_default_args", (1.5, 1e-05, True), ((10, 8), (10, 8))),
        ("no_batch_dim", (), ((8,), (8,))),
    ):
        row = _row("PairwiseDistance", args, None, desc)
        row["input_fn"] = functools.partial(_random, torch.randn, shapes)
        if desc == "no_batch_dim":
            row["reference_fn"] = single_batch_reference_fn
        yield row
    name = "TransformerEncoderLayer"
    more = {"with_tf32": True, "tf32_precision": 0.1, **plain}
    relu, gelu = "relu_activation", "gelu_activation"
    encoder = _row(name, (4, 2, 16, 0.0), (2, 3, 4), relu, **more)
    yield encoder | {"check_batched_grad": False}
    yield _row(name, (4, 2, 8, 0.0, F.gelu), (2, 3, 4), gelu, **more)
    name, both = "TransformerDecoderLayer", ((3, 3, 4), (2, 3, 4))
    for args, desc in (((4, 2, 8, 0.0), relu), ((4, 2, 8, 0.0, F.gelu), gelu)):
        row = _row(name, args, None, desc, **more)
        yield row | {"input_fn": functools.partial(_random, torch.rand, both)}
    args = (4, 2, 2, 2, 8, 0.0, F.relu)
    row = _row("Transformer", args, None, "multilayer_coder", **more)
    made = functools.partial(_random, torch.rand, (*both, (3, 3)))
    yield row | {"input_fn": made}
    yield _row(
        *("Linear", (3, 5), None, "no_batch_dim"),
        input_fn=lambda: torch.rand(3),
        reference_fn=lambda i, p, _: torch.mm(i.view(1, -1), p[0].t()).view(-1) + p[1],
        with_tf32=True,
        tf32_precision=0.005,
    )
    for name, args in (("Flatten", (-3, -1)), ("Unflatten", (-2, torch.Size([2, 2])))):
        row = _row(name, args, (3, 4, 5), "no_batch_dim")
        yield row | {"reference_fn": single_batch_reference_fn}
    yield _row(
        *("LayerNorm", ([56, 56, 56], 1e-5, False), (4, 56, 56, 56)),
        desc="3d_no_affine_large_feature",
        cudnn=True,
        check_eval=True,
        gradcheck_fast_mode=True,
        check_half=True,
    )


def _random(fn: Callable[..., Any], shapes: Any) -> tuple[Any, ...]:
    return tuple(fn(*shape) for shape in shapes)


def _padding_modes() -> Iterator[Row]:
    more = {"cudnn": True, "with_tf32": True, "tf32_precision": 0.05}
    for mode in ("reflect", "circular", "replicate", "zeros"):
        for dims in (1, 2, 3):
            if mode == "reflect" and dims == 3:
                continue
            padding = tuple(range(1, dims + 1))
            out = (2, 3, *(2 + i for i in range(dims)))
            args = (2, 3, 3, 2, padding, 1, 1, True, mode)
            row = _row(f"Conv{dims}d", args, (2, 2, *[4] * dims), **more)
            yield row | {"output_size": out, "desc": f"{mode}_stride2_pad2"}


def _without_batch() -> Iterator[Row]:
    for name in (
        *("ELU", "Hardshrink", "Hardsigmoid", "Hardtanh", "Hardswish", "LeakyReLU"),
        *("LogSigmoid", "PReLU", "ReLU", "ReLU6", "RReLU", "SELU", "CELU", "GELU"),
        *("GLU", "Sigmoid", "SiLU", "Mish", "Softplus", "Softshrink", "Softsign"),
        *("Tanh", "Tanhshrink", "Threshold"),
    ):
        row = _row(name, (), (4,), "no_batch_dim", test_cpp_api_parity=False)
        row["reference_fn"] = single_batch_reference_fn
        if name in ("Hardsigmoid", "Hardswish"):
            row |= {"check_gradgrad": False, "check_jit": False}
        args = {"CELU": (2.0,), "Threshold": (2.0, 1.0)}.get(name)
        yield row if args is None else row | {"constructor_args": args}
