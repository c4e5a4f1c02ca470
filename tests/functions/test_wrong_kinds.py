"""Arguments of a wrong kind where nothing else is wrong: PyTorch's errors."""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import fractions

import numpy as np

from tests.oracle import attempt, case, evaluate


@case.lines("""
torch.svd(torch.ones(2, 2), some=1)
torch.ones(2, 2).svd(some=iter([1]))
torch.linalg.lu(torch.ones(2, 2), pivot=(1,))
torch.linalg.pinv(torch.ones(2, 2), hermitian=torch.tensor(True))
torch.triangular_solve(torch.ones(2, 2), torch.ones(2, 2), 1.5)
torch.ones(3).index_put_((torch.tensor([0]),), torch.ones(1), accumulate=(1,))
torch.ones(2).numpy(force=1)
torch.ones(2).nonzero(as_tuple=1)
torch.ones(2, 3).tensor_split(2, "a")
torch.ones(2).random_([1])
torch.ones(4).as_strided((1, 1.5), (1, 1))
torch.ones(4).as_strided((1, 1), (1.5, 1))
torch.as_strided(torch.ones(4), (1.5,), (1,))
torch.asarray([1], copy=1)
torch.asarray([1.0], requires_grad=1)
torch.nn.Parameter(torch.ones(1), 1)
torch.nn.Parameter(torch.ones(1), None)
torch.nn.Parameter(torch.ones(1), torch.tensor(True))
torch.Tensor._make_subclass(torch.Tensor, torch.ones(1), 1)
torch.autograd.set_detect_anomaly(True, 1)
torch.autograd.set_detect_anomaly(False, [True])
F.grid_sample(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 2), align_corners=0)
F.affine_grid(torch.ones(1, 2, 3), (1, 1, 2, 2), align_corners=0)
F.ctc_loss(torch.ones(2, 1, 2), torch.ones(1, 1).int(), (2,), (1,), zero_infinity=1)
F.instance_norm(torch.ones(2, 2, 2), use_input_stats=1)
F.rrelu(torch.ones(2), training=1)
F.max_pool1d(torch.ones(1, 2), True)
F.max_pool1d(torch.ones(1, 2), True, return_indices=True)
F.adaptive_max_pool1d(torch.ones(1, 2), True)
F.adaptive_max_pool2d(torch.ones(1, 2, 2), True)
F.adaptive_max_pool2d(torch.ones(1, 2, 2), (True, 1))
F.adaptive_max_pool2d(torch.ones(1, 2, 2), (1, True))
F.adaptive_avg_pool2d(torch.ones(1, 2, 2), True)
F.adaptive_avg_pool3d(torch.ones(1, 2, 2, 2), True)
F.fractional_max_pool2d(torch.ones(1, 2, 2), 1, output_size=True)
torch.nn.utils.rnn.pad_sequence([torch.ones(1)], 1)
torch.nn.utils.rnn.pad_sequence([torch.ones(1)], None)
torch.nn.utils.rnn.pack_padded_sequence(torch.ones(2, 2), torch.tensor([2, 1]), 1)
torch.ones(2).untyped_storage().resize_("a")
torch.ones(2).untyped_storage().resize_(True)
F.cosine_similarity(torch.ones(2), torch.ones(2), 0, -1.0)
torch.nn.CosineSimilarity(0, -0.25)(torch.ones(2), torch.ones(2))
""")
def refused(torch, line):
    return evaluate(torch, line)


@case.lines("""
torch.zeros(torch.tensor(True), 3)
torch.zeros(torch.tensor([True]))
torch.ones((torch.tensor(True),))
torch.ones(3).view(torch.tensor(True), 3)
torch.ones(3).expand(torch.tensor(True), 3)
torch.ones(3).reshape(torch.tensor(True), 3)
torch.ones(3).repeat(torch.tensor(True), 3)
torch.ones(3).new_zeros(torch.tensor(True))
torch.randn(torch.tensor(True))
torch.full((torch.tensor(True),), 1.0)
torch.empty_strided((torch.tensor(True),), (1,))
torch.ones(1, 3).permute(torch.tensor(True), 0)
torch.ones(1, 3).flip(torch.tensor(True))
torch.ones(1, 4).chunk(torch.tensor(True), 1)
""")
def bools_in_tensors_for_sizes(torch, line):
    return evaluate(torch, line)


@case
def the_same_call_again(torch):
    # What is known of calls with arguments of these classes is known of them alone.
    x = torch.ones(2, 2)
    for some in (True, 1, True, None, False, "a", True):
        yield attempt(torch.svd, x, some=some)
        yield attempt(x.svd, some)
        yield attempt(torch.linalg.lu, x, pivot=some)


@case.over("float64", "float16", "int8", "bool", "complex64")
def bilinear(torch, dtype):
    for wrong in range(4):
        given = [torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2, 2), torch.ones(1)]
        given[wrong] = given[wrong].to(getattr(torch, dtype))
        yield attempt(torch.nn.functional.bilinear, *given)
        if wrong < 3:
            yield attempt(torch.bilinear, *given[:3], None)
    if dtype == "bool":
        given = [torch.ones(s).bool() for s in ((1, 2), (1, 2), (1, 2, 2))]
        yield attempt(torch.nn.functional.bilinear, *given)


@case
def integers_of_64_bits(torch):
    for value in (2**63, 2**64 - 1, -(2**63)):
        yield torch.zeros(2).copy_(value)
        yield torch.zeros(2, dtype=torch.int64).copy_(value)
        yield torch.zeros(2, dtype=torch.complex64).copy_(value)
    yield attempt(torch.zeros(2).copy_, 2**64)


@case.lines("""
torch.ones(2).logcumsumexp(2**64)
torch.ones(2, 3).tensor_split((1, 2), 10**30)
torch.ones(3).nanmedian(dim=10**30, keepdim=True)
torch.cat([torch.ones(2), torch.ones(2)], dim=2**63)
torch.arange(3).bincount(minlength=2**64)
torch.ones(3).select(2**64, 0)
torch.ones(3).unsqueeze(2**64)
""")
def integers_beyond_64_bits(torch, line):
    return evaluate(torch, line)


@case
def steps_of_several_groups(torch):
    a, b = (torch.nn.Parameter(torch.ones(1)) for _ in range(2))
    optimizer = torch.optim.LBFGS([a])
    optimizer.add_param_group({"params": [b]})
    with_loss = attempt(optimizer.step, lambda: (a * b).sum())
    return with_loss, a, b


@case.lines("""
x.add(v)
torch.add(x, v)
torch.tensor(v)
torch.tensor([v])
x.sum(v)
x.view(v)
x[v]
x[0] = v
torch.cat([v])
torch.Size([v])
F.dropout(x, v)
""")
def of_classes_written_in_c(torch, line):
    kinds = [decimal.Decimal(1), datetime.date(2020, 1, 1), collections.deque()]
    kinds += [array.array("f"), np.random.RandomState(0), fractions.Fraction(1)]
    for value in kinds:
        yield attempt(evaluate, torch, line, x=torch.ones(2), v=value)
