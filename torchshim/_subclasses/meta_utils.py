"""Comparing what is known of tensors besides their values."""

from __future__ import annotations

from typing import Any

from torchshim._tensor import Tensor


def assert_metadata_eq(assert_eq: Any, m1: Any, m2: Tensor, **kwargs: Any) -> None:
    """Calls `assert_eq` with all that is known of both but values and devices."""
    names = ["dtype", "shape", "requires_grad", "is_leaf", "layout"]
    for name in names:
        assert_eq(getattr(m1, name), getattr(m2, name))
    assert_eq(m1.grad is None, m2.grad is None)
    if m1.layout == "strided":
        assert_eq(m1.stride(), m2.stride())
        assert_eq(m1.storage_offset(), m2.storage_offset())
    assert_eq(m1._is_view(), m2._is_view())
    assert_eq(m1.is_conj(), m2.is_conj())
    assert_eq(m1.is_neg(), m2.is_neg())
