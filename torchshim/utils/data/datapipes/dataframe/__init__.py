"""Pipes of data frames: their steps are not here."""

from torchshim._errors import refused
from torchshim.utils.data.datapipes.dataframe import (
    dataframe_wrapper as dataframe_wrapper,
)
from torchshim.utils.data.datapipes.datapipe import DFIterDataPipe as DFIterDataPipe

globals().update(
    refused(
        __name__,
        "CaptureDataFrame DataFramesAsTuplesPipe",
        "operations on data frames are not recorded",
    )
)
