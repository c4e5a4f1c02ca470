"""Which arguments that are no tensors PyTorch's nodes keep, and in which form.

The names and types are those of `torch/csrc/autograd/generated/Functions.h`.
"""

from __future__ import annotations

import functools
import re
from typing import Any

from torchshim._ops._reducing import ALL, UNSAID

# Nodes (without "Backward0") = names. A name with "*" is that of several integers, with
# ":i" of one and with ":f" of a float, each of which may be None.
_KEPT = """
AdaptiveAvgPool2DBackward = grad_output_sym_argsize_minus_1:i
    grad_output_sym_argsize_minus_2:i;
AdaptiveAvgPool3DBackward = grad_output_sym_argsize_minus_1:i
    grad_output_sym_argsize_minus_2:i grad_output_sym_argsize_minus_3:i;
Add Celu CeluBackward1 Rsub RsubBackward1 Sub = alpha;
Addbmm = alpha batch1_sym_argsize_0:i batch1_sym_argsize_1:i batch2_sym_argsize_2:i
    beta;
Addcdiv Addcmul = value;
Addmm = alpha beta mat1_sym_sizes* mat1_sym_strides* mat2_sym_sizes*
    mat2_sym_strides*;
Addmv Addr Baddbmm = alpha beta;
Aminmax ProdBackward1 = dim:i keepdim;
AsStrided AsStridedBackward0_copy AsStridedBackward1 AsStridedScatter = size*
    storage_offset:i stride*;
AvgPool2D AvgPool2DBackward AvgPool3D AvgPool3DBackward = ceil_mode count_include_pad
    divisor_override:i kernel_size* padding* stride*;
BatchNormBackward = eps:f update;
BinaryCrossEntropy BinaryCrossEntropyBackward BinaryCrossEntropyWithLogits MseLoss
    MseLossBackward MultilabelMarginLoss SoftMarginLoss SoftMarginLossBackward =
    reduction:i;
Cat Cummax Cummin Cumprod Cumsum Glu GluBackward IndexFill IndexFillBackward1
    LinalgCross LogSoftmax LogSoftmaxBackwardData Logcumsumexp MaskedSoftmax
    SafeSoftmax ScatterAdd Scatter ScatterBackward1 Softmax SoftmaxBackwardData Stack
    Unbind UnbindBackward0_copy Unsqueeze UnsqueezeBackward0_copy UnsqueezeBackward1
    WeightNormInterface = dim:i;
ChannelShuffle = groups:i;
Cholesky CholeskyInverse CholeskySolve LinalgCholeskyEx = upper;
ClampBackward1 = max min;
ClampMax = max;
ClampMin = min;
Col2Im = dilation* kernel_size* padding* stride*;
ConstantPadNd = pad*;
Convolution ConvolutionBackward1 = bias_sym_sizes_opt* dilation* groups:i
    output_padding* padding* stride* transposed;
ConvolutionBackward ConvolutionBackwardOverrideable ConvolutionOverrideable =
    dilation* groups:i output_padding* padding* stride* transposed;
CtcLoss = blank:i input_lengths* target_lengths* zero_infinity;
CtcLossBackward1 = blank:i zero_infinity;
DiagEmbed DiagonalBackward DiagonalScatter = dim1:i dim2:i offset:i;
Diagonal DiagonalBackward0_copy = dim1:i dim2:i offset:i self_sym_sizes*;
Dist Norm NormBackward2 = p;
DivBackward1 MulBackward1 SpecialXlog1PyBackward2 XlogyBackward2 = other;
DivBackward2 = rounding_mode;
DivBackward3 = other rounding_mode;
Elu EluBackward1 = alpha input_scale scale;
EluBackward = alpha input_scale is_result scale;
Embedding = padding_idx:i scale_grad_by_freq sparse weight_sym_argsize_0:i;
EmbeddingBag = mode:i padding_idx:i scale_grad_by_freq sparse weight_sym_argsize_0:i;
EmbeddingDenseBackward = padding_idx:i;
Expand ExpandBackward0_copy Index ReshapeAlias ReshapeAliasBackward0_copy ReshapeCopy
    Squeeze SqueezeBackward0_copy SqueezeBackward3 Sum Trace UnsafeIndex
    UnsafeMaskedIndex UnsafeView View ViewBackward0_copy = self_sym_sizes*;
FftC2C = dim* forward normalization:i;
FftC2R = dim* normalization:i;
FftR2C = dim* normalization:i onesided;
FractionalMaxPool2D FractionalMaxPool3D = kernel_size* output_size*;
Gather = dim:i sparse_grad;
Gelu GeluBackward = approximate;
GridSampler2D GridSampler2DBackward GridSampler2DCpuFallback
    GridSampler2DCpuFallbackBackward GridSampler3D GridSampler3DBackward =
    align_corners interpolation_mode:i padding_mode:i;
Hardshrink HardshrinkBackward Softshrink SoftshrinkBackward = lambd;
Hardtanh HardtanhBackward = max_val min_val;
HuberLoss HuberLossBackward = delta:f reduction:i;
Im2Col = dilation* kernel_size* padding* self_sym_argsize_minus_1:i
    self_sym_argsize_minus_2:i stride*;
IndexAdd = alpha dim:i source_dim:i;
IndexCopy = dim:i source_dim:i;
IndexPut IndexPutImpl Put UnsafeIndexPut = accumulate;
IndexReduce ScatterReduce = dim:i include_self reduce;
IndexSelect Sort SortBackward1 SqueezeBackward1 SqueezeBackward1_copy SqueezeBackward4
    Topk = dim:i self_sym_sizes*;
Kthvalue Max MedianBackward1 Min Mode NanmedianBackward1 = dim:i keepdim
    self_sym_sizes*;
LeakyRelu LeakyReluBackward1 LeakyReluBackward = negative_slope;
Lerp = weight;
LinalgLu LinalgLuFactorEx = pivot;
LinalgLuSolve = adjoint left;
LinalgQr = mode;
LinalgSolveEx = left;
LinalgSolveTriangular = left unitriangular upper;
LinalgSvd = full_matrices S_sym_argsize_minus_1:i;
LinalgVectorNorm = dim* keepdim ord;
Amax Amin Logsumexp Nansum = dim* keepdim;
LuUnpack = LU_data_sym_argsize_minus_1:i LU_data_sym_argsize_minus_2:i;
MaskedScatter = source_sym_sizes*;
MaxPool2D MaxPool2DWithIndices MaxPool3DWithIndices = ceil_mode dilation* kernel_size*
    padding* stride*;
Mean = self_sym_numel:i self_sym_sizes*;
MeanBackward1 = dim* keepdim self_sym_numel:i self_sym_sizes*;
GroupedMm Mm = mat2_sym_sizes* mat2_sym_strides* self_sym_sizes* self_sym_strides*;
MultiMarginLoss = margin p reduction:i;
Mvlgamma = p:i;
NarrowCopy = dim:i length:i self_sym_sizes* start:i;
NativeBatchNorm NativeBatchNormLegit NativeBatchNormLegitBackward1 = eps:f training;
NativeBatchNormBackward = eps:f train;
BatchNormNoUpdate BatchNormWithUpdate Logit NativeBatchNormLegitNoTraining = eps:f;
NativeGroupNorm = C:i HxW:i N:i eps:f group:i;
NativeLayerNorm NativeLayerNormBackward = normalized_shape*;
NllLoss2D NllLoss2DBackward NllLoss NllLossBackward = ignore_index:i reduction:i;
NnpackSpatialConvolution = bias_sym_sizes_opt* padding* stride*;
NormBackward1 NormBackward3 = dim* keepdim p;
NormalBackward1 = mean_sym_sizes*;
NormalBackward2 = std_sym_sizes*;
NormalBackward3 = mean_sym_sizes* std_sym_sizes*;
Ormqr = left transpose;
Cdist Pdist = p:f;
Flip Permute PermuteBackward0_copy = dims*;
PixelShuffle = upscale_factor:i;
PixelUnshuffle = downscale_factor:i;
Polygamma PolygammaBackward1 = n:i;
Pow = exponent;
ReflectionPad1D ReflectionPad1DBackward ReflectionPad2D ReflectionPad2DBackward
    ReflectionPad3D ReflectionPad3DBackward ReplicationPad1D ReplicationPad1DBackward
    ReplicationPad2D ReplicationPad2DBackward ReplicationPad3D
    ReplicationPad3DBackward = padding*;
Renorm = dim:i maxnorm p;
Repeat = repeats* self_sym_sizes*;
Roll = dims* shifts*;
Rot90 = dims* k:i;
RreluWithNoise RreluWithNoiseBackward1 RreluWithNoiseBackward RreluWithNoiseFunctional
    = lower training upper;
SegmentReduce = axis:i initial reduce;
Select SelectBackward0_copy = dim:i index:i self_sym_sizes*;
SelectBackward SelectScatter = dim:i index:i;
Slice SliceBackward0_copy = dim:i end:i self_sym_sizes* start:i step:i;
SliceBackward SliceInverse SliceScatter = dim:i end:i start:i step:i;
SmoothL1Loss SmoothL1LossBackward = beta:f reduction:i;
Softplus SoftplusBackward = beta threshold;
SparseMmReduceImpl = reduce;
Split SplitBackward0_copy UnsafeSplit = dim:i self_sym_sizes* split_size:i;
SplitWithSizes SplitWithSizesBackward0_copy UnsafeSplitWithSizes = dim:i
    self_sym_sizes* split_sizes*;
SqueezeBackward2 SqueezeBackward2_copy SqueezeBackward5 = dim* self_sym_sizes*;
Std StdMean Var VarMean = correction dim* keepdim;
SumBackward1 = dim* keepdim self_sym_sizes*;
Threshold ThresholdBackward1 ThresholdBackward = threshold;
ToDense = masked_grad;
ToSparse ToSparseBackward1 ToSparseBsc ToSparseBsr ToSparseCsc ToSparseCsr =
    self_self_sym_blocksize_opt*;
Transpose TransposeBackward0_copy TransposeBackward1 = dim0:i dim1:i;
TriangularSolve = transpose unitriangular upper;
Tril Triu = diagonal:i;
Trilinear = expand1* expand2* expand3* sumdim*;
Unfold UnfoldBackward0_copy = dimension:i self_sym_sizes* size:i step:i;
UnfoldBackward = dim:i size:i step:i;
UpsampleBicubic2DAa UpsampleBicubic2D UpsampleBilinear2DAa UpsampleBilinear2D
    UpsampleLanczos2DAa = align_corners output_size* scales_h:f scales_w:f
    self_sym_sizes*;
UpsampleBicubic2DAaBackward UpsampleBicubic2DBackward UpsampleBilinear2DAaBackward
    UpsampleBilinear2DBackward UpsampleLanczos2DAaBackward = align_corners
    output_size* scales_h:f scales_w:f;
UpsampleLinear1D = align_corners output_size* scales:f self_sym_sizes*;
UpsampleLinear1DBackward = align_corners output_size* scales:f;
UpsampleNearest1D UpsampleNearestExact1D = output_size* scales:f self_sym_sizes*;
UpsampleNearest1DBackward UpsampleNearestExact1DBackward = output_size* scales:f;
UpsampleNearest2D UpsampleNearestExact2D = output_size* scales_h:f scales_w:f
    self_sym_sizes*;
UpsampleNearest2DBackward UpsampleNearestExact2DBackward = output_size* scales_h:f
    scales_w:f;
UpsampleNearest3D UpsampleNearestExact3D = output_size* scales_d:f scales_h:f
    scales_w:f self_sym_sizes*;
UpsampleNearest3DBackward UpsampleNearestExact3DBackward = output_size* scales_d:f
    scales_h:f scales_w:f;
UpsampleTrilinear3D = align_corners output_size* scales_d:f scales_h:f scales_w:f
    self_sym_sizes*;
UpsampleTrilinear3DBackward = align_corners output_size* scales_d:f scales_h:f
    scales_w:f;
PowBackward2 SpecialXlog1PyBackward1 SpecialZetaBackward1 XlogyBackward1 = self;
"""


@functools.cache
def _table() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for line in _KEPT.split(";"):
        if not line.strip():
            continue
        nodes, names = line.split("=")
        forms = dict(_form_of(name) for name in names.split())
        for node in nodes.split():
            numbered = re.search(r"Backward\d(_copy)?$", node)
            found[node if numbered else f"{node}Backward0"] = forms
    return found


def _form_of(name: str) -> tuple[str, str]:
    if name.endswith("*"):
        return name[:-1], "*"
    name, _, form = name.partition(":")
    return name, form


def kept_arguments(node: str) -> dict[str, str]:
    """The names for a node, and the forms: see `as_kept`."""
    return _table().get(node, {})


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def as_kept(node: str, form: str, value: Any) -> Any:
    """An argument in its form: integers are shown without sign, lists as tuples."""
    if value is ALL or value is UNSAID or value is None:
        windows = form == "*" and "Pool" in node  # a stride that was not given
        return () if windows else None
    if form == "i":
        return (_REDUCTIONS[value] if isinstance(value, str) else value) % 2**64
    if form == "f":
        return float(value)
    if form == "*":
        if isinstance(value, int):
            rank = re.search(r"(\d)D", node)
            value = (value,) * (int(rank[1]) if rank else 1)
        return tuple([n % 2**64 if isinstance(n, int) else n for n in value])
    return value
