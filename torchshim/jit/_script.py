"""Scripted modules under the name of PyTorch's module."""

from torchshim.jit import (
    Attribute,
    CompilationUnit,
    RecursiveScriptModule,
    ScriptFunction,
    ScriptModule,
    ScriptWarning,
    interface,
    script,
    script_method,
)

__all__ = [
    "Attribute",
    "CompilationUnit",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "ScriptWarning",
    "interface",
    "script",
    "script_method",
]
