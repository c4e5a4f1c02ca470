"""Products of irreducible parts whose code is built node by node (as e3nn has it)."""
# ruff: noqa: C408, RUF005

import torch
from torch import fx, nn


class CodeGenMixin:
    """Submodules that are made of graphs."""

    def _codegen_register(self, funcs):
        for name, graphmod in funcs.items():
            assert isinstance(graphmod, fx.GraphModule)
            graphmod.graph.lint()
            setattr(self, name, graphmod)
        self.generated = list(funcs)


def codegen_product(irreps_in1, irreps_in2, instructions):
    """A graph that multiplies parts of two tensors, weighted."""
    graph = fx.Graph()
    tracer = fx.proxy.GraphAppendingTracer(graph)
    constants = {}
    x1 = fx.Proxy(graph.placeholder("x1", torch.Tensor), tracer=tracer)
    x2 = fx.Proxy(graph.placeholder("x2", torch.Tensor), tracer=tracer)
    weights = fx.Proxy(graph.placeholder("w", torch.Tensor), tracer=tracer)
    empty = fx.Proxy(
        graph.call_function(torch.empty, ((),), dict(device="cpu")), tracer=tracer
    )
    shape = torch.broadcast_tensors(
        empty.expand(x1.shape[:-1]), empty.expand(x2.shape[:-1])
    )[0].shape
    size = sum(mul * dim for mul, dim in irreps_in1)
    output_shape = shape + (size,)
    del size, empty
    x1 = x1.broadcast_to(shape + (-1,)).reshape(-1, sum(m * d for m, d in irreps_in1))
    x2 = x2.broadcast_to(shape + (-1,)).reshape(-1, sum(m * d for m, d in irreps_in2))
    batch_numel = x1.shape[0]

    def parts(x, irreps):
        found, start = [], 0
        for mul, dim in irreps:
            piece = x[:, start : start + mul * dim]
            found.append(piece.reshape(batch_numel, mul, dim))
            start += mul * dim
        return found

    x1_list, x2_list = parts(x1, irreps_in1), parts(x2, irreps_in2)
    outputs = []
    for i, (i1, i2) in enumerate(instructions):
        mul1, dim1 = irreps_in1[i1]
        mul2, dim2 = irreps_in2[i2]
        name = f"_w3j_{dim1}_{dim2}_{dim1}"
        if name not in constants:
            values = torch.arange(dim1 * dim2 * dim1, dtype=torch.float32)
            constants[name] = values.reshape(dim1, dim2, dim1) / 10
        w3j = fx.Proxy(graph.get_attr(name), tracer=tracer)
        w = weights[..., i * mul1 * mul2 : (i + 1) * mul1 * mul2]
        w = w.reshape((mul1, mul2))
        xx = torch.einsum("zui,zvj->zuvij", x1_list[i1], x2_list[i2])
        result = torch.einsum("uv,ijk,zuvij->zuk", w, w3j, xx)
        outputs.append((result * 0.5).reshape(batch_numel, mul1 * dim1))
    out = outputs[0] if len(outputs) == 1 else torch.cat(outputs, dim=1)
    graph.output(out.reshape(output_shape).node, torch.Tensor)
    graph.lint()
    root = nn.Module()
    for key, value in constants.items():
        root.register_buffer(key, value)
    return fx.GraphModule(root, graph, class_name="tp_forward")


class Product(CodeGenMixin, nn.Module):
    def __init__(self, irreps_in1, irreps_in2, instructions):
        super().__init__()
        made = codegen_product(irreps_in1, irreps_in2, instructions)
        self._codegen_register({"_compiled_main": made})
        count = sum(irreps_in1[a][0] * irreps_in2[b][0] for a, b in instructions)
        self.weight = nn.Parameter(torch.linspace(-1, 1, count))

    def forward(self, x, y):
        return self._compiled_main(x, y, self.weight)


product = Product([(2, 1), (1, 3)], [(1, 1), (2, 3)], [(0, 0), (1, 1)])
print(product._compiled_main.code)
print(product)
x, y = torch.linspace(0, 1, 10).reshape(2, 5), torch.linspace(-1, 1, 7)
out = product(x, y)
print(out)
out.square().sum().backward()
print(product.weight.grad)
print(list(product.state_dict()))
