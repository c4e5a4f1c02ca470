"""Which arguments that are no tensors PyTorch's nodes list, and in which form."""

from __future__ import annotations

import functools
import re
from typing import Any

from torchshim._ops._reducing import ALL, UNSAID

# Nodes (without "Backward0"): names.
_LISTED = """
Add Celu CeluBackward1 EluBackward1 Sub: alpha;
Addcdiv Addcmul: value;
Addmm: alpha beta mat1_sym_sizes mat1_sym_strides mat2_sym_sizes
    mat2_sym_strides;
Addmv Baddbmm: alpha beta;
Amax Amin Logsumexp Nansum ProdBackward1: dim
    keepdim;
AsStrided: size storage_offset stride;
AvgPool2D: ceil_mode count_include_pad divisor_override kernel_size padding
    stride;
BinaryCrossEntropy BinaryCrossEntropyWithLogits MseLoss:
    reduction;
Cat Cummax Cumprod Cumsum Glu
    IndexFill LinalgCross LogSoftmax Logcumsumexp
    ScatterAdd ScatterBackward1 Softmax Stack
    Unbind Unsqueeze: dim;
Cdist Dist Mvlgamma: p;
ClampBackward1: max min;
ConstantPadNd: pad;
Convolution: bias_sym_sizes_opt dilation groups output_padding padding stride
    transposed;
Diagonal DiagonalBackward0_copy: dim1 dim2 offset self_sym_sizes;
Elu: alpha input_scale scale;
Embedding: padding_idx scale_grad_by_freq sparse weight_sym_argsize_0;
Expand Index Squeeze Sum Trace
    UnsafeView View: self_sym_sizes;
FftR2C: dim normalization onesided;
Flip Permute: dims;
Gather: dim sparse_grad;
Gelu: approximate;
GridSampler2D: align_corners interpolation_mode padding_mode;
Hardshrink Softshrink: lambd;
Hardtanh: max_val min_val;
HuberLoss: delta reduction;
Im2Col: dilation kernel_size padding self_sym_argsize_minus_1
    self_sym_argsize_minus_2 stride;
IndexAdd: alpha dim source_dim;
IndexCopy: dim source_dim;
IndexPut Put: accumulate;
IndexSelect Sort SqueezeBackward1 SqueezeBackward2 SqueezeBackward4
    Topk: dim self_sym_sizes;
Kthvalue Max MedianBackward1 Min Mode
    SumBackward1: dim keepdim self_sym_sizes;
LeakyRelu LeakyReluBackward1: negative_slope;
Lerp: weight;
LinalgCholeskyEx: upper;
LinalgQr: mode;
LinalgSolveEx: left;
LinalgSvd: S_sym_argsize_minus_1 full_matrices;
LinalgVectorNorm: dim keepdim ord;
Logit: eps;
MaskedScatter: source_sym_sizes;
MaxPool2DWithIndices: ceil_mode dilation kernel_size padding stride;
Mean: self_sym_numel self_sym_sizes;
MeanBackward1: dim keepdim self_sym_numel self_sym_sizes;
Mm: mat2_sym_sizes mat2_sym_strides self_sym_sizes self_sym_strides;
NativeBatchNorm: eps training;
NativeGroupNorm: C HxW N eps group;
NativeLayerNorm: normalized_shape;
NllLoss: ignore_index reduction;
PixelShuffle: upscale_factor;
Polygamma: n;
Pow: exponent;
PowBackward2: self;
Renorm: dim maxnorm p;
Repeat: repeats self_sym_sizes;
Roll: dims shifts;
Rot90: dims k;
RreluWithNoise: lower training upper;
Select: dim index self_sym_sizes;
Slice: dim end self_sym_sizes start step;
SmoothL1Loss: beta reduction;
Softplus: beta threshold;
Split: dim self_sym_sizes split_size;
Std Var: correction dim keepdim;
Threshold: threshold;
Transpose: dim0 dim1;
Tril Triu: diagonal;
Unfold: dimension self_sym_sizes size step;
UpsampleBilinear2D: align_corners output_size scales_h scales_w
    self_sym_sizes;
UpsampleNearest2D: output_size scales_h scales_w self_sym_sizes
"""


@functools.cache
def _table() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for line in _LISTED.split(";"):
        nodes, names = line.split(":")
        found |= dict.fromkeys(nodes.split(), tuple(names.split()))
    return found


def listed_arguments(node: str) -> tuple[str, ...]:
    """The names for a node."""
    return _table().get(node.removesuffix("Backward0"), ())


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
# One number for each dimension of a window.
_OF_WINDOWS = frozenset({"kernel_size", "stride", "padding", "dilation"})
_UNSIGNED = frozenset({"ignore_index", "padding_idx"})


def as_listed(node: str, name: str, annotation: str, value: Any) -> Any:
    """An argument as PyTorch's node shows it: numbers without a sign, lists as tuples.

    `annotation`: that of the operator's parameter.
    """
    if value is ALL or value is UNSAID:
        return None
    if name == "reduction":
        return _REDUCTIONS.get(value, value)
    if name.startswith("dim"):
        one = node in ("SqueezeBackward1", "SqueezeBackward4")
        return _dims(value, not one and ("Dims" in annotation or "tuple" in annotation))
    if isinstance(value, int) and name == "shifts":
        return (value,)
    if name in _OF_WINDOWS and (windows := re.search(r"Pool(\d)D", node)):
        if value is None:
            return ()
        return (value,) * int(windows[1]) if isinstance(value, int) else value
    return value % 2**64 if name in _UNSIGNED else value


def _dims(dims: Any, several: bool) -> Any:
    if isinstance(dims, int):
        return (dims % 2**64,) if several else dims % 2**64
    if isinstance(dims, tuple):
        return tuple(d % 2**64 if isinstance(d, int) else d for d in dims)
    return dims
