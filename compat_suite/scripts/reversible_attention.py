# compat: rtol=1e-3 atol=2e-3 seconds=8 (some steps of training)
"""Linear attention in reversible blocks that draw again as they did; a perceiver."""

import math
from contextlib import contextmanager
from functools import partial, wraps
from math import pi

import torch
import torch.nn.functional as F
from torch import einsum, nn
from torch.autograd.function import Function


def exists(val):
    return val is not None


def default(val, d):
    return val if exists(val) else d


@contextmanager
def null_context():
    yield


def cache_fn(f):
    cache = {}

    @wraps(f)
    def cached_fn(*args, _cache=True, key=None, **kwargs):
        if not _cache:
            return f(*args, **kwargs)
        nonlocal cache
        if key in cache:
            return cache[key]
        result = f(*args, **kwargs)
        cache[key] = result
        return result

    return cached_fn


def softmax_kernel(
    data, *, projection_matrix, is_query, normalize_data=True, eps=1e-4, device=None
):
    b, h, *_ = data.shape
    data_normalizer = (data.shape[-1] ** -0.25) if normalize_data else 1.0
    ratio = projection_matrix.shape[0] ** -0.5
    projection = projection_matrix.expand(b, h, *projection_matrix.shape).type_as(data)
    data_dash = torch.einsum("...id,...jd->...ij", (data_normalizer * data), projection)
    diag_data = data**2
    diag_data = torch.sum(diag_data, dim=-1)
    diag_data = (diag_data / 2.0) * (data_normalizer**2)
    diag_data = diag_data.unsqueeze(dim=-1)
    if is_query:
        data_dash = ratio * (
            torch.exp(
                data_dash
                - diag_data
                - torch.amax(data_dash, dim=-1, keepdim=True).detach()
            )
            + eps
        )
    else:
        data_dash = ratio * (
            torch.exp(
                data_dash
                - diag_data
                - torch.amax(data_dash, dim=(-1, -2), keepdim=True).detach()
            )
            + eps
        )
    return data_dash.type_as(data)


def orthogonal_matrix_chunk(cols, device=None):
    unstructured_block = torch.randn((cols, cols), device=device)
    q, r = torch.linalg.qr(unstructured_block.cpu(), mode="reduced")
    q, r = (t.to(device) for t in (q, r))
    return q.t()


def gaussian_orthogonal_random_matrix(nb_rows, nb_columns, scaling=0, device=None):
    nb_full_blocks = int(nb_rows / nb_columns)
    block_list = []
    for _ in range(nb_full_blocks):
        q = orthogonal_matrix_chunk(nb_columns, device=device)
        block_list.append(q)
    remaining_rows = nb_rows - nb_full_blocks * nb_columns
    if remaining_rows > 0:
        q = orthogonal_matrix_chunk(nb_columns, device=device)
        block_list.append(q[:remaining_rows])
    final_matrix = torch.cat(block_list)
    if scaling == 0:
        multiplier = torch.randn((nb_rows, nb_columns), device=device).norm(dim=1)
    elif scaling == 1:
        multiplier = math.sqrt(float(nb_columns)) * torch.ones(
            (nb_rows,), device=device
        )
    else:
        raise ValueError(f"Invalid scaling {scaling}")
    return torch.diag(multiplier) @ final_matrix


def linear_attention(q, k, v):
    k_cumsum = k.sum(dim=-2)
    D_inv = 1.0 / torch.einsum("...nd,...d->...n", q, k_cumsum.type_as(q))
    context = torch.einsum("...nd,...ne->...de", k, v)
    out = torch.einsum("...de,...nd,...n->...ne", context, q, D_inv)
    return out


def causal_linear_attention_noncuda(q, k, v, chunk_size=4, eps=1e-6):
    last_k_cumsum = 0
    last_context_cumsum = 0
    outs = []
    chunks = (t.chunk(chunk_size, dim=-2) for t in (q, k, v))
    for q, k, v in zip(*chunks, strict=False):
        k_cumsum = last_k_cumsum + k.cumsum(dim=-2)
        D_inv = 1.0 / torch.einsum("...nd,...nd->...n", q, k_cumsum.type_as(q) + eps)
        context = torch.einsum("...nd,...ne->...nde", k, v)
        context_cumsum = last_context_cumsum + context.cumsum(dim=-3)
        out = torch.einsum("...nde,...nd,...n->...ne", context_cumsum, q, D_inv)
        last_k_cumsum = k_cumsum[:, :, -1:]
        last_context_cumsum = context_cumsum[:, :, -1:]
        outs.append(out)
    return torch.cat(outs, dim=-2)


class FastAttention(nn.Module):
    def __init__(self, dim_heads, nb_features=None, causal=False):
        super().__init__()
        nb_features = default(nb_features, int(dim_heads * math.log(dim_heads)))
        self.dim_heads = dim_heads
        self.nb_features = nb_features
        self.create_projection = partial(
            gaussian_orthogonal_random_matrix,
            nb_rows=self.nb_features,
            nb_columns=dim_heads,
            scaling=0,
        )
        projection_matrix = self.create_projection()
        self.register_buffer("projection_matrix", projection_matrix)
        self.causal = causal

    @torch.no_grad()
    def redraw_projection_matrix(self, device):
        projections = self.create_projection(device=device)
        self.projection_matrix.copy_(projections)
        del projections

    def forward(self, q, k, v):
        create_kernel = partial(
            softmax_kernel, projection_matrix=self.projection_matrix, device=q.device
        )
        q = create_kernel(q, is_query=True)
        k = create_kernel(k, is_query=False)
        attn_fn = (
            linear_attention if not self.causal else causal_linear_attention_noncuda
        )
        return attn_fn(q, k, v)


class _ReversibleFunction(Function):
    @staticmethod
    def forward(ctx, x, blocks, args):
        ctx.args = args
        for block, kwarg in zip(blocks, args, strict=False):
            x = block(x, **kwarg)
        ctx.y = x.detach()
        ctx.blocks = blocks
        return x

    @staticmethod
    def backward(ctx, dy):
        y = ctx.y
        args = ctx.args
        for block, kwargs in zip(ctx.blocks[::-1], args[::-1], strict=False):
            y, dy = block.backward_pass(y, dy, **kwargs)
        return dy, None, None


class Deterministic(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.cpu_state = None

    def record_rng(self, *args):
        self.cpu_state = torch.get_rng_state()

    def forward(self, *args, record_rng=False, set_rng=False, **kwargs):
        if record_rng:
            self.record_rng(*args)
        if not set_rng:
            return self.net(*args, **kwargs)
        with torch.random.fork_rng(devices=[], enabled=True):
            torch.set_rng_state(self.cpu_state)
            return self.net(*args, **kwargs)


class ReversibleBlock(nn.Module):
    def __init__(self, f, g):
        super().__init__()
        self.f = Deterministic(f)
        self.g = Deterministic(g)

    def forward(self, x, f_args=None, g_args=None):
        if g_args is None:
            g_args = {}
        if f_args is None:
            f_args = {}
        x1, x2 = torch.chunk(x, 2, dim=2)
        y1, y2 = None, None
        with torch.no_grad():
            y1 = x1 + self.f(x2, record_rng=self.training, **f_args)
            y2 = x2 + self.g(y1, record_rng=self.training, **g_args)
        return torch.cat([y1, y2], dim=2)

    def backward_pass(self, y, dy, f_args=None, g_args=None):
        if g_args is None:
            g_args = {}
        if f_args is None:
            f_args = {}
        y1, y2 = torch.chunk(y, 2, dim=2)
        del y
        dy1, dy2 = torch.chunk(dy, 2, dim=2)
        del dy
        with torch.enable_grad():
            y1.requires_grad = True
            gy1 = self.g(y1, set_rng=True, **g_args)
            torch.autograd.backward(gy1, dy2)
        with torch.no_grad():
            x2 = y2 - gy1
            del y2, gy1
            dx1 = dy1 + y1.grad
            del dy1
            y1.grad = None
        with torch.enable_grad():
            x2.requires_grad = True
            fx2 = self.f(x2, set_rng=True, **f_args)
            torch.autograd.backward(fx2, dx1, retain_graph=True)
        with torch.no_grad():
            x1 = y1 - fx2
            del y1, fx2
            dx2 = dy2 + x2.grad
            del dy2
            x2.grad = None
            x = torch.cat([x1, x2.detach()], dim=2)
            dx = torch.cat([dx1, dx2], dim=2)
        return x, dx


class SelfAttention(nn.Module):
    def __init__(self, dim, heads=2, causal=True):
        super().__init__()
        self.heads = heads
        self.fast = FastAttention(dim // heads, 8, causal)
        self.to_qkv = nn.Linear(dim, dim * 3, bias=False)
        self.out = nn.Linear(dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = (
            t.view(b, n, self.heads, -1).transpose(1, 2)
            for t in self.to_qkv(self.norm(x)).chunk(3, -1)
        )
        out = self.fast(q, k, v)
        return self.drop(self.out(out.transpose(1, 2).reshape(b, n, d)))


class FeedForward(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(
            nn.LayerNorm(dim),
            nn.Linear(dim, dim * 2),
            nn.GELU(),
            nn.Dropout(0.1),
            nn.Linear(dim * 2, dim),
        )

    def forward(self, x):
        return self.net(x)


torch.manual_seed(1)
dim = 16
blocks = nn.ModuleList(
    [ReversibleBlock(SelfAttention(dim), FeedForward(dim)) for _ in range(2)]
)
emb = nn.Embedding(20, dim)
head = nn.Linear(dim, 20)
params = [*blocks.parameters(), *emb.parameters(), *head.parameters()]
opt = torch.optim.AdamW(params, 3e-3)
toks = torch.randint(0, 20, (4, 17))
for step in range(6):
    x = emb(toks[:, :-1])
    x = torch.cat([x, x], dim=-1)
    out = _ReversibleFunction.apply(x, blocks, [{}] * 2)
    out = torch.stack(out.chunk(2, dim=-1)).sum(dim=0)
    loss = F.cross_entropy(head(out).transpose(1, 2), toks[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, f"{loss.item():.4f}")
blocks[0].f.net.fast.redraw_projection_matrix("cpu")


def fourier_encode(x, max_freq, num_bands=4):
    x = x.unsqueeze(-1)
    device, dtype, orig_x = x.device, x.dtype, x
    scales = torch.linspace(1.0, max_freq / 2, num_bands, device=device, dtype=dtype)
    scales = scales[(*((None,) * (len(x.shape) - 1)), Ellipsis)]
    x = x * scales * pi
    x = torch.cat([x.sin(), x.cos()], dim=-1)
    x = torch.cat((x, orig_x), dim=-1)
    return x


class PreNorm(nn.Module):
    def __init__(self, dim, fn, context_dim=None):
        super().__init__()
        self.fn = fn
        self.norm = nn.LayerNorm(dim)
        self.norm_context = nn.LayerNorm(context_dim) if exists(context_dim) else None

    def forward(self, x, **kwargs):
        x = self.norm(x)
        if exists(self.norm_context):
            context = kwargs["context"]
            normed_context = self.norm_context(context)
            kwargs.update(context=normed_context)
        return self.fn(x, **kwargs)


class GEGLU(nn.Module):
    def forward(self, x):
        x, gates = x.chunk(2, dim=-1)
        return x * F.gelu(gates)


class Attention(nn.Module):
    def __init__(self, query_dim, context_dim=None, heads=2, dim_head=8, dropout=0.0):
        super().__init__()
        inner_dim = dim_head * heads
        context_dim = default(context_dim, query_dim)
        self.scale = dim_head**-0.5
        self.heads = heads
        self.to_q = nn.Linear(query_dim, inner_dim, bias=False)
        self.to_kv = nn.Linear(context_dim, inner_dim * 2, bias=False)
        self.to_out = nn.Linear(inner_dim, query_dim)

    def forward(self, x, context=None, mask=None):
        h = self.heads
        q = self.to_q(x)
        context = default(context, x)
        k, v = self.to_kv(context).chunk(2, dim=-1)
        q, k, v = (
            t.unflatten(-1, (h, -1)).transpose(1, 2).flatten(0, 1) for t in (q, k, v)
        )
        sim = einsum("b i d, b j d -> b i j", q, k) * self.scale
        if exists(mask):
            mask = mask.flatten(1)
            max_neg_value = -torch.finfo(sim.dtype).max
            mask = mask.repeat_interleave(h, dim=0)[:, None]
            sim.masked_fill_(~mask, max_neg_value)
        attn = sim.softmax(dim=-1)
        out = einsum("b i j, b j d -> b i d", attn, v)
        out = out.unflatten(0, (-1, h)).transpose(1, 2).flatten(2)
        return self.to_out(out)


class Perceiver(nn.Module):
    def __init__(
        self,
        *,
        num_freq_bands=3,
        depth=2,
        max_freq=10.0,
        input_channels=3,
        input_axis=2,
        num_latents=6,
        latent_dim=16,
        num_classes=5,
        weight_tie_layers=True,
    ):
        super().__init__()
        self.input_axis, self.max_freq, self.num_freq_bands = (
            input_axis,
            max_freq,
            num_freq_bands,
        )
        input_dim = (input_axis * ((num_freq_bands * 2) + 1)) + input_channels
        self.latents = nn.Parameter(torch.randn(num_latents, latent_dim))

        def get_cross_attn():
            return PreNorm(
                latent_dim,
                Attention(latent_dim, input_dim, heads=1),
                context_dim=input_dim,
            )

        def get_cross_ff():
            return PreNorm(
                latent_dim,
                nn.Sequential(
                    nn.Linear(latent_dim, latent_dim * 8),
                    GEGLU(),
                    nn.Linear(latent_dim * 4, latent_dim),
                ),
            )

        def get_latent_attn():
            return PreNorm(latent_dim, Attention(latent_dim))

        get_cross_attn, get_cross_ff, get_latent_attn = map(
            cache_fn, (get_cross_attn, get_cross_ff, get_latent_attn)
        )
        self.layers = nn.ModuleList([])
        for i in range(depth):
            should_cache = i > 0 and weight_tie_layers
            cache_args = {"_cache": should_cache}
            self_attns = nn.ModuleList(
                [get_latent_attn(**cache_args, key=b) for b in range(2)]
            )
            self.layers.append(
                nn.ModuleList(
                    [
                        get_cross_attn(**cache_args),
                        get_cross_ff(**cache_args),
                        self_attns,
                    ]
                )
            )
        self.to_logits = nn.Sequential(
            nn.LayerNorm(latent_dim), nn.Linear(latent_dim, num_classes)
        )

    def forward(self, data, mask=None):
        b, *axis, _, device, dtype = *data.shape, data.device, data.dtype
        assert len(axis) == self.input_axis
        axis_pos = [
            torch.linspace(-1.0, 1.0, steps=size, device=device, dtype=dtype)
            for size in axis
        ]
        pos = torch.stack(torch.meshgrid(*axis_pos, indexing="ij"), dim=-1)
        enc_pos = fourier_encode(pos, self.max_freq, self.num_freq_bands)
        enc_pos = enc_pos.flatten(-2)
        enc_pos = enc_pos[None].expand(b, *enc_pos.shape)
        data = torch.cat((data, enc_pos), dim=-1)
        data = data.flatten(1, -2)
        x = self.latents[None].repeat(b, 1, 1)
        for cross_attn, cross_ff, self_attns in self.layers:
            x = cross_attn(x, context=data, mask=mask) + x
            x = cross_ff(x) + x
            for sa in self_attns:
                x = sa(x) + x
        return self.to_logits(x.mean(1))


model = Perceiver(depth=3)
print(
    len(list(model.parameters())),
    sum(p.numel() for p in model.parameters()),
    len(model.state_dict()),
)
opt = torch.optim.NAdam(
    model.parameters(), 2e-3, decoupled_weight_decay=True, weight_decay=1e-2
)
img = torch.randn(6, 5, 7, 3)
mask = torch.rand(6, 5, 7) > 0.3
lab = torch.randint(5, (6,))
for _i in range(5):
    loss = F.cross_entropy(model(img, mask), lab, label_smoothing=0.1)
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=False)
    print(f"{loss:.3f}")
