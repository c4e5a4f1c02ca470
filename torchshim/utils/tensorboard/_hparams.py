"""The messages that tell TensorBoard of a run's settings."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import logging
from typing import Any

from google.protobuf import struct_pb2
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.plugins.hparams import metadata
from tensorboard.plugins.hparams.api_pb2 import (
    DataType,
    Experiment,
    HParamInfo,
    MetricInfo,
    MetricName,
    Status,
)
from tensorboard.plugins.hparams.plugin_data_pb2 import (
    HParamsPluginData,
    SessionEndInfo,
    SessionStartInfo,
)

from torchshim._tensor import Tensor
from torchshim.utils.tensorboard._utils import make_np

logger = logging.getLogger(__name__)


def hparams(
    hparam_dict: Any = None, metric_dict: Any = None, hparam_domain_discrete: Any = None
) -> tuple[Summary, Summary, Summary]:
    """The experiment, and the begin and the end of its session.

    Raises TypeError for what is no dictionary or does not fit, ValueError for settings
    that are neither numbers, texts, truth values nor tensors.
    """
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            text = f"parameter: {name} should be a dictionary, nothing logged."
            logger.warning(text)
            raise TypeError(text)
    domains = hparam_domain_discrete or {}
    if not isinstance(domains, dict):
        raise TypeError(
            "parameter: hparam_domain_discrete should be a dictionary, nothing logged."
        )
    for name, values in domains.items():
        if (
            name not in hparam_dict
            or not isinstance(values, list)
            or not all(isinstance(each, type(hparam_dict[name])) for each in values)
        ):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same "
                f"type as hparam_dict[{name}]."
            )
    start = SessionStartInfo()
    infos = []
    for name, value in hparam_dict.items():
        if value is None:
            continue
        domain = domains.get(name) if not isinstance(value, Tensor) else None
        field, kind, plain = _setting(value)
        start.hparams[name].MergeFrom(struct_pb2.Value(**{field: plain}))
        info = HParamInfo(name=name, type=DataType.Value(kind))
        if domain is not None:
            found = [struct_pb2.Value(**{field: each}) for each in domain]
            info.domain_discrete.CopyFrom(struct_pb2.ListValue(values=found))
        infos.append(info)
    metrics = [MetricInfo(name=MetricName(tag=tag)) for tag in metric_dict]
    end = SessionEndInfo(status=Status.Value("STATUS_SUCCESS"))
    return (
        _message(
            metadata.EXPERIMENT_TAG,
            experiment=Experiment(hparam_infos=infos, metric_infos=metrics),
        ),
        _message(metadata.SESSION_START_INFO_TAG, session_start_info=start),
        _message(metadata.SESSION_END_INFO_TAG, session_end_info=end),
    )


def _setting(value: Any) -> tuple[str, str, Any]:
    """The field of a setting's message, its type, and what is written."""
    if isinstance(value, (int, float)):  # truth values, too, as in PyTorch
        return "number_value", "DATA_TYPE_FLOAT64", value
    if isinstance(value, str):
        return "string_value", "DATA_TYPE_STRING", value
    if isinstance(value, Tensor):
        return "number_value", "DATA_TYPE_FLOAT64", make_np(value)[0]
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def _message(tag: str, **content: Any) -> Summary:
    data = HParamsPluginData(version=metadata.PLUGIN_DATA_VERSION, **content)
    plugin = SummaryMetadata.PluginData(
        plugin_name=metadata.PLUGIN_NAME, content=data.SerializeToString()
    )
    about = SummaryMetadata(plugin_data=plugin)
    return Summary(value=[Summary.Value(tag=tag, metadata=about)])
