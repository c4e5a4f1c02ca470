"""Whether conversions of modules replace their parameters."""

from __future__ import annotations

from tests.oracle import case


@case.over(True, False)
def overwritten_parameters(torch, overwrite):
    settings = torch.__future__
    m = torch.nn.Linear(2, 2)
    m(torch.ones(1, 2)).sum().backward()
    weight, grad = m.weight, m.weight.grad
    settings.set_overwrite_module_params_on_conversion(overwrite)
    try:
        m.double()
        yield settings.get_overwrite_module_params_on_conversion()
    finally:
        settings.set_overwrite_module_params_on_conversion(False)
    yield m.weight is weight, m.weight.grad is grad, m.weight.grad
    yield weight.dtype, m.weight.requires_grad, isinstance(m.weight, torch.nn.Parameter)
