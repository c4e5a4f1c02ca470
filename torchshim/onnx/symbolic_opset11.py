"""Symbolic functions of ONNX's opset 11: none, as programs cannot be exported."""
