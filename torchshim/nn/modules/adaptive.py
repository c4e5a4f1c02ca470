"""The softmax over many classes by clusters of rare ones."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import torchshim
from torchshim._tensor import Tensor
from torchshim.nn import functional as F
from torchshim.nn.modules.container import ModuleList, Sequential
from torchshim.nn.modules.linear import Linear
from torchshim.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Log probabilities of classes sorted by frequency, the rare ones in clusters.

    The head decides among the first `cutoffs[0]` classes and the clusters; each cluster
    has a smaller projection than the one before. Gives `(output, loss)`: the log
    probability of each target, and the mean of their negatives. Follows
    ``torch.nn.AdaptiveLogSoftmaxWithLoss``.

    >>> import torchshim as torch
    >>> m = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 5])
    >>> output, loss = m(torch.zeros(3, 8), torch.tensor([0, 4, 9]))
    >>> output.shape, loss.shape
    (torch.Size([3]), torch.Size([]))
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(set(cutoffs))
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or any(int(c) != c for c in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in "
                "an increasing order, where each value is between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        kind: dict[str, Any] = {"device": device, "dtype": dtype}
        self.head = Linear(in_features, self.head_size, bias=head_bias, **kind)
        self.tail = ModuleList()
        for i, (low, high) in enumerate(self._clusters()):
            width = int(in_features // (div_value ** (i + 1)))
            self.tail.append(
                Sequential(
                    Linear(in_features, width, bias=False, **kind),
                    Linear(width, high - low, bias=False, **kind),
                )
            )

    def _clusters(self) -> list[tuple[int, int]]:
        """The first class of each cluster, and the first after it."""
        return list(zip(self.cutoffs[:-1], self.cutoffs[1:], strict=True))

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        self.head.reset_parameters()
        for projection in self.tail:
            for layer in projection.children():
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> Any:
        dims = target_.dim()
        if dims > 1:
            raise RuntimeError(
                "0D or 1D target tensor expected, multi-target not supported"
            )
        if dims == 1 and input_.size(0) != target_.size(0):
            raise RuntimeError(
                "Input and target should have the same size in the batch dimension."
            )
        if input_.dim() != dims + 1:
            raise RuntimeError(
                f"{dims}D target tensor expects {dims + 1}D input tensors, but found "
                f"inputs with size {input_.size()}"
            )
        input = input_ if dims else input_.unsqueeze(0)
        target = target_ if dims else target_.unsqueeze(0)
        batch = target.size(0)
        output = input.new_zeros(batch)
        chosen = target.new_empty(batch)
        used = 0
        for i, (low, high) in enumerate([(0, self.cutoffs[0]), *self._clusters()]):
            mask = torchshim.logical_and(target >= low, target < high)
            rows = mask.nonzero().squeeze()
            if not rows.numel():
                continue
            used += rows.numel()
            if i == 0:
                chosen.index_copy_(0, rows, target[mask])
                continue
            # The head gives the cluster, the cluster the class within it.
            inner = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
            found = inner.gather(1, (target[mask] - low).unsqueeze(1))
            chosen.index_fill_(0, rows, self.shortlist_size + i - 1)
            output.index_copy_(0, rows, found.squeeze(1))
        if used != batch:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in "
                f"range [{target.min().item()}, {target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        output += head.gather(1, chosen.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if dims else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, projection in enumerate(self.tail):
            inner = F.log_softmax(projection(input), dim=1)
            parts.append(inner + head[:, self.shortlist_size + i].unsqueeze(1))
        return torchshim.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probabilities of all classes, of shape (batch, n_classes)."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most likely class of each row."""
        # As PyTorch: the classes of the head where one of them leads there.
        head = self.head(input)
        first = torchshim.argmax(head, dim=1)
        best = torchshim.argmax(self._get_full_log_prob(input, head), dim=1)
        return torchshim.where(first < self.shortlist_size, first, best)
