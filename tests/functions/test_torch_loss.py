"""Losses of `torch` itself, and methods that are functions too."""

from __future__ import annotations

from tests.oracle import attempt, case


@case
def losses_by_number(torch):
    x, y = torch.randn(3, 2), torch.rand(3, 2)
    signs = torch.tensor([1.0, -1.0, 1.0])
    for r in range(3):
        yield torch.kl_div(x, y, r), torch.kl_div(x, y, r, log_target=True)
        yield torch.poisson_nll_loss(x, y, True, True, 1e-8, r)
        yield torch.binary_cross_entropy_with_logits(x, y, reduction=r)
        yield torch.binary_cross_entropy_with_logits(x, y, y, y, r)
        yield torch.hinge_embedding_loss(x[:, 0], signs, 0.5, r)
        yield torch.margin_ranking_loss(x[:, 0], y[:, 0], signs, 0.5, r)
        yield torch.cosine_embedding_loss(x, y, signs, 0.1, r)
        yield torch.triplet_margin_loss(x, y, y - 1, 1.0, 2, 1e-6, True, r)


@case
def other_numbers_reduce_nothing(torch):
    x, y = torch.rand(3, 2), torch.rand(3, 2)
    signs = torch.tensor([1.0, -1.0, 1.0])
    for r in (-1, 7, torch.tensor(2), True, 1.0, "mean"):
        yield attempt(torch.kl_div, x, y, r)
        yield attempt(torch.poisson_nll_loss, x, y, True, True, 1e-8, r)
        yield attempt(torch.binary_cross_entropy_with_logits, x, y, reduction=r)
        yield attempt(torch.hinge_embedding_loss, x[:, 0], signs, 0.5, r)
        yield attempt(torch.margin_ranking_loss, x[:, 0], y[:, 0], signs, 0.5, r)
        yield attempt(torch.cosine_embedding_loss, x, y, signs, 0.1, r)
        yield attempt(torch.triplet_margin_loss, x, y, y - 1, 1.0, 2, 1e-6, True, r)
        lengths = torch.tensor([3]), torch.tensor([1])
        log_p, label = x[:, None].log_softmax(-1), torch.tensor([[1]])
        yield attempt(torch.ctc_loss, log_p, label, *lengths, 0, r)


@case
def linear_cross_entropy(torch):
    loss = torch.nn.functional.linear_cross_entropy
    x = torch.randn(3, 4, requires_grad=True)
    w = torch.randn(5, 4, requires_grad=True)
    b, target = torch.randn(5), torch.tensor([1, 4, 0])
    for reduction in ("none", "mean", "sum"):
        out = loss(x, w, target, reduction=reduction)
        yield out, torch.autograd.grad(out.sum(), (x, w))
    yield loss(x, w, target, linear_bias=b, weight=b.abs(), label_smoothing=0.1)
    yield loss(x, w, target, ignore_index=4), loss(x[0], w, target[0])
    yield loss(x, w, torch.rand(3, 5).softmax(-1))
    wide = torch.randn(5, 2, 4)
    yield loss(x, wide, target[:, None].expand(3, 2), linear_bias=torch.ones(5, 2))
    yield attempt(loss, x[None], w, target)
    yield attempt(loss, x, w[0], target)
    yield attempt(loss, x[:, :3], w, target)
    yield attempt(loss, x, w, target, linear_bias=b[:2])
    yield attempt(loss, x[0], wide, target)
    yield attempt(loss, x, w, torch.rand(3, 5), ignore_index=1)


@case
def methods_as_functions(torch):
    x = torch.ones(2, 3)
    yield torch.get_device(x), torch.is_inference(x), torch.is_conj(x), torch.is_neg(x)
    y = x.clone().requires_grad_() * 2
    yield torch.detach_(y) is y, y.requires_grad
    yield torch.resize_as_(torch.ones(6), x).shape
    yield torch.is_same_size(x, x), x.is_same_size(x[0]), torch.is_distributed(x)
    yield attempt(torch.get_device, 3)


@case
def margin_ranking_loss_of_what_broadcasts(torch):
    x = torch.tensor([[0.5, -1.0], [2.0, 0.0]], requires_grad=True)
    y, signs = torch.tensor([1.0, -1.0]), torch.tensor([[1.0], [-1.0]])
    loss = torch.margin_ranking_loss(x, y, signs, 0.5, 0)
    yield loss, torch.autograd.grad(loss.sum(), x)
    yield torch.margin_ranking_loss(x, y, signs[0], 1)
    yield torch.margin_ranking_loss(x, y, signs[0], 1, reduction=1)
    yield attempt(torch.nn.functional.margin_ranking_loss, x, y, signs)


@case
def reductions_by_default(torch):
    """None for what PyTorch's parser reads, the mean for the dispatcher's forms."""
    x = torch.tensor([[0.5, 0.25], [0.75, 0.125]], requires_grad=True)
    y, signs = torch.tensor([[1.0, 0.5], [0.25, 0.125]]), torch.tensor([1, -1])
    classes, places = torch.tensor([0, 1]), torch.tensor([[0, 1], [1, -1]])
    probs = torch.full((4, 2, 3), 1 / 3).log()
    ctc = probs, torch.tensor([[1], [2]]), torch.tensor([4, 4]), torch.tensor([1, 1])
    native, aten = torch._C._nn, torch.ops.aten
    calls = {
        torch: {
            "kl_div": (x, y),
            "hinge_embedding_loss": (x, y),
            "binary_cross_entropy_with_logits": (x, y),
            "cosine_embedding_loss": (x, x, signs),
            "triplet_margin_loss": (x, y, x),
            "margin_ranking_loss": (x, y, y),
            "ctc_loss": ctc,
        },
        native: {
            **dict.fromkeys(
                "mse_loss l1_loss smooth_l1_loss huber_loss soft_margin_loss "
                "binary_cross_entropy".split(),
                (x, y),
            ),
            **dict.fromkeys(
                "nll_loss nll_loss_nd multi_margin_loss cross_entropy_loss".split(),
                (x, classes),
            ),
            "multilabel_margin_loss": (x, places),
            "nll_loss2d": (x[..., None, None], classes[:, None, None]),
        },
    }
    for home, names in calls.items():
        for name, args in names.items():
            yield name, getattr(home, name)(*args), getattr(aten, name)(*args)
            yield getattr(home, name)(*args, reduction=2)
            yield getattr(aten, name)(*args, reduction=0)
