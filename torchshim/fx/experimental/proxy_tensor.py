"""Tracing functions into graphs: not supported."""

from torchshim._errors import unsupported

__all__ = ["get_proxy_mode", "make_fx"]

make_fx = unsupported(
    "fx.experimental.proxy_tensor.make_fx", "what is recorded is no graph of torch.fx"
)


def get_proxy_mode() -> None:
    """The mode that traces into a graph: none ever does."""
