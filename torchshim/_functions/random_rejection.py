"""Random numbers drawn by rejection: `poisson`, `binomial`, gamma numbers.

https://docs.pytorch.org/docs/2.13/torch.html#random-sampling. On the CPU they are drawn
on the host, from the parameters' values: that is a read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from torchshim._core import dtypes, host_rejection
from torchshim._core.mt19937 import MT19937
from torchshim._core.no_data import NoData
from torchshim._core.random import engine_of
from torchshim._core.record import local
from torchshim._core.threefry import Threefry
from torchshim._derived import fns, public
from torchshim._functions._arguments import tensor_argument
from torchshim._functions.creation import place
from torchshim._functions.draws import counter, entered
from torchshim._functions.random_examples import check_parameters, examples, whole
from torchshim._functions.shape import broadcast_tensors
from torchshim._out import followed
from torchshim._tensor import Tensor, from_array


def _drawn(
    function: str,
    distribution: str,
    op: Any,
    generator: Any,
    *inputs: Tensor,
) -> Tensor:
    """A new tensor drawn from the values of others; `op` is its node in a graph."""
    device = inputs[0]._tmeta.device
    engine = engine_of(generator, function, device)
    if isinstance(engine, Threefry):
        result = _in_program(distribution, engine, device, inputs)
    elif device.type == "meta" and distribution != "binomial":
        meta = inputs[0]._tmeta
        nothing = NoData(tuple(meta.shape), dtypes.array_dtype(meta.dtype))
        result = from_array(nothing, device=device)
    else:
        draw = getattr(host_rejection, distribution)
        check_parameters(*inputs)
        batch = examples()
        values = [np.asarray(whole(x, batch)._host(), order="C") for x in inputs]
        array = draw(engine, *values).reshape(values[0].shape)
        result = from_array(place(array, device), device=device, batch=batch)
    if followed(local.rec, inputs):
        return op(*inputs, result)
    return result


def _in_program(
    distribution: str, engine: Threefry, device: Any, inputs: tuple[Tensor, ...]
) -> Tensor:
    draw = getattr(host_rejection, distribution)
    draw(MT19937(), *(np.zeros(1, dtypes.array_dtype(x.dtype)) for x in inputs))
    check_parameters(*inputs)
    batch = examples()
    given = [whole(x, batch) for x in inputs]
    made = getattr(fns, f"_counter_{distribution}")(*counter(engine, device), *given)
    return entered(made, batch)


@public
def poisson(input: Any, generator: Any = None) -> Tensor:
    """Poisson numbers with the rates in `input`.

    >>> import torchshim as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.poisson(torch.tensor([1.0, 5.0, 20.0]))
    tensor([ 2.,  6., 19.])
    """
    tensor_argument("poisson", "input", 1, input)

    def node(rate: Tensor, values: Tensor) -> Tensor:
        return fns._draw_poisson(fns.clone(rate), values)

    return _drawn("poisson", "poisson", node, generator, input)


@public
def binomial(count: Any, prob: Any, generator: Any = None) -> Tensor:
    """How many of `count` trials succeed, each with the probability `prob`.

    ValueError unless both are floating, RuntimeError unless of one dtype.

    >>> import torchshim as torch
    >>> torch.binomial(torch.tensor([4.0, 4.0]), torch.tensor([0.0, 1.0]))
    tensor([0., 4.])
    """
    tensor_argument("binomial", "count", 1, count)
    tensor_argument("binomial", "prob", 2, prob)
    for name, given in (("count", count), ("prob", prob)):
        if not given.dtype.is_floating_point:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: "
                f"{given.dtype.scalar_name}"
            )
    if count.dtype != prob.dtype:
        raise RuntimeError(
            f"Found dtype {prob.dtype.scalar_name} but expected "
            f"{count.dtype.scalar_name}"
        )
    if count._tmeta.shape != prob._tmeta.shape:
        count, prob = broadcast_tensors(count, prob)
    return _drawn("binomial", "binomial", fns._draw_binomial, generator, count, prob)


@public
def _standard_gamma(input: Any, generator: Any = None) -> Tensor:
    """Gamma numbers with the shape parameters in `input`; differentiable."""
    tensor_argument("_standard_gamma", "input", 1, input)
    node = fns._draw_standard_gamma
    return _drawn("_standard_gamma", "standard_gamma", node, generator, input)


@public
def _sample_dirichlet(input: Any, generator: Any = None) -> Tensor:
    """Dirichlet samples with the concentrations in `input`."""
    tensor_argument("_sample_dirichlet", "input", 1, input)
    node = fns._draw_sample_dirichlet
    return _drawn("_sample_dirichlet", "dirichlet", node, generator, input)


def reparametrized_dirichlet(concentration: Tensor) -> Tensor:
    """Dirichlet samples that gradients flow through, for `Dirichlet.rsample`."""
    node = fns._draw_dirichlet
    return _drawn("_sample_dirichlet", "dirichlet", node, None, concentration)
