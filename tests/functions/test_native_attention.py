"""What layers of attention compute in inference, in one call."""

from tests.oracle import attempt, case, evaluate

NAMES = """
torch.manual_seed(0)
x, y, z = (torch.randn(2, 3, 4) for _ in range(3))
w, b, p, c = torch.randn(12, 4), torch.randn(12), torch.randn(4, 4), torch.randn(4)
layer = w, b, p, c
keys = torch.tensor([[False, False, True], [False, True, True]])
scores = torch.tril(torch.ones(3, 3), -1).bool()
n = torch.nested.nested_tensor([x[0, :2], x[1]])
m = torch.nested.nested_tensor([y[0, :2], y[1]])
norms = (c.abs(), c, c * c, c)
feed = torch.randn(6, 4), torch.randn(6), torch.randn(4, 6), torch.randn(4)
all_of = torch.cat([x, y, z], 2)
attend, split = torch._native_multi_head_attention, torch._transform_bias_rescale_qkv
encode, rest = torch._transformer_encoder_layer_fwd, (4, 2, *layer)
"""


@case(warnings=False).lines("""
attend(x, x, x, *rest)
attend(x, x, x, *rest, need_weights=False)
attend(x, x, x, *rest, average_attn_weights=False)
attend(x, y, y, *rest)
attend(x, y, z, *rest, keys, mask_type=1)
attend(x, x, x, *rest, keys.float(), mask_type=1)
attend(x, x, x, *rest, scores, mask_type=0)
attend(x, x, x, *rest, scores.expand(2, 2, 3, 3))
attend(x, x, x, *rest, keys)
attend(x, x, x, *rest, keys, mask_type=0)
attend(x, x, x, *rest, keys, mask_type=3)
attend(x, x, x, *rest, scores.expand(2, 3, 3), mask_type=1)
attend(x[:0], x[:0], x[:0], *rest)
attend(n, n, n, *rest)
attend(n, n, n, *rest, average_attn_weights=False)
attend(n, m, m, *rest)
attend(n, x, x, *rest)
attend(n, n, n, *rest, keys, mask_type=1)
attend(x, x[:1], x, *rest)
attend(x[0], x, x, *rest)
attend(x, x, x[0], *rest)
attend(x, x, x, 5, 2, *layer)
attend(x, x, x, 4, 3, *layer)
attend(x, x, x, 4, 2, w[0], b, p, c)
attend(x, x, x, 4, 2, w[:9], b, p, c)
attend(x, x, x, 4, 2, w[:, :3], b, p, c)
attend(x, x, x, 4, 2, w, w, p, c)
attend(x, x, x, 4, 2, w, b[:3], p, c)
attend(x, x, x, 4, 2, w, b, p[:3], c)
split(all_of, b, 2)
split(torch.nested.nested_tensor([all_of[0, :2], all_of[1]]), b, 2)
split(all_of, b, 3)
encode(x, *rest, False, False, 1e-5, *norms, *feed)
encode(x, *rest, True, False, 1e-5, *norms, *feed)
encode(x, *rest, False, True, 1e-5, *norms, *feed)
encode(x, *rest, False, False, 1e-5, *norms, *feed, keys, 1)
encode(x[:0], *rest, False, False, 1e-5, *norms, *feed)
encode(n, *rest, False, False, 1e-5, *norms, *feed)
encode(n, *rest, False, False, 1e-5, *norms, *feed, keys, 1)
encode(x[0], *rest, False, False, 1e-5, *norms, *feed)
torch._masked_softmax(x, x > 0.5)
torch._masked_softmax(torch.stack([x[:, :, :3]] * 2), x[:, :, :3] > 0.5, 1, 3)
torch._C._get_privateuse1_backend_name()
""")
def inference(torch, line):
    names = {}
    exec(NAMES, {"torch": torch}, names)
    found = evaluate(torch, line, **names)
    for part in found if isinstance(found, tuple) else (found,):
        yield part.unbind() if getattr(part, "is_nested", False) else part


@case(warnings=False)
def kernels_for_nested_tensors(torch):
    F, attention = torch.nn.functional, torch.nn.attention
    n = torch.nested.nested_tensor([torch.ones(2, 2, 4), torch.ones(2, 3, 4)])
    yield torch._fused_sdp_choice(n, n, n), torch._fused_sdp_choice(n, n, n, None, 0.5)
    with attention.sdpa_kernel(attention.SDPBackend.FLASH_ATTENTION):
        yield attempt(torch._fused_sdp_choice, n, n, n)
        yield attempt(F.scaled_dot_product_attention, n, n, n)
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        yield F.scaled_dot_product_attention(n, n, n).unbind()
