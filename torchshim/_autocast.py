"""Automatic mixed precision: which operators run in which dtype, and their casts.

Follows https://docs.pytorch.org/docs/2.13/amp.html#autocast-op-reference. While it is
on, a recorder has an `Autocast` that `_bind.slow` asks for an operator's operands:
casts are recorded as operators of their own before it. Autocast is part of the mode in
keys, so the hot path finds only operators that need no cast; off, it costs nothing.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar

from torchshim._core import dtypes
from torchshim._core.dtypes import dtype as DType
from torchshim._core.op import Op
from torchshim._core.record import local
from torchshim._core.storage import TensorBase
from torchshim._core.threads import by_node, keep
from torchshim._derived import fns

_F = TypeVar("_F", bound=Callable[..., Any])

# What autocast does to an operator's operands: all of them to the low precision; all
# to float32; the result to float32, by its argument `dtype`; all to the widest dtype
# among them; all to that of the first; refuse.
LOWER, FLOAT32, RESULT_FLOAT32, WIDEST, LIKE_FIRST, REFUSED = range(6)


def _rules(**lists: str) -> dict[str, int]:
    policies = {
        "lower": LOWER,
        "float32": FLOAT32,
        "result_float32": RESULT_FLOAT32,
        "widest": WIDEST,
        "like_first": LIKE_FIRST,
        "refused": REFUSED,
    }
    return {name: policies[k] for k, text in lists.items() for name in text.split()}


# PyTorch's lists by the names of its operators, for the CPU and for accelerators.
CPU_RULES = _rules(
    lower="""
        _native_multi_head_attention addbmm addmm baddbmm bmm conv1d conv2d conv3d
        conv_tbc conv_transpose1d conv_transpose2d conv_transpose3d linalg_vecdot
        linear lstm matmul mm prelu rnn scaled_dot_product_attention"""
    # What PyTorch composes of those.
    """
        _einsum affine_grid_generator corrcoef cov linalg_multi_dot matrix_power
        tensordot""",
    float32="""
        adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy
        binary_cross_entropy_with_logits cdist cholesky cholesky_inverse
        cholesky_solve cosine_embedding_loss cross_entropy_loss ctc_loss fft_fft
        fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft
        fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn
        fractional_max_pool geqrf grid_sampler hinge_embedding_loss huber_loss
        inverse kl_div l1_loss linalg_cholesky linalg_cholesky_ex linalg_cond
        linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh
        linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq
        linalg_matrix_rank linalg_qr linalg_solve linalg_svd linalg_svdvals
        linalg_tensorinv linalg_tensorsolve margin_ranking_loss max_pool3d
        max_unpool2d mse_loss multi_margin_loss multilabel_margin_loss
        nanquantile nll_loss orgqr ormqr pinverse poisson_nll_loss polar prod qr
        quantile reflection_pad1d reflection_pad2d replication_pad1d
        replication_pad2d replication_pad3d smooth_l1_loss soft_margin_loss stft
        trace triangular_solve triplet_margin_loss view_as_complex""",
    widest="cat index_copy stack",
    # Its products are in the low precision, its state has the dtype of the input.
    like_first="gru",
)
ACCELERATOR_RULES = _rules(
    lower="""
        addbmm addmm addmv addr baddbmm bmm conv1d conv2d conv3d conv_tbc
        conv_transpose1d conv_transpose2d conv_transpose3d einsum gru gru_cell
        linalg_multi_dot linalg_vecdot linear lstm lstm_cell matmul mm mv prelu
        rnn rnn_relu_cell rnn_tanh_cell scaled_dot_product_attention""",
    float32="""
        acos asin binary_cross_entropy_with_logits cdist cosh
        cosine_embedding_loss cosine_similarity dist erfinv exp expm1 group_norm
        hinge_embedding_loss huber_loss kl_div l1_loss layer_norm log log10
        log1p log2 logsumexp margin_ranking_loss mse_loss multi_margin_loss
        multilabel_margin_loss nll_loss pdist poisson_nll_loss pow reciprocal
        renorm rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softplus tan
        triplet_margin_loss upsample_bilinear2d upsample_nearest2d""",
    result_float32="""
        cumprod cumsum linalg_matrix_norm linalg_vector_norm log_softmax norm
        prod softmax sum""",
    widest="""
        addcdiv addcmul atan2 bilinear dot grid_sampler index_put
        scatter_add tensordot vdot""",
    refused="binary_cross_entropy",
)

# Operators that PyTorch has under another name.
_ALSO = {
    "_multi_dot": "linalg_multi_dot",
    "_tensordot": "tensordot",
    "attention": "scaled_dot_product_attention",
    "elman_layer": "rnn",
    "fused_attention": "scaled_dot_product_attention",
    "gru_layer": "gru",
    "lstm_layer": "lstm",
    "max_unpool": "max_unpool2d",
    "smoothed_nll_loss": "nll_loss",
    "soft_cross_entropy": "nll_loss",
    "upsample_nearest": "upsample_nearest2d",
    "upsample_smooth": "upsample_bilinear2d",
}
_PREFIXED = ("fft", "linalg")


def torch_name(op: Op) -> str:
    """The name under which PyTorch's lists have an operator."""
    space = op.namespaces[0] if op.namespaces else ""
    name = op.public.removesuffix("_") if op.writes else op.public
    return f"{space}_{name}" if space in _PREFIXED else _ALSO.get(op.name, name)


# Operators for several of PyTorch's, told apart by their arguments.
_PADS = {"pad_by_index"}


def _padding(args: tuple[Any, ...]) -> str:
    """PyTorch's name of a padding by values of the tensor."""
    _, pad, mode = args
    kind = {"reflect": "reflection", "replicate": "replication"}[mode]
    return f"{kind}_pad{len(pad) // 2}d"


def _refuse() -> NoReturn:
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to "
        "autocast.\nMany models use a sigmoid layer right before the binary cross "
        "entropy layer.\nIn this case, combine the two layers using "
        "torch.nn.functional.binary_cross_entropy_with_logits\nor "
        "torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and "
        "BCEWithLogits are\nsafe to autocast."
    )


class Autocast:
    """The dtypes of the device types for which autocast is on; one for each choice."""

    def __init__(self, chosen: frozenset[tuple[str, DType]], key: int) -> None:
        self.key = key  # its part of the mode in keys
        self._low = dict(chosen)

    def operands(self, op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """An operator's arguments as autocast has them, with the casts recorded."""
        device = _device_of(args)
        low = self._low.get(device)
        if low is None:
            return args
        policy = _rules_of(device).get(
            _padding(args) if op.name in _PADS else torch_name(op)
        )
        if policy is None:
            return args
        if policy == RESULT_FLOAT32:
            at = [i for i, p in enumerate(op.params) if p.name == "dtype"]
            if not at:
                policy = FLOAT32
            elif args[at[0]] is not None or not _eligible(args[0], device):
                return args
            else:
                return (*args[: at[0]], dtypes.float32, *args[at[0] + 1 :])
        wanted = _wanted(policy, args, device, low)
        return tuple([_cast(a, device, wanted, low) for a in args])

    def operand(self, name: str, tensor: Any) -> Any:
        """The only operand of a function that PyTorch's lists have as one operator."""
        device = _device_of((tensor,))
        low = self._low.get(device)
        policy = None if low is None else _rules_of(device).get(name)
        if policy is None or low is None:
            return tensor
        return _cast(tensor, device, _wanted(policy, (tensor,), device, low), low)

    def whole(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Calls a function that PyTorch's lists have as one operator."""
        given = (*args, *kwargs.values())
        device = _device_of(given)
        low = self._low.get(device)
        policy = None if low is None else _rules_of(device).get(name)
        if policy is None or low is None:
            return function(*args, **kwargs)
        wanted = _wanted(policy, given, device, low)
        args = tuple([_cast(a, device, wanted, low) for a in args])
        kwargs = {k: _cast(v, device, wanted, low) for k, v in kwargs.items()}
        with suspended():
            return function(*args, **kwargs)


def _rules_of(device: str) -> dict[str, int]:
    return CPU_RULES if device == "cpu" else ACCELERATOR_RULES


def _tensors(args: Sequence[Any]) -> Iterator[TensorBase]:
    for arg in args:
        if isinstance(arg, TensorBase):
            yield arg
        elif isinstance(arg, (tuple, list)):
            yield from _tensors(arg)


def _device_of(args: Sequence[Any]) -> str:
    tensor = next(_tensors(args), None)
    return "" if tensor is None else tensor._tmeta.device.type


def _eligible(value: Any, device: str) -> bool:
    if not isinstance(value, TensorBase):
        return False
    meta = value._tmeta
    return (
        meta.dtype.is_floating_point
        and meta.dtype is not dtypes.float64
        and meta.device.type == device
    )


def _wanted(policy: int, args: Sequence[Any], device: str, low: DType) -> DType:
    if policy == REFUSED:
        _refuse()
    if policy in (FLOAT32, RESULT_FLOAT32):
        return dtypes.float32
    if policy == LIKE_FIRST:
        first = next(_tensors(args))._tmeta.dtype
        return low if first is low else dtypes.float32
    if policy == WIDEST:
        for tensor in _tensors(args):
            if not _eligible(tensor, device):
                continue
            if tensor._tmeta.dtype is dtypes.float32:
                return dtypes.float32
            if tensor._tmeta.dtype is not low:
                raise RuntimeError(
                    "Unexpected floating ScalarType in at::autocast::prioritize"
                )
    return low


def _cast(value: Any, device: str, wanted: DType, low: DType) -> Any:
    if isinstance(value, TensorBase):
        if not _eligible(value, device) or value._tmeta.dtype is wanted:
            return value
        return _cast_tensor(value, wanted, low)
    if isinstance(value, (tuple, list)) and any(
        isinstance(v, TensorBase) for v in value
    ):
        return tuple([_cast(v, device, wanted, low) for v in value])
    return value


def _cast_tensor(tensor: Any, wanted: DType, low: DType) -> Any:
    """A tensor in another dtype; a parameter is cast once a region and grad mode.

    What was cast without grad mode has no history, and would cut gradients off.
    """
    meta = tensor._tmeta
    if not (
        wanted is low
        and settings.cache_enabled
        and meta.requires_grad
        and meta.dtype is dtypes.float32
        and tensor.is_leaf
        and tensor._view_of is None
    ):
        return fns.to_copy(tensor, wanted)
    key = id(tensor), local.rec.grad
    found = settings.casts.get(key)
    if found is None:
        found = settings.casts[key] = tensor, fns.to_copy(tensor, wanted)
    return found[1]


# The state of a thread -------------------------------------------------------


class Settings(threading.local):
    """What one thread chose: the device types, their dtypes, the cache of casts."""

    def __init__(self) -> None:
        self.enabled: dict[str, bool] = {}
        self.dtypes: dict[str, DType] = {}
        self.cache_enabled = True
        self.nesting = 0
        # Parameters that were cast in the running region, with the results. The
        # parameter is kept too, so that no other can take its id.
        self.casts: dict[tuple[int, bool], tuple[Any, Any]] = {}


settings = keep(Settings())
_known: dict[frozenset[tuple[str, DType]], Autocast] = {}

# The dtype of each device type that can be autocast, where the script names none.
DEFAULTS = {
    **dict.fromkeys(("cuda", "ipu", "xpu", "mps", "mtia"), dtypes.float16),
    **dict.fromkeys(("cpu", "maia", "xla", "hpu"), dtypes.bfloat16),
    "privateuseone": dtypes.float16,
}


def apply() -> None:
    """Puts what the thread chose in force."""
    chosen = frozenset(
        (device, settings.dtypes.get(device, DEFAULTS[device]))
        for device, on in settings.enabled.items()
        if on
    )
    rec = local.rec
    if not chosen:
        rec.autocast = None
    else:
        if chosen not in _known:
            _known[chosen] = Autocast(chosen, len(_known) + 1)
        rec.autocast = _known[chosen]
    rec.set_mode()


def _chosen() -> tuple[dict[str, bool], dict[str, DType], bool]:
    return dict(settings.enabled), dict(settings.dtypes), settings.cache_enabled


def _choose(values: tuple[dict[str, bool], dict[str, DType], bool]) -> None:
    settings.enabled, settings.dtypes = dict(values[0]), dict(values[1])
    settings.cache_enabled = values[2]
    apply()


by_node.append((_chosen, _choose))


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Without autocast: the inside of what autocast takes as one operator."""
    rec = local.rec
    before = rec.autocast
    rec.autocast = None
    rec.set_mode()
    try:
        yield
    finally:
        rec.autocast = before
        rec.set_mode()


# What functions of several operators have as one operator.
FUNCTIONS: set[str] = set()


def autocast_operand(name: str, tensor: Any) -> Any:
    """The tensor as autocast has it for the operator `name`, which is composed."""
    autocast = local.rec.autocast
    if autocast is None:
        return tensor
    return autocast.operand(name, tensor)


def autocast_whole(name: str) -> Callable[[_F], _F]:
    """For a Python function that PyTorch's lists have as the operator `name`."""

    def decorate(function: _F) -> _F:
        FUNCTIONS.add(name)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            autocast = local.rec.autocast
            if autocast is None:
                return function(*args, **kwargs)
            return autocast.whole(name, function, args, kwargs)

        return call  # type: ignore[return-value]

    return decorate
