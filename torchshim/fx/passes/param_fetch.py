"""What compilers of graphs need of modules, noted at the nodes that call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchshim import nn
from torchshim._functions.query import typename
from torchshim.fx.graph_module import GraphModule

__all__ = [
    "default_matching",
    "extract_attrs_for_lowering",
    "lift_lowering_attrs_to_nodes",
]


def default_matching(name: str, target_version: int) -> str:
    """The name of an attribute in another version of a module: the same."""
    return name


_CONV = "weight bias kernel_size stride padding dilation groups padding_mode"
_POOL = "kernel_size stride padding dilation return_indices ceil_mode"
_NORM = "weight bias running_mean running_var eps"

# A class of modules -> its version, its attributes, what they are called in another.
module_fetch_book: dict[type, tuple[int, list[str], Callable[[str, int], str]]] = {
    kind: (version, names.split(), default_matching)
    for kind, version, names in (
        (nn.Linear, 1, "weight bias"),
        (nn.Conv2d, 1, _CONV),
        (nn.BatchNorm2d, 2, _NORM),
        (nn.AdaptiveAvgPool2d, 1, ""),
        (nn.MaxPool2d, 1, _POOL),
        (nn.ReLU, 1, "inplace"),
    )
}


def extract_attrs_for_lowering(mod: nn.Module) -> dict[str, Any]:
    """The attributes of a module, by name; RuntimeError for a class not in the book."""
    asked = "please add it to the module_fetch_book, open an issue and @842974287 "
    told = "or report a bug to AIACC team directly."
    name = typename(mod)
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{name} is not in the module_fetch_book yet, {asked}{told}")
    version, names, match = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(
            f"Fetcher version {version} try to fetch {name} version {mod._version}, "
            f"please upgrade the module_fetch_book, open an issue and @842974287 {told}"
        )
    found = {each: getattr(mod, match(each, mod._version)) for each in names}
    return {"name": name, **found}


def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Gives each node that calls a module the attribute `attrs_for_lowering`."""
    submodules = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op != "call_module":
            continue
        called = submodules[node.target]
        if isinstance(called, GraphModule):
            lift_lowering_attrs_to_nodes(called)
        else:
            node.attrs_for_lowering = extract_attrs_for_lowering(called)
