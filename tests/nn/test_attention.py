"""Attention of one head and of several, transformers."""

from __future__ import annotations

import copy
import importlib
import pickle
from typing import Any

from tests.nn.test_layers import numbers
from tests.oracle import attempt, case, evaluate


def scope(torch: Any) -> dict[str, Any]:
    def hide(*shape: int, every: int = 3) -> Any:
        """A bool mask with every third element True, the first of a row never."""
        mask = (numbers(torch, *shape) * 25).long() % every == 0
        mask[..., 0] = False
        return mask

    return {"x": lambda *shape: numbers(torch, *shape), "hide": hide}


# Arguments of nn.MultiheadAttention, its inputs, keywords of the call.
HEADS = """
    8, 2; [x(3, 2, 8)]; {}
    8, 2; [x(3, 2, 8), x(4, 2, 8), x(4, 2, 8) * 2]; dict(average_attn_weights=False)
    8, 2, batch_first=True; [x(2, 3, 8)]; dict(need_weights=False)
    8, 4, bias=False; [x(3, 8)]; dict(key_padding_mask=hide(3))
    8, 2, dropout=0.5; [x(3, 2, 8)]; {}
    8, 2, dropout=0.5; [x(3, 2, 8)]; dict(need_weights=False)
    8, 2, add_bias_kv=True, add_zero_attn=True; [x(3, 2, 8)]; dict(attn_mask=hide(3, 3), key_padding_mask=hide(2, 3))
    8, 2, add_bias_kv=True; [x(3, 8)]; dict(need_weights=False, attn_mask=x(3, 3))
    8, 2, add_zero_attn=True; [x(3, 2, 8)]; dict(need_weights=False, key_padding_mask=hide(2, 3))
    8, 2, kdim=4, vdim=6; [x(3, 2, 8), x(4, 2, 4), x(4, 2, 6)]; dict(attn_mask=x(4, 3, 4))
    8, 2, kdim=4, vdim=4, batch_first=True, bias=False; [x(2, 3, 8), x(2, 4, 4)]; dict(attn_mask=hide(4, 3, 4))
    8, 2; [x(3, 8)]; dict(attn_mask=x(2, 3, 3), average_attn_weights=False)
    8, 2, batch_first=True; [x(2, 3, 8)]; dict(attn_mask=nn.Transformer.generate_square_subsequent_mask(3), is_causal=True, need_weights=False)
    8, 2; [x(3, 2, 8)]; dict(attn_mask=x(3, 3), key_padding_mask=hide(2, 3), is_causal=True, need_weights=False)
    8, 2, dtype=torch.float64; [x(3, 2, 8).double()]; dict(attn_mask=hide(3, 3), need_weights=False)
"""  # noqa: E501


@case.lines(HEADS)
def heads(torch, line):
    arguments, inputs, keywords = line.split("; ")
    names = scope(torch)
    layer = evaluate(torch, f"nn.MultiheadAttention({arguments})", **names)
    yield repr(layer), list(layer.__constants__), dict(layer.state_dict())
    given = evaluate(torch, inputs, **names)
    # Self-attention; keys that are the values; three tensors.
    given += [given[-1]] * (3 - len(given))
    named = evaluate(torch, keywords, **names)
    torch.manual_seed(1)
    output, weights = layer(*given, **named)
    ((output * output).sum() + (0 if weights is None else weights.sum())).backward()
    yield output, weights, {name: p.grad for name, p in layer.named_parameters()}
    layer.eval()
    with torch.no_grad():
        output, weights = layer(*given, **named)
    yield output, output.stride(), weights


@case.lines("""
    nn.MultiheadAttention(0, 2)
    nn.MultiheadAttention(8, 0)
    nn.MultiheadAttention(8, 3)
    m = nn.MultiheadAttention(8, 2); m(x(3, 2, 8), x(3, 8), x(3, 8))
    m = nn.MultiheadAttention(8, 2); m(x(3, 8), x(1, 3, 8), x(3, 8))
    m = nn.MultiheadAttention(8, 2); m(x(8), x(8), x(8))
    m = nn.MultiheadAttention(8, 2); m(x(3, 2, 4), x(3, 2, 4), x(3, 2, 4))
    m = nn.MultiheadAttention(8, 2); m(x(3, 2, 8), x(4, 2, 8), x(3, 2, 8))
    m = nn.MultiheadAttention(8, 2, kdim=4); m(x(3, 2, 8), x(4, 2, 4), x(3, 2, 8))
    m = nn.MultiheadAttention(8, 2, kdim=4); m(x(3, 2, 8), x(4, 2, 8), x(4, 2, 8))
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 2, 8)] * 3, key_padding_mask=hide(3))
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 2, 8)] * 3, key_padding_mask=hide(3, 3))
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 2, 8)] * 3, key_padding_mask=hide(2, 4))
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 8)] * 3, key_padding_mask=hide(1, 3))
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 2, 8)] * 3, attn_mask=hide(3))
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 2, 8)] * 3, attn_mask=hide(3, 4))
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 2, 8)] * 3, attn_mask=hide(3, 3, 3))
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 8)] * 3, attn_mask=hide(3, 3, 3))
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 8)] * 3, attn_mask=hide(3))
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 2, 8)] * 3, attn_mask=torch.ones(3, 3).long())
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 2, 8)] * 3, is_causal=True)
    m = nn.MultiheadAttention(8, 2, batch_first=True).eval().requires_grad_(False); m(*[x(2, 3, 8)] * 3, is_causal=True)[1].shape
    m = nn.MultiheadAttention(8, 2); m(*[x(3, 2, 8)] * 3, attn_mask=hide(3, 3), key_padding_mask=torch.zeros(2, 3))[1]
    nn.TransformerEncoderLayer(8, 2, activation="tanh")
    nn.TransformerEncoder(nn.Linear(1, 1), 1)
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 4, norm_first=True), 1).use_nested_tensor
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 4, batch_first=True), 1).use_nested_tensor
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 1, 4, batch_first=True), 1).use_nested_tensor
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 4, batch_first=True, bias=False), 1).use_nested_tensor
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 4, batch_first=True, activation=torch.tanh), 1).use_nested_tensor
    nn.Transformer(8, 2, 1, 1, 4)(x(3, 2, 8), x(3, 1, 8))
    nn.Transformer(8, 2, 1, 1, 4, batch_first=True)(x(2, 3, 8), x(1, 3, 8))
    nn.Transformer(8, 2, 1, 1, 4)(x(3, 2, 8), x(3, 2, 4))
    nn.Transformer.generate_square_subsequent_mask(3), nn.Transformer.generate_square_subsequent_mask(2, dtype=torch.float64)
""")  # noqa: E501
def refusals(torch, line):
    result = attempt(evaluate, torch, line, **scope(torch))
    return repr(result) if isinstance(result, torch.nn.Module) else result


# A transformer, its inputs, keywords of the call.
TRANSFORMERS = """
    nn.TransformerEncoderLayer(8, 2, 4); x(3, 2, 8); {}
    nn.TransformerEncoderLayer(8, 2, 4, 0.0, "gelu", norm_first=True, batch_first=True); x(2, 3, 8); dict(src_mask=hide(3, 3), src_key_padding_mask=hide(2, 3))
    nn.TransformerEncoderLayer(8, 1, 4, 0.5, nn.Tanh(), 0.1, bias=False); x(3, 8); dict(src_key_padding_mask=hide(3))
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 4, batch_first=True), 2, nn.LayerNorm(8)); x(2, 3, 8); dict(src_key_padding_mask=torch.tensor([[False, False, True], [False] * 3]))
    nn.TransformerEncoderLayer(8, 2, 4, batch_first=True); x(2, 3, 8); dict(src_mask=hide(3, 3).float(), src_key_padding_mask=hide(2, 3).float())
    nn.TransformerEncoderLayer(8, 2, 4, batch_first=True); x(0, 3, 8); {}
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 4, batch_first=True), 1); x(2, 3, 8); dict(src_key_padding_mask=torch.tensor([[False, True, False], [False] * 3]))
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 4, 0.0), 1, enable_nested_tensor=False); x(3, 2, 8); dict(mask=nn.Transformer.generate_square_subsequent_mask(3))
    nn.TransformerDecoderLayer(8, 2, 4); x(3, 2, 8), x(4, 2, 8); dict(memory_mask=hide(3, 4), tgt_mask=hide(3, 3))
    nn.TransformerDecoderLayer(8, 2, 4, 0.0, norm_first=True, batch_first=True, bias=False); x(2, 3, 8), x(2, 4, 8); dict(memory_key_padding_mask=hide(2, 4))
    nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 4, activation=F.gelu), 2, nn.LayerNorm(8)); x(3, 2, 8), x(4, 2, 8); dict(tgt_mask=nn.Transformer.generate_square_subsequent_mask(3), tgt_is_causal=True)
    nn.Transformer(8, 2, 1, 1, 4); x(3, 2, 8), x(4, 2, 8); dict(tgt_mask=nn.Transformer.generate_square_subsequent_mask(4))
    nn.Transformer(8, 2, 1, 1, 4, batch_first=True, norm_first=True, dtype=torch.float64); x(2, 3, 8).double(), x(2, 4, 8).double(); dict(src_key_padding_mask=hide(2, 3), tgt_key_padding_mask=hide(2, 4), memory_key_padding_mask=hide(2, 3))
"""  # noqa: E501


# PyTorch warns that its nested tensors are a prototype: there are none here.
@case(warnings=False).lines(TRANSFORMERS)
def transformers(torch, line):
    text, inputs, keywords = line.split("; ")
    names = scope(torch)
    layer = evaluate(torch, text, **names)
    yield repr(layer), [name for name, _ in layer.named_parameters()]
    yield torch.stack([p.detach().double().sum() for p in layer.parameters()])
    given = evaluate(torch, inputs, **names)
    given = given if isinstance(given, tuple) else (given,)
    named = evaluate(torch, keywords, **names)
    torch.manual_seed(1)
    output = layer(*given, **named)
    (output * numbers(torch, *output.shape)).sum().backward()
    yield output, {name: p.grad for name, p in layer.named_parameters()}
    layer.eval()
    with torch.no_grad():
        output = layer(*given, **named)
    yield output


@case
def copies(torch):
    """Layers pickled and copied; those of a stack are copies of the one given."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(4, 2, 4, 0.0)
    stack = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    x = numbers(torch, 2, 1, 4)
    yield stack.layers[0] is layer, stack.layers[0].linear1 is layer.linear1
    for twin in (pickle.loads(pickle.dumps(stack)), copy.deepcopy(stack)):
        yield (twin(x) == stack(x)).all()
    yield layer.activation_relu_or_gelu, layer.self_attn.merge_masks(None, None, x)
    mask = torch.zeros(1, 2)
    yield layer.self_attn.merge_masks(None, mask, x.transpose(0, 1))
    yield layer.self_attn.merge_masks(torch.ones(2, 2), mask, x.transpose(0, 1))


# Kernels, causal biases, scores and masks as functions --------------------------------


def attention(torch: Any, name: str = "") -> Any:
    """`torch.nn.attention`, or a module within it."""
    return importlib.import_module(f"{torch.__name__}.nn.attention{name}")


# PyTorch warns of the kernels that it does not use, and that flex_attention is slow.
@case(warnings=False)
def kernels(torch):
    """What each choice of kernels allows on the CPU."""
    module = attention(torch)
    kinds = module.SDPBackend
    yield {name: int(kind) for name, kind in kinds.__members__.items()}
    yield repr(kinds.MATH), str(kinds.MATH), kinds.MATH.name, kinds.MATH.value
    yield (
        kinds.MATH == 0,
        isinstance(kinds.MATH, int),
    )
    x = numbers(torch, 1, 2, 3, 4)
    learnt = torch.zeros(3, 3, requires_grad=True)

    def attend(backends, *args, **kwargs):
        with module.sdpa_kernel(backends) as given:
            torch.nn.functional.scaled_dot_product_attention(x, x, x, *args, **kwargs)
            cuda = torch.backends.cuda
            return given, cuda.flash_sdp_enabled(), cuda.math_sdp_enabled()

    every = list(kinds.__members__.values())
    for backends in (*every, every, [kinds.MATH, kinds.FLASH_ATTENTION], [], 3, (1,)):
        yield attempt(attend, backends)
    yield attempt(attend, kinds.FLASH_ATTENTION, learnt)
    yield attempt(attend, [kinds.MATH], dropout_p=0.5)
    yield attempt(attend, [kinds.MATH], set_priority=True)
    listed = attention(torch)._cur_sdpa_kernel_backends
    yield [kind.name for kind in (*listed(), *listed(with_priority=True))]
    with attention(torch).sdpa_kernel([kinds.MATH, kinds.FLASH_ATTENTION], True):
        yield [kind.name for kind in (*listed(), *listed(with_priority=True))]
    yield torch.backends.cuda.math_sdp_enabled()


@case
def causal_biases(torch):
    """Causal masks from either corner, in attention and by themselves."""
    bias = attention(torch, ".bias")
    attend = torch.nn.functional.scaled_dot_product_attention
    q, k = numbers(torch, 1, 2, 2, 4), numbers(torch, 1, 2, 3, 4)
    for make in (bias.causal_upper_left, bias.causal_lower_right):
        mask = make(2, 3)
        yield repr(mask), mask.shape, mask.variant, type(mask).__name__
        yield attend(q, k, k, mask), attempt(attend, q, k, k, mask, is_causal=True)
        yield attempt(make, 3)
    # Only the corner of the first is asked.
    yield attend(q, k, k, bias.causal_upper_left(5, 6))
    yield (
        type(bias.causal_lower_right(3, 2)).__name__,
        attempt(bias.CausalBias, 1, 2, 3),
    )


@case(warnings=False)
def flexible(torch):
    """flex_attention with functions of scores, block masks, groups of heads."""
    flex = attention(torch, ".flex_attention")
    q, k = numbers(torch, 2, 4, 8, 4), numbers(torch, 2, 2, 8, 4) / 2
    slopes, documents = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.arange(8) // 3

    def causal(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    def alibi(score, b, h, q_idx, kv_idx):
        return score + slopes[h] * (kv_idx - q_idx)

    def same(b, h, q_idx, kv_idx):
        return documents[q_idx] == documents[kv_idx]

    def nothing(b, h, q_idx, kv_idx):
        return kv_idx < q_idx - 5

    yield flex.flex_attention(q, q, q), flex.flex_attention(q, q, q, alibi, scale=0.3)
    yield flex._DEFAULT_SPARSE_BLOCK_SIZE
    blocks = flex.create_block_mask(causal, 1, 1, 8, 8, "cpu", BLOCK_SIZE=4)
    yield flex.flex_attention(q, k, k, alibi, blocks, enable_gqa=True)
    both = flex.and_masks(causal, same)
    blocks = flex.create_block_mask(both, None, None, 8, 8, "cpu", BLOCK_SIZE=(4, 2))
    aux = flex.AuxRequest(lse=True)
    yield flex.flex_attention(q, q, q, block_mask=blocks, return_aux=aux)
    few = flex.create_block_mask(nothing, None, None, 8, 8, "cpu")
    yield flex.flex_attention(q, q, q, block_mask=few)
    either = flex.or_masks(causal, same)
    yield flex.create_mask(either, 1, 2, 4, 4, "cpu"), either.__name__, both.__name__
    yield flex.create_mask(lambda s, b, h, m, n: s + n, None, None, 2, 2, "cpu")


@case(warnings=False)
def flexible_of_single_numbers(torch):
    """Functions of one score: what is computed of its indices may be a vector."""
    flex = attention(torch, ".flex_attention")
    q = numbers(torch, 2, 2, 5, 4)
    rows, columns = numbers(torch, 2, 2, 5, 3), numbers(torch, 2, 1, 5, 3) / 2

    def rotated(score, b, h, q_idx, kv_idx):
        return score + torch.dot(rows[b, h, q_idx], columns[b, h // 2, kv_idx])

    def largest(score, b, h, q_idx, kv_idx):
        return score + rows[b, h, q_idx].max()

    def stacked(score, b, h, q_idx, kv_idx):
        return score + torch.stack([q_idx, kv_idx]).sum()

    def alike(b, h, q_idx, kv_idx):
        return rows[b, h, q_idx] @ columns[b, 0, kv_idx] >= 0

    for mod in (rotated, largest, stacked, flex._identity):
        yield flex.flex_attention(q, q, q, mod)
    blocks = flex.create_block_mask(alike, 2, 2, 5, 5, "cpu")
    yield flex.create_mask(alike, 2, 2, 5, 5, "cpu"), blocks.kv_num_blocks
    yield flex.flex_attention(q, q, q, block_mask=blocks)
    for mod in (rotated, alike):
        yield flex._get_mod_type(mod).name
    yield attempt(flex._get_mod_type, lambda b: b)
    over = flex._vmap_for_bhqkv(rotated, prefix=(0,))
    yield over(q @ q.mT, *(torch.arange(n) for n in (2, 2, 5, 5)))
    yield str(flex._score_mod_signature).count("Tensor")
    yield str(flex._mask_mod_signature).count("Tensor")


@case(warnings=False)
def block_masks(torch):
    """The blocks of masks: lists, text, parts, other lengths."""
    flex = attention(torch, ".flex_attention")

    def causal(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx + h

    blocks = flex.create_block_mask(causal, 1, 2, 10, 8, "cpu", BLOCK_SIZE=(4, 2))
    fields = (
        "kv_num_blocks kv_indices full_kv_num_blocks full_kv_indices q_num_blocks "
        "q_indices full_q_num_blocks full_q_indices seq_lengths BLOCK_SIZE shape"
    ).split()

    def shown(mask):
        return {name: getattr(mask, name) for name in fields}

    yield shown(blocks), repr(blocks), str(blocks), blocks.numel(), blocks.to_dense()
    yield shown(blocks[0, 1]), shown(blocks[:, -1:]), shown(blocks._adjust(4, 6))
    yield blocks.to_string(2, limit=1), blocks.sparsity(), len(blocks.as_tuple())
    whole = flex.create_block_mask(
        causal, None, None, 8, 8, "cpu", 4, separate_full_blocks=False
    )
    yield shown(whole), shown(whole.to("cpu")), whole.mask_mod is causal
    q = numbers(torch, 1, 1, 8, 4)
    attend = flex.flex_attention
    yield attempt(attend, q, q, q, block_mask=whole[0])
    yield attempt(attend, q[:, :, :4], q, q, block_mask=whole)
    yield attempt(attend, numbers(torch, 1, 1, 9, 4), q, q, block_mask=whole)
    yield attempt(attend, q[0], q[0], q[0]), attempt(attend, q, q[..., :2], q)
    yield (
        attempt(attend, q, numbers(torch, 1, 2, 8, 4), q),
        attempt(attend, q, q.double(), q),
    )
    yield attempt(attend, numbers(torch, 2, 1, 8, 4), q, q)
    yield attempt(flex.create_block_mask, lambda s, b, h, m, n: s, 1, 1, 4, 4)
    yield attempt(flex.create_mask, lambda s: s, 1, 1, 4, 4)
    indices = torch.zeros(1, 1, 1, 1, dtype=torch.int32)
    given = flex.BlockMask.from_kv_blocks(indices[0] + 1, indices)
    yield shown(given), given.mask_mod.__name__
    yield attempt(flex.BlockMask.from_kv_blocks, indices[0], indices[0, 0, 0])
    yield attempt(flex.BlockMask.from_kv_blocks, indices[0], indices, indices)


@case
def public_names(torch):
    for name in ("", ".bias", ".flex_attention", ".varlen"):
        yield sorted(attention(torch, name).__all__)


def first_sentence(found: Any) -> Any:
    """An error's type and what its text says before the list of PyTorch's backends."""
    return type(found).__name__, str(found).partition(". ")[0]


@case
def packed_sequences(torch):
    varlen = attention(torch, ".varlen")
    q, one = torch.ones(6, 2, 4), torch.ones(6, 1, 4)
    ends = torch.tensor([0, 2, 6], dtype=torch.int32)
    rest = ends, ends, 4, 4
    yield varlen.AuxRequest(), varlen.AuxRequest._fields
    yield attempt(varlen.varlen_attn, q, one, one, *rest)
    yield attempt(varlen.varlen_attn, one, q, q, *rest, enable_gqa=True)
    yield attempt(varlen.varlen_attn_out, q, one, q, q, *rest, enable_gqa=True)
    yield attempt(varlen.varlen_attn, q, q, q, *rest, window_size=(1,))
    refused = []
    for call, given in (
        (varlen.varlen_attn, (q, q, q)),
        (varlen.varlen_attn_out, (q, q, q, q)),
    ):
        try:
            call(*given, *rest)
        except NotImplementedError as error:
            refused.append(first_sentence(error))
    yield refused


@case
def implementations(torch):
    space = attention(torch)
    registry = attention(torch, "._registry")
    name = "_implementations" if "shim" in torch.__name__ else "_FLASH_ATTENTION_IMPLS"
    seen = []

    class Handle:
        def remove(self):
            seen.append("removed")

    def register():
        seen.append("registered")
        return Handle()

    space.register_flash_attention_impl("mine", register_fn=register)
    try:
        yield space.list_flash_attention_impls(), space.current_flash_attention_impl()
        yield attempt(space.activate_flash_attention_impl, "other")
        yield attempt(space.activate_flash_attention_impl, "FA3")
        space.activate_flash_attention_impl("mine")
        yield space.current_flash_attention_impl(), list(seen)
        space.activate_flash_attention_impl("mine")
        yield list(seen)
        space.restore_flash_attention_impl()
        yield space.current_flash_attention_impl(), list(seen)
    finally:
        getattr(registry, name).pop("mine")


@case(warnings=False)
def what_flex_attention_warns_of(torch):
    import importlib
    import warnings

    flex = importlib.import_module(f"{torch.__name__}.nn.attention.flex_attention")
    x = torch.ones(1, 1, 16, 16)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield flex.flex_attention(x, x, x, return_lse=True)[1]
    told = [w for w in caught if "return_lse" in str(w.message)]
    yield [(w.category.__name__, str(w.message)) for w in told]


@case(warnings=False)
def what_the_only_kernel_takes(torch):
    attend = torch.nn.functional.scaled_dot_product_attention
    q, wide = torch.ones(2, 3, 4, 8), torch.ones(2, 3, 8, 4).transpose(-1, -2)
    given = (
        *((q, q, q), (q, q, q[..., :6]), (q, q[:, :1], q[:, :1]), (q, q[:1], q[:1])),
        *(
            (q, q[:, :, :0], q[:, :, :0]),
            (q[:, :, :0], q, q),
            (q, wide, q),
            (q, q, wide),
        ),
        *((wide, q, q), (q[..., ::2],) * 3, (q[..., :1].clone(),) * 3, (q[0],) * 3),
        *((q[:0],) * 3, (q.half(),) * 3, (q.to(torch.complex64),) * 3),
    )
    masks = (
        *(torch.zeros(4, 4).t(), torch.zeros(4, 8)[:, ::2], torch.zeros(2, 1, 4, 4)),
        *(
            torch.zeros(3, 4, 4),
            torch.zeros(1, 1),
            torch.zeros(4, 4, requires_grad=True),
        ),
    )
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        for each in given:
            yield attempt(lambda each=each: attend(*each).shape)
        for mask in masks:
            yield attempt(lambda mask=mask: attend(q, q, q, attn_mask=mask).shape)
        few = q[:, :1]
        yield attempt(lambda: attend(q, few, few, enable_gqa=True).shape)
    with torch.backends.cuda.sdp_kernel(enable_flash=False) as switches:
        yield switches


@case.over(need_weights=(True, False), width=(None, 4))
def functions_that_a_script_replaced(torch, need_weights, width):
    functional = torch.nn.functional
    names = ("linear", "softmax", "dropout", "scaled_dot_product_attention", "pad")
    originals = {name: getattr(functional, name) for name in names}
    called = []

    def replace(name):
        def replaced(*args, **kwargs):
            called.append(name)
            return originals[name](*args, **kwargs)

        setattr(functional, name, replaced)

    heads = torch.nn.MultiheadAttention(
        8, 2, dropout=0.5, kdim=width, vdim=width, add_zero_attn=True
    )
    x = numbers(torch, 3, 2, 8)
    other = x if width is None else numbers(torch, 3, 2, 4)
    mask = torch.zeros(3, 3)
    try:
        for name in names:
            replace(name)
        yield heads(x, other, other, need_weights=need_weights, attn_mask=mask)[0].shape
    finally:
        for name, original in originals.items():
            setattr(functional, name, original)
    yield called


@case
def rows_that_see_nothing_in_inference(torch):
    torch.manual_seed(0)
    x = torch.rand(2, 3, 4)
    padding = torch.tensor([[False, False, True], [True, True, True]])
    hidden = torch.tensor([[0, 1, 1], [1, 1, 1], [1, 1, 0]]) == 1
    layer = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
    encoder = torch.nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    for grad in (False, True):
        with torch.set_grad_enabled(grad):
            for weights in (False, True):
                yield layer(x, x, x, padding, weights)[0].detach()
                yield layer(x, x, x, padding, weights, hidden)[0].detach()
                yield layer(x, x, x, None, weights, hidden)
            yield encoder(x, src_key_padding_mask=padding).isnan()
            yield encoder(x, hidden).isnan()
