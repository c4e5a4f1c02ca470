"""Operators of one's own: `torch.library`.

A registered operator is called like PyTorch's own (`torch.ops.mylib.scale(x)`), and can
be one node of the graph. Kernels are Python: what they do with tensors is recorded as
always, what they do with NumPy runs when they are called.
https://docs.pytorch.org/docs/2.13/library.html
"""

from __future__ import annotations

import contextlib
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torchshim import _warnings as warnings
from torchshim import ops
from torchshim._errors import Unsupported, unsupported
from torchshim._library.checks import run as run_checks
from torchshim._library.custom_ops import (
    OPDEFS,
    CustomOpDef,
    custom_op,
    register_cast,
    register_gradient,
    register_rule,
)
from torchshim._library.infer import infer_schema
from torchshim._library.operators import (
    META,
    Operator,
    find,
    forget,
    key_of,
)
from torchshim._library.operators import (
    define as _define,
)
from torchshim._library.schema import parse_schema
from torchshim._library.tags import Tag

__all__ = [
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "register_autocast",
    "register_fake",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_RESERVED = ("prim",)
# Namespaces that a library of kind DEF has.
_owned: weakref.WeakValueDictionary[str, Library] = weakref.WeakValueDictionary()
_OTHER_NAMESPACE = (
    "does not match namespace of enclosing TORCH_LIBRARY block ({0}).  Move this "
    "definition to the {1} block corresponding to this namespace (and consider "
    "deleting the namespace from your schema string.)"
)
# What PyTorch calls its dispatch keys.
_KEY = re.compile(
    "(Quantized|Sparse|SparseCsr|NestedTensor|Autograd|Autocast)?"
    "(CPU|CUDA|HIP|XLA|MPS|MTIA|MAIA|IPU|XPU|HPU|VE|Lazy|Meta|PrivateUse[123])"
    "|Composite(Ex|Im)plicitAutograd(NonFunctional|NestedTensor)?"
    "|Autograd(NestedTensor|Other|Functionality)?|Python(TLSSnapshot|Dispatcher)?"
    "|FuncTorch\\w+|Undefined|Conjugate|ZeroTensor|Negative|BackendSelect|PreDispatch"
    "|ADInplaceOrView|Functionalize|Dense|Quantized|Sparse|SparseCsr|NestedTensor|Tracer"
)
# Kernels of operators that are not defined yet: name -> key -> kernel.
_early: dict[str, dict[str, Any]] = {}
# What `define` and its like register lives as long as the process.
_kept: list[Library] = []


def fallthrough_kernel() -> None:
    """A mark to register: a dispatch key is passed over."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """Registers operators of a namespace, as long as it lives.

    `kind`: "DEF" (one for each namespace), "FRAGMENT" (more of it), "IMPL" (kernels).
    Raises: ValueError, RuntimeError where a namespace is taken.
    https://docs.pytorch.org/docs/2.13/library.html#torch.library.Library

    >>> import torchshim as torch
    >>> lib = Library("docs_lib", "DEF")
    >>> lib.define("scale(Tensor x, float by=2.0) -> Tensor")
    'scale'
    >>> lib.impl("scale", lambda x, by=2.0: x * by, "CPU")
    >>> torch.ops.docs_lib.scale(torch.ones(2), 3).tolist()
    [3.0, 3.0]
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind != "IMPL":
            raise ValueError(
                f"{ns} is a reserved namespace. Please try creating a library with "
                "another name."
            )
        _check_key(dispatch_key)
        if kind == "DEF":
            if ns in _owned or ns == "aten":
                raise RuntimeError(
                    "Only a single TORCH_LIBRARY can be used to register the namespace "
                    f"{ns}; please put all of your definitions in a single "
                    "TORCH_LIBRARY block.  If you were trying to specify "
                    "implementations, consider using TORCH_LIBRARY_IMPL (which can be "
                    "duplicated).  If you really intended to define operators for a "
                    "single namespace in a distributed way, you can use "
                    "TORCH_LIBRARY_FRAGMENT to explicitly indicate this."
                )
            _owned[ns] = self
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._op_defs: set[str] = set()
        self._made: list[Operator] = []
        self._end = weakref.finalize(self, _forget_all, self._made)
        self.m: list[Operator] | None = self._made  # scripts delete it

    def __repr__(self) -> str:
        key = self.dispatch_key
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={key})>"

    def define(
        self, schema: str, alias_analysis: str = "", *, tags: Tag | Sequence[Tag] = ()
    ) -> str:
        """Defines an operator by its schema, and gives its name."""
        if alias_analysis not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
            raise RuntimeError(f"Invalid alias_analysis type {alias_analysis}")
        if not self._end.alive:
            raise AssertionError("Library object has been destroyed")
        marks = (tags,) if isinstance(tags, Tag) else tuple(tags)
        name = schema.split("(")[0]
        space, _, short = name.rpartition("::")
        if space not in ("", self.ns):
            raise RuntimeError(
                f"Explicitly provided namespace ({space}) in schema string "
                + _OTHER_NAMESPACE.format(self.ns, "(unique) TORCH_LIBRARY")
            )
        qualified = f"{self.ns}::{short}"
        parsed = parse_schema(qualified + schema[len(name) :], schema)
        self._made.append(_define(self.ns, parsed, marks))
        self._op_defs.add(f"{self.ns}::{name}")
        for key, kernel in _early.pop(qualified, {}).items():
            self.impl(short, kernel, key)
        return name

    def impl(
        self,
        op_name: Any,
        fn: Callable[..., Any],
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Registers what an operator does: on "CPU", or composed of other operators."""
        if not callable(fn):
            raise TypeError(
                f"Input function is required to be a callable but found type {type(fn)}"
            )
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if with_keyset:
            raise Unsupported("kernels with a keyset: there are no dispatch keys")
        _check_key(key)
        name = self._qualified(op_name)
        try:
            operator = find(name)
        except AttributeError:
            _early.setdefault(name, {})[key] = fn
            return
        if fn is fallthrough_kernel:
            if key.startswith("Autograd"):
                operator.tells_of_no_gradient = False
            return
        taken = key in operator.kernels and operator.kernels[key] is not fn
        if taken and not allow_override and operator in self._made:
            raise RuntimeError(
                "This is not allowed since there's already a kernel registered from "
                f"python overriding {operator.name().split('::')[-1]}'s behavior for "
                f"{key} dispatch key and {self.ns} namespace."
            )
        # A kernel of the key with a device's name is Autograd's for that device.
        operator.kernels["Autograd" if key.startswith("Autograd") else key] = fn

    def _qualified(self, name: Any) -> Any:
        """The name with its namespace; what stands for an operator as it is."""
        if isinstance(name, str):
            space, _, short = name.rpartition("::")
            if space not in ("", self.ns):
                raise RuntimeError(
                    f'impl("{name}", ...): Explicitly provided namespace ({space}) in '
                    "operator name " + _OTHER_NAMESPACE.format(self.ns, "TORCH_LIBRARY")
                )
            return f"{self.ns}::{short}"
        if not isinstance(name, Operator) and not hasattr(name, "_opoverload"):
            raise RuntimeError(
                "impl should be passed either a name or an OpOverload object as the "
                f"first argument, got {type(name)}"
            )
        return name

    def _destroy(self) -> None:
        """Takes back what was defined."""
        self._end()
        self.m = None
        if _owned.get(self.ns) is self:
            del _owned[self.ns]


def _check_key(key: str) -> None:
    if key and not _KEY.fullmatch(key):
        raise RuntimeError(f"could not parse dispatch key: {key}")


def _forget_all(made: list[Operator]) -> None:
    while made:
        forget(made.pop())


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library for the body of a `with`."""
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


def _parts(qualname: str) -> tuple[str, str]:
    parts = qualname.split("::")
    if len(parts) != 2:
        raise ValueError(
            'Expected `qualname` to be of the form "namespace::name", but got '
            f"{qualname}. The qualname passed to the torch.library APIs must consist "
            "of a namespace and a name, e.g. aten::sin"
        )
    return parts[0], parts[1]


def define(
    qualname: Any,
    schema: Any,
    func: Any = None,
    *,
    lib: Library | None = None,
    tags: Tag | Sequence[Tag] = (),
) -> Any:
    """Defines an operator: `define("mylib::scale", "(Tensor x) -> Tensor")`.

    With a `Library` in place of the name it is a decorator for a kernel.
    """
    if isinstance(qualname, Library):
        library, alias = qualname, func or ""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(library.define(schema, alias), function)
            return function

        return decorate
    if not isinstance(qualname, str):
        raise ValueError(
            "define(qualname, schema): expected qualname to be instance of str, got "
            f"{type(qualname)}"
        )
    namespace, name = _parts(qualname)
    if not re.fullmatch(r"\(.*\) -> .*", schema):
        raise ValueError(
            'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor '
            f'x) -> Tensor" but got "{schema}"'
        )
    if lib is None:
        lib = Library(namespace, "FRAGMENT")
        _kept.append(lib)
    lib.define(name + schema, alias_analysis="", tags=tags)
    return None


def impl(
    qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None
) -> Any:
    """Registers a kernel of an operator for devices ("cpu", "default"), or a key.

    A decorator without `func`; with a `Library` in place of the name, `types` is the
    operator's and `func` the dispatch key.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, function, key)
            return function

        return decorate
    keys = [key_of(t) for t in ((types,) if isinstance(types, str) else types)]
    namespace = _parts(qualname)[0] if isinstance(qualname, str) else qualname.namespace

    def register(function: Callable[..., Any]) -> None:
        library = lib
        if library is None:
            library = Library(namespace, "FRAGMENT")
            _kept.append(library)
        for key in keys:
            library.impl(qualname, function, key)

    if func is not None:
        return register(func)

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        register(function)
        return function

    return decorated


def _of(op: Any) -> tuple[Operator, Any]:
    """An operator, and what texts call it: also by name or as a `CustomOpDef`."""
    if isinstance(op, CustomOpDef):
        return op._opoverload, op
    if not isinstance(op, (str, Operator)):
        raise ValueError(
            f"register(op): got unexpected type for op: {type(op)}; expected a str, an "
            "OpOverload or a CustomOpDef"
        )
    found = find(op)
    return found, found


def _definition(operator: Operator) -> CustomOpDef | None:
    return OPDEFS.get(operator._schema.name)


def register_kernel(
    op: Any, device_types: Any, func: Any = None, /, *, lib: Library | None = None
) -> Any:
    """What an operator does on some devices; a decorator without `func`."""
    operator, _ = _of(op)
    definition = _definition(operator)
    if definition is not None:
        return definition.register_kernel(device_types, func)
    return impl(operator, device_types or "default", func, lib=lib)


def register_fake(
    op: Any,
    func: Any = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """What an operator gives for tensors without data; a decorator without `func`.

    RuntimeError where there is no such operator, or `allow_override=False` and it has
    such a function.
    """
    try:
        operator, _ = _of(op)
    except AttributeError:
        if str(op).partition("::")[0] in ops.refused_packages:
            return (lambda function: function) if func is None else func
        raise RuntimeError(f"operator {op} does not exist") from None
    if not allow_override and META in operator.kernels:
        raise RuntimeError(
            f"register_fake(...): the operator {operator.name()} already has a fake "
            "impl registered"
        )

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        definition = _definition(operator)
        if definition is not None:
            return definition.register_fake(function)
        operator.kernels[META] = function
        return function

    return register if func is None else register(func)


def impl_abstract(qualname: str, func: Any = None, **kwargs: Any) -> Any:
    """The old name of `register_fake`."""
    warnings.warn(
        "`torch.library.impl_abstract` was renamed to `torch.library.register_fake`. "
        "Please use that instead; we will remove `torch.library.impl_abstract` in a "
        "future version of PyTorch.",
        FutureWarning,
        stacklevel=2,
    )
    return register_fake(qualname, func, **kwargs)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """The gradient of an operator: `backward(ctx, *grads)`.

    >>> import torchshim as torch
    >>> define("docs::half", "(Tensor x) -> Tensor")
    >>> impl("docs::half", "cpu", lambda x: x / 2)
    >>> register_autograd("docs::half", lambda ctx, grad: grad / 2)
    >>> x = torch.ones(2, requires_grad=True)
    >>> torch.ops.docs.half(x).sum().backward()
    >>> x.grad.tolist()
    [0.5, 0.5]
    """
    register_gradient(*_of(op), backward, setup_context)


def register_vmap(op: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """What an operator does under `torch.vmap`; a decorator without `func`."""
    operator, _ = _of(op)

    def register(function: Callable[..., Any]) -> None:
        register_rule(operator, function)

    return register if func is None else register(func)


def register_autocast(
    op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None
) -> None:
    """Casts an operator's floating-point arguments under autocast."""
    register_cast(_of(op)[0], device_type, cast_inputs)


def get_ctx() -> None:
    """What a fake kernel asks for sizes that depend on data: nothing is traced here."""
    return None


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    ),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Tests an operator on an example; gives "SUCCESS" or the error of each test.

    Raises: OpCheckError with the first error, but with `raise_exception=False`.
    """
    return run_checks(
        _of(op)[0],
        args,
        kwargs or {},
        test_utils,
        raise_exception,
        1e-5 if rtol is None else rtol,
        1e-8 if atol is None else atol,
    )


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    schema: str | None = None,
) -> Any:
    """As `custom_op`; what the function calls is not looked into."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


_NO_TRITON = "there is no Triton; jax.experimental.pallas writes kernels"
wrap_triton = unsupported("library.wrap_triton", _NO_TRITON)
get_kernel = unsupported("library.get_kernel", "kernels are no objects here")
register_torch_dispatch = unsupported(
    "library.register_torch_dispatch", "there is no __torch_dispatch__"
)
