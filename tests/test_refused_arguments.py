"""What functions of several areas refuse, and what they have done by then."""

from __future__ import annotations

import io

from tests.oracle import attempt, case


@case(warnings=False).lines("""
Variable(x, requires_grad=True, volatile=True)
Variable(x, volatile=True)
Variable(x, True, True)
Variable(x, _grad_fn=5)
Variable(x, _grad_fn=None)
Variable(x, _grad_fn=(x.clone().requires_grad_() * 1).grad_fn)
Variable(x, requires_grad=False, name="a")
Variable(x, name=5)
Variable(x, other=5)
Variable(x.long(), True)
Variable(x.bool(), requires_grad=True)
Variable(x.cfloat(), True)
""")
def variables(torch, line):
    x = torch.ones(2)
    yield attempt(eval, line, {"Variable": torch.autograd.Variable, "x": x})


@case(raises=AssertionError).lines("""
assert_close(x, x, rtol=-1, atol=0)
assert_close(x, x, rtol=0, atol=-0.5)
assert_close(x, x, rtol=-1)
assert_close(1.0, 1.0, rtol=-1, atol=0)
assert_close(1.0, 2.0, rtol=-1, atol=0)
assert_close(x.long(), x.long(), rtol=-1, atol=0)
assert_close(x.bool(), x.bool(), rtol=-1, atol=0)
assert_close({"a": [x]}, {"a": [x]}, rtol=-1, atol=0)
assert_close(x, torch.ones(3), rtol=-1, atol=0)
""")
def tolerances(torch, line):
    names = {"assert_close": torch.testing.assert_close, "x": torch.ones(1)}
    yield attempt(eval, line, {**names, "torch": torch})


@case(raises=AssertionError).lines("""
devices=[5]
devices=["cuda"]
devices=[]
devices=[5], enabled=False
devices=5
devices=[0], device_type="xpu"
devices=[0], device_type="meta"
devices=[0], device_type="none"
""")
def devices_of_generators(torch, line):
    forked = eval(f"dict({line})")
    yield attempt(lambda: torch.random.fork_rng(**forked).__enter__())


@case(raises=AttributeError).over("5", "(5,)", "'a'", "None", "x, 5")
def linearized(torch, given):
    x = torch.ones(2)
    arguments = eval(f"({given},)", {"x": x})
    yield attempt(torch.func.linearize, lambda *a: a[0], *arguments)


@case.over("long", "bool", "int32")
def total_norms(torch, dtype):
    whole = torch.ones(2, dtype=getattr(torch, dtype))
    norm = torch.nn.utils.get_total_norm
    yield attempt(norm, [whole]), attempt(norm, [torch.ones(2), whole])
    yield attempt(norm, [whole], float("inf")), attempt(norm, [whole], foreach=False)


@case.lines("""
F.dropout(x.long(), 0.5)
F.dropout(x.long(), 0.0)
F.dropout(x.long(), 1.0)
F.dropout(x.bool(), 0.5)
F.dropout(x.long(), 0.5, inplace=True)
F.dropout1d(x.long(), 0.5)
F.dropout2d(x.long().view(1, 3, 2, 2), 0.5)
F.dropout3d(x.long().view(1, 3, 2, 2, 1), 0.5)
F.alpha_dropout(x.long(), 0.5, True)
F.feature_alpha_dropout(x.long(), 0.5, True)
F.dropout(x.cfloat(), 0.5)
""")
def draws_of_refused_dropout(torch, line):
    names = {"F": torch.nn.functional, "x": torch.ones(3, 4)}
    yield attempt(eval, line, names)
    yield torch.rand(2)


@case.over(
    "per_tensor_affine",
    "per_channel_affine",
    "per_tensor_symmetric",
    "per_channel_symmetric",
    "per_channel_affine_float_qparams",
)
def schemes_in_files(torch, name):
    file = io.BytesIO()
    torch.save([getattr(torch, name)], file)
    for options in ({}, {"weights_only": False}):
        file.seek(0)
        (found,) = torch.load(file, **options)
        yield found is getattr(torch, name)


@case(raises=AttributeError)
def swapped(torch):
    swap = torch.utils.swap_tensors
    yield attempt(swap, 5, torch.ones(1)), attempt(swap, torch.ones(1), "a")
