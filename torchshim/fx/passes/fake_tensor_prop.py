"""Running a graph with fake tensors: not supported.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from torchshim._errors import unsupported

__all__ = ["FakeTensorProp"]

FakeTensorProp = unsupported(
    "fx.passes.fake_tensor_prop.FakeTensorProp",
    "there are no fake tensors; ShapeProp with tensors on the device meta needs none",
)
