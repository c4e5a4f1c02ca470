"""Processes in rows and columns: not supported."""

from __future__ import annotations

from torchshim._errors import unsupported

__all__ = ["DeviceMesh", "init_device_mesh"]

_REASON = "groups have no meshes here (new_group makes groups)"
DeviceMesh = unsupported("distributed.device_mesh.DeviceMesh", _REASON)
init_device_mesh = unsupported("distributed.device_mesh.init_device_mesh", _REASON)
