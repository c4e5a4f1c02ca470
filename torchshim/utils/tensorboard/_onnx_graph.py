"""Files of ONNX as TensorBoard's graphs; needs the package onnx."""

# pyright: reportMissingImports=false, reportMissingModuleSource=false

from __future__ import annotations

import importlib
from typing import Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef


def load_onnx_graph(fname: Any) -> GraphDef:
    """The graph of a file; ModuleNotFoundError where onnx is not installed."""
    return parse(importlib.import_module("onnx").load(fname).graph)


def parse(graph: Any) -> GraphDef:
    """The graph of an ONNX `GraphProto`, whose names are printed."""
    nodes = []
    for value in [*graph.input, *graph.output]:
        print(value.name)
        kind = value.type.tensor_type
        dim = [TensorShapeProto.Dim(size=each.dim_value) for each in kind.shape.dim]
        attr = {
            "dtype": AttrValue(type=kind.elem_type),
            "shape": AttrValue(shape=TensorShapeProto(dim=dim)),
        }
        nodes.append(NodeDef(name=value.name, op="Variable", attr=attr))
    for node in graph.node:
        name = node.output[0]
        print(name)
        given = ", ".join(
            " = ".join(str(field[1]) for field in each.ListFields())
            for each in node.attribute
        )
        attr = {"parameters": AttrValue(s=given.encode())}
        nodes.append(NodeDef(name=name, op=node.op_type, input=node.input, attr=attr))
    return GraphDef(node=nodes, versions=VersionDef(producer=22))
