"""The containers of `torch.nn`, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import Any

from tests.oracle import attempt, case


def layers(torch: Any) -> dict[str, Any]:
    """Names for the lines below."""
    nn = torch.nn

    class A(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1

    class B(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 10

    class C(nn.Module):
        def extra_repr(self) -> str:
            return "x\ny"

        def forward(self, x: Any) -> Any:
            return -x

    return {
        "torch": torch,
        "nn": nn,
        "OrderedDict": OrderedDict,
        "A": A,
        "B": B,
        "C": C,
    }


def run(torch: Any, setup: str, line: str) -> Any:
    """The outcome of one line, and what the container `m` is afterwards."""
    scope = layers(torch)
    exec(setup, scope)
    try:
        code = compile(line, "<case>", "eval")
    except SyntaxError:
        error = attempt(exec, line, scope)
    else:
        error = attempt(eval, code, scope)
    if isinstance(error, Exception):
        # Classes in a text carry the name of their package.
        error = type(error), str(error).replace("torchshim.", "torch.")
    return error, repr(scope["m"]), list(scope["m"]._modules)


@case.lines("""
    len(m)
    list(m)
    m(1)
    m[0]
    m[-1]
    m[3]
    m[-4]
    m[1:]
    m[::2]
    m[5:]
    m["0"]
    m[1.0]
    m[0] = C()
    m[-1] = A()
    m[3] = A()
    m[0] = 3
    m[0] = None
    del m[0]
    del m[-1]
    del m[0:2]
    del m[::2]
    del m[9]
    m.append(C())
    m.append(3)
    m.extend([A(), B()])
    m.extend(nn.Sequential(A(), B()))
    m.extend(3)
    m.extend([3])
    m.insert(0, C())
    m.insert(1, A())
    m.insert(3, A())
    m.insert(-1, A())
    m.insert(-3, A())
    m.insert(4, A())
    m.insert(-5, A())
    m.insert(0, 3)
    m.pop(0)
    m.pop(-1)
    m.pop(slice(1))
    m.pop(7)
    m + nn.Sequential(A())
    m + [A()]
    m += nn.Sequential(A(), B())
    m += [A()]
    m * 2
    2 * m
    m * 0
    m * -1
    m * 1.5
    m * True
    m *= 3
    m *= 1
    m *= 0
    m *= "a"
    nn.Sequential()
    nn.Sequential(OrderedDict(a=A(), b=B()))
    nn.Sequential(OrderedDict(a=A(), b=B())).b
    nn.Sequential(OrderedDict(a=A(), b=B()))[0:1]
    nn.Sequential(OrderedDict(a=A(), b=B())).append(C())
    nn.Sequential(OrderedDict(a=A(), b=B())) + m
    nn.Sequential(OrderedDict(a=A(), b=B())).pop(0)
    nn.Sequential(dict(a=A()))
    nn.Sequential([A()])
    nn.Sequential(3)
    nn.Sequential(A(), None)
    nn.Sequential(nn.Sequential(C()), A())
    [d for d in dir(m) if d.isdigit()]
    list(m.children()) == list(m)
    m.forward(1, 2)
    bool(nn.Sequential())
    m[0] in m
""")
def sequential(torch, line):
    return run(torch, "m = nn.Sequential(A(), B(), A())", line)


@case
def sequential_del_renumbers_names(torch):
    scope = layers(torch)
    m = torch.nn.Sequential(OrderedDict(a=scope["A"](), b=scope["B"](), c=scope["A"]()))
    del m[0]
    yield list(m._modules), type(m._modules)
    named = torch.nn.Sequential(OrderedDict(a=scope["A"](), b=scope["B"]()))
    yield type(attempt(exec, "m *= 2", {"m": named}))


@case
def sequential_subclass(torch):
    class Mine(torch.nn.Sequential):
        def forward(self, x: Any, y: Any) -> Any:
            return self[0](x) + y

    m = Mine(layers(torch)["A"]())
    yield m(1, 2), type(m[:1]), type(m + m)
    yield copy.deepcopy(m)(1, 2), len(m.state_dict())


@case.lines("""
    len(m)
    list(m)
    m(1)
    m[0]
    m[-1]
    m[3]
    m[1:]
    m[::-1]
    m["0"]
    m[0] = C()
    m[3] = A()
    m[0] = 3
    del m[0]
    del m[-1]
    del m[0:2]
    del m[9]
    m.append(C())
    m.append(3)
    m.extend([A(), B()])
    m.extend(nn.ModuleList([A(), B()]))
    m.extend(3)
    m.extend([3])
    m.insert(0, C())
    m.insert(-1, C())
    m.insert(7, C())
    m.insert(1, None)
    m.pop(0)
    m.pop(slice(1, None))
    m.pop(7)
    m + [A()]
    m + nn.ModuleList([C()])
    m + 3
    m += [B()]
    m += 3
    nn.ModuleList()
    nn.ModuleList([A()])
    nn.ModuleList([A(), A(), A()])
    nn.ModuleList([C(), C(), A(), C()])
    nn.ModuleList([nn.ModuleList([A(), A()]), nn.ModuleList([A(), A()])])
    nn.ModuleList(A() for _ in range(2))
    nn.ModuleList([A(), None])
    nn.ModuleList(A())
    nn.ModuleList(3)
    [d for d in dir(m) if d.isdigit()]
    list(reversed(m))
    m[2] in m
""")
def module_list(torch, line):
    return run(torch, "m = nn.ModuleList([A(), A(), B()])", line)


@case.lines("""
    len(m)
    list(m)
    m(1)
    m["a"]
    m["z"]
    m[0]
    m.a
    "a" in m
    "z" in m
    m["z"] = C()
    m["a"] = C()
    m["z"] = 3
    m["z"] = None
    m[0] = A()
    m["keys"] = A()
    m["x.y"] = A()
    del m["a"]
    del m["z"]
    m.clear()
    m.pop("a")
    m.pop("z")
    list(m.keys())
    list(m.items())
    list(m.values())
    m.update({"z": C(), "c": A()})
    m.update(OrderedDict(z=C()))
    m.update(nn.ModuleDict({"z": C()}))
    m.update([("z", C()), ["y", A()]])
    m.update([("z",)])
    m.update([3])
    m.update(3)
    m.update(["ab"])
    nn.ModuleDict()
    nn.ModuleDict([["b", A()], ["a", B()]])
    nn.ModuleDict({"b": A(), "a": B()})
    nn.ModuleDict(3)
    [type(k).__name__ for k in (m.keys(), m.values(), m.items())]
""")
def module_dict(torch, line):
    return run(torch, "m = nn.ModuleDict({'a': A(), 'b': B()})", line)


@case.lines("""
    len(m)
    [type(p).__name__ for p in m]
    m(1)
    m[0]
    m[-1]
    m[5]
    m[1:]
    m[::-1]
    m["0"]
    m[0] = torch.zeros(1)
    m[0] = nn.Parameter(torch.zeros(1))
    m[2] = "other"
    m[0] = None
    m[0] = "text"
    m[7] = torch.zeros(1)
    m.append(torch.zeros(4))
    m.append(3)
    m.extend([torch.zeros(4), "x"])
    m.extend(torch.zeros(4))
    m.extend(3)
    m += [torch.zeros(4)]
    m += torch.zeros(4)
    nn.ParameterList()
    nn.ParameterList([torch.zeros(())])
    nn.ParameterList([nn.ParameterList([torch.zeros(1)])])
    nn.ParameterList(nn.Parameter(torch.zeros(n)) for n in range(3))
    nn.ParameterList([torch.zeros(1, dtype=torch.int64)])
    [n for n, _ in m.named_parameters()]
    [d for d in dir(m) if d.isdigit()]
    list(m.state_dict())
    m.pop()
""")
def parameter_list(torch, line):
    setup = (
        "m = nn.ParameterList([torch.ones(2), nn.Parameter(torch.ones(2, 3).double()),"
        " 'kept'])"
    )
    return run(torch, setup, line)


@case.lines("""
    len(m)
    list(m)
    m(1)
    m["a"]
    m["z"]
    m[0]
    m[0] = 1
    m["z"] = torch.zeros(1)
    m["z"] = "text"
    m["a"] = "text"
    m["a"] = nn.Parameter(torch.zeros(1))
    del m["a"]
    del m["z"]
    list(reversed(m))
    m.copy()
    m.copy()["a"] is m["a"]
    "a" in m
    m.setdefault("a", 3)
    m.setdefault("z", torch.zeros(1))
    m.setdefault("z")
    m.clear()
    m.pop("a")
    m.pop("z")
    m.popitem()
    m.get("a")
    m.get("z")
    m.get("z", 5)
    m.fromkeys(["x", "y"], 4)
    m.fromkeys(["x", "y"])
    list(m.keys())
    list(m.items())
    list(m.values())
    m.update({"z": torch.zeros(1), "c": 3})
    m.update(OrderedDict(z=3, c=4))
    m.update(nn.ParameterDict({"y": 3}))
    m.update([("z", 3), ["y", 4]])
    m.update([("z",)])
    m.update([3])
    m.update(3)
    m | {"z": 3}
    m | nn.ParameterDict({"a": 3})
    {"z": 3} | m
    m |= {"z": 3}
    nn.ParameterDict()
    nn.ParameterDict([["b", 1], ["a", 2]])
    nn.ParameterDict(nn.ParameterDict({"a": 1}))
    nn.ParameterDict(3)
    [n for n, _ in m.named_parameters()]
    list(m.state_dict())
    nn.ParameterDict({"keys": torch.ones(1)})
""")
def parameter_dict(torch, line):
    setup = (
        "m = nn.ParameterDict({'b': nn.Parameter(torch.ones(2, 3).double()),"
        " 'a': torch.ones(2), 'c': 'kept'})"
    )
    return run(torch, setup, line)


@case
def parameters_in_containers_train(torch):
    weights = torch.nn.ParameterDict({"w": torch.ones(2), "b": torch.zeros(2)})
    steps = torch.nn.ParameterList([torch.full((2,), 3.0)])
    (weights["w"] * steps[0] + weights["b"]).sum().backward()
    return [p.grad for p in (*weights.parameters(), *steps.parameters())]


@case
def container_is_deprecated(torch):
    m = torch.nn.Container(a=torch.nn.Module())
    return list(m._modules)


@case
def copies_and_pickles(torch):
    nn = torch.nn
    m = nn.ModuleDict(
        {
            "list": nn.ModuleList([nn.Module(), nn.Sequential()]),
            "params": nn.ParameterDict({"p": torch.ones(1)}),
            "more": nn.ParameterList([torch.zeros(2)]),
        }
    )
    for new in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        print(new)
        yield new["params"]["p"], len(new["more"]), new.load_state_dict(m.state_dict())


def test_copied_layers_train_in_memory_of_their_own():
    """Every step is the first one's program, as all of its state can be donated."""
    import torchshim as torch

    layer = torch.nn.Linear(3, 3)
    model = torch.nn.Sequential(layer, copy.deepcopy(layer))
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    compiled = []
    for _ in range(3):
        before = torch.explain()
        optimizer.zero_grad()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        model[1].bias.sum().item()
        compiled.append(len(torch.explain(before).programs))
    assert compiled[1:] == [0, 0]
    assert model[0].weight.data_ptr() != model[1].weight.data_ptr()
