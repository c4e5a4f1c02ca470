"""Whether conversions and `load_state_dict` replace parameters, or swap them."""

from __future__ import annotations

from tests.oracle import attempt, case


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


@case
def swapped_parameters(torch):
    settings = torch.__future__
    torch.manual_seed(0)
    m = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    m(torch.ones(1, 2)).sum().backward()
    weight, held = m.weight, m.weight.grad
    settings.set_swap_module_params_on_conversion(True)
    try:
        yield settings.get_swap_module_params_on_conversion()
        yield m.double()
        yield m.weight is weight, m.weight.grad is held, weight, held
        yield isinstance(weight, torch.nn.Parameter), weight.is_leaf
        for _ in range(2):
            optimizer.zero_grad()
            m(torch.ones(1, 2).double()).sum().backward()
            optimizer.step()
        yield weight, m.bias.grad
        m.weight.requires_grad_(False)
        yield m.to("meta"), m.weight, m.bias, m.weight is weight
        yield m.to_empty(device="cpu").weight.shape
    finally:
        settings.set_swap_module_params_on_conversion(False)


@case
def swapped_when_loaded(torch):
    """A subclass says what becomes of what is loaded, as in PyTorch's recipe."""

    class Doubled(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is torch.Tensor.module_load:
                dest, src = args[0], args[1]
                plain = src.as_subclass(torch.Tensor) * 2
                return plain.as_subclass(Doubled) if isinstance(dest, Doubled) else src
            return super().__torch_function__(func, types, args, kwargs or {})

    settings = torch.__future__
    m = torch.nn.BatchNorm1d(2)
    weight, mean = m.weight, m.running_mean
    state = {k: v + 1 for k, v in m.state_dict().items()}
    settings.set_swap_module_params_on_conversion(True)
    try:
        for assign in (False, True):
            m.weight.requires_grad_(assign)
            yield m.load_state_dict(state, assign=assign)
            yield m.weight is weight, m.running_mean is mean, dict(m.state_dict())
            yield m.weight.requires_grad, state["weight"].requires_grad
            yield type(m.weight), type(m.running_mean)
        m.weight = torch.nn.Parameter(torch.ones(2).as_subclass(Doubled))
        m.load_state_dict(state)
        yield type(m.weight).__name__, m.weight.detach().as_subclass(torch.Tensor) + 1
        state["bias"] = state["bias"].as_subclass(Doubled)
        yield attempt(m.load_state_dict, state)
    finally:
        settings.set_swap_module_params_on_conversion(False)
