"""The loop over examples that PyTorch's `vmap` falls back to.

No operator needs it here, but for the one that PyTorch's tests of it call.
"""

from __future__ import annotations

from typing import Any

from torchshim._core.storage import tensor_class
from torchshim._derived import fns, public
from torchshim._errors import warn

# Whether the loop may be used, and whether its use is told.
fallback = {"enabled": True, "told": True}
_NAME = "aten::_test_functorch_fallback"


@public(namespaces=("torch",))
def _test_functorch_fallback(input: Any, other: Any) -> Any:
    """A copy of `input`; under `vmap` one example after the other.

    It has no gradient.
    """
    tensors = [t for t in (input, other) if isinstance(t, tensor_class[0])]
    sizes = [size for t in tensors for _, size in t._tmeta.batch]
    if sizes:
        if not fallback["enabled"]:
            raise RuntimeError(
                f"{_NAME} hit the vmap fallback which is currently disabled"
            )
        if 0 in sizes:
            raise RuntimeError(
                f"Batching rule not implemented for {_NAME}. The fallback path does "
                "not support vmap over dims of size 0."
            )
        if fallback["told"]:
            warn(
                "There is a performance drop because we have not yet implemented the "
                f"batching rule for {_NAME}. Please file us an issue on GitHub so that "
                "we can prioritize its implementation."
            )
    result = fns.clone(input)
    if result.requires_grad:
        raise NotImplementedError(f"derivative for {_NAME} is not implemented")
    missing = [t for t in tensors[1:] if set(t._tmeta.batch) - set(input._tmeta.batch)]
    return fns._vmap_as(result, missing[0]) if missing else result
