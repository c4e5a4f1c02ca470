"""`nn.init`, compared with PyTorch."""

from __future__ import annotations

import os
import warnings

from tests.oracle import case, evaluate


@case.lines("""
    init.calculate_gain("linear"), init.calculate_gain("sigmoid")
    [init.calculate_gain(name) for name in ("tanh", "relu", "selu")]
    init.calculate_gain("leaky_relu"), init.calculate_gain("leaky_relu", 2)
    init.calculate_gain("leaky_relu", True)
    init.calculate_gain("gelu")
    init.uniform_(w)
    init.uniform_(w, -1.0, 3.0)
    init.normal_(w)
    init.normal_(torch.empty(4, 8), 1.0, 0.5)
    init.trunc_normal_(torch.empty(4, 5))
    init.trunc_normal_(torch.empty(4, 5), mean=0.5, std=2.0, a=0.0, b=1.0)
    init.trunc_normal_(torch.empty(4, 5), a=3.0, b=4.0)
    init.trunc_normal_(torch.empty(4, 5), mean=9.0)
    init.constant_(w, 0.3)
    init.ones_(w)
    init.zeros_(w)
    init.eye_(w)
    init.eye_(torch.empty(2))
    init.dirac_(torch.empty(2, 3, 3))
    init.dirac_(torch.empty(4, 2, 3, 2), groups=2)
    init.dirac_(torch.empty(2, 2, 1, 1, 3))
    init.dirac_(w)
    init.dirac_(torch.empty(3, 2, 3), 2)
    init.xavier_uniform_(w)
    init.xavier_uniform_(torch.empty(2, 3, 2, 2), gain=2.0)
    init.xavier_normal_(w)
    init.xavier_uniform_(torch.empty(3))
    init.kaiming_uniform_(w)
    init.kaiming_uniform_(w, a=0.5, mode="fan_out", nonlinearity="relu")
    init.kaiming_normal_(w)
    init.kaiming_normal_(torch.empty(3, 2, 2), mode="FAN_OUT")
    init.kaiming_uniform_(w, mode="fan")
    init.kaiming_uniform_(torch.empty(0, 3))
    init.kaiming_normal_(torch.empty(3, 0))
    init.orthogonal_(w)
    init.orthogonal_(torch.empty(4, 2), gain=2.0)
    init.orthogonal_(torch.empty(2, 2, 2))
    init.orthogonal_(torch.empty(3))
    init.orthogonal_(torch.empty(2, 3).t())
    init.orthogonal_(torch.empty(2, 3, 4).transpose(0, 2))
    init.orthogonal_(torch.empty(2, 3, 4).transpose(0, 1)[:, :1])
    init.sparse_(torch.empty(6, 3), sparsity=0.4)
    init.sparse_(torch.empty(3), 0.5)
    init.xavier_normal(w)
    init.uniform(w)
    init.constant(w, 2)
    init.uniform_(w, generator=torch.Generator().manual_seed(5))
    init.normal_(w, generator=torch.Generator().manual_seed(5))
    init._no_grad_uniform_(w, 0.0, 1.0), init._no_grad_fill_(w, 2)
    init._no_grad_trunc_normal_(w, 0.0, 1.0, -1.0, 1.0), init._no_grad_zero_(w)
    init._no_grad_normal_(w, 0.0, 1.0)
    init._calculate_fan_in_and_fan_out(torch.empty(2, 3, 4, 5))
    init.uniform_(nn.Parameter(w))
    init.uniform_(torch.empty(3, dtype=torch.float64))
    init.normal_(torch.empty(20, dtype=torch.bfloat16))
""")
def values(torch, line):
    w = torch.empty(3, 5)
    result = evaluate(torch, line, init=torch.nn.init, w=w)
    yield result
    yield torch.rand(1)  # as many numbers were drawn


@case
def where_nothing_to_fill_is_told(torch):
    for name in ("kaiming_uniform_", "kaiming_normal_"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            getattr(torch.nn.init, name)(torch.empty(0, 2))
        yield [(str(w.message), os.path.basename(w.filename)) for w in caught]
