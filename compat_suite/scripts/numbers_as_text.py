# compat: rtol=1e-5 seconds=3 (sums in another order)
"""The ways in which scripts print and use numbers, meters, summaries, and modules."""

import collections
import csv
import io
import json
import logging
import math
import random
import statistics
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

logging.basicConfig(
    level=logging.INFO, stream=sys.stdout, format="%(levelname)s:%(name)s:%(message)s"
)
log = logging.getLogger("train")
torch.manual_seed(3)
random.seed(3)
x = torch.randn(5)
l = (x**2).mean().requires_grad_()  # noqa: E741
i = torch.tensor(7)
print(
    f"{l:.4f} {i:03d} {i} {l} {i:>6} {x[0]:+.2e} {i / 2:.1f} {l.item():10.3f}|"
    f"{x.sum():<12.3f}|"
)
print("%.3f %d %s %5.1f%%" % (l, i, i, l * 100))  # noqa: UP031
print(f"{l:.3f} {x[1]:>8.2f} {i!r} {x[:2]}")
log.info("loss %.4f step %d %s", l, i, x.shape)
print(
    round(l.item(), 3),
    round(float(x[1]), 2),
    int(i),
    float(l),
    complex(torch.tensor(1 + 2j)),
    bool(i),
)
print(
    math.sqrt(torch.tensor(16.0)),
    math.exp(torch.tensor(0.0)),
    math.floor(x[0]),
    math.ceil(x[0]),
    torch.round(torch.tensor(2.567), decimals=2),
)
print(
    np.mean(list(x)),
    np.sqrt(torch.tensor([4.0, 9.0])),
    np.array(x).dtype,
    np.asarray([x[0], x[1]]).shape,
)
print(
    sum(x),
    max(x),
    min(x),
    sorted(x.tolist()),
    sorted([torch.tensor(3), torch.tensor(1)]),
)
print(
    list(range(torch.tensor(3))),
    [10, 20, 30, 40][torch.tensor(2)],
    "ab" * torch.tensor(2).item(),
    x[: torch.tensor(2)],
    x[torch.tensor(1) :].shape,
)
print(
    json.dumps(
        {"a": x.tolist()[:1] and [round(v, 3) for v in x.tolist()], "b": i.item()}
    )
)
print(
    i == 7,
    i in [1, 7],
    7 in torch.tensor([1, 7]),
    torch.tensor(7) in {7: "a"},
    hash(i) == id(i),
)
print(statistics.mean([float(t) for t in x]) - x.mean().item() < 1e-6)
d = collections.defaultdict(list)
for k, v in zip("abcab", x, strict=False):
    d[k].append(v)
print({k: torch.stack(v).mean().item() for k, v in sorted(d.items())})
meter = collections.OrderedDict(loss=l.detach(), acc=torch.tensor(0.5))
print(dict(meter))
print(", ".join(f"{k}: {v:.2f}" for k, v in meter.items()))
buf = io.StringIO()
w = csv.writer(buf)
w.writerow([i, l.item(), x[0]])
print(buf.getvalue())
perm = torch.randperm(5)
print(
    [["a", "b", "c", "d", "e"][j] for j in perm],
    np.arange(5)[perm],
    np.arange(5)[perm.numpy()],
)
lst = list(range(5))
random.shuffle(lst)
print(x[lst], x[np.array(lst)], x[(lst,)], x[[True, False, True, False, True]])
arr = np.random.RandomState(0).rand(3, 4)
print(
    torch.from_numpy(arr) @ torch.ones(4, dtype=torch.float64),
    torch.Tensor(arr).dtype,
    arr * 2,
    torch.tensor(2.0) * torch.from_numpy(arr[0]),
)
print(
    np.float32(2) * x[:2],
    x[:2] * np.float64(2),
    x[:2] + np.int64(1),
    (x[:2] + torch.arange(2)),
    type(np.float64(1) + i),
)
print(
    x.numpy().sum(),
    torch.sum(torch.as_tensor(arr)),
    np.concatenate([x[:2], x[3:]]),
    np.stack([x.numpy()] * 2).shape,
)
print(
    torch.tensor(np.float64(3)),
    torch.tensor([np.float32(1), 2]),
    torch.tensor(arr.tolist()).dtype,
    torch.tensor([[i, 2], [3, i]]),
)
torch.set_printoptions(precision=2, sci_mode=False)
print(torch.randn(3, 4) * 1e5, torch.rand(2, 2) * 1e-5)
torch.set_printoptions(profile="default")
print(
    torch.rand(1200)[:3],
    torch.arange(2000),
    torch.eye(3, dtype=torch.bool),
    torch.zeros(0, 3),
    torch.full((2,), float("nan")),
    torch.tensor([1e-10, 1.0, 1e10]),
    torch.tensor([float("inf"), -1.5]),
)
torch.set_printoptions(threshold=10, edgeitems=2, linewidth=60)
print(torch.arange(100).view(10, 10), torch.randn(3, 20))
torch.set_printoptions(profile="full")
print(torch.arange(30))
torch.set_printoptions(profile="default")
print(
    x.type(),
    x.dtype,
    x.device,
    x.layout,
    x.size(),
    x.shape[0],
    x.nelement(),
    x.dim(),
    x.storage_offset(),
    x.is_leaf,
    x.element_size(),
    tuple(x.size()),
    list(x.shape),
    str(x.dtype).split(".")[-1],
    repr(x.device),
)
print(
    nn.Parameter(torch.ones(2)),
    nn.ParameterList([torch.ones(1)]),
    nn.ParameterDict({"a": torch.zeros(2)}),
    nn.ModuleDict({"k": nn.ReLU()}),
)


class AverageMeter:
    def __init__(self, name, fmt=":f"):
        self.name, self.fmt = name, fmt
        self.reset()

    def reset(self):
        self.val = self.avg = self.sum = self.count = 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        fmtstr = "{name} {val" + self.fmt + "} ({avg" + self.fmt + "})"
        return fmtstr.format(**self.__dict__)


class ProgressMeter:
    def __init__(self, num_batches, meters, prefix=""):
        num_digits = len(str(num_batches // 1))
        fmt = "{:" + str(num_digits) + "d}"
        self.fmt = "[" + fmt + "/" + fmt.format(num_batches) + "]"
        self.meters, self.prefix = meters, prefix

    def display(self, batch):
        entries = [self.prefix + self.fmt.format(batch)]
        entries += [str(meter) for meter in self.meters]
        print("\t".join(entries))


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk = max(topk)
        batch_size = target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        pred = pred.t()
        correct = pred.eq(target.view(1, -1).expand_as(pred))
        res = []
        for k in topk:
            correct_k = correct[:k].reshape(-1).float().sum(0, keepdim=True)
            res.append(correct_k.mul_(100.0 / batch_size))
        return res


top1, losses = AverageMeter("Acc@1", ":6.2f"), AverageMeter("Loss", ":.4e")
pm = ProgressMeter(10, [top1, losses], prefix=f"Epoch: [{0}]")
for b in range(3):
    out, tgt = torch.randn(8, 10), torch.randint(10, (8,))
    acc1, acc5 = accuracy(out, tgt, topk=(1, 5))
    top1.update(acc1[0], 8)
    losses.update(F.cross_entropy(out, tgt).item(), 8)
    pm.display(b)


def summary(model, input_size):
    def register_hook(module):
        def hook(module, input, output):
            class_name = str(module.__class__).split(".")[-1].split("'")[0]
            m_key = f"{class_name}-{len(summ) + 1}"
            params = 0
            if hasattr(module, "weight") and hasattr(module.weight, "size"):
                params += torch.prod(torch.LongTensor(list(module.weight.size())))
            if hasattr(module, "bias") and hasattr(module.bias, "size"):
                params += torch.prod(torch.LongTensor(list(module.bias.size())))
            summ[m_key] = (
                list(output.size()),
                params,
                any(p.requires_grad for p in module.parameters()),
            )

        if not isinstance(module, nn.Sequential) and not (module == model):
            hooks.append(module.register_forward_hook(hook))

    summ, hooks = collections.OrderedDict(), []
    model.apply(register_hook)
    model(torch.rand(2, *input_size).type(torch.FloatTensor))
    for h in hooks:
        h.remove()
    print("-" * 64)
    total = 0
    for layer, (shape, p, _tr) in summ.items():
        line_new = "{:>20}  {:>25} {:>15}".format(layer, str(shape), f"{p:,}")
        total += p
        print(line_new)
    print(f"Total params: {total:,}")
    print(f"Total params size (MB): {abs(total.numpy() * 4.0 / (1024**2.0)):0.4f}")


summary(
    nn.Sequential(
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * 36, 4),
    ),
    (3, 8, 8),
)
layers = [
    nn.Conv1d(2, 4, 3, padding="same", dilation=2),
    nn.ConvTranspose2d(2, 3, 2, output_padding=(0, 0)),
    nn.GRU(2, 3, bidirectional=True, batch_first=True),
    nn.MultiheadAttention(4, 2),
    nn.Embedding(5, 2, padding_idx=0),
    nn.GroupNorm(2, 4),
    nn.LayerNorm([2, 3]),
    nn.PReLU(3),
    nn.Softmax(dim=-1),
    nn.Upsample(scale_factor=2),
    nn.ZeroPad2d(1),
    nn.PixelShuffle(2),
    nn.Bilinear(2, 3, 4),
    nn.CosineSimilarity(),
    nn.AdaptiveAvgPool2d((1, None)),
    nn.LocalResponseNorm(2),
    nn.Hardtanh(),
    nn.Threshold(0.1, 20),
    nn.Unfold(2),
    nn.TransformerEncoderLayer(4, 2, 8),
    nn.CrossEntropyLoss(label_smoothing=0.1),
    nn.EmbeddingBag(3, 2, mode="sum"),
    nn.LSTMCell(2, 3),
    nn.InstanceNorm2d(3, affine=True),
    nn.MaxPool2d(2, 2, ceil_mode=True),
    nn.RReLU(),
    nn.Dropout2d(0.3, inplace=True),
    nn.LazyLinear(3),
    nn.Identity(1, 2),
    nn.AlphaDropout(),
    nn.Fold((2, 2), 1),
    nn.ReflectionPad1d((1, 2)),
    nn.TripletMarginLoss(),
    nn.CTCLoss(),
    nn.Unflatten(1, (2, 3)),
    nn.Tanhshrink(),
    nn.RMSNorm(4),
    nn.GELU("tanh"),
    nn.ChannelShuffle(2),
    nn.SyncBatchNorm(3),
]
for layer in layers:
    print(layer)
print(torch.optim.AdamW([nn.Parameter(torch.ones(1))], lr=1e-3))
print(
    torch.distributions.Normal(torch.zeros(2), 1.0),
    torch.distributions.Categorical(logits=torch.zeros(2, 3)),
    torch.finfo(torch.float32),
    torch.iinfo(torch.int8),
)
sched = torch.optim.lr_scheduler.OneCycleLR(
    torch.optim.SGD([nn.Parameter(torch.ones(1))], 0.1, momentum=0.9),
    0.5,
    total_steps=10,
)
print([k for k in sched.state_dict() if not k.startswith("_")], sched.get_last_lr())
try:
    nn.Linear(3, 2)(torch.randn(2, 4))
except RuntimeError as e:
    log.error("failed: %s", e)
try:
    torch.randn(2, 3).view(5)
except Exception as e:
    print(type(e).__name__, e)
try:
    m = nn.Linear(2, 2)
    m.load_state_dict({"weight": torch.ones(3, 2), "oops": 1})
except RuntimeError as e:
    print(e)
try:
    torch.ones(1, requires_grad=True).numpy()
except RuntimeError as e:
    print(e)
try:
    torch.ones(2).item()
except RuntimeError as e:
    print(e)
