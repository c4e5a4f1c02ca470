"""Hooks on the gradients of tensors, and tensors that leave the graph."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from torchshim._core import hooks
from torchshim._core.hooks import hooks_of, new_hooks
from torchshim._core.record import local
from torchshim._core.saved import detached_in_place
from torchshim._core.state import DETACHED
from torchshim._functions.autograd import method
from torchshim._hooks import RemovableHandle
from torchshim._tensor import Tensor

_DETACH_VIEW = (
    "Can't detach views in-place. Use detach() instead. If you are using "
    "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
    "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
    "these gradients. To fix this error, please refer to the Optimizer.zero_grad() "
    "function in torch/optim/optimizer.py as the solution."
)


# -- hooks -----------------------------------------------------------------------------


@method
def register_hook(self: Tensor, hook: Callable[..., Any]) -> RemovableHandle:
    """Calls `hook(grad)` for each gradient of this tensor; a result replaces it.

    RuntimeError if it does not require grad. `remove()` of the result takes the hook
    away.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.register_hook.html

    >>> import torchshim as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> (x * 2).backward()
    >>> x.grad
    tensor(20.)
    """
    if not self._tmeta.requires_grad:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    found = new_hooks(self) if self._hooks is None else hooks_of(self, make=True)
    assert found is not None
    if found.backward is None:
        found.backward = OrderedDict()
        if found.retained is not None:  # which is of no account for the order
            found.come_last(local.rec, self)
    handle = RemovableHandle(found.backward)
    found.backward[handle.id] = hook
    return handle


@method
def register_post_accumulate_grad_hook(
    self: Tensor, hook: Callable[..., Any]
) -> RemovableHandle:
    """Calls `hook(tensor)` each time a gradient was added to this leaf's `.grad`.

    RuntimeError for what is no leaf or does not require grad.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.register_post_accumulate_grad_hook.html

    >>> import torchshim as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda x: print(x.grad))
    >>> (x * 2).backward()
    tensor(2.)
    """
    if not self._tmeta.requires_grad:
        raise RuntimeError(
            "cannot register a hook on a tensor that doesn't require gradient"
        )
    if not self.is_leaf:
        self._unaware = False  # its node was asked for
        raise RuntimeError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
        )
    found = hooks_of(self, make=True)
    assert found is not None
    if found.post is None:
        found.post = OrderedDict()
    handle = RemovableHandle(found.post)
    found.post[handle.id] = hook
    return handle


# -- leaving the graph -----------------------------------------------------------------


@method
def detach_(self: Tensor) -> Tensor:
    """Takes this tensor out of the graph that made it: it becomes a leaf.

    RuntimeError for views.

    https://docs.pytorch.org/docs/2.13/generated/torch.Tensor.detach_.html

    >>> import torchshim as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> y = x * 2
    >>> y.detach_(), y.requires_grad
    (tensor([2.]), False)
    """
    if self._is_view() and not local.rec.inference:
        raise RuntimeError(_DETACH_VIEW)
    meta, rec = self._tmeta, local.rec
    if rec.levels and rec.transforming():
        rec.check_captured(self, "detach_")
        if rec.levels[-1].number in [number for number, _ in meta.batch]:
            raise RuntimeError(_DETACH_VIEW)  # as PyTorch's view of the batch
        if rec.detach_in_forward(self):
            return self
    if rec.recording.duals:
        rec.recording.duals.pop(rec.slot_of(self), None)
        self._tangents = None
    if meta.requires_grad:
        if not meta.leaf:
            recording, slot = hooks.place_of(rec, self)
            recording.detached.add(slot)
            detached_in_place[0] += 1
            if recording is rec.recording:
                rec.mark(DETACHED, slot)
        changed = meta.plain
        if self._storage is None:
            if self._slot >= 0:
                self._slot = rec.identity(rec.slot_of(self), changed)
                # It may have been in another thread's recording so far.
                rec.live.append(weakref.ref(self))
        else:
            rec.settle_views_before_switch(self, False)
            self._slot = -1
        self._tmeta = changed
        if self._storage is not None:
            rec.let_views_inherit(self, False)
        if not meta.leaf:
            self._hist = self._node = None
            hooks.leave_node(self)
    return self
