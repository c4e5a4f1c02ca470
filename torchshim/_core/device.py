"""Devices: ``torch.device``, the default device, and the JAX devices behind them.

"cpu" is JAX's CPU platform, "cuda" its GPU platform (NVIDIA or AMD), "xla" its TPU
platform, and "meta" holds no data. No JAX backend is started before a device is
used. See https://docs.pytorch.org/docs/2.13/tensor_attributes.html#torch-device.
"""

from __future__ import annotations

import importlib
import operator
import re
import threading
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from torchshim import _warnings as warnings
from torchshim._core.dtypes import Builtin, read_only, type_name
from torchshim._core.threads import keep

# PyTorch's device types by number, and in the order its error text lists them.
_NUMBERS = {
    name: number
    for number, name in enumerate(
        (
            *("cpu", "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga"),
            *("maia", "xla", "vulkan", "metal", "xpu", "mps", "meta", "hpu", "ve"),
            *("lazy", "ipu", "mtia", "privateuseone"),
        )
    )
    if name != "metal"
}
_LISTED = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, "
    "lazy, vulkan, mps, meta, hpu, mtia, privateuseone"
)
_STRING = re.compile(r"([a-zA-Z_]+)(?::(0|[1-9][0-9]*))?", re.ASCII)
_UNLINKED = "PyTorch is not linked with support for {} devices"
_MTIA_HINT = (
    ". Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` in your "
    "python src file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your "
    "target dependency!"
)
_PLATFORMS = {"cpu": "cpu", "cuda": "gpu", "xla": "tpu"}

_interned: dict[Any, device] = {}


class device(metaclass=Builtin):
    """Where a tensor lives: a device type and, possibly, an index.

    Takes a string ("cpu", "cuda:1"), a type and an index, an index of the current
    accelerator, or a device. As a context manager it is the default device of the
    block. Raises RuntimeError for a malformed string or an unknown type.

    >>> device("cuda:1"), device("cuda", 1).index, device("cpu").type
    (device(type='cuda', index=1), 1, 'cpu')
    >>> with device("meta"):
    ...     get_default_device()
    device(type='meta')
    """

    __slots__ = ("_hash", "index", "type")

    type: str
    index: int | None
    _hash: int

    def __new__(cls, *args: Any, **kwargs: Any) -> device:
        if len(args) == 1 and not kwargs:
            given = args[0]
            if given.__class__ is str:
                found = _interned.get(given)
                if found is not None:
                    return found
                return _parse(given)
            if given.__class__ is device:
                return given
        return _from_arguments(args, kwargs)

    __setattr__ = read_only
    __delattr__ = read_only

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, device):
            return NotImplemented
        return self._hash == other._hash

    def __hash__(self) -> int:
        return self._hash

    def _unordered(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        raise TypeError("comparison not implemented")

    __lt__ = __le__ = __gt__ = __ge__ = _unordered

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index % 2**16})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[type[device], tuple[Any, ...]]:
        if self.index is None:
            return device, (self.type,)
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        _defaults.stack.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        if not _defaults.stack:
            raise RuntimeError("trying to pop from empty mode stack")
        _defaults.stack.pop()


def _make(kind: str, index: int | None) -> device:
    """The one object of a device; `index` wraps like the 8-bit field it stands for."""
    if index is not None:
        index = (index + 128) % 256 - 128
        if index == -1:
            index = None
    found = _interned.get((kind, index))
    if found is None:
        found = object.__new__(device)
        object.__setattr__(found, "type", kind)
        object.__setattr__(found, "index", index)
        byte = 255 if index is None else index % 256
        object.__setattr__(found, "_hash", _NUMBERS[kind] << 16 | byte)
        _interned[kind, index] = found
    return found


def _parse(text: str) -> device:
    if not text:
        raise RuntimeError("Device string must not be empty")
    match = _STRING.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    kind, digits = match.groups()
    if kind not in _NUMBERS:
        raise RuntimeError(
            f"Expected one of {_LISTED} device type at start of device string: {kind}"
        )
    if kind == "mkldnn":
        _warn_mkldnn()
    index = None
    if digits is not None:
        index = int(digits)
        if index >= 2**31:
            raise RuntimeError(
                f"Could not parse device index '{digits}' in device string '{text}'"
            )
    made = _make(kind, index)
    _interned[text] = made
    return made


_warned: set[str] = set()


def _warn_mkldnn() -> None:
    if "mkldnn" not in _warned:
        _warned.add("mkldnn")
        warnings.warn(
            "'mkldnn' is no longer used as device type. So torch.device('mkldnn') will "
            "be deprecated and removed in the future. Please use other valid device "
            "types instead. (Triggered internally at "
            "/__w/pytorch/pytorch/c10/core/Device.cpp:40.)",
            UserWarning,
            stacklevel=4,
        )


# Arguments ------------------------------------------------------------------


def _is_index(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, (bool, str, bytes))


def _is_device(value: Any) -> bool:
    """Whether PyTorch takes the value where it expects a device."""
    if isinstance(value, (str, bytes, device)):
        return True
    # A 0-dim tensor has __index__ too, but is no device index.
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def as_device(value: Any) -> device | None:
    """The device that an argument stands for, or None if it is no device.

    Raises RuntimeError for a bad string, as `device` does.

    >>> as_device("cpu"), as_device(1.5)
    (device(type='cpu'), None)
    """
    if value.__class__ is device:
        return value
    if not _is_device(value):
        return None
    if isinstance(value, (str, bytes)):
        return device(_text(value))
    return _accelerator(operator.index(value))


def _text(value: str | bytes) -> str:
    # An enumeration's own `str` is the name of its member.
    return value.decode() if isinstance(value, bytes) else str.__str__(value)


def _accelerator(index: int) -> device:
    """The device that a bare index means."""
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    current = current_accelerator()
    if current is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return _make(current.type, index)


def _from_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> device:
    if len(args) + len(kwargs) == 1:
        if args and _is_device(args[0]):
            return _of(args[0])
        if "device" in kwargs and _is_device(kwargs["device"]):
            return _of(kwargs["device"])
    kind = args[0] if args else kwargs.get("type")
    if len(args) + len(kwargs) == 1 and not (
        "type" in kwargs and isinstance(kind, (str, bytes))
    ):
        raise TypeError(_mismatch(args, kwargs))
    if (not args and not kwargs) or len(args) + len(kwargs) > 2:
        raise TypeError(_mismatch(args, kwargs))
    if not args and "type" not in kwargs:
        raise TypeError('device() missing 1 required positional arguments: "type"')
    if not isinstance(kind, (str, bytes)):
        raise TypeError(_wrong("type", 1 if args else None, "str", kind))
    extra = [k for k in kwargs if k != "index" and not (k == "type" and not args)]
    if extra:
        if extra[0] in ("type", "index"):
            raise TypeError(f"device() got multiple values for argument '{extra[0]}'")
        raise TypeError(f"device() got an unexpected keyword argument '{extra[0]}'")
    index = args[1] if len(args) == 2 else kwargs.get("index")
    if index is not None:
        if not _is_index(index):
            raise TypeError(
                _wrong("index", 2 if len(args) == 2 else None, "int", index)
            )
        index = operator.index(index)
        if not -(2**63) <= index < 2**63:
            raise ValueError("Overflow when unpacking long long")
    text = _text(kind)
    found = device(text)
    if ":" in text:
        raise RuntimeError(
            "type (string) must not include an index because index was passed "
            f"explicitly: {text}"
        )
    if index is not None and index < 0:
        raise RuntimeError("Device index must not be negative")
    return _make(found.type, index)


def _of(value: Any) -> device:
    found = as_device(value)
    assert found is not None
    return found


def _wrong(name: str, position: int | None, expected: str, value: Any) -> str:
    where = f" (position {position})" if position else ""
    return (
        f"device(): argument '{name}'{where} must be {expected}, not "
        f"{type_name(value.__class__)}"
    )


def _described(value: Any) -> str:
    """A value's type in a list of mismatches; for sequences with the elements'."""
    name = type_name(value.__class__)
    if isinstance(value, (list, tuple)):
        inner = [type_name(v.__class__) for v in cast("Sequence[Any]", value)]
        if isinstance(value, list):
            return f"{name} of [{', '.join(inner)}]"
        return f"{name} of ({', '.join(inner)})"
    return name


def _mismatch(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """PyTorch's text for arguments that fit neither of the two signatures."""
    got = ", ".join(type_name(a.__class__) for a in args)
    # PyTorch lists keywords from a hash table, in no documented order.
    named = [f"{k}={type_name(v.__class__)}" for k, v in sorted(kwargs.items())]
    if named:
        got = f"{got}, {', '.join(named)}" if got else ", ".join(named) + ", "
    text = (
        "device() received an invalid combination of arguments - got "
        f"({got}), but expected one of:\n * (torch.device device)\n"
    )
    if len(args) + len(kwargs) == 1:
        reason = "      didn't match because some of the "
        if args:
            text += f"{reason}arguments have invalid types: (!{_described(args[0])}!)\n"
        elif "device" in kwargs:
            shown = f"!device={_described(kwargs['device'])}!, "
            text += f"{reason}arguments have invalid types: ({shown})\n"
        else:
            text += f"{reason}keywords were incorrect: {next(iter(kwargs))}\n"
    return text + " * (str type, int index = -1)\n"


# The default device ---------------------------------------------------------


class _Defaults(threading.local):
    """The devices in force in one thread.

    Blocks are pushed on top; `set_default_device` works at the bottom and puts
    what was there back when it is called again.
    """

    def __init__(self) -> None:
        self.stack: list[device] = []
        self.chosen: device | None = None
        self.displaced: device | None = None


_defaults = keep(_Defaults())
_cpu = _parse("cpu")
_meta = _parse("meta")


def default_device() -> device:
    """The device, as the script named it, of tensors made without ``device=``.

    >>> default_device()
    device(type='cpu')
    """
    stack = _defaults.stack
    return stack[-1] if stack else _cpu


def get_default_device() -> device:
    """The default device, with the index that its tensors would get.

    See https://docs.pytorch.org/docs/2.13/generated/torch.get_default_device.html.

    >>> get_default_device()
    device(type='cpu')
    """
    found = _defaults.stack[-1] if _defaults.stack else _defaults.chosen
    if found is None:
        return _cpu
    return found if found.index is not None else resolve(found)


def set_default_device(device: device | str | int | None) -> None:
    """Sets the device of this thread's tensors made without ``device=``; None resets.

    See https://docs.pytorch.org/docs/2.13/generated/torch.set_default_device.html.

    >>> set_default_device("meta")
    >>> get_default_device()
    device(type='meta')
    >>> set_default_device(None)
    """
    wanted = None if device is None else _device_type(device)
    stack = _defaults.stack
    if _defaults.chosen is not None:
        if len(stack) > 1:
            raise AssertionError(
                "Found nested DeviceContext on the mode stack where none expected"
            )
        stack.clear()
        if _defaults.displaced is not None:
            stack.append(_defaults.displaced)
    _defaults.chosen = wanted
    _defaults.displaced = None
    if wanted is not None:
        _defaults.displaced = stack[-1] if stack else None
        stack[:] = [wanted]


_device_type = device


# JAX ------------------------------------------------------------------------

# jax.Device has no type that checkers know.
JaxDevice = Any

_jax_devices: dict[str, tuple[JaxDevice, ...]] = {}
_current_index: dict[str, int] = {}


def _devices(kind: str) -> tuple[JaxDevice, ...]:
    """This process's JAX devices of a type; starts the JAX backend."""
    found = _jax_devices.get(kind)
    if found is None:
        jax: Any = importlib.import_module("jax")
        platform = _PLATFORMS.get(kind)
        try:
            found = tuple(jax.local_devices(backend=platform)) if platform else ()
        except RuntimeError:
            found = ()
        _jax_devices[kind] = found
    return found


def device_count(kind: str) -> int:
    """How many devices of a type this process can use; 0 if there are none.

    >>> device_count("cpu"), device_count("mps")
    (1, 0)
    """
    return min(1, len(_devices(kind))) if kind == "cpu" else len(_devices(kind))


def current_accelerator() -> device | None:
    """The accelerator type that a bare index refers to, or None."""
    for kind in ("cuda", "xla"):
        if device_count(kind):
            return _make(kind, None)
    return None


def current_index(kind: str) -> int:
    """The index that a device type without an index stands for.

    >>> current_index("cuda")
    0
    """
    return _current_index.get(kind, 0)


def set_current_index(kind: str, index: int) -> None:
    """Makes `index` what a device type without an index stands for."""
    check_available(_make(kind, index))
    _current_index[kind] = index


def check_available(wanted: device) -> None:
    """Raises what PyTorch raises when a tensor is made on a device it doesn't have.

    >>> check_available(device("mps"))
    Traceback (most recent call last):
    ...
    RuntimeError: PyTorch is not linked with support for mps devices
    """
    kind = wanted.type
    if kind in ("cpu", "meta"):
        return
    count = device_count(kind)
    if not count:
        if kind in ("cuda", "xpu", "mtia"):
            hint = _MTIA_HINT if kind == "mtia" else ""
            raise AssertionError(
                f"Torch not compiled with {kind.upper()} enabled{hint}"
            )
        if kind in ("privateuseone", "hpu"):
            raise ModuleNotFoundError(f"No module named 'torch.{kind}'")
        raise RuntimeError(_UNLINKED.format(kind))
    if wanted.index is not None and not 0 <= wanted.index < count:
        raise RuntimeError(
            "CUDA error: invalid device ordinal\nGPU device may be out of range, do "
            "you have enough GPUs?"
            if kind == "cuda"
            else f"{wanted} is out of range: {count} {kind} device(s) available"
        )


def resolve(wanted: device) -> device:
    """The device as a tensor on it reports it; raises if it is not available.

    CPU and meta tensors carry no index, accelerator tensors always do.

    >>> resolve(device("cpu:0"))
    device(type='cpu')
    """
    if wanted is _cpu or wanted.type == "cpu":
        return _cpu
    if wanted.type == "meta":
        return _meta
    check_available(wanted)
    if wanted.index is not None:
        return wanted
    return _make(wanted.type, current_index(wanted.type))


def linked(wanted: device) -> device:
    """As `resolve`, for functions that do not try to start the missing library."""
    try:
        return resolve(wanted)
    except (AssertionError, ModuleNotFoundError):
        raise RuntimeError(_UNLINKED.format(wanted.type)) from None


def jax_device(wanted: device) -> JaxDevice:
    """The JAX device that holds the arrays of tensors on `wanted`.

    Raises what PyTorch raises if the device is not available, NotImplementedError
    for "meta", whose tensors have no data.

    >>> jax_device(device("cpu")).platform
    'cpu'
    """
    found = resolve(wanted)
    if found is _meta:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return _devices(found.type)[found.index or 0]
