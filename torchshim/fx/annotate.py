"""Types that are put on proxies.

https://docs.pytorch.org/docs/2.13/fx.html
"""

from __future__ import annotations

from typing import Any

from torchshim.fx.proxy import Proxy

__all__ = ["annotate"]


def annotate(val: Any, type: Any) -> Any:
    """Gives a proxy's node a type: the value. RuntimeError if it has one."""
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                "Tried to annotate a value that already had a type on it! Existing "
                f"type is {val.node.type} and new type is {type}. This could happen if "
                "you tried to annotate a function parameter value (in which case you "
                "should use the type slot on the function signature) or you called "
                "annotate on the same value twice"
            )
        val.node.type = type
    return val
