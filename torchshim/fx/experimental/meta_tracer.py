"""Tracing with tensors without data beside: not supported."""

from torchshim._errors import refused

globals().update(
    refused(
        __name__,
        "MetaAttribute MetaProxy MetaTracer symbolic_trace",
        "ShapeProp with tensors on the device meta tells the shapes",
    )
)
