"""What PyTorch calls things: nodes by their events, and the errors about them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from torchshim._core.batching import alone
from torchshim._core.call import Call, VjpCall
from torchshim._core.declared import DERIVED
from torchshim._core.dtypes import type_name
from torchshim._core.forward import JvpCall
from torchshim._core.state import IDENTITY, State
from torchshim._core.storage import TensorBase

# Operators that PyTorch gives a number to as a tensor, so that it has an edge too.
WRAPPED = frozenset({"add", "sub", "mul", "div"})
_OF_NUMBERS = WRAPPED | {"copy", "put_piece"}

# Nodes of what PyTorch does by dimension under `vmap`. A loss's is its reduction's.
_MAPPED = {
    "MaxBackward1": "MaxBackward0",
    "MeanBackward0": "MeanBackward1",
    "MedianBackward0": "MedianBackward1",
    "MinBackward1": "MinBackward0",
    "ProdBackward0": "ProdBackward1",
    "SumBackward0": "SumBackward1",
    "TBackward0": "TransposeBackward0",
    "TraceBackward0": "SumBackward1",
}
_MAPPED_LOSSES = frozenset(
    {
        "BinaryCrossEntropyBackward0",
        "BinaryCrossEntropyWithLogitsBackward0",
        "HuberLossBackward0",
        "MseLossBackward0",
        "NllLossBackward0",
        "SmoothL1LossBackward0",
    }
)

# Operators whose tangent is a sum over both operands, though one is a number.
_SUMMED = frozenset({"add", "mul"})

# The node of an operator's tangent, where it is no sum and not its gradient's either.
_OF_TANGENTS = {
    "_softmax": "MulBackward0",
    "amax": "DivBackward0",
    "amin": "DivBackward0",
    "atan2": "DivBackward0",
    "clamp": "WhereBackward0",
    "cumprod": "WhereBackward0",
    "div": "DivBackward0",
    "gather": "GatherBackward0",
    "log_softmax": "SubBackward0",
    "logsumexp": "DivBackward0",
    "prod": "SumBackward0",
    "rsub": "NegBackward0",
    "softmax": "MulBackward0",
    "sub": "SubBackward0",
}

# The node of an operator's gradient, where it can be differentiated again.
_OF_GRADIENTS = {
    "_cholesky": "LinalgSolveTriangularBackward0",
    "_multi_dot": "MmBackward0",
    "_safe_softmax": "SoftmaxBackwardDataBackward0",
    "addmm": "MmBackward0",
    "atan": "DivBackward0",
    "atanh": "DivBackward0",
    "bilinear": "ViewBackward0",
    "bmm": "BmmBackward0",
    "cat": "SliceBackward0",
    "celu": "EluBackwardBackward0",
    "cholesky_ex": "LinalgSolveTriangularBackward0",
    "constant_pad_nd": "ConstantPadNdBackward0",
    "cosine_similarity": "AddBackward0",
    "cummax": "ScatterAddBackward0",
    "cummin": "ScatterAddBackward0",
    "cumsum": "FlipBackward0",
    "diag": "DiagonalBackward0",
    "div": "DivBackward0",
    "embedding": "EmbeddingDenseBackwardBackward0",
    "exp2": "MulBackward1",
    "expand": "ViewBackward0",
    "flatten": "ViewBackward0",
    "flip": "FlipBackward0",
    "gather": "ScatterAddBackward0",
    "group_norm": "ViewBackward0",
    "householder_product": "TrilBackward0",
    "hypot": "DivBackward0",
    "index_copy": "IndexFillBackward0",
    "index_fill": "IndexFillBackward0",
    "index_select": "IndexAddBackward0",
    "index_tensors": "IndexPutImplBackward0",
    "instance_norm_train": "ViewBackward0",
    "inv_ex": "NegBackward0",
    "kron": "ViewBackward0",
    "linalg_cholesky": "LinalgSolveTriangularBackward0",
    "linalg_det": "LinalgSolveExBackward0",
    "linalg_inv": "NegBackward0",
    "linalg_pinv": "AddBackward0",
    "linalg_slogdet": "LinalgSolveExBackward0",
    "linalg_cross": "LinalgCrossBackward0",
    "linear": "MmBackward0",
    "local_response_norm": "AddBackward0",
    "log": "DivBackward0",
    "log10": "DivBackward0",
    "log1p": "DivBackward0",
    "log2": "DivBackward0",
    "log_softmax": "LogSoftmaxBackwardDataBackward0",
    "logaddexp": "DivBackward0",
    "logcumsumexp": "SubBackward0",
    "logdet": "LinalgSolveExBackward0",
    "logit": "WhereBackward0",
    "masked_fill": "MaskedFillBackward0",
    "masked_take": "MaskedScatterBackward0",
    "matmul": "MmBackward0",
    "max.dim": "ScatterBackward0",
    "max.whole": "MaskedFillBackward1",
    "mean": "DivBackward1",
    "min.dim": "ScatterBackward0",
    "min.whole": "MaskedFillBackward1",
    "mm": "MmBackward0",
    "movedim": "PermuteBackward0",
    "native_group_norm": "ViewBackward0",
    "neg": "NegBackward0",
    "outer": "ViewBackward0",
    "permute": "PermuteBackward0",
    "relu": "ThresholdBackwardBackward0",
    "repeat": "SumBackward1",
    "reshape": "ViewBackward0",
    "rsub": "NegBackward0",
    "rms_norm": "AddBackward0",
    "roll": "RollBackward0",
    "rot90": "Rot90Backward0",
    "scatter_value": "ScatterBackward1",
    "selu": "EluBackwardBackward0",
    "sinc": "WhereBackward0",
    "softmax": "SoftmaxBackwardDataBackward0",
    "sort": "ScatterBackward0",
    "split_pieces": "CatBackward0",
    "sqrt": "DivBackward0",
    "squeeze": "UnsqueezeBackward0",
    "stack": "SelectBackward0",
    "sum": "ExpandBackward0",
    "swapaxes": "TransposeBackward0",
    "t": "TBackward0",
    "take": "PutBackward0",
    "to_copy": "ToCopyBackward0",
    "topk": "ScatterBackward0",
    "trace": "ViewBackward0",
    "transpose": "TransposeBackward0",
    "trapezoid": "AddBackward0",
    "tril": "TrilBackward0",
    "triu": "TriuBackward0",
    "unbind_rows": "StackBackward0",
    "unsqueeze": "SqueezeBackward1",
    "view": "ViewBackward0",
    "view_as_complex": "ViewAsRealBackward0",
    "where": "WhereBackward0",
    "xlogy": "DivBackward0",
}

# The same, of one operand alone.
_OF_GRADIENT_BY = {
    ("div", "other"): "MulBackward0",
    ("sub", "other"): "NegBackward0",
    ("xlogy", "input"): "MaskedFillBackward0",
}

# Operators whose gradient's node is named after their own: `GeluBackwardBackward0`.
_AGAIN = frozenset(
    """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d avg_pool1d avg_pool2d avg_pool3d
    batch_norm_eval batch_norm_train binary_cross_entropy cdist conv1d conv2d conv3d
    conv_transpose1d conv_transpose2d conv_transpose3d diagonal elu embedding_bag
    fractional_max_pool gelu glu grid_sampler hardshrink hardswish hardtanh huber_loss
    layer_norm leaky_relu logsigmoid max_pool1d max_pool1d_with_indices max_pool2d
    max_pool2d_with_indices max_pool3d max_pool3d_with_indices mse_loss narrow nll_loss
    pad_by_index pdist prelu rrelu_with_noise select sigmoid smooth_l1_loss
    soft_margin_loss softplus softshrink tanh threshold unfold
    """.split()
)

# The node of an operator of those -> its gradient's, where that is no `…Backward0`.
_NAMED_OTHERWISE = {
    "AliasBackward0": "AliasBackward0",
    "MeanBackward1": "DivBackward1",
    "UnsqueezeBackward0": "SqueezeBackward1",
}

# Node -> the operator's name of a parameter -> what PyTorch calls it there.
_RENAMED = {
    "CummaxBackward0": {"result1": "indices"},
    "CumminBackward0": {"result1": "indices"},
    "KthvalueBackward0": {"result1": "indices"},
    "LinalgInvExBackward0": {"result": "inverse"},
    "MaxBackward0": {"result1": "indices"},
    "MedianBackward1": {"result1": "indices"},
    "MinBackward0": {"result1": "indices"},
    "ModeBackward0": {"result1": "indices"},
    "NanmedianBackward1": {"result1": "indices"},
    "SortBackward0": {"result1": "indices"},
    "SortBackward1": {"result1": "indices"},
    "TopkBackward0": {"result1": "indices"},
    "AddmmBackward0": {"input": "mat1", "weight": "mat2"},
    "BmmBackward0": {"other": "mat2"},
    "ConvolutionBackward0": {"input": "input"},
    "DotBackward0": {"other": "tensor"},
    "GridSampler2DBackward0": {"input": "input"},
    "GridSampler3DBackward0": {"input": "input"},
    "LinalgCholeskyExBackward0": {"result": "L"},
    "LinalgHouseholderProductBackward0": {"input": "input"},
    "LinalgLstsqBackward0": {"A": "self", "B": "b", "result": "solution"},
    "LinalgSlogdetBackward0": {"result0": "sign"},
    "LinalgVectorNormBackward0": {"x": "self", "p": "ord"},
    "MmBackward0": {"other": "mat2", "weight": "mat2"},
    "MvBackward0": {"other": "vec"},
    "NativeBatchNormBackward0": {"input": "input"},
    "NativeGroupNormBackward0": {"input": "input"},
    "NativeLayerNormBackward0": {"input": "input"},
}

# Nodes of `linear` without bias: PyTorch's saves the transposed weight, as `mat2`.
_OF_TRANSPOSED = {"MmBackward0", "SqueezeBackward4", "UnsafeViewBackward0"}

# Nodes that PyTorch writes by hand: their names tell the namespace.
_BY_HAND = frozenset(
    {"AccumulateGrad", "CopyBackwards", "CopySlices", "NotImplemented", "UndefinedGrad"}
)


def qualified(name: str) -> str:
    """What `Node.name()` says of a node of this class."""
    return f"torch::autograd::{name}" if name in _BY_HAND else name


def name_of_gradient(event: State, call: Any) -> str:
    """PyTorch's name of the node of a gradient; most of them end in a product."""
    inner = alone(getattr(call, "inner", None))
    op = getattr(inner, "op", None)
    name = getattr(op, "name", "")
    if call.__class__ is VjpCall and op is not None and len(call.wrt) == 1:
        shape, arrived = event.metas[0].shape, event.given[-1].shape
        expands = op.layout == "preserve" or name == "expand"
        if expands and shape != arrived:
            # Of an operand that was expanded: PyTorch sums last.
            if not shape:
                return "SumBackward0"
            return "ViewBackward0" if len(shape) < len(arrived) else "SumBackward1"
        of = name, inner.owners[call.wrt[0]]
        if of in _OF_GRADIENT_BY:
            return _OF_GRADIENT_BY[of]
    if name in _AGAIN or name == "basic_index":
        given = _operands_of(event, call, inner)
        if name == "basic_index":
            # An index of several steps: the gradient of the first comes last.
            operand, starts, plan = inner.arguments(given, [0] * inner.n_scalars)
            own = inner.op.grad_fn(operand, starts, plan[::-1])
        else:
            own = _own_name(inner, given)
        return _NAMED_OTHERWISE.get(own, own.replace("Backward0", "BackwardBackward0"))
    return _OF_GRADIENTS.get(name, "MulBackward0")


class _Operand(NamedTuple):
    """What is known of one whose value a gradient does not take."""

    shape: tuple[int, ...]
    dtype: Any


def _operands_of(event: State, call: Any, inner: Call) -> list[Any]:
    """What the operator was given whose gradient, or tangent, an event computes."""
    given = iter(event.given)
    absent = getattr(call, "absent", [None] * inner.n_arrays)
    return [next(given) if aval is None else _Operand(*aval) for aval in absent]


# The node of an operator that only gives a value the history of another: PyTorch does
# that without a node, so the other's is shown.
UNSEEN = "IdentityBackward0"


def unseen(event: State) -> bool:
    """Whether an event has no node in PyTorch."""
    call = alone(event.call)
    return isinstance(call, Call) and call.op.grad_fn is UNSEEN


def grad_name(event: State) -> str | None:
    """PyTorch's name of the node that made an event's results."""
    if event.kind == IDENTITY:
        return None
    call = alone(event.call)
    if call is None:
        return None
    if isinstance(call, JvpCall):
        return _name_of_tangent(event, call)
    if not isinstance(call, Call):
        return call.grad_name or name_of_gradient(event, call)
    name = _name_of_call(event, call)
    if name is None or call is event.call:
        return name
    return _name_of_mapped(event, call, name)


def _name_of_mapped(event: State, call: Call, name: str) -> str:
    """The name of a node under `vmap`, of the one that the call has alone."""
    if name not in _MAPPED_LOSSES:
        return _MAPPED.get(name, name)
    given = call.arguments(event.given[: call.n_arrays], [0] * call.n_scalars)
    reduction = next(v for v in given if v in ("none", "mean", "sum"))
    if reduction == "none":
        return name
    if reduction == "mean" and name == "NllLossBackward0":
        return "DivBackward0"
    return f"{reduction.capitalize()}Backward1"


def _name_of_tangent(event: State, call: JvpCall) -> str | None:
    """A tangent's node: a linear operator's own, or of the sum over the operands."""
    inner = alone(call.inner)
    if not isinstance(inner, Call):
        return name_of_gradient(event, call)
    flows = [i for i in range(inner.n_arrays) if inner.differentiable(i)]
    name = inner.op.name.rstrip("_")
    if name in _OF_TANGENTS:
        return _OF_TANGENTS[name]
    if name not in _SUMMED and not set(flows).intersection(inner.needs(flows)):
        return _name_of_call(event, inner)
    if name in _SUMMED or len({inner.owners[i] for i in flows}) > 1:
        return "AddBackward0"
    return name_of_gradient(event, call)


def _maker(event: State, slot: int) -> State | None:
    """The event before this one that made a value."""
    source = event.parent
    while source is not None and not (source.slot <= slot < source.n_slots):
        source = source.parent
    return source


def _name_of_call(event: State, call: Call) -> str | None:
    named = call.op.grad_fn
    if named == "":
        # Not a node of its own: the one of what the operator is given.
        source = _maker(event, event.operands[0])
        while source is not None and source.kind == IDENTITY and source.operands:
            source = _maker(source, source.operands[0])
        return (None if source is None else grad_name(source)) or "AliasBackward0"
    return _own_name(call, event.given[: call.n_arrays])


def _own_name(call: Call, given: Sequence[Any]) -> str:
    """The name of an operator's node, which may depend on the operands' shapes."""
    named = call.op.grad_fn
    if named is None:
        base = "".join(p.capitalize() for p in call.op.public.split("_"))
        return f"{base}Backward0"
    if isinstance(named, str):
        return named
    return named(*call.arguments(given, [0] * call.n_scalars))


def flows_of(event: State) -> list[int | None]:
    """The operands that gradients may flow to; None for a number in their place."""
    call = event.call
    found: list[int | None] = [
        i for i in range(len(event.operands)) if call.differentiable(i)
    ]
    if call.op is not None and len(found) == 1:
        if call.op.name.rstrip("_") in _OF_NUMBERS:
            found.append(None)
    if call.op is not None and call.op.edges is not None:
        owners = {call.owners[i]: i for i in found if i is not None}
        found = [owners.get(name) for name in call.op.edges if name in (None, *owners)]
    return found


def outputs_of(event: State) -> Sequence[int]:
    """The results that gradients may arrive for: the node knows of no others."""
    kinds = [meta.dtype for meta in event.metas]
    if len(kinds) == 1:
        return (0,)
    return [k for k, d in enumerate(kinds) if d.is_floating_point or d.is_complex]


def name_in_node(node: str, name: str) -> str:
    """PyTorch's name of an operator's parameter among the attributes of its node."""
    renamed = _RENAMED.get(node, {})
    return renamed.get(name, "self" if name == "input" else name)


def in_order(event: State, names: Sequence[str]) -> list[str]:
    """What an event saves in the order in which PyTorch's node saves and looks at it.

    That is the order of the names there, results last.
    """
    if len(names) < 2:
        return [*names]
    node = grad_name(event) or ""

    def place(name: str) -> tuple[bool, str]:
        if name == "weight" and node in _OF_TRANSPOSED:
            return False, "mat2"
        return name in DERIVED, name_in_node(node, name)

    return sorted(names, key=place)


def keeps_transpose(call: Any, name: str) -> bool:
    """Whether PyTorch's node keeps a matrix transposed, as that of `linear` does."""
    return name == "weight" and call.op.name == "linear"


def saved_operands(event: State, call: Any, wrt: Sequence[int]) -> list[int]:
    """Slots of the values that PyTorch saves for an event's backward."""
    call = alone(call)
    if not isinstance(call, Call):
        return []
    slots = []
    for name in in_order(event, call.saved(wrt)):
        if name == "result":
            names = call.op.named_result or ()
            slots += [
                slot
                for i, slot in enumerate(range(event.slot, event.n_slots))
                if names[i : i + 1] != ("info",)  # a mark of errors, in no formula
            ]
        elif name in ("result0", "result1"):
            slots.append(event.slot + int(name[-1]))
        else:
            slots += [
                s
                for s, owner in zip(event.operands, call.owners, strict=True)
                if owner == name
            ]
    return slots


def is_saved(state: State, slot: int) -> bool:
    """Whether PyTorch saves a value for the backward of an event up to this one."""
    return any(
        event.wrt
        and slot in event.operands
        and slot in saved_operands(event, event.call, event.wrt)
        for event in state.path()
    )


def last_use(state: State, slot: int) -> tuple[str, int] | None:
    """The node that used a value last, and which of its gradients is the value's."""
    found = None
    for event in state.path():
        used = [i for i in event.wrt if event.operands[i] == slot]
        if used:
            found = grad_name(event) or "", flows_of(event).index(used[0])
    return found


# The dtypes of old, whose tensor types are names in Python.
_OF_OLD = frozenset({"Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double"})


def tensor_type(dtype: Any, device: str = "cpu") -> str:
    """The type of a tensor in PyTorch's errors: torch.FloatTensor, CPUBoolType."""
    if dtype.scalar_name not in _OF_OLD:
        return f"{device.upper()}{dtype.scalar_name}Type"
    return f"torch.{'' if device == 'cpu' else device + '.'}{dtype.scalar_name}Tensor"


# Whether anomaly mode shows where the values of a failed gradient were computed.
shows_forward = [False]


def modified_text(
    meta: Any, name: str | None, number: int, version: int, expected: int
) -> str:
    """PyTorch's error for a saved tensor that was written to."""
    made_by, kind = "", tensor_type(meta.dtype, meta.device.type)
    if name is not None:
        name = re.sub(r"Backward0?(?=\d*$)", "", qualified(name))
        made_by = f", which is output {number} of {name},"
    if shows_forward[0]:
        hint = (
            "the backtrace further above shows the operation that failed to compute "
            "its gradient. The variable in question was changed in there or anywhere "
            "later. Good luck!"
        )
    else:
        hint = (
            "enable anomaly detection to find the operation that failed to compute its "
            "gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
        )
    return (
        "one of the variables needed for gradient computation has been modified by an "
        f"inplace operation: [{kind} {list(meta.shape)}]{made_by} is at version "
        f"{version}; expected version {expected} instead. Hint: {hint}"
    )


REPLACED_NONE = "can't replace a None gradient with a non-None value"


def _legacy_type(tensor: Any) -> str:
    kind = "sparse." if tensor._composed else ""
    return f"torch.{kind}{tensor._tmeta.dtype.scalar_name}Tensor"


def check_replacement(hook: Any, grad: Any, result: Any) -> None:
    """Raises PyTorch's error for what cannot stand in for a gradient."""
    name = getattr(hook, "__name__", None)
    name = f"'{name}'" if name is not None else repr(hook)
    if not isinstance(result, TensorBase):
        raise TypeError(
            f"expected Variable, but hook returned '{type_name(type(result))}'"
        )
    if grad is None:
        return
    was, now = grad._tmeta, result._tmeta
    if was.dtype is not now.dtype or grad._composed != result._composed:
        raise RuntimeError(
            f"hook {name} has changed the type of value (was {_legacy_type(grad)} got "
            f"{_legacy_type(result)})"
        )
    if was.device != now.device:
        raise RuntimeError(f"hook {name} has changed the device of value")
    if tuple(was.shape) != tuple(now.shape):
        raise RuntimeError(f"hook {name} has changed the size of value")
