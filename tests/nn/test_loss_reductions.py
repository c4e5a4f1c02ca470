"""Names of what losses are reduced by: old ones, wrong ones."""

from __future__ import annotations

import itertools

from tests.oracle import attempt, case

# Losses of numbers, of classes, and of three tensors.
LOSSES = """
kl_div mse_loss l1_loss smooth_l1_loss huber_loss poisson_nll_loss binary_cross_entropy
binary_cross_entropy_with_logits soft_margin_loss multilabel_soft_margin_loss
hinge_embedding_loss
""".split()
OF_CLASSES = "nll_loss cross_entropy multi_margin_loss".split()
OF_TRIPLETS = "triplet_margin_loss triplet_margin_with_distance_loss".split()


@case
def the_old_name_of_the_mean(torch):
    F, nn = torch.nn.functional, torch.nn
    x, target = torch.arange(6.0).view(2, 3), torch.tensor([0, 2])
    yield nn.CrossEntropyLoss(reduction="elementwise_mean")(x, target)
    yield F.mse_loss(x, x + 1, reduction="elementwise_mean")
    yield F.nll_loss(x, target, reduction="elementwise_mean")
    yield F.binary_cross_entropy(x / 6, x / 6, reduction="elementwise_mean")
    yield F.smooth_l1_loss(x, x + 2, reduction="elementwise_mean")
    yield attempt(F.l1_loss, x, x, reduction="average")


@case.over(reduction=["elementwise_mean", "batchmean", "Mean", ""])
def other_names(torch, reduction):
    F, x, y = torch.nn.functional, torch.rand(3, 4), torch.rand(3, 4)
    given = dict.fromkeys(LOSSES, (x, y))
    given |= dict.fromkeys(OF_CLASSES, (x, torch.tensor([0, 1, 2])))
    given |= dict.fromkeys(OF_TRIPLETS, (x, y, x))
    for name, args in given.items():
        loss = getattr(F, name)
        yield attempt(lambda f=loss, a=args: f(*a, reduction=reduction).shape)
    for name in ("mse_loss", "l1_loss", "huber_loss"):
        loss = getattr(F, name)
        for weight in (x, x[0]):
            named = {"reduction": reduction, "weight": weight}
            yield attempt(lambda f=loss, n=named: f(x, y, **n))


@case.over(reduction=["mean", "sum", "none"], smoothing=[0.0, 0.1])
def probabilities_of_nothing(torch, reduction, smoothing):
    loss = torch.nn.functional.cross_entropy
    named = {"reduction": reduction, "label_smoothing": smoothing}
    for shape in ((0,), (0, 3), (3, 0), (2, 3, 0), (0, 3, 2)):
        x = torch.ones(shape)
        yield loss(x, x, **named)
    yield attempt(loss, torch.tensor(1.0), torch.tensor(1.0), **named)


@case
def losses_of_what_is_certain(torch):
    """Which of them are minus zero."""
    F = torch.nn.functional
    for n, reduction in itertools.product((1, 3), ("mean", "sum", "none")):
        x = torch.tensor([[100.0, -100.0]] * n)
        target, p = torch.zeros(n, dtype=torch.long), torch.tensor([[1.0, 0.0]] * n)
        one = x[0], target[0]
        for w in (None, torch.tensor([2.0, 1.0])):
            named = {"weight": w, "reduction": reduction}
            print(F.cross_entropy(x, target, **named), F.cross_entropy(x, p, **named))
            print(F.cross_entropy(*one, **named))
            print(F.nll_loss(x.log_softmax(1)[..., None], target[:, None], **named))
