"""Schemas of operators, and what passes make of calls by them."""

from __future__ import annotations

import importlib
import numbers
import operator
import typing

from tests.oracle import attempt, case, evaluate


def module(torch, name):
    return importlib.import_module(f"{torch.__name__}.{name}")


@case.lines(
    """
    torch.relu
    torch.clamp
    torch.randint
    torch.rand_like
    torch.linalg.det
    torch.special.expm1
    torch.nn.functional.gelu
    torch.nn.functional.relu
    torch.ops.aten.sort.default
    torch.ops.aten.resize_as_
    torch.ops.aten.max_pool2d_with_indices.default
    """
)
def signatures(torch, line):
    schemas = module(torch, "fx.operator_schemas")
    found = schemas.get_signature_for_torch_op(evaluate(torch, line))
    texts = [str(form).replace("torchshim.", "torch.") for form in found or ()]
    texts = [text.replace("torch._C.Generator", "Generator") for text in texts]
    # Forms of TorchScript's own take and give no tensors.
    return [text for text in texts if "Tensor" in text]


@case
def arguments_by_schemas(torch):
    normalize = module(torch, "fx.operator_schemas").normalize_function
    tensor = torch.Tensor
    x = torch.ones(1)

    def show(*args):
        return repr(attempt(normalize, *args, normalize_to_only_use_kwargs=True))

    yield show(torch.clamp, (x,), {"min": 1})
    yield show(torch.clamp, (x,), {"min": 1}, (tensor,), {"min": int})
    yield show(torch.add, (1, 2), {}, (tensor, int), {})
    yield show(torch.flatten, ("x",), {"start_dim": 1})
    yield show(torch.conv2d, ("x", "w"), {}, (tensor, tensor), {})
    yield show(torch.cat, (["x", "y"],), {"dim": 1})
    yield show(torch.ops.aten.resize_as_.default, ("x",), {"the_template": "y"})
    yield show(torch.nn.functional.gelu, ("x",), {})
    yield show(torch.randint, (3, (2,)), {}, (int, tuple[int, ...]))
    yield repr(attempt(normalize, torch.relu, (1,)))


@case(warnings=False)
def types_of_arguments(torch):
    schemas = module(torch, "fx.operator_schemas")
    integers = typing.List[int]  # noqa: UP006
    pairs = [
        (torch.Tensor, torch.nn.Parameter),
        (integers, int),
        (integers, list[int]),
        (integers, tuple[int, ...]),
        (integers, list[float]),
        (typing.List[integers], list[int]),  # noqa: UP006
        (int, torch.dtype),
        (numbers.Number, float),
        (numbers.Number, complex),
        (typing.Optional[int], int),  # noqa: UP045
        (typing.Union[int, str], float),  # noqa: UP007
    ]
    for wanted, given in pairs:
        yield schemas.type_matches(wanted, given)
    for each in ([int, bool], (int, str), [], (), int, [3], [bool, int]):
        yield str(schemas.create_type_hint(each))


@case
def operators_that_write(torch):
    class Tracer(torch.fx.Tracer):
        check_mutable_operations = True

    def written(x):
        y = torch.rand_like(x)
        torch.sigmoid(x, out=y)
        return y

    yield attempt(Tracer().trace, written)
    yield attempt(Tracer().trace, lambda x: torch.relu_(x))
    yield len(Tracer().trace(lambda x: torch.add(x, 1)).nodes)
    aten = torch.ops.aten
    for target in (aten.add.out, aten.add_.Tensor, aten.add.Tensor, aten.relu):
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        node = graph.call_function(target, (x, 1))
        yield node.is_impure()


@case
def schemas_of_operators(torch):
    aten = torch.ops.aten
    for form in (aten.add.out, aten.avg_pool2d.default, aten.isclose.default):
        schema = form._schema
        yield str(schema), schema.is_mutable
        yield [(a.name, a.is_out, a.kwarg_only) for a in schema.arguments]
        yield [a.default_value for a in schema.arguments]
    yield aten.relu.overloads(), aten.sum.overloads()[:4]
    x = torch.ones(1)
    yield attempt(lambda: aten.add.foo), attempt(lambda: aten.relu.Tensor)
    yield attempt(aten.add.Tensor, x, x, out=torch.ones(1))
    yield aten.add.out(x, x, out=torch.ones(1)), aten.add.Tensor(x, 2)


@case
def matching_with_defaults(torch):
    pool = torch.ops.aten.max_pool2d_with_indices.default

    def given(x):
        return pool(x, [2, 2], stride=[2, 2])

    def pattern(x, size, stride):
        return pool(x, size, stride, padding=[0, 0])

    traced = torch.fx.symbolic_trace(given)
    yield len(torch.fx.replace_pattern(traced, pattern, pattern))
    yield traced.code


def network(torch):
    functional = torch.nn.functional

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3))
            self.factor = torch.nn.Parameter(torch.ones(1))

        def forward(self, x):
            y = functional.max_pool2d(functional.relu(self.layers(x)), 2)
            y = torch.flatten(y, 1)
            total = torch.add(torch.mul(y, self.factor), y, alpha=2)
            return total + torch.div(y, 2, rounding_mode="floor") + torch.sub(y, y)

    return torch.fx.symbolic_trace(Net().eval())


@case(warnings=False)
def calls_in_one_form(torch):
    normalize = module(torch, "fx.experimental.normalize")
    annotating = module(torch, "fx.experimental.schema_type_annotation")
    traced = network(torch)
    yield type(attempt(normalize.NormalizeArgs(traced).transform)).__name__
    module(torch, "fx.passes.shape_prop").ShapeProp(traced).propagate(
        torch.rand(1, 1, 6, 6)
    )
    yield normalize.NormalizeArgs(traced).transform().code
    yield normalize.NormalizeArgs(traced, False).transform().code
    made = normalize.NormalizeOperators(traced).transform()
    yield made.code, [(node.name, node.type) for node in made.graph.nodes]
    known = normalize.NormalizeOperators.binary_magic_method_remap
    yield known[torch.div] is operator.truediv
    options = {"annotate_modules": False, "annotate_functionals": False}
    made = annotating.AnnotateTypesWithSchema(traced, **options).transform()
    yield [(node.name, node.type) for node in made.graph.nodes]
