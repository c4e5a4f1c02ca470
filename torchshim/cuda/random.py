"""The random number generators of GPUs.

https://docs.pytorch.org/docs/2.13/cuda.html#random-number-generator. Without a GPU,
seeds are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torchshim._core import device as devices
from torchshim._core.random import Generator, of_device
from torchshim.cuda._devices import (
    current_device,
    device_count,
    index_of,
    is_available,
    need,
)
from torchshim.cuda._devices import is_initialized as is_initialized

__all__ = [
    "get_rng_state",
    "get_rng_state_all",
    "initial_seed",
    "manual_seed",
    "manual_seed_all",
    "seed",
    "seed_all",
    "set_rng_state",
    "set_rng_state_all",
]


def generator(index: int) -> Generator:
    """The generator of one GPU."""
    return of_device(devices.device("cuda", index))


def get_rng_state(device: Any = "cuda") -> Any:
    """The state of a GPU's generator, as a tensor of bytes."""
    need()
    return generator(index_of(device)).get_state()


def get_rng_state_all() -> list[Any]:
    """The states of all GPUs' generators."""
    return [generator(i).get_state() for i in range(device_count())]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Sets the state of a GPU's generator."""
    if is_available():
        generator(index_of(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Sets the states of all GPUs' generators."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def manual_seed(seed: int) -> None:
    """Seeds the numbers drawn for the current GPU."""
    number = int(seed)
    if is_available():
        generator(current_device()).manual_seed(number)


def manual_seed_all(seed: int) -> None:
    """Seeds the numbers drawn for every GPU."""
    number = int(seed)
    for index in range(device_count()):
        generator(index).manual_seed(number)


def seed() -> None:
    """Seeds the current GPU's generator with a number from the system."""
    if is_available():
        generator(current_device()).seed()


def seed_all() -> None:
    """Seeds all GPUs' generators with one number from the system."""
    if is_available():
        manual_seed_all(generator(0).seed())


def initial_seed() -> int:
    """The seed of the current GPU's generator."""
    return generator(current_device()).initial_seed()
