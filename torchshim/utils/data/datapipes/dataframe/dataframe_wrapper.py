"""Data frames by the library that makes them: pandas, unless another is set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def _pandas() -> Any:
    try:
        import pandas  # type: ignore[import-not-found]
    except ImportError:
        return None
    return pandas


def _required() -> Any:
    pandas = _pandas()
    if pandas is None:
        raise RuntimeError("DataFrames prototype requires pandas to function")
    return pandas


class PandasWrapper:
    """What is done with data frames, by pandas."""

    @classmethod
    def create_dataframe(cls, data: Any, columns: Sequence[str] | None) -> Any:
        return _required().DataFrame(data, columns=columns)

    @classmethod
    def is_dataframe(cls, data: Any) -> bool:
        pandas = _pandas()
        return pandas is not None and isinstance(data, pandas.DataFrame)

    @classmethod
    def is_column(cls, data: Any) -> bool:
        pandas = _pandas()
        return pandas is not None and isinstance(data, pandas.Series)

    @classmethod
    def iterate(cls, data: Any) -> Iterator[Any]:
        _required()
        yield from data.itertuples(index=False)

    @classmethod
    def concat(cls, buffer: Any) -> Any:
        return _required().concat(buffer)

    @classmethod
    def get_item(cls, data: Any, idx: int) -> Any:
        _required()
        return data[idx : idx + 1]

    @classmethod
    def get_len(cls, df: Any) -> int:
        _required()
        return len(df.index)

    @classmethod
    def get_columns(cls, df: Any) -> list[Any]:
        _required()
        return list(df.columns.values.tolist())


default_wrapper: Any = PandasWrapper


def get_df_wrapper() -> Any:
    """The class that makes data frames."""
    return default_wrapper


def set_df_wrapper(wrapper: Any) -> None:
    """Has another class make them."""
    global default_wrapper
    default_wrapper = wrapper


def create_dataframe(data: Any, columns: Sequence[str] | None = None) -> Any:
    """A data frame of rows."""
    return default_wrapper.create_dataframe(data, columns)


def is_dataframe(data: Any) -> bool:
    """Whether something is a data frame."""
    return default_wrapper.is_dataframe(data)


def get_columns(data: Any) -> list[Any]:
    """The names of its columns."""
    return default_wrapper.get_columns(data)


def is_column(data: Any) -> bool:
    """Whether something is a column of one."""
    return default_wrapper.is_column(data)


def concat(buffer: Any) -> Any:
    """Several data frames, one after the other."""
    return default_wrapper.concat(buffer)


def iterate(data: Any) -> Iterator[Any]:
    """Its rows."""
    return default_wrapper.iterate(data)


def get_item(data: Any, idx: int) -> Any:
    """One of its rows, as a data frame."""
    return default_wrapper.get_item(data, idx)


def get_len(df: Any) -> int:
    """How many rows it has."""
    return default_wrapper.get_len(df)
