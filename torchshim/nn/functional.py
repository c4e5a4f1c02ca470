"""The functions that layers are made of.

https://docs.pytorch.org/docs/2.13/nn.functional.html
"""

from collections.abc import Callable as Callable
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any
from typing import Optional as Optional

from torchshim import _functions  # noqa: F401 -- makes its functions public
from torchshim._derived import fns as _fns
from torchshim._derived import namespace as _namespace
from torchshim._functions.nn_activation import (
    celu,
    elu,
    glu,
    gumbel_softmax,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_softmax,
    mish,
    relu,
    relu6,
    rrelu,
    selu,
    sigmoid,
    silu,
    softmax,
    softmin,
    softsign,
    tanh,
    tanhshrink,
    threshold,
)
from torchshim._functions.nn_attention import (
    _canonical_mask as _canonical_mask,
)
from torchshim._functions.nn_attention import (
    _in_projection as _in_projection,
)
from torchshim._functions.nn_attention import (
    _in_projection_packed as _in_projection_packed,
)
from torchshim._functions.nn_attention import (
    _mha_shape_check as _mha_shape_check,
)
from torchshim._functions.nn_attention import (
    _none_or_dtype as _none_or_dtype,
)
from torchshim._functions.nn_attention import (
    multi_head_attention_forward,
    scaled_dot_product_attention,
)
from torchshim._functions.nn_ctc import ctc_loss
from torchshim._functions.nn_dropout import (
    alpha_dropout,
    dropout,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
)
from torchshim._functions.nn_layers import embedding, embedding_bag
from torchshim._functions.nn_linear_loss import linear_cross_entropy
from torchshim._functions.nn_loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    multilabel_soft_margin_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from torchshim._functions.nn_margin_loss import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from torchshim._functions.nn_normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    normalize,
)
from torchshim._functions.nn_pooling import (
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
)
from torchshim._functions.nn_resizing import (
    fold,
    interpolate,
    pad,
    unfold,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from torchshim._functions.nn_sampling import (
    GRID_SAMPLE_INTERPOLATION_MODES,
    GRID_SAMPLE_PADDING_MODES,
    affine_grid,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    grid_sample,
)
from torchshim._functions.nn_unpooling import max_unpool1d, max_unpool2d, max_unpool3d
from torchshim._functions.products import grouped_mm
from torchshim._overrides import overridable_all as _overridable_all
from torchshim._tensor import Tensor as Tensor
from torchshim.nn import _reduction as _Reduction  # noqa: F401
from torchshim.overrides import handle_torch_function as handle_torch_function
from torchshim.overrides import has_torch_function as has_torch_function
from torchshim.overrides import has_torch_function_unary as has_torch_function_unary
from torchshim.overrides import (
    has_torch_function_variadic as has_torch_function_variadic,
)

_MARKS = (
    *("BroadcastingList1", "BroadcastingList2", "BroadcastingList3"),
    *("_overload", "boolean_dispatch"),
)

# The operators that need no Python function before them, and the in-place forms.
_operators: dict[str, _Any] = {
    **_namespace("nn.functional"),
    "native_channel_shuffle": _namespace("torch")["native_channel_shuffle"],
    **{
        f"{name}_": getattr(_fns, f"{name}_")
        for name in (
            "celu",
            "elu",
            "hardtanh",
            "leaky_relu",
            "relu",
            "selu",
            "threshold",
        )
    },
}
globals().update({k: v for k, v in _operators.items() if k not in globals()})
_overridable_all(
    globals(),
    "torch.nn.functional",
    "torchshim._functions.nn_",
    compiled=("scaled_dot_product_attention",),
    plain=("sigmoid", "tanh"),
)

if _TYPE_CHECKING:
    # The operators, as above.
    def __getattr__(name: str) -> _Any: ...

else:

    def __getattr__(name: str) -> _Any:
        # What libraries find here besides the functions; modules above this one.
        if not name.startswith("__"):
            helpers = _import_module("torchshim.nn._functional_helpers")
            if name in helpers.__all__:
                return getattr(helpers, name)
            if name in _MARKS:
                return getattr(_import_module("torchshim._jit_internal"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "glu",
    "grid_sample",
    "group_norm",
    "grouped_mm",
    "gumbel_softmax",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "leaky_relu",
    "linear_cross_entropy",
    "log_softmax",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "pad",
    "poisson_nll_loss",
    "relu",
    "relu6",
    "rrelu",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]
__all__ += sorted({*_operators} - {*__all__})  # pyright: ignore[reportUnsupportedDunderAll]
