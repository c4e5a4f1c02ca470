"""Types of results by the annotations of what is called."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

from torchshim._tensor import Tensor
from torchshim.fx._names import home_of
from torchshim.fx._symbolic_trace import _annotation
from torchshim.fx.graph_module import GraphModule, _get_attr
from torchshim.fx.interpreter import Transformer
from torchshim.fx.proxy import Proxy

_PLAIN = (bool, int, float, complex, str)


class AnnotateTypesWithSchema(Transformer):
    """Gives nodes types: those that functions of `nn.functional` and layers declare.

    Attributes that are read get theirs, too. Each of the three can be left out.
    https://docs.pytorch.org/docs/2.13/fx.html

    >>> import torchshim as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.nn.functional.relu(x) + 1)
    >>> made = AnnotateTypesWithSchema(traced).transform()
    >>> [node.type.__name__ for node in made.graph.nodes if node.type]
    ['Tensor']
    """

    def __init__(
        self,
        module: GraphModule,
        annotate_functionals: bool = True,
        annotate_modules: bool = True,
        annotate_get_attrs: bool = True,
    ) -> None:
        super().__init__(module)
        self.annotate_functionals = annotate_functionals
        self.annotate_modules = annotate_modules
        self.annotate_get_attrs = annotate_get_attrs

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Proxy:
        """The call, with the type that a function of `nn.functional` declares."""
        made = super().call_function(target, args, kwargs)
        if self.annotate_functionals and home_of(target)[0] == "torch.nn.functional":
            _note(made, _declared(target))
        return made

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Proxy:
        """The call, with the type that a layer of `torch.nn` declares."""
        made = super().call_module(target, args, kwargs)
        module = self.fetch_attr(target)
        layers = sys.modules[f"{__name__.partition('.')[0]}.nn"]
        known = getattr(layers, type(module).__name__, None) is type(module)
        if self.annotate_modules and known:
            _note(made, _declared(module.forward))
        return made

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Proxy:
        """The attribute, with its type."""
        made = super().get_attr(target, args, kwargs)
        if self.annotate_get_attrs:
            value = _get_attr(self.module, target)
            if isinstance(value, Tensor):
                _note(made, Tensor)
            elif type(value) in _PLAIN:
                _note(made, type(value))
        return made


def _note(proxy: Proxy, kind: Any) -> None:
    proxy.node.type = proxy.node.type or kind


def _declared(function: Callable[..., Any]) -> Any:
    found = inspect.unwrap(function)
    return _annotation(getattr(found, "__func__", found), "return")
