"""A module whose gradients PyTorch averages over processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain
from typing import Any

import torchshim
from torchshim._device_index import _get_device_index as _get_device_index
from torchshim._pytree import tree_flatten, tree_unflatten
from torchshim._tensor import Tensor
from torchshim.autograd import Function as Function
from torchshim.autograd import Variable as Variable
from torchshim.nn.modules.module import Module
from torchshim.nn.parallel.scatter_gather import gather as gather
from torchshim.nn.parallel.scatter_gather import scatter_kwargs as scatter_kwargs
from torchshim.nn.parameter import UninitializedParameter

__all__ = ["DistributedDataParallel"]


@dataclass
class _MixedPrecision:
    """The dtypes of what is computed, sent and kept, which differ."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    buffer_dtype: Any = None


def _find_tensors(obj: Any) -> Iterable[Tensor]:
    """All tensors in lists, tuples, dicts and data classes."""
    if isinstance(obj, Tensor):
        return [obj]
    if isinstance(obj, dict):
        obj = obj.values()
    elif is_dataclass(obj):
        obj = [getattr(obj, field.name) for field in fields(obj)]
    elif not isinstance(obj, (list, tuple)):
        return []
    return chain.from_iterable(map(_find_tensors, obj))


def _tree_flatten_with_rref(output: Any) -> tuple[list[Any], Any, bool]:
    """Leaves, how they were held, and whether remotely: never."""
    return *tree_flatten(output), False


def _tree_unflatten_with_rref(output: Any, treespec: Any, output_is_rref: bool) -> Any:
    if output_is_rref:
        raise NotImplementedError("there is no RPC here: no RRef")
    return tree_unflatten(output, treespec)


class DistributedDataParallel(Module):
    """A module whose gradients are averaged over the processes of a group.

    All processes begin with the first one's parameters and buffers, and each forward
    with its buffers. After a backward, gradients are averaged in one exchange for each
    dtype; `bucket_cap_mb` has an effect on what communication hooks see,
    `gradient_as_bucket_view` none. Follows
    ``torch.nn.parallel.DistributedDataParallel``.
    """

    module: Module

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: Any = None,
    ) -> None:
        from torchshim.distributed import _group  # most programs do without

        super().__init__()
        for name, value in (
            ("mixed_precision", mixed_precision),
            ("device_mesh", device_mesh),
        ):
            if value is not None:
                raise NotImplementedError(
                    f"DistributedDataParallel: {name} is not supported"
                )
        self.process_group = _group.chosen(process_group)
        params = [p for _, p in module.named_parameters()]
        if not any(p.requires_grad for p in params):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any "
                "parameter that requires a gradient."
            )
        if any(isinstance(p, UninitializedParameter) for p in params):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with "
                "`DistributedDataParallel`. Run a dummy forward pass to correctly "
                "initialize the modules"
            )
        devices = {p.device for p in params}
        self.device_type = next(iter(devices)).type
        if device_ids and self.device_type == "cpu":
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only "
                "work with single-device/multiple-device GPU modules or CPU modules, "
                f"but got device_ids {list(device_ids)}, output_device "
                f"{output_device}, and module parameters {devices}."
            )
        if device_ids and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        self.device_ids = list(device_ids) if device_ids else None
        self.output_device = output_device
        self.dim = dim
        self.module = module
        self.device = params[0].device
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        mb = 25 if bucket_cap_mb is None else bucket_cap_mb
        self._bucket_bytes = int(mb * 1024 * 1024)
        self._reducer: Any = None
        self._replica: Any = None
        # `Join` sets it.
        self._join_config: Any = None
        if self.process_group.size() > 1:
            from torchshim.distributed.algorithms._replicas import Replica

            self._replica = Replica(self, init_sync)
            self._reducer = self._make_reducer()

    def _make_reducer(self) -> Any:
        from torchshim.distributed._buckets import Reducer

        ignored = getattr(self.module, "_ddp_params_and_buffers_to_ignore", ())
        named = self.module.named_parameters()
        params = [p for name, p in named if p.requires_grad and name not in ignored]
        unused = self.find_unused_parameters or self.static_graph
        return Reducer(params, self.process_group, self._bucket_bytes, unused)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        if self._reducer is None:
            return self.module(*inputs, **kwargs)
        if self._replica is not None:
            self._replica.before_forward()
        found = self.module(*inputs, **kwargs)
        synced = self.require_backward_grad_sync and torchshim.is_grad_enabled()
        self.require_forward_param_sync = synced
        self._reducer.prepare(synced)
        return found

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What there is to say of the module and its group."""
        params = list(self.module.parameters())
        return {
            "backend_name": self.process_group.name(),
            "module_name": type(self.module).__name__,
            "broadcast_buffers": int(self.broadcast_buffers),
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "num_parameter_tensors": len(params),
            "total_parameter_size_bytes": sum(p.nbytes for p in params),
            "rank": self.process_group.rank(),
            "world_size": self.process_group.size(),
        }

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of the backward passes within stay this process's own."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Any:
        """`distributed.algorithms.join.Join` of this module."""
        from torchshim.distributed.algorithms.join import Join

        joinable: Any = self  # `join` registers the class as one
        return Join(
            [joinable],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, **kwargs: Any) -> Any:
        """What `Join` calls: it takes part in what the others do."""
        if self._replica is not None:
            from torchshim.distributed.algorithms._replicas import ReplicaJoinHook

            return ReplicaJoinHook(self, **kwargs)
        from torchshim.distributed.algorithms.join import JoinHook

        return JoinHook()

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The group whose members share the gradients."""
        return self.process_group

    def register_comm_hook(self, state: object, hook: Any) -> None:
        """Calls `hook(state, bucket)` for the gradients of each backward.

        What the future that it returns gives is put in the place of the gradients.
        RuntimeError for a second hook, TypeError and ValueError for what is none.
        """
        from torchshim.distributed._buckets import check_hook

        check_hook(hook)
        if self._reducer is not None and self._reducer.hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called "
                "once."
            )
        if self.find_unused_parameters or self.static_graph:
            raise NotImplementedError(
                "DistributedDataParallel: communication hooks with "
                "find_unused_parameters=True or static_graph=True are not supported"
            )
        if self._reducer is None:
            self._reducer = self._make_reducer()
        self._reducer.hook, self._reducer.state = hook, state
