"""The source of a graph whose function takes nested arguments, or a list of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from torchshim._pytree import TreeSpec, arg_tree_leaves, tree_unflatten
from torchshim.fx._codegen import CodeGen


class _PyTreeInfo(NamedTuple):
    """How the arguments and the result are nested."""

    orig_args: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec | None


def _bare(parameter: str) -> str:
    """A parameter without its annotation, and without a comment."""
    return parameter.split(":")[0].split("#")[0]


class _PyTreeCodeGen(CodeGen):
    """Its function takes nested arguments; the graph's inputs are their leaves."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        spec = self.pytree_info.out_spec if self.pytree_info else None
        if spec is None:
            return out
        return tree_unflatten(out if isinstance(out, (list, tuple)) else [out], spec)

    def gen_var_bindings(
        self, fn_args: list[str], free_vars: list[str], expanded_def: bool
    ) -> str:
        """The statements that take the arguments apart."""
        spec = self.pytree_info.in_spec
        given = f"[{', '.join(fn_args)}]"
        kinds = [child.type for child in spec.children()]
        if spec.type is tuple and kinds == [tuple, dict]:  # (args, kwargs)
            count = spec.child(0).num_children
            names = self.pytree_info.orig_args
            named = ", ".join(
                f"'{k}':{v}"
                for k, v in zip(spec.child(1).context, names[count:], strict=False)
            )
            given = f"([{', '.join(names[:count])}], {{{named}}})"
        typed = [each for each in free_vars if ":" in each]
        bindings = ""
        if typed and expanded_def:
            bindings = "\n    " + "\n    ".join(typed)
        elif typed:
            bindings = "\n    " + "".join(f"{each}; " for each in typed) + "\n"
        plain = ", ".join(map(_bare, free_vars))
        call = f"fx_pytree.tree_flatten_spec({given}, self._in_spec)"
        return f"{bindings}\n    {plain}, = {call}"

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(
                free_vars, maybe_return_annotation, expanded_def=expanded_def
            )
        given = self.pytree_info.orig_args
        if given and given[0] == "self":
            free_vars.insert(0, "self")
        text = super().gen_fn_def(
            given[:], maybe_return_annotation, expanded_def=expanded_def
        )
        if free_vars:
            text += self.gen_var_bindings(given, free_vars, expanded_def)
        return text

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[object], str] | None = None,
    ) -> str:
        text = repr_fn or repr
        if not (self.pytree_info and self.pytree_info.out_spec):
            return super().generate_output(output_args, descs=descs, repr_fn=text)
        start = "return pytree.tree_unflatten("
        if descs is not None and isinstance(output_args, (list, tuple)):
            inner = self._format_multiline_container(
                output_args, descs, start, repr_fn=text
            )
            return f"{inner}, self._out_spec)"
        return f"{start}{text(output_args)}, self._out_spec)"


class _BoxedCodeGen(CodeGen):
    """Its function takes one list of all arguments, and empties it."""

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        lines = [f"def {self._func_name}(self, args_list){maybe_return_annotation}:"]
        names = [v.split(":")[0].split("=")[0].strip() for v in free_vars]
        names = [name for name in names if name != "self"]
        if names:
            lines.append("args_iter = iter(args_list)")
            lines += [f"{name} = next(args_iter)" for name in names]
            lines.append("args_list.clear()")
        return "\n    ".join(lines)
