"""What PyTorch's nodes keep that no argument of an operator here is named after."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from torchshim._ops._reducing import ALL, UNSAID
from torchshim._ops.view_geometry import KEEP, PICK

# What a node does not have, or what nobody knows of it.
MISSING: Any = object()


class Given:
    """The arguments of the operator whose node is asked, by its own names for them.

    Tensors are their metas (shape, strides, dtype).
    """

    def __init__(
        self,
        node: str,
        op: Any,
        arguments: dict[str, Any],
        named: dict[str, Any],
        outs: Sequence[Any],
    ) -> None:
        self.node, self.op, self.arguments, self.outs = node, op, arguments, outs
        # The same by PyTorch's names.
        self.named = named

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.arguments[name].shape)


Rule = Callable[[Given], Any]


def value_of(given: Given, name: str) -> Any:
    """The value of a name at a node; `MISSING` if nothing here gives it."""
    own = given.op.name.rstrip("_")
    rules = _RULES.get(own) or _RULES.get(own.removesuffix("_copy"), {})
    rule = rules.get(name, _DEFAULTS.get((given.node, name), MISSING))
    if callable(rule):
        return rule(given)
    if rule is not MISSING:
        return rule
    if ends_others(given.node, given.op):
        return MISSING
    if name in given.named:
        return given.named[name]
    return _fact(given, name)


# Nodes of views, which end what PyTorch composes of several operators, too.
_OF_VIEWS = frozenset(
    f"{name}Backward{n}"
    for name in ("Squeeze", "Transpose", "UnsafeView", "View")
    for n in range(5)
)


def ends_others(node: str, op: Any) -> bool:
    """Whether a node of a view is the last of several that an operator stands for."""
    return node in _OF_VIEWS and op.view is None


# Facts of an operand: its name and the fact.
_FACT = re.compile(r"(\w+?)_sym_(sizes|strides|numel|argsize_(minus_)?(\d))(_opt)?$")


def _strides(meta: Any) -> Any:
    """They are kept for the operand's gradient only."""
    return meta.strides if meta.requires_grad else ()


def _fact(given: Given, name: str) -> Any:
    """The sizes, the strides or one size of an operand."""
    found = _FACT.match(name)
    if found is None or found[1] not in given.named:
        return MISSING
    meta, fact = given.named[found[1]], found[2]
    if not hasattr(meta, "shape"):
        return MISSING if meta is not None else None
    if fact == "strides":
        return _strides(meta)
    if fact == "numel":
        return meta.numel
    if fact == "sizes":
        return tuple(meta.shape)
    at = int(found[4])
    return tuple(meta.shape)[-at if found[3] else at]


# -- convolutions ----------------------------------------------------------------------


def _spread(given: Given, value: Any) -> tuple[int, ...]:
    rank = len(given.shape("weight")) - 2
    return (value,) * rank if isinstance(value, int) else tuple(value)


def _padding(given: Given) -> Any:
    padding = given["padding"]
    if not isinstance(padding, str):
        return _spread(given, padding)
    sizes, steps = given.shape("weight")[2:], _spread(given, given["dilation"])
    same = padding == "same"
    return tuple(
        [(n - 1) * step // 2 * same for n, step in zip(sizes, steps, strict=True)]
    )


def _bias_sizes(given: Given) -> Any:
    bias = given["bias"]
    return (0,) if bias is None else tuple(bias.shape)


_CONVOLUTION: dict[str, Any] = {
    "bias_sym_sizes_opt": _bias_sizes,
    "stride": lambda given: _spread(given, given["stride"]),
    "padding": _padding,
    "dilation": lambda given: _spread(given, given["dilation"]),
    # (As the node `SqueezeBackward1`, of an input without a batch.)
    "dim": 0,
    "self_sym_sizes": lambda given: (1, *given.outs[0].shape),
}
_FORWARD = _CONVOLUTION | {
    "transposed": False,
    "output_padding": lambda given: _spread(given, 0),
}
_TRANSPOSED = _CONVOLUTION | {
    "transposed": True,
    "output_padding": lambda given: _spread(given, given["output_padding"]),
}

# -- indexing --------------------------------------------------------------------------


def _last_step(given: Given) -> tuple[int, Any, int, tuple[int, ...]]:
    """Of an index the last step: its dimension, what it is, its start and the shape
    that it is applied to."""
    shape, starts = given.shape("input"), iter(given["starts"])
    before: list[int] = []
    found: Any = None
    d = 0
    for entry in given["plan"]:
        start = 0 if entry is None or entry == KEEP else next(starts)
        if entry is None or entry != KEEP:
            found = len(before), entry, int(start), (*before, *shape[d:])
        if entry is None:
            before.append(1)
            continue
        if entry != PICK:
            before.append(shape[d] if entry == KEEP else entry[0])
        d += 1
    return found


def _end(given: Given) -> int:
    """Where a slice ends; an index up to the end is taken to have none."""
    dim, (length, step), start, shape = _last_step(given)
    end = start + length * step
    if end < shape[dim]:
        return end
    return 2**63 - 1 if given.op.name == "basic_index" else shape[dim]


_PIECE: dict[str, Any] = {
    "dim": lambda given: _last_step(given)[0],
    "index": lambda given: _last_step(given)[2],
    "start": lambda given: _last_step(given)[2],
    "end": _end,
    "step": lambda given: _last_step(given)[1][1],
    "length": lambda given: _last_step(given)[1][0],
    "self_sym_sizes": lambda given: _last_step(given)[3],
}

# -- the others ------------------------------------------------------------------------


def _offset(given: Given) -> Any:
    """None where it is that of the input, as if it was not given."""
    offset = given["storage_offset"]
    return None if offset == given["source"][1] else offset


def _normalization(given: Given) -> int:
    """By which power of the size a transform is divided: none, its root or itself."""
    n, scale = math.prod(given["lengths"]), given["scale"]
    if scale == 1:
        return 0
    return 1 if math.isclose(scale, n**-0.5) else 2


_FOURIER: dict[str, Any] = {
    "dim": lambda given: given["dims"],
    "normalization": _normalization,
}

_MODES = {"sum": 0, "mean": 1, "max": 2}


def _at_scale(k: int) -> Rule:
    return lambda given: given["scales"][k]


_UPSAMPLED: dict[str, Any] = {
    "output_size": lambda given: given["sizes"],
    "scales": _at_scale(0),
    "scales_d": _at_scale(-3),
    "scales_h": _at_scale(-2),
    "scales_w": _at_scale(-1),
}


def _moved(given: Given) -> tuple[int, ...]:
    rank = len(given.shape("input"))
    source, to = given["source"], given["destination"]
    source = (source,) if isinstance(source, int) else source
    to = (to,) if isinstance(to, int) else to
    at = {t % rank: s % rank for s, t in zip(source, to, strict=True)}
    rest = iter([d for d in range(rank) if d not in at.values()])
    return tuple([at[d] if d in at else next(rest) for d in range(rank)])


def _correction(given: Given) -> Any:
    """1 where nothing was given, but for all dimensions at once."""
    unbiased, correction = given["unbiased"], given["correction"]
    if isinstance(unbiased, bool):
        return int(unbiased)
    if correction is UNSAID or correction is None:
        return None if given["dim"] is None or given["dim"] is ALL else 1
    return correction


def _of_pool(given: Given) -> Any:
    shape = tuple(given.outs[0].shape)
    return (*shape[:-1], 1, shape[-1])


def _alpha(given: Given) -> Any:
    """1 for what adds as one of its steps."""
    return given.arguments.get("alpha", 1)


def _order(name: str) -> Rule:
    return lambda given: 2 if given[name] == "fro" else given[name]


def _dims_of_matrix(given: Given) -> Any:
    if given.node != "LinalgVectorNormBackward0":
        return MISSING
    return tuple([d % len(given.shape("input")) for d in given["dim"]])


_WHOLE = {"correction": lambda given: int(given["unbiased"]), "dim": None}
_ALONG = {"correction": _correction}
_POOL = {"dim": -2, "self_sym_sizes": _of_pool}
_GROUPS = {
    "N": lambda given: given.shape("input")[0],
    "C": lambda given: given.shape("input")[1],
    "HxW": lambda given: math.prod(given.shape("input")[2:]),
    "group": lambda given: given["num_groups"],
}
_SPLIT = {
    "split_size": lambda given: max(given["sizes"]),
    "split_sizes": lambda given: given["sizes"],
}
_EMBEDDED = {"mode": lambda given: _MODES[given.arguments.get("mode", "max")]}
_LAST = {"dim1": -2, "dim2": -1}

# Operator -> name -> what gives it, or its value.
_RULES: dict[str, dict[str, Any]] = {
    "adaptive_avg_pool1d": _POOL,
    "adaptive_max_pool1d": _POOL,
    "avg_pool1d": _POOL,
    "basic_index": _PIECE,
    "batch_norm_eval": {"training": False},
    "batch_norm_train": {"training": True},
    "column_stack": {"dim": 1},
    "conv1d": _FORWARD,
    "conv2d": _FORWARD,
    "conv3d": _FORWARD,
    "conv_transpose1d": _TRANSPOSED,
    "conv_transpose2d": _TRANSPOSED,
    "conv_transpose3d": _TRANSPOSED,
    "diag": {
        "offset": lambda given: given["diagonal"],
        "dim1": lambda given: -2 if len(given.shape("input")) == 1 else 0,
        "dim2": lambda given: -1 if len(given.shape("input")) == 1 else 1,
    },
    "diagflat": _LAST,
    "dstack": {"dim": 2},
    "elu": {"scale": 1, "input_scale": 1},
    "embedding_bag": _EMBEDDED,
    "embedding_bag_max": _EMBEDDED | {"sparse": False},
    "_fft_c2c": _FOURIER,
    "_fft_c2r": _FOURIER,
    "_fft_r2c": _FOURIER,
    "fliplr": {"dims": (1,)},
    "flipud": {"dims": (0,)},
    "group_norm": _GROUPS,
    "hstack": {"dim": lambda given: int(len(given["tensors"][0].shape) > 1)},
    "index_add": {"source_dim": lambda given: len(given.shape("source"))},
    "index_copy": {"source_dim": lambda given: len(given.shape("source"))},
    "linear": {
        "alpha": 1,
        "beta": 1,
        "mat1_sym_sizes": lambda given: given.shape("input"),
        "mat1_sym_strides": lambda given: _strides(given["input"]),
        "mat2_sym_sizes": lambda given: given.shape("weight")[::-1],
        "mat2_sym_strides": lambda given: _strides(given["weight"])[::-1],
    },
    "max_pool1d": _POOL,
    "max_pool1d_with_indices": _POOL,
    "movedim": {"dims": _moved},
    "msort": {"dim": 0},
    "matrix_norm": {"ord": _order("ord"), "dim": _dims_of_matrix},
    "norm": {"ord": _order("p")},
    "pad_by_index": {"padding": lambda given: given["pad"]},
    "pairwise_distance": {
        "dim": lambda given: max(len(given.shape("x1")), len(given.shape("x2"))) - 1
    },
    "piece": _PIECE,
    "piece_scatter": _PIECE,
    "_qr": {"mode": lambda given: "reduced" if given["some"] else "complete"},
    "selu": {
        "alpha": 1.6732632423543772,
        "scale": 1.0507009873554805,
        "input_scale": 1,
    },
    "split_pieces": _SPLIT,
    "split_sizes": _SPLIT,
    "square": {"exponent": 2},
    "std.dim": _ALONG,
    "std.whole": _WHOLE | {"keepdim": False},
    "std_mean.dim": _ALONG,
    "std_mean.whole": _WHOLE | {"keepdim": False},
    "strided": {"storage_offset": _offset},
    "strided_scatter": {"storage_offset": _offset},
    "strided_view": {"storage_offset": _offset},
    "svd": {"S_sym_argsize_minus_1": lambda given: min(given.shape("A")[-2:])},
    "svdvals": {
        "S_sym_argsize_minus_1": lambda given: min(given.shape("A")[-2:]),
        "full_matrices": False,
    },
    "tile": {
        "repeats": lambda given: (
            *[1] * (len(given.shape("input")) - len(given["dims"])),
            *given["dims"],
        )
    },
    "unsafe_pieces": _SPLIT,
    "upsample_nearest": _UPSAMPLED,
    "upsample_smooth": _UPSAMPLED,
    "var.dim": _ALONG,
    "var.whole": _WHOLE | {"keepdim": False},
    "var_mean.dim": _ALONG,
    "var_mean.whole": _WHOLE | {"keepdim": False},
    "vstack": {"dim": 0},
}

# (Node, name) -> the same, where the operator has no rule.
_DEFAULTS: dict[tuple[str, str], Any] = {
    ("AddBackward0", "alpha"): _alpha,
    ("SubBackward0", "alpha"): _alpha,
}
