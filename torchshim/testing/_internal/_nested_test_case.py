"""`NestedTensorTestCase`: compares jagged tensors by their pieces."""

from __future__ import annotations

from typing import Any

import torchshim as torch
from torchshim import _pytree as tree
from torchshim.testing._internal._test_case import TestCase

__all__ = ["NestedTensorTestCase"]


def _pieces(value: Any) -> Any:
    nested = (
        isinstance(value, torch.Tensor)
        and value.is_nested
        and value.layout is torch.jagged
    )
    return value.unbind() if nested else value


def _shape(value: Any) -> Any:
    return value.shape if isinstance(value, torch.Tensor) and value.is_nested else None


class NestedTensorTestCase(TestCase):
    """A test case that can compare trees with jagged tensors in them."""

    def assertEqualIgnoringNestedInts(self, a: Any, b: Any) -> None:
        """Pieces are equal, whatever stands for their lengths."""
        self.assertEqual(tree.tree_map(_pieces, a), tree.tree_map(_pieces, b))

    def assertEqualNoncontigAware(self, a: Any, b: Any) -> None:
        """Pieces are equal and shapes are, whatever memory lies between."""
        self.assertEqualIgnoringNestedInts(a, b)
        self.assertEqual(tree.tree_map(_shape, a), tree.tree_map(_shape, b))
