"""A picture of the autograd graph, as dot text and SVG: `torchshim.graph(tensor)`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from torchshim._core.node import AccumulateGrad
from torchshim._functions.nodes import gradient_edge
from torchshim._tensor import Tensor

# Fill colours of a leaf, an operator and a root.
_LEAF, _OPERATOR, _ROOT = "#cfe8ff", "#f2f2f2", "#d6f5d6"
_LETTER, _LINE, _PAD, _GAP, _BETWEEN = 7.2, 15.0, 9.0, 18.0, 34.0


class _Box:
    """A node as it is drawn."""

    def __init__(self, number: int, lines: list[str], colour: str) -> None:
        self.number = number
        self.lines = lines
        self.colour = colour
        self.below: list[tuple[_Box, int]] = []
        self.rank = 0
        self.x = self.y = 0.0
        self.width = max(len(line) for line in lines) * _LETTER + 2 * _PAD
        self.height = len(lines) * _LINE + 2 * _PAD


class Graph:
    """What `graph` gives: notebooks show it, `save` writes it."""

    def __init__(self, roots: Iterable[Tensor], names: Mapping[int, str]) -> None:
        self.boxes = _boxes(list(roots), names)

    def dot(self) -> str:
        """The graph in Graphviz's language."""
        lines = ["digraph {", '  node [shape=box style=filled fontname="monospace"]']
        for box in self.boxes:
            label = "\\n".join(line.replace('"', '\\"') for line in box.lines)
            lines.append(f'  {box.number} [label="{label}" fillcolor="{box.colour}"]')
        for box in self.boxes:
            for other, output in box.below:
                label = f' [label="{output}"]' if output else ""
                lines.append(f"  {other.number} -> {box.number}{label}")
        return "\n".join([*lines, "}"]) + "\n"

    def svg(self) -> str:
        """The graph as an SVG image: leaves above, results below."""
        width, height = _place(self.boxes)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
            'font-family="monospace" font-size="12">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" '
            'markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>',
        ]
        for box in self.boxes:
            for other, output in box.below:
                x1, y1 = other.x, other.y + other.height / 2
                x2, y2 = box.x, box.y - box.height / 2
                bend = (y2 - y1) / 2
                parts.append(
                    f'<path d="M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 + bend:.1f} {x2:.1f} '
                    f'{y2 - bend:.1f} {x2:.1f} {y2:.1f}" fill="none" stroke="#555" '
                    'marker-end="url(#tip)"/>'
                )
                if output:
                    parts.append(
                        f'<text x="{x1 + 4:.1f}" y="{y1 + 12:.1f}">{output}</text>'
                    )
        for box in self.boxes:
            left, top = box.x - box.width / 2, box.y - box.height / 2
            parts.append(
                f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" '
                f'height="{box.height:.1f}" rx="4" fill="{box.colour}" '
                'stroke="#555"/>'
            )
            for i, line in enumerate(box.lines):
                y = top + _PAD + (i + 0.8) * _LINE
                parts.append(
                    f'<text x="{box.x:.1f}" y="{y:.1f}" text-anchor="middle">'
                    f"{escape(line)}</text>"
                )
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _repr_svg_(self) -> str:
        return self.svg()

    def save(self, path: str | Path) -> None:
        """Writes the graph to a file ending in .svg, .dot or .gv."""
        path = Path(path)
        if path.suffix == ".svg":
            text = self.svg()
        elif path.suffix in (".dot", ".gv"):
            text = self.dot()
        else:
            raise ValueError(f"expected a name that ends in .svg, .dot or .gv: {path}")
        path.write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        edges = sum(len(box.below) for box in self.boxes)
        return f"<graph of {len(self.boxes)} nodes and {edges} edges>"


def graph(*tensors: Tensor, names: Mapping[str, Tensor] | Iterable[Any] = ()) -> Graph:
    """A picture of how autograd got from the leaves to these tensors.

    `names` gives leaves names: a dict, or pairs as `module.named_parameters()` gives
    them. Raises RuntimeError for a tensor that does not require grad.

    >>> import torchshim as torch
    >>> w = torch.ones(2, 3, requires_grad=True)
    >>> y = (w * 2).sum()
    >>> picture = torch.graph(y, names={"w": w})
    >>> picture
    <graph of 3 nodes and 2 edges>
    >>> print(picture.dot().splitlines()[-2])
      2 -> 1
    """
    pairs = names.items() if isinstance(names, Mapping) else names
    return Graph(tensors, {id(tensor): name for name, tensor in pairs})


def _boxes(roots: list[Tensor], names: Mapping[int, str]) -> list[_Box]:
    edges = [gradient_edge(root) for root in roots]
    starts = {edge.node for edge in edges}
    found: dict[Any, _Box] = {}
    queue = deque(dict.fromkeys(edge.node for edge in edges))
    for node in queue:
        found[node] = _box(len(found), node, node in starts, names)
    while queue:
        node = queue.popleft()
        for other, output in node.next_functions:
            if other is None:
                continue
            if other not in found:
                found[other] = _box(len(found), other, False, names)
                queue.append(other)
            found[node].below.append((found[other], output))
    boxes = list(found.values())
    _rank(boxes)
    return boxes


def _box(number: int, node: Any, root: bool, names: Mapping[int, str]) -> _Box:
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        shape = str(tuple(leaf.shape))
        name = names.get(id(leaf))
        return _Box(number, [name, shape] if name else [shape], _LEAF)
    shapes = [str(tuple(meta.shape)) for meta in node._input_metadata]
    return _Box(number, [node.name(), *shapes], _ROOT if root else _OPERATOR)


def _rank(boxes: list[_Box]) -> None:
    """The longest way from a leaf: what a box is made of lies above it."""
    users: dict[int, list[_Box]] = {box.number: [] for box in boxes}
    waiting = {box.number: len(box.below) for box in boxes}
    for box in boxes:
        for other, _ in box.below:
            users[other.number].append(box)
    ready = [box for box in boxes if not box.below]
    while ready:
        box = ready.pop()
        for user in users[box.number]:
            user.rank = max(user.rank, box.rank + 1)
            waiting[user.number] -= 1
            if not waiting[user.number]:
                ready.append(user)
    # A leaf goes right above the first box that uses it.
    for box in boxes:
        if not box.below and users[box.number]:
            box.rank = min(user.rank for user in users[box.number]) - 1


def _place(boxes: list[_Box]) -> tuple[float, float]:
    """Gives each box its place, a row a rank; returns the picture's size."""
    rows: dict[int, list[_Box]] = {}
    for box in boxes:
        rows.setdefault(box.rank, []).append(box)
    users: dict[int, list[_Box]] = {box.number: [] for box in boxes}
    for box in boxes:
        for other, _ in box.below:
            users[other.number].append(box)
    y = _PAD
    for rank in sorted(rows):
        height = max(box.height for box in rows[rank])
        for box in rows[rank]:
            box.y = y + height / 2
        y += height + _BETWEEN
    # From the results up: each row in the order of the middle of what uses it.
    for rank in sorted(rows, reverse=True):
        row = rows[rank]

        def middle(box: _Box) -> float:
            above = users[box.number]
            return sum(u.x for u in above) / len(above) if above else 0.0

        row.sort(key=middle)
        wanted = [middle(box) for box in row]
        left = float("-inf")
        for box, at in zip(row, wanted, strict=True):
            box.x = max(at, left + box.width / 2)
            left = box.x + box.width / 2 + _GAP
        shift = sum(w - b.x for w, b in zip(wanted, row, strict=True)) / len(row)
        for box in row:
            box.x += shift
    first = min(box.x - box.width / 2 for box in boxes) - _PAD
    for box in boxes:
        box.x -= first
    width = max(box.x + box.width / 2 for box in boxes) + _PAD
    return width, y - _BETWEEN + _PAD


__all__ = ["Graph", "graph"]
