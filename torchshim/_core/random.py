"""``torch.Generator`` and the generator that random functions use by default.

See https://docs.pytorch.org/docs/2.13/generated/torch.Generator.html.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core.device import as_device, device, device_count, resolve
from torchshim._core.dtypes import type_name
from torchshim._core.mt19937 import MT19937
from torchshim._core.threefry import Threefry

#: What numbers come from. Everything that draws asks which of them it was given.
Engine = MT19937 | Threefry

_cpu = device("cpu")


_NO_OFFSET = "CPU Generator does not use offset"


class Generator:
    """A stream of random numbers: on the CPU, PyTorch's own, bit for bit; on
    accelerators JAX's counter-based generator's, made by the programs that use them.

    Raises RuntimeError for devices without a generator.

    >>> Generator().manual_seed(3).initial_seed()
    3
    """

    __module__ = "torch._C"
    __slots__ = ("__dict__", "__weakref__", "_device", "engine")

    # Makes the tensor that `get_state` returns; the facade puts it here.
    wrap: Any = None

    def __init__(self, device: Any = "cpu") -> None:
        wanted = as_device("cpu" if device is None else device)
        if wanted is None:
            raise TypeError(
                "Generator(): argument 'device' (position 1) must be torch.device, not "
                f"{type_name(type(device))}"
            )
        if wanted.type != "cpu" and not device_count(wanted.type):
            raise RuntimeError(_without_generator(wanted.type))
        self._device = resolve(wanted)
        self.engine: Any = _engine_for(self._device)

    @property
    def device(self) -> device:
        """The device that the generator draws for."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Restart the stream from a seed."""
        self.engine.manual_seed(seed)
        return self

    def seed(self) -> int:
        """Restart the stream from a seed of the operating system, and return it."""
        return self.engine.seed()

    def initial_seed(self) -> int:
        """The seed that the stream was started from."""
        return self.engine.initial_seed()

    def get_state(self) -> Any:
        """The state as a tensor of bytes, in PyTorch's format."""
        return Generator.wrap(self.engine.get_state())

    def set_state(self, new_state: Any) -> Generator:
        """Continue from a state that `get_state` gave."""
        if not hasattr(new_state, "_tmeta"):
            raise TypeError(
                f"expected a torch.ByteTensor, but got {type_name(type(new_state))}"
            )
        if new_state.dtype.name != "uint8" or new_state.device.type != "cpu":
            raise TypeError("RNG state must be a torch.ByteTensor")
        if not new_state.is_contiguous():
            raise RuntimeError("RNG state must be contiguous")
        self.engine.set_state(np.asarray(new_state._host()))
        return self

    def clone_state(self) -> Generator:
        """An independent generator at the same place of the stream."""
        twin = object.__new__(type(self))
        twin._device = self._device
        twin.engine = self.engine.clone()
        return twin

    def graphsafe_get_state(self) -> Generator:
        """NotImplementedError: graphs of CUDA are not captured."""
        raise NotImplementedError(
            "graphsafe_get_state is not supported in this Generator"
        )

    def graphsafe_set_state(self, state: Any) -> Generator:
        """NotImplementedError, as for `graphsafe_get_state`."""
        if not isinstance(state, Generator):
            raise TypeError(f"expected a Generator, but got {type(state).__name__}")
        raise NotImplementedError(
            "graphsafe_set_state is not supported in this Generator"
        )

    def get_offset(self) -> int:
        """RuntimeError: the place in the stream is part of the state."""
        raise RuntimeError(_NO_OFFSET)

    def set_offset(self, offset: Any) -> Generator:
        """RuntimeError, as for `get_offset`."""
        if not isinstance(offset, int):
            name = type(offset).__name__
            raise RuntimeError(f"manual_offset expected a long, but got {name}")
        raise RuntimeError(_NO_OFFSET)

    def __reduce__(self) -> Any:
        state = self.initial_seed(), None, self.get_state()
        return Generator, (self._device,), state

    def __setstate__(self, state: Any) -> None:
        seed, _, engine = state
        self.manual_seed(seed)
        self.set_state(engine)

    def __repr__(self) -> str:
        return f"<torch._C.Generator object at {hex(id(self))}>"


# What PyTorch says of accelerators whose library it lacks.
_WITHOUT_GENERATOR = {
    "cuda": (
        "Cannot get CUDA generator without ATen_cuda library. PyTorch splits its "
        "backend into two shared libraries: a CPU library and a CUDA library; this "
        "error has occurred because you are trying to use some CUDA functionality, but "
        "the CUDA library has not been loaded by the dynamic linker for some reason.  "
        "The CUDA library MUST be loaded, EVEN IF you don't directly use any symbols "
        "from the CUDA library! One common culprit is a lack of -Wl,--no-as-needed in "
        "your link arguments; many dynamic linkers will delete dynamic library "
        "dependencies if you don't depend on any of their symbols.  You can check if "
        "this has occurred by using ldd on your binary to see if there is a dependency "
        "on *_cuda.so library."
    ),
    "xpu": "Cannot get XPU generator without ATen_xpu library.",
    "xla": (
        "Cannot get XLA generator without torch_xla library. This error has occurred "
        "because you are trying to use some XLA functionality, but the XLA library has "
        "not been loaded by the dynamic linker. You must load xla libraries by `import "
        "torch_xla`"
    ),
    "mps": "Cannot execute getNewGenerator() without MPS backend.",
    "mtia": "Cannot execute getNewGenerator() without MTIA backend.",
    "hpu": "Backend doesn`t support getNewGenerator()",
    "hip": "Backend doesn`t support getNewGenerator()",
    "privateuseone": (
        "Please register PrivateUse1HooksInterface by "
        "`RegisterPrivateUse1HooksInterface` first."
    ),
}


def _without_generator(kind: str) -> str:
    """The error about a generator for a device that is not there."""
    found = _WITHOUT_GENERATOR.get(kind)
    return found or f"{kind.upper()} device type not an accelerator."


def _engine_for(where: device) -> Engine:
    """The one place that decides which devices have PyTorch's own numbers."""
    return MT19937() if where.type == "cpu" else Threefry()


default_generator = Generator()
# Every process draws other numbers until it chooses a seed.
default_generator.seed()


def engine_of(generator: Any, function: str, where: device) -> Engine:
    """The engine to draw from for tensors on `where`, with PyTorch's checks.

    >>> engine_of(None, "rand", device("cpu")) is default_generator.engine
    True
    """
    if generator is None:
        if where.type in ("cpu", "meta"):  # nothing is drawn for the latter
            return default_generator.engine
        return _of_device(where).engine
    if not isinstance(generator, Generator):
        raise TypeError(
            f"{function}(): argument 'generator' must be torch.Generator, not "
            f"{type_name(type(generator))}"
        )
    if generator.device.type != where.type:
        raise RuntimeError(
            f"Expected a '{where.type}' device type for generator but found "
            f"'{generator.device.type}'"
        )
    return generator.engine


_by_device: dict[device, Generator] = {}


def _of_device(where: device) -> Generator:
    # Each device has a stream of its own, with the seed that `manual_seed` set.
    found = _by_device.get(where)
    if found is None:
        found = _by_device[where] = Generator(resolve(where))
        found.manual_seed(default_generator.initial_seed())
    return found


def of_device(where: device) -> Generator:
    """The default generator of an accelerator's device."""
    return _of_device(where)


def snapshot() -> dict[device, Engine]:
    """Where the default generators are in their streams."""
    found = {where: g.engine.clone() for where, g in _by_device.items()}
    found[_cpu] = default_generator.engine.clone()
    return found


def restore(states: dict[device, Engine]) -> None:
    """Puts the default generators back to where a snapshot was taken."""
    for where, engine in states.items():
        chosen = default_generator if where == _cpu else _of_device(where)
        chosen.engine.copy_from(engine)


def seed_all(seed: int) -> None:
    """Restarts every default generator from one seed.

    >>> seed_all(0)
    >>> default_generator.initial_seed()
    0
    """
    default_generator.manual_seed(seed)
    for generator in _by_device.values():
        generator.manual_seed(seed)
