"""Pipes that apply functions to samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torchshim.utils.data._utils.collate import default_collate
from torchshim.utils.data.datapipes._decorator import functional_datapipe
from torchshim.utils.data.datapipes.datapipe import IterDataPipe
from torchshim.utils.data.datapipes.utils.common import (
    StreamWrapper,
    check_picklable,
    length_of,
    validate_input_col,
)

__all__ = ["CollatorIterDataPipe", "FilterIterDataPipe", "MapperIterDataPipe"]


def _called(fn: Callable[..., Any], data: Any, columns: Any) -> Any:
    if columns is None:
        return fn(data)
    if isinstance(columns, (list, tuple)):
        return fn(*(data[column] for column in columns))
    return fn(data[columns])


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe[Any]):
    """What a function makes of each sample, or of some of its columns.

    The result takes the place of `output_col` (-1: a new last one), or of the columns
    that were read.
    """

    def __init__(
        self,
        datapipe: Any,
        fn: Callable[..., Any],
        input_col: Any = None,
        output_col: Any = None,
    ) -> None:
        super().__init__()
        self.datapipe = datapipe
        check_picklable(fn)
        self.fn = fn
        self.input_col = input_col
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]  # type: ignore[index]
        self.output_col = output_col
        validate_input_col(fn, input_col)

    def _apply_fn(self, data: Any) -> Any:
        result = _called(self.fn, data, self.input_col)
        if self.input_col is None:
            return result
        made = list(data) if isinstance(data, tuple) else data
        if self.output_col == -1:
            made.append(result)
        elif self.output_col is not None:
            made[self.output_col] = result
        elif isinstance(self.input_col, (list, tuple)):
            made[self.input_col[0]] = result
            for column in sorted(self.input_col[1:], reverse=True):
                del made[column]
        else:
            made[self.input_col] = result
        return tuple(made) if isinstance(data, tuple) else made

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield self._apply_fn(data)

    def __len__(self) -> int:
        return length_of(self, self.datapipe)[0]


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches made tensors, by `default_collate` or another function."""

    def __init__(
        self, datapipe: Any, conversion: Any = default_collate, collate_fn: Any = None
    ) -> None:
        chosen = conversion if collate_fn is None else collate_fn
        if not callable(chosen):
            raise NotImplementedError(
                "collate() by columns is for data frames, which are not supported"
            )
        super().__init__(datapipe, fn=chosen)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe[Any]):
    """The samples for which a function of them, or of some columns, is true."""

    def __init__(
        self, datapipe: Any, filter_fn: Callable[..., bool], input_col: Any = None
    ) -> None:
        super().__init__()
        self.datapipe = datapipe
        check_picklable(filter_fn)
        self.filter_fn = filter_fn
        self.input_col = input_col
        validate_input_col(filter_fn, input_col)

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            chosen = _called(self.filter_fn, data, self.input_col)
            if not isinstance(chosen, bool):
                raise ValueError(
                    "Boolean output is required for `filter_fn` of FilterIterDataPipe, "
                    "got",
                    type(chosen),
                )
            if chosen:
                yield data
            else:
                StreamWrapper.close_streams(data)
