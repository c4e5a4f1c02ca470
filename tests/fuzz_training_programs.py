"""Makes random training scripts for `tests.fuzz_training`."""

from __future__ import annotations

import random

Lines = list[str]

ITERATIONS = 9

_ACTIVATIONS = (
    "nn.ReLU()",
    "nn.Tanh()",
    "nn.GELU()",
    "nn.SiLU()",
    "nn.ELU()",
    "nn.LeakyReLU(0.1)",
    "nn.ReLU(inplace=True)",
    "nn.Softplus()",
    "nn.Sigmoid()",
    "nn.PReLU()",
    "nn.Hardtanh()",
    "nn.Mish()",
)
_ROW_LAYERS = (
    "nn.Linear(6, 6)",
    "nn.Linear(6, 6, bias=False)",
    "nn.LayerNorm(6)",
    "nn.BatchNorm1d(6)",
    "nn.BatchNorm1d(6, momentum=None)",
    "nn.Dropout(0.3)",
    "nn.GroupNorm(2, 6)",
    "nn.RMSNorm(6)",
    "Residual(nn.Linear(6, 6))",
    "Residual(nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 6), nn.ReLU()))",
    "Again(nn.Sequential(nn.Linear(6, 6), nn.Tanh()))",
    "Scale(6)",
    "Noise()",
    "Counted()",
    "Running(6)",
    "Cubed()",
    "torch.nn.utils.parametrizations.weight_norm(nn.Linear(6, 6))",
    "torch.nn.utils.parametrizations.spectral_norm(nn.Linear(6, 6))",
    "nn.AlphaDropout(0.2)",
    "Mixed(nn.Linear(6, 6), nn.Linear(6, 6))",
)
# (The gradient of a key's bias is zero, but for rounding.)
_SEQUENCE_LAYERS = (
    "First(nn.GRU(6, 6, batch_first=True))",
    "First(nn.LSTM(6, 6, batch_first=True))",
    "First(nn.RNN(6, 3, batch_first=True, bidirectional=True))",
    "Unrolled(nn.GRUCell(6, 6))",
    "UnrolledPair(nn.LSTMCell(6, 6))",
    "nn.TransformerEncoderLayer(6, 2, 8, 0.1, batch_first=True, bias=False)",
    "Attention(nn.MultiheadAttention(6, 2, bias=False, batch_first=True))",
    "Masked(nn.MultiheadAttention(6, 2, bias=False, batch_first=True))",
    "Turned(nn.Conv1d(6, 6, 3, padding=1))",
    "nn.LayerNorm(6)",
    "nn.Linear(6, 6)",
    "nn.Dropout(0.2)",
    "Positions(6)",
)
_IMAGE_LAYERS = (
    "nn.Conv2d(3, 3, 3, padding=1)",
    "nn.Conv2d(3, 3, 1, bias=False)",
    "nn.Conv2d(3, 3, 3, padding=1, groups=3)",
    "nn.BatchNorm2d(3)",
    "nn.InstanceNorm2d(3, affine=True)",
    "nn.GroupNorm(1, 3)",
    "nn.Dropout2d(0.3)",
    "nn.MaxPool2d(2, 1, 1)",
    "nn.AvgPool2d(3, 1, 1)",
    "Residual(nn.Conv2d(3, 3, 3, padding=1))",
    "nn.Upsample(scale_factor=2)",
    "nn.ConvTranspose2d(3, 3, 2)",
)
_DATA = {
    "rows": ("X = torch.randn(n, 6)", "X = torch.rand(n, 6) * 2 - 1"),
    "sequence": ("X = torch.randn(n, 4, 6)",),
    "tokens": ("X = torch.randint(0, 9, (n, 4))",),
    "image": ("X = torch.randn(n, 3, 5, 5)",),
}
_LOSSES = {
    "classes": (
        "F.cross_entropy(out, yb)",
        "F.cross_entropy(out, yb, label_smoothing=0.1)",
        "F.nll_loss(F.log_softmax(out, 1), yb)",
        "crit(out, yb)",
        "-(out.log_softmax(-1).gather(1, yb[:, None])).mean()",
        "F.cross_entropy(out, yb, reduction='none').topk(3)[0].mean()",
        "F.multi_margin_loss(out, yb)",
        "-torch.distributions.Categorical(logits=out).log_prob(yb).mean()",
        "(out.softmax(-1) - F.one_hot(yb, 3)).square().sum(-1).mean()",
        "F.binary_cross_entropy_with_logits(out, F.one_hot(yb, 3).to(out.dtype))",
    ),
    "values": (
        "F.mse_loss(out, yb)",
        "F.l1_loss(out, yb)",
        "F.smooth_l1_loss(out, yb)",
        "F.huber_loss(out, yb, delta=0.7)",
        "((out - yb) ** 2).sum(-1).mean()",
        "(out - yb).abs().mean() + (out - yb).pow(2).mean()",
        "F.gaussian_nll_loss(out, yb, torch.ones_like(out))",
        "-torch.distributions.Normal(out, 1.0).log_prob(yb).mean()",
        "1 - F.cosine_similarity(out, yb).mean()",
        "(out - yb).cosh().log().mean()",
    ),
}
_EXTRAS = (
    "loss = loss + 1e-3 * sum(p.pow(2).sum() for p in model.parameters())",
    "loss = loss * (0.5 + i / 10)",
    "loss = loss / 2",
    "loss += 0.01 * out.square().mean()",
    "loss = loss + 0.01 * (out.softmax(-1) * out.log_softmax(-1)).sum(-1).mean()",
    "loss = loss + F.mse_loss(out, teacher(xb).detach())",
    "with torch.no_grad(): aim = teacher(xb)\nloss = loss + (out - aim).pow(2).mean()",
    "loss = loss + 0.1 * model(xb + 0.1 * torch.randn_like(xb)).var()",
    "loss = torch.stack([loss, out.mean() ** 2]).sum()",
    "loss = loss if i % 3 else loss * 2",
    "loss = loss + sum([0.01 * out[j].norm() for j in range(2)])",
    "loss = loss + 0.1 * (out - centre).square().mean()",
    "loss = loss + 0.01 * torch.cat([p.flatten() for p in params]).norm()",
    "loss = (loss - 0.1).abs() + 0.1",
    "loss = loss.clamp(max=5.0)",
    "if i > 2: loss = loss + 0.01 * out.std()",
)
_LOOKS = (
    "log(loss.item())",
    "log(float(loss))",
    "total += loss.item()",
    "summed = summed + loss.detach()",
    "summed += loss.detach() * len(xb)",
    "losses.append(loss.detach())",
    "losses.append(loss.item())",
    "arrays.append(out.detach().numpy())",
    "arrays.append(loss.detach().numpy())",
    "arrays.append(out.detach().cpu().numpy().copy())",
    "log((out.argmax(-1) == 1).sum().item())",
    "log(out.max(1)[1].tolist())",
    "log(out[0, 0].item())",
    "log(round(loss.item(), 6))",
    "if loss.item() < best: best = loss.item(); "
    "kept = copy.deepcopy(model.state_dict())",
    "if i % 4 == 3: log([p.detach().sum().item() for p in params])",
    "memory[i % 4] = out.detach().mean(0)",
    "memory = torch.roll(memory, 1, 0); memory[0] = out.detach().mean(0)",
    "counts[out.argmax(-1)] += 1",
    "counts.index_add_(0, out.argmax(-1), torch.ones(len(out), dtype=torch.long))",
    "centre = 0.9 * centre + 0.1 * out.detach().mean(0)",
    "centre.mul_(0.9).add_(out.detach().mean(0), alpha=0.1)",
    "confusion = confusion + torch.bincount(out.argmax(1), minlength=3)",
    "shown = out.detach()[:2].clone()",
    "shown = out",
    "log((out > 0).any().item(), bool((out > 9).all()))",
    "w = first.detach().clone()",
    "log(torch.isfinite(loss).item())",
    "assert not torch.isnan(out).any()",
    "log(out.detach().median().item() if i == 4 else 0)",
    "buffer.append((xb, out.detach()))",
    "log(model.training, loss.requires_grad, out.shape[0])",
    "best = min(best, loss.item())",
    "summed = torch.maximum(summed, loss.detach())",
    "log(torch.get_rng_state().sum().item())",
    "x0 = xb[0].clone() if xb.is_floating_point() else None",
)
_BACKWARDS = (
    ("opt.zero_grad()", "loss.backward()"),
    ("opt.zero_grad()", "loss.backward()"),
    ("opt.zero_grad(set_to_none=False)", "loss.backward()"),
    ("model.zero_grad()", "loss.backward()"),
    ("for p in params: p.grad = None", "loss.backward()"),
    (
        "gs = torch.autograd.grad(loss, tracked(), allow_unused=True)",
        "for p, g in zip(tracked(), gs): p.grad = g",
    ),
    ("opt.zero_grad()", "loss.backward(retain_graph=True)", "loss.backward()"),
    (
        "opt.zero_grad()",
        "(loss / 2).backward(retain_graph=True)",
        "out.mean().backward()",
    ),
    (
        "opt.zero_grad()",
        "gs = torch.autograd.grad(loss, tracked(), create_graph=True, "
        "allow_unused=True)",
        "loss = loss + 0.01 * sum(g.pow(2).sum() for g in gs if g is not None)",
        "loss.backward()",
    ),
    ("opt.zero_grad()", "loss.backward(inputs=tracked())"),
    ("opt.zero_grad()", "torch.autograd.backward([loss, out.sum() * 0.01])"),
    ("if i % 2 == 0: opt.zero_grad()", "loss.backward()"),
)
_GRADIENTS = (
    "log(nn.utils.clip_grad_norm_(params, 1.0).item())",
    "nn.utils.clip_grad_norm_(params, 0.5)",
    "nn.utils.clip_grad_value_(params, 0.05)",
    "for p in tracked(): p.grad is None or p.grad.mul_(0.9)",
    "for p in tracked(): p.grad is None or p.grad.add_(0.01 * torch.randn_like(p))",
    "log(sum(p.grad.norm().item() for p in tracked() if p.grad is not None))",
    "seen = [p.grad for p in tracked() if p.grad is not None]; "
    "norms.append(torch.stack([g.norm() for g in seen]))",
    "for p in tracked(): p.grad = None if p.grad is None else p.grad / 2",
    "for p in tracked(): p.grad is None or p.grad.data.clamp_(-0.1, 0.1)",
    "if first.grad is not None: first.grad[0] = 0",
    "log(first.grad is None or first.grad.abs().max().item())",
    "g = None if first.grad is None else first.grad.clone()",
)
_OPTIMIZERS = (
    "torch.optim.SGD(params, lr=0.05)",
    "torch.optim.SGD(params, lr=0.05, momentum=0.9)",
    "torch.optim.SGD(params, lr=0.02, momentum=0.9, nesterov=True, weight_decay=1e-3)",
    "torch.optim.Adam(params, lr=0.01)",
    "torch.optim.Adam(params, lr=0.01, amsgrad=True, weight_decay=1e-2)",
    "torch.optim.AdamW(params, lr=0.01)",
    "torch.optim.AdamW([{'params': params[:1], 'lr': 0.02}, {'params': params[1:]}], "
    "lr=0.01, betas=(0.8, 0.9))",
    "torch.optim.RMSprop(params, lr=0.01, centered=True)",
    "torch.optim.Adagrad(params, lr=0.05)",
    "torch.optim.Adadelta(params)",
    "torch.optim.Adamax(params, lr=0.01)",
    "torch.optim.NAdam(params, lr=0.01)",
    "torch.optim.RAdam(params, lr=0.01)",
    "torch.optim.ASGD(params, lr=0.02)",
    "torch.optim.Adam(params, lr=0.01, foreach=False)",
    "torch.optim.SGD(params, lr=0.05, maximize=True, momentum=0.5, dampening=0.1)",
    "ByHand(params, 0.05)",
    "Momentum(params, 0.05)",
)
_SCHEDULES = (
    "torch.optim.lr_scheduler.StepLR(opt, 3, 0.5)",
    "torch.optim.lr_scheduler.CosineAnnealingLR(opt, 8)",
    "torch.optim.lr_scheduler.LambdaLR(opt, lambda e: 1 / (1 + e))",
    "torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)",
    "torch.optim.lr_scheduler.LinearLR(opt, 0.3, total_iters=4)",
    "torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=1)",
    "torch.optim.lr_scheduler.OneCycleLR(opt, 0.02, total_steps=20)",
    "torch.optim.lr_scheduler.CyclicLR(opt, 0.001, 0.02, 3, cycle_momentum=False)",
)
_AFTER_STEP = (
    "with torch.no_grad():\n"
    "    for e, p in zip(ema, params): e.mul_(0.9).add_(p, alpha=0.1)",
    "ema = [0.9 * e + 0.1 * p.detach() for e, p in zip(ema, params)]",
    "for e, p in zip(ema, params): e.lerp_(p.detach(), 0.1)",
    "for t, p in zip(teacher.parameters(), params): "
    "t.data.copy_(0.9 * t.data + 0.1 * p.data)",
    "with torch.no_grad(): torch._foreach_lerp_(ema, list(params), 0.2)",
    "if i % 3 == 2: teacher.load_state_dict(model.state_dict())",
    "if i % 3 == 1: ev = evaluate()",
    "if i % 3 == 1: log(evaluate())",
    "if i == 4: params[0].requires_grad_(False)",
    "if i == 6: params[0].requires_grad_(True)",
    "if i == 5: opt.param_groups[0]['lr'] *= 0.1",
    "for g in opt.param_groups: g['lr'] = 0.01 / (1 + i)",
    "if i == 4: opt.load_state_dict(copy.deepcopy(opt.state_dict()))",
    "if i == 4: model.load_state_dict(copy.deepcopy(model.state_dict()))",
    "if i == 5: model.load_state_dict(through_file(model.state_dict()))",
    "if i == 3: handle = first.register_hook(lambda g: g * 0.5)",
    "if i == 6 and handle is not None: handle.remove()",
    "if i == 2: first.register_post_accumulate_grad_hook(lambda p: hooked.append(i))",
    "if i == 3: model[-1].register_forward_hook(lambda m, a, o: o * 1.1)",
    "if i == 3: model = copy.deepcopy(model); params = list(model.parameters()); "
    "first = params[0]; opt = make()",
    "with torch.no_grad(): first.clamp_(-0.5, 0.5)",
    "first.data.clamp_(-1, 1)",
    "with torch.no_grad(): first += 0.001 * torch.randn_like(first)",
    "with torch.no_grad(): first.copy_(first / first.norm())",
    "first.data = first.data / (1 + first.data.norm())",
    "log([p.norm().item() for p in params][:2])",
    "if i % 5 == 4: model.eval()",
    "if i % 5 == 0: model.train()",
    "del loss, out",
    "snapshot = nn.utils.parameters_to_vector(params).detach()",
    "model.eval(); seen = model(X[:3]).detach(); model.train()",
    "if i == 4: nn.utils.vector_to_parameters("
    "nn.utils.parameters_to_vector(params) * 0.9, params)",
    "averaged.update_parameters(model)",
    "xs = torch.autograd.grad(model(xg).sum(), xg)[0] if xg is not None else None",
    "with torch.inference_mode(): log(model(X[:2]).sum().item())",
    "gc.collect() if i == 3 else None",
)
_BATCHES = (
    ("xb, yb = X, Y",),
    ("idx = torch.randperm(n)[:5]", "xb, yb = X[idx], Y[idx]"),
    ("k = i * 2 % (n - 5)", "xb, yb = X[k:k + 5], Y[k:k + 5]"),
    ("k = i % 3 * 5", "xb, yb = X[k:k + 5], Y[k:k + 5]"),
    ("xb, yb = next(batches)",),
    ("idx = torch.randint(0, n, (4,))", "xb, yb = X[idx], Y[idx]"),
    ("xb, yb = X.split(5)[i % 3], Y.split(5)[i % 3]",),
    ("chosen = random.sample(range(n), 4)", "xb, yb = X[chosen], Y[chosen]"),
    (
        "rows = [int(j) for j in np_random.permutation(n)[:4]]",
        "xb = torch.stack([X[j] for j in rows])",
        "yb = torch.stack([Y[j] for j in rows])",
    ),
    ("keep = torch.rand(n) < 0.6", "keep[:4] = True", "xb, yb = X[keep], Y[keep]"),
)


def program(rng: random.Random) -> tuple[Lines, Lines, Lines]:
    """Lines before the loop, of its body, and after it."""
    kind = rng.choice(["rows"] * 3 + ["sequence", "tokens", "image"])
    aim = rng.choice(["classes", "values"])
    before = [
        # In float32 Adam makes a direction of what is rounding in a gradient of zero.
        "torch.set_default_dtype(torch.float64)",
        f"torch.manual_seed({rng.randrange(1000)})",
        f"n = {rng.choice([12, 13, 15])}",
        rng.choice(_DATA[kind]),
    ]
    before.append(
        "Y = torch.randint(0, 3, (n,))" if aim == "classes" else "Y = torch.randn(n, 3)"
    )
    before.append(f"model = nn.Sequential({', '.join(_layers(kind, rng))})")
    before += [
        "params = list(model.parameters())",
        "first = params[0]",
        "tracked = lambda: [p for p in params if p.requires_grad]",
        f"make = lambda: {rng.choice(_OPTIMIZERS)}",
        "opt = make()",
        "teacher = copy.deepcopy(model)",
        "averaged = torch.optim.swa_utils.AveragedModel(model)",
        "ema = [p.detach().clone() for p in params]",
        "crit = nn.CrossEntropyLoss(weight=torch.tensor([0.2, 0.5, 0.3]))",
        "batches = endless(torch.utils.data.DataLoader("
        "torch.utils.data.TensorDataset(X, Y), 5, shuffle=True, "
        f"drop_last={rng.choice([True, False])}))",
        "memory, counts = torch.zeros(4, 3), torch.zeros(3, dtype=torch.long)",
        "centre, confusion, summed = torch.zeros(3), 0, torch.tensor(0.0)",
        "xg = X[:2].clone().requires_grad_() if X.is_floating_point() else None",
    ]
    scheduled = rng.random() < 0.4
    if scheduled:
        before.append(f"schedule = {rng.choice(_SCHEDULES)}")
    body = [*rng.choice(_BATCHES)]
    body.append("out = model(xb)")
    if rng.random() < 0.15:
        body.append("out.retain_grad() if out.requires_grad else None")
    body.append(f"loss = {rng.choice(_LOSSES[aim])}")
    body += rng.sample(_EXTRAS, rng.choice([0, 0, 1, 1, 2]))
    body += rng.sample(_LOOKS, rng.choice([0, 0, 1, 2]))
    body += rng.choice(_BACKWARDS)
    body += rng.sample(_GRADIENTS, rng.choice([0, 0, 1, 2]))
    body.append(rng.choice(["opt.step()"] * 6 + ["if i % 2: opt.step()"]))
    if scheduled:
        plateau = "Plateau" in before[-1]
        body.append("schedule.step(loss.item())" if plateau else "schedule.step()")
    tail = rng.sample(_LOOKS, rng.choice([0, 1, 2, 3]))
    tail += rng.sample(_AFTER_STEP, rng.choice([0, 1, 1, 2, 3]))
    tail.sort(key=lambda line: line.startswith("del "))
    body += tail
    after = [
        "log([p.detach() for p in params], [p.grad for p in params])",
        "log({k: v for k, v in model.state_dict().items()})",
        "log(states(opt), averaged.n_averaged, [p for p in averaged.parameters()])",
        "log(ema, memory, counts, centre, confusion, summed, losses, arrays, norms)",
        "log(hooked, total, best)",
        "log(list(teacher.parameters()))",
    ]
    return before, body, after


def _layers(kind: str, rng: random.Random) -> Lines:
    layers: Lines = []
    if kind == "tokens":
        layers.append(
            rng.choice(
                [
                    "nn.Embedding(9, 6)",
                    "nn.Embedding(9, 6, padding_idx=0)",
                    "nn.Embedding(9, 6, max_norm=1.0)",
                    "nn.EmbeddingBag(9, 6)",
                ]
            )
        )
        kind = "rows" if "Bag" in layers[0] else "sequence"
    pool = {
        "rows": _ROW_LAYERS,
        "sequence": _SEQUENCE_LAYERS,
        "image": _IMAGE_LAYERS,
    }[kind]
    for _ in range(rng.choice([1, 1, 2, 3])):
        layers.append(rng.choice(pool))
        if rng.random() < 0.5:
            layers.append(rng.choice(_ACTIVATIONS))
    if kind == "sequence":
        layers.append(rng.choice(("Mean(1)", "Last()")))
    elif kind == "image":
        layers += ["nn.AdaptiveAvgPool2d(2)", "nn.Flatten()", "nn.Linear(12, 6)"]
    layers.append("nn.Linear(6, 3)")
    return layers
