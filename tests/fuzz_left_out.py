"""What random programs may differ in, since no program relies on it."""

from __future__ import annotations

import re
from typing import Any

from tests.fuzz_scope import memory_of

# Names that random programs have.
ANY_GRAD = [f"t{n}.grad" for n in range(100)]
_OTHER_SHAPE = re.compile(r"got \[(.*)\] but expected shape compatible with \[(.*)\]")


_AS_VIEW = re.compile(
    "view was created in no_grad|Can't detach views in-place|"
    "view size is not compatible"
)


def takes_gradient_for_view(error: Any, other: Any) -> bool:
    """Whether only PyTorch fails, at a gradient that is a view or transposed there."""
    return bool(error and other is None and _AS_VIEW.search(error[1]))


def has_expanded(found: dict[str, Any], lines: list[str]) -> bool:
    """Whether elements of a tensor are one in memory though no line expands it."""
    asked = any(".expand(" in line for line in lines)
    return any(
        n > 1 and step == 0
        for each in found.values()
        if isinstance(each, dict) and "stride" in each and each["leaf"] >= asked
        for n, step in zip(each["shape"], each["stride"], strict=True)
    )


def views_of_gradients(expected: Any, lines: list[str]) -> bool:
    """Whether a gradient was written to of which PyTorch's engine made another one."""
    made = [re.match(r"(t\d+(?:, t\d+)*), = torch.autograd.grad", n) for n in lines]
    names = {name for m in made if m for name in m[1].split(", ")}
    # Writes that no version counts.
    unseen = {m[1] for n in lines if (m := re.match(r"(t\d+)\.data\b", n))}
    for each in expected.snapshots.values():
        if names and _AS_VIEW.search(each.get("failed", ["", ""])[1]):
            return True  # told where its node is looked at
        if any(version for _, version in each.get("gradients", {}).get("shared", ())):
            return True
        for group in each.get("memory", {}).get("shared", ()):
            grads = names.intersection(group)
            objects = [o for o in each["same"]["objects"] if not grads.isdisjoint(o)]
            written = unseen.intersection(grads) or any(
                each[name]["version"] for name in grads
            )
            if len(objects) > 1 and written:
                return True
    return False


def shared_gradients(named: dict[str, Any]) -> list[Any]:
    """[names, the highest version] of `.grad`s that are in one memory."""
    memory: dict[int, dict[int, tuple[str, Any]]] = {}
    for name, tensor in named.items():
        grad = tensor.grad
        if grad is not None and grad.numel():
            memory.setdefault(memory_of(grad), {}).setdefault(id(grad), (name, grad))
    return [
        [sorted(name for name, _ in group), max(grad._version for _, grad in group)]
        for group in ([*each.values()] for each in memory.values() if len(each) > 1)
    ]


def asks_of_results(expected: Any, lines: list[str]) -> bool:
    """Whether a gradient of a gradient is asked for by what is no leaf.

    PyTorch's formulas are of some operators' results (`sigmoid`), here of operands.
    """
    # Names of gradients that have a history, and of what was computed with them.
    gradients: set[str] = set()
    for line in lines:
        read = line.rpartition(", = ")[2]
        used = gradients.intersection(re.findall(r"t\d+(?:\.grad)?", read))
        asked = re.search(r"grad\(.*\[(t[\d, t]*)\], allow_unused", line)
        for name in asked[1].split(", ") if asked and used else ():
            for each in expected.snapshots.values():
                if name in each and not each[name]["leaf"]:
                    return True
        if "create_graph=True" in line:
            made = re.match(r"(t\d+(?:, t\d+)*), = ", line)
            # A backward gives them to any of the leaves.
            gradients.update(made[1].split(", ") if made else ANY_GRAD)
        elif used:
            gradients.update(re.findall(r"t\d+", line))
    return False


def unordered(expected: Any, lines: list[str]) -> bool:
    """Whether a backward failed that other threads' nodes may be part of.

    Which of the nodes of two threads comes first is told by how many each has made; so
    is what was added to `.grad`s before the one that failed, or read by a hook, and
    which one fails where several would.
    """
    threads = any("thread(" in line for line in lines)
    failed = [lines[at] for at in expected.errors]
    return threads and any(re.search(r"\.(backward|grad)\(", n) for n in failed)


def keeps_shape(expected: Any, at: int, lines: list[str]) -> bool:
    """Whether a backward fails at a leaf that got `.data` of another shape before.

    As long as its old graph is alive, PyTorch refuses gradients of the new shape.
    """
    refused = _OTHER_SHAPE.search(expected.errors[at][1])
    if refused is None:
        return False
    new, old = ([*map(int, re.findall(r"\d+", text))] for text in refused.groups())
    for name in {
        line.split(".data = ")[0] for line in lines[:at] if ".data = " in line
    }:
        facts = [expected.snapshots.get(i, {}).get(name) for i in range(at)]
        shapes = [f["shape"] for f in facts if f is not None]
        if old in shapes and shapes[-1] == new != old:
            return True
    return False


def frees_write(expected: Any, at: int, lines: list[str]) -> bool:
    """Whether a second backward fails through a write to a gradient that is a view.

    PyTorch frees the node of a write to a view, whatever was written. Of which memory
    its engine makes gradients is its own affair; here they are no views.
    """
    if "backward through the graph a second time" not in expected.errors[at][1]:
        return False
    for made, line in enumerate(lines[:at]):
        found = re.match(r"(t\d+(?:, t\d+)*), = torch.autograd.grad", line)
        for name in found[1].split(", ") if found else ():
            facts = [expected.snapshots.get(i, {}).get(name) for i in range(made, at)]
            first = facts[0]
            if first is not None and first["base"]:
                if any(f and f["version"] > first["version"] for f in facts):
                    return True
    return False


def bequeaths_gradient(expected: Any, lines: list[str]) -> bool:
    """Whether a gradient that is a view comes to require grad.

    Views that were made of it are views of its base then, and do not; here of it.
    """
    made = [re.match(r"(t\d+(?:, t\d+)*), = torch.autograd.grad", n) for n in lines]
    names = {name for m in made if m for name in m[1].split(", ")}
    asked = {f"{name}.requires_grad_({yes})" for name in names for yes in ("", "True")}
    names = {line.split(".")[0] for line in asked.intersection(lines)}
    return any(
        name in each and each[name]["base"]
        for each in expected.snapshots.values()
        for name in names
    )


def flattens_gradient(expected: Any, lines: list[str]) -> bool:
    """Whether `reshape` copies a gradient, since PyTorch's formula left it transposed.

    Here its memory is in order, so that the result is a view.
    """
    for at, line in enumerate(lines):
        for name in re.findall(r"(t\d+)\.(?:reshape|flatten)\(", line):
            made = [n for n in lines[:at] if re.match(rf"[^=]*\b{name},.*\.grad\(", n)]
            for each in expected.snapshots.values() if made else ():
                if name in each and not in_order(each[name]):
                    return True
    return False


_MORE_HISTORY = ".grad:\n    torch     False\n    torchshim True"


def multiplies_a_zero(text: str, expected: Any, lines: list[str]) -> bool:
    """Whether a gradient's history depends on a value: of products of one zero.

    PyTorch's formula for zeros gives the gradient itself then, without a history.
    """
    if _MORE_HISTORY not in text or not any("create_graph" in n for n in lines):
        return False
    for name in re.findall(r"(t\d+)\.prod\(", "\n".join(lines)):
        for each in expected.snapshots.values():
            fact = each.get(name, {})
            numbers = flat(fact.get("value", []))
            if 0.0 in numbers and 1 in (*fact["shape"], len(numbers)):
                return True
    return False


def writes_to_a_piece_of_expanded(lines: list[str]) -> bool:
    """Whether a row is written to of a tensor whose rows are one in memory.

    Where a value was read since, `x` gets the gradient of what was overwritten, too.
    """
    expanded = [m[1] for n in lines if (m := re.match(r"(t\d+) = .*\.expand\(", n))]
    return any(
        re.match(rf"(with .*: )?{n}\[", line) for n in expanded for line in lines
    )


def overwrites_what_hooks_keep(lines: list[str]) -> bool:
    """Whether an in-place operator overwrites what hooks keep of another, as it is.

    PyTorch's gradient of the first then uses what the second left.
    """
    kept = [at for at, n in enumerate(lines) if re.search(r"(enter|saved)\('same'", n)]
    after = lines[kept[0] :] if kept else []
    return len([n for n in after if re.search(r"\bt\d+\.[a-z0-9_]+_\(", n)]) > 1


def overwrites_unseen(lines: list[str]) -> bool:
    """Whether a gradient may use what a write left: PyTorch's, or this one."""
    return writes_to_a_piece_of_expanded(lines) or overwrites_what_hooks_keep(lines)


def flat(value: Any) -> list[Any]:
    """The numbers of a list of lists."""
    if not isinstance(value, list):
        return [value]
    return [n for each in value for n in flat(each)]


def in_order(fact: dict[str, Any]) -> bool:
    """Whether a tensor's elements are in memory in their order."""
    step = 1
    for n, stride in zip(fact["shape"][::-1], fact["stride"][::-1], strict=True):
        if n != 1 and stride != step:
            return False
        step *= n
    return True
