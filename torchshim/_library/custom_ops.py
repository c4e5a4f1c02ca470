"""`torch.library.custom_op`: a Python function as an operator."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from torchshim import _warnings as warnings
from torchshim._library.infer import infer_schema
from torchshim._library.operators import (
    EXPLICIT,
    META,
    Gradient,
    Operator,
    check_aliases,
    define,
    forget,
    key_of,
)
from torchshim._library.schema import parse_schema
from torchshim._library.tags import Tag
from torchshim.amp.autocast_mode import is_autocast_available

log = logging.getLogger("torch._library.custom_ops")

# The operators defined by `custom_op`, by their qualified names.
OPDEFS: dict[str, CustomOpDef] = {}


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Tag | Sequence[Tag] | None = None,
) -> Any:
    """Makes an operator of a function: one node of the graph, opaque to autograd.

    `name` is "namespace::name"; `mutates_args` are the arguments that the function
    writes to. The function's annotations give the schema. Raises: ValueError where they
    do not.
    https://docs.pytorch.org/docs/2.13/library.html#torch.library.custom_op

    >>> import torchshim as torch
    >>> @custom_op("docs::twice", mutates_args=())
    ... def twice(x: torch.Tensor) -> torch.Tensor:
    ...     return torch.from_numpy(x.numpy() * 2)
    >>> twice.register_autograd(lambda ctx, grad: grad * 2)
    >>> x = torch.ones(2, requires_grad=True)
    >>> twice(x).sum().backward()
    >>> x.grad.tolist(), torch.ops.docs.twice(torch.ones(1)).tolist()
    ([2.0, 2.0], [2.0])
    """
    marks = () if tags is None else (tags,) if isinstance(tags, Tag) else tuple(tags)

    def made(function: Callable[..., Any]) -> CustomOpDef:
        text = schema
        if text is None:
            text = infer_schema(function, mutates_args=mutates_args, tags=marks)
        namespace, short = name.split("::")
        result = CustomOpDef(namespace, short, text, function, marks)
        if schema is not None:
            declared = result._opoverload._schema.arguments
            written = {a.name for a in declared if a.alias_info and a.alias_info[1]}
            if written != set(mutates_args):
                raise ValueError(
                    f"Attempted to create a custom op with `mutates_args={mutates_args}"
                    f"` and `schema={schema}. The schema suggests that the op mutates "
                    f"{written}which is different from what was provided to us in "
                    "`mutates_args`. Please make these consistent."
                )
        result.register_kernel(device_types)(function)
        return result

    return made if fn is None else made(fn)


custom_op.__module__ = "torch.library"


class CustomOpDef:
    """An operator made by `custom_op`, to which more can be registered."""

    def __init__(
        self,
        namespace: str,
        name: str,
        schema: str,
        fn: Callable[..., Any],
        tags: Sequence[Tag] = (),
    ) -> None:
        self._namespace, self._name, self._schema = namespace, name, schema
        self._init_fn = fn
        self._tags = list(tags)
        self._backend_fns: dict[str | None, Callable[..., Any]] = {}
        self._abstract_fn: Callable[..., Any] | None = None
        self._disabled_kernel: set[str | None] = set()
        parsed = parse_schema(f"{self._qualname}{schema}", f"{name}{schema}")
        out = Tag.out in self._tags
        for argument in parsed.arguments:
            if argument.kwarg_only and argument.type.of_tensors and not out:
                raise NotImplementedError(
                    "custom_op with kwarg-only Tensor args. Please make your tensors "
                    f"not kwarg-only. Got: {name}{schema}"
                )
        before = OPDEFS.pop(self._qualname, None)
        if before is not None:
            forget(before._opoverload)
        marks = [*self._tags, Tag.pt2_compliant_tag]
        self._opoverload: Operator = define(namespace, parsed, marks)
        self._opoverload.opaque = True
        self._opoverload.kernels[META] = self._fake
        OPDEFS[self._qualname] = self

    @property
    def _qualname(self) -> str:
        return f"{self._namespace}::{self._name}"

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # What was registered last under the name, as PyTorch's dispatcher has it.
        return OPDEFS[self._qualname]._opoverload(*args, **kwargs)

    def _fake(self, *args: Any, **kwargs: Any) -> Any:
        if self._abstract_fn is not None:
            return self._abstract_fn(*args, **kwargs)
        schema = self._opoverload._schema
        if schema.is_mutable and not schema.returns:
            return None
        raise RuntimeError(
            f"There was no fake impl registered for {self}. This is necessary for "
            "torch.compile/export/fx tracing to work. Please use "
            f"`{self._init_fn.__name__}.register_fake` to add an fake impl."
        )

    @contextlib.contextmanager
    def set_kernel_enabled(
        self, device_type: str, enabled: bool = True
    ) -> Iterator[None]:
        """Puts the first function in place of a device's kernel, or takes it back."""
        before = device_type in self._disabled_kernel
        action = "enable" if enabled else "disable"
        if device_type not in self._backend_fns:
            log.warning(
                "Attempted to %s kernel for %s but no kernel was registered for this "
                "device type.",
                action,
                device_type,
            )
        if before is not enabled:
            log.warning(
                "Attempted to %s kernel for %s but it was already %sd.",
                action,
                device_type,
                action,
            )
        (self._disabled_kernel.discard if enabled else self._disabled_kernel.add)(
            device_type
        )
        try:
            yield
        finally:
            (self._disabled_kernel.add if before else self._disabled_kernel.discard)(
                device_type
            )

    def register_kernel(
        self,
        device_types: str | Sequence[str] | None,
        fn: Callable[..., Any] | None = None,
        /,
    ) -> Callable[..., Any]:
        """What the operator does on some devices; a decorator without `fn`."""
        arguments = self._opoverload._schema.arguments
        if device_types is not None and not any(a.type.of_tensors for a in arguments):
            if not any(a.type.base == "Device" for a in arguments):
                raise ValueError(
                    "Functions without tensor inputs are required to have a `device: "
                    "torch.device` argument"
                )
        one = device_types is None or isinstance(device_types, str)
        kinds: Sequence[Any] = [device_types] if one else list(device_types or ())

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for kind in kinds:
                self._backend_fns[kind] = function
                key = EXPLICIT if kind is None else key_of(kind)
                self._opoverload.kernels[key] = self._checked(kind)
            return function

        return register if fn is None else register(fn)

    def _checked(self, kind: str | None) -> Callable[..., Any]:
        """A kernel that looks at what the function returns."""

        def kernel(*args: Any, **kwargs: Any) -> Any:
            off = kind in self._disabled_kernel
            function = self._init_fn if off else self._backend_fns[kind]
            result = function(*args, **kwargs)
            if Tag.inplace in self._tags:
                if result is not args[0]:
                    raise RuntimeError(
                        f"{self._name}: An operator tagged with torch.Tag.inplace must "
                        "return its first argument."
                    )
            elif Tag.out in self._tags:
                written = [v for _, v in self._opoverload.written(args, kwargs)]
                given = result if isinstance(result, tuple) else (result,)
                if len(given) != len(written) or any(
                    a is not b for a, b in zip(given, written, strict=True)
                ):
                    raise RuntimeError(
                        f"{self._name}: An operator tagged with torch.Tag.out must "
                        "return its mutable keyword-only arguments."
                    )
            else:
                check_aliases(self._name, function, args, kwargs, result)
            return result

        return kernel

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """What the operator gives for tensors without data (the meta device)."""
        for tag in (Tag.inplace, Tag.out):
            if tag in self._tags:
                warnings.warn(
                    f"The fake registration for {self} is unnecessary. Custom ops "
                    f"tagged with torch.{tag} already get an autogenerated fake "
                    "kernel. The provided fake impl will be used instead.",
                    stacklevel=2,
                )
        self._abstract_fn = fn
        return fn

    def register_autograd(
        self,
        backward: Callable[..., Any],
        /,
        *,
        setup_context: Callable[..., Any] | None = None,
    ) -> None:
        """The gradient: `backward(ctx, *grads)`, as of an `autograd.Function`.

        `setup_context(ctx, inputs, output)` notes what it needs; with keyword-only
        arguments it is called with `keyword_only_inputs`, too.
        """
        register_gradient(self._opoverload, self, backward, setup_context)

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """What the operator does under `torch.vmap`: `func(info, in_dims, *args)`.

        It returns the output and where it has the dimension that is mapped over.
        """

        def register(function: Callable[..., Any]) -> None:
            register_rule(self._opoverload, function)

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: Any) -> None:
        """Casts floating-point arguments under autocast."""
        register_cast(self._opoverload, device_type, cast_inputs)

    def register_torch_dispatch(self, torch_dispatch_class: Any, fn: Any = None) -> Any:
        """Refused: there are no dispatch modes."""
        raise NotImplementedError(
            "register_torch_dispatch: torchshim has no __torch_dispatch__"
        )


CustomOpDef.__module__ = "torch._library.custom_ops"


def register_gradient(
    operator: Operator,
    shown: Any,
    backward: Callable[..., Any],
    setup_context: Callable[..., Any] | None,
) -> None:
    """Gives an operator a gradient. Raises: RuntimeError if it writes to arguments."""
    schema = operator._schema
    if Tag.out in operator.tags:
        raise RuntimeError(
            "Cannot register autograd formula for operator tagged with torch.Tag.out: "
            f"{shown}. Out variants do not support autograd."
        )
    if not schema.is_functional:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {shown} "
            f"with schema {schema}. Please create a functional operator and register "
            "an autograd formula for that."
        )
    schema.check_keyword_only("register_autograd")
    operator.gradient = Gradient(backward, setup_context)
    operator.opaque = True


def register_rule(operator: Operator, function: Callable[..., Any]) -> None:
    """What an operator does under `vmap`. Raises: NotImplementedError."""
    operator._schema.check_keyword_only("register_vmap")
    operator.vmap = function


def register_cast(operator: Operator, device_type: Any, dtype: Any) -> None:
    if not isinstance(device_type, str):
        raise ValueError(
            f"Expected `device_type` of type `str`, got: `{type(device_type)}`"
        )
    if not is_autocast_available(device_type):
        raise ValueError(f"Device type '{device_type}' does not support autocast.")
    operator.casts.setdefault(device_type, dtype)
