"""A pipe that decodes files by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any

from torchshim._errors import warn
from torchshim.utils.data.datapipes._decorator import functional_datapipe
from torchshim.utils.data.datapipes.datapipe import IterDataPipe
from torchshim.utils.data.datapipes.utils.common import no_length
from torchshim.utils.data.datapipes.utils.decoder import (
    Decoder,
    basichandlers,
    extension_extract_fn,
    imagehandler,
)

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe[Any]):
    """Pairs of a path and what its file was decoded to, by a `Decoder`."""

    def __init__(
        self,
        datapipe: Iterable[tuple[str, Any]],
        *handlers: Callable[..., Any],
        key_fn: Callable[[str], str] = extension_extract_fn,
    ) -> None:
        super().__init__()
        self.datapipe = datapipe
        chosen = handlers or (basichandlers, imagehandler("torch"))
        self.decoder = Decoder(*chosen, key_fn=key_fn)
        warn(
            "`RoutedDecoderIterDataPipe()` and its functional API `.routed_decode()` "
            "are deprecated since 1.12 and will be removed in 1.13.\nSee "
            "https://github.com/pytorch/data/issues/163 for details.",
            FutureWarning,
        )

    def add_handler(self, *handler: Callable[..., Any]) -> None:
        """More handlers, asked before the others."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        for data in self.datapipe:
            yield data[0], self.decoder(data)[data[0]]

    def __len__(self) -> int:
        if not isinstance(self.datapipe, Sized):
            no_length(self)
        return len(self.datapipe)
