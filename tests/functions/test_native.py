"""`native_*` functions, older norms, segments, rarer methods, legacy storages."""

import pickle
from math import nan

from tests.oracle import attempt, case, evaluate


@case.lines("""
torch.nuclear_norm(x)
torch.nuclear_norm(x, [0, 1], True)
torch.frobenius_norm(x, [0, 1])
torch.frobenius_norm(x, 1, True)
torch.segment_reduce(y, "sum", lengths=T([2, 4]))
torch.segment_reduce(y, "mean", lengths=T([2, 0, 4]))
torch.segment_reduce(y, "mean", lengths=T([2, 0, 4]), initial=3.0)
torch.segment_reduce(y, "max", offsets=T([0, 2, 6]))
torch.segment_reduce(y, "prod", lengths=T([2, 0, 4]), initial=2)
torch.segment_reduce(g[0].half(), "prod", lengths=T([2, 0, 1])).detach()
torch.segment_reduce(y.view(3, 2), "min", lengths=T([2, 1]), axis=0)
torch.segment_reduce(y.view(2, 3), "sum", lengths=T([[2, 1], [0, 3]]), axis=1)
torch.segment_reduce(y.view(2, 3), "sum", lengths=T([[2, 1]] * 2), axis=1).stride()
torch.segment_reduce(y, "sum", lengths=T([2, 3]))
torch.segment_reduce(y, "foo", lengths=T([2, 4]))
torch.segment_reduce(y, "sum")
torch.embedding_bag(x, T([0, 1, 1]), T([0, 2]))
torch.embedding_bag(x, T([0, 1, 1]), T([0, 2]), mode=1)
torch.embedding_bag(x, T([0, 1, 1]), T([0, 2]), mode=2)
torch.embedding_bag(x, T([0, 1, 1]), T([0, 2]), mode=3)
torch.embedding_bag(x, T([0, 1, 1]), T([0, 2]), mode=-1)
torch.embedding_bag(x, T([0, 1, 1]), T([0, 2]), mode="sum")
torch.native_layer_norm(x, [3], None, None, 1e-5)
torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)
torch.native_batch_norm(x, None, None, y[:3], y[1:4], False, 0.1, 1e-5)
torch.native_batch_norm(x[:1], None, None, y[:3] * 1, None, True, 0.1, 0.0)
torch.native_group_norm(x.view(1, 2, 3), None, None, 1, 2, 3, 1, 1e-5)
torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5, out=(z, w, v))
torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5, out=(z, w))
torch.batch_norm_update_stats(x, None, None, 0.1)
torch.batch_norm_update_stats(x.half(), z.new_zeros(3), w.new_ones(3), 0.1)
[r := torch.zeros(3), torch.batch_norm_update_stats(x + g[0, 0], r, r + 1, 0.2)]
[r := torch.ones(3), torch.batch_norm_update_stats(x, None, r, 0.5)]
[attempt(torch.batch_norm_update_stats, v, z, z, 1) for v in (x[0], x[0, 0], x[:0])]
attempt(torch.batch_norm_update_stats, x.long(), None, None, 0.5)
attempt(torch.batch_norm_update_stats, x, y[:3].double(), None, 0.5)
attempt(torch.batch_norm_update_stats(g, None, None, 0.5)[0].sum().backward)
torch._native_batch_norm_legit(x, None, None, True, 0.1, 1e-5)
torch._native_batch_norm_legit(x.half(), y[:3], None, y[1:4] * 1, y[3:], True, 0.1, 1)
torch._native_batch_norm_legit_no_training(x, None, None, y[:3], y[1:4], 0.1, 1e-5)
aten._batch_norm_with_update(x, y[:3], None, y[:3].clone(), y[1:4].clone(), 0.1, 0.1)
aten._to_copy.default(x.t(), dtype=torch.int32), aten._to_copy(x, device="cpu")
aten._to_copy(x.t()).stride(), aten._to_copy(x, memory_format=torch.preserve_format)
attempt(aten._pin_memory, x)
[torch._convert_indices_from_coo_to_csr(T([0, 0, 1, 3]), n) for n in (4, 6)]
torch._convert_indices_from_coo_to_csr(T([1, 2]).int(), 3, out_int32=True)
torch._convert_indices_from_coo_to_csr(T([]).long(), 2)
attempt(torch._convert_indices_from_coo_to_csr, T([[0]]), 3)
attempt(torch._convert_indices_from_coo_to_csr, T([0.0]), 3)
torch._convert_indices_from_csr_to_coo(T([0, 2, 3, 3, 4]), T([1, 0, 2, 1]))
torch._convert_indices_from_csr_to_coo(T([0, 2]), T([1, 0]), transpose=True)
torch._convert_indices_from_csr_to_coo(T([0, 2]), T([1, 0]), out_int32=True)
aten.slice(x, 1, -9, None, 2), aten.slice.Tensor(y, end=-1)
aten.slice(y, 0, 0, 2, 0)
aten.slice(y[0])
aten.index(y, [T(2)]), aten.index(y, [T(2)])._base, aten.index.Tensor(y, [T([2, -1])])
aten.index(x, [None, T([1, -1])]), aten.index(x, (T([[1], [0]]), T([1, -1])))
aten.index(x, [x > 2]), aten.index(x, [T([True, False])])
attempt(aten.index, y, [T(12)]), attempt(aten.index, y, [T(1.0)])
attempt(aten.index, y, [T(1), T(1)]), attempt(aten.index, y, [])
torch.vmap(lambda i: aten.index(y, [i]))(T([3, 1]))
torch.autograd.grad(aten.index(y.requires_grad_(), [T([1, 1])]).sum(), y)
torch.slice_scatter(y, z, 0, 1, 1, out=w.int())
torch.slice_scatter(y, y[:2], 0, 1, 3, out=w)
aten._upsample_bilinear2d_aa(x.view(1, 1, 2, 3), [1, 2], False)
aten._upsample_bilinear2d_aa(x.view(1, 1, 2, 3), None, False, [0.5, 0.7])
torch._chunk_cat([y.requires_grad_(), y], 0, 2).sum().backward()
x.sum_to_size(()), (x > 2).sum_to_size(()), x.to(torch.uint8).sum_to_size(1, 3)
torch.native_dropout(x, 0.5, False)
torch.native_dropout(x, 0.5, True)
[(torch.native_dropout(x, p, None), torch.rand(1)) for p in (0.0, 1.0)]
[torch.native_dropout(g, 0.0, t)[0].grad_fn.name() for t in (True, False, None)]
torch.native_dropout(g, 0.5, True)[0].sum().backward(), g.grad
[attempt(torch.native_dropout, T([1, 2]), p, True) for p in (0.0, 0.5)]
torch.native_dropout(T([1, 2]), 0.5, False)
attempt(torch.native_dropout, T([True]), 0.5, None)
attempt(torch.native_dropout, x, 2.0, None)
torch.native_dropout(T([]).int(), 0.5, True)
torch.native_dropout(x.t(), 0.0, True)[1].stride()
torch.native_layer_norm(x.half(), [3], y[:3], None, 1e-5)
torch.native_layer_norm(x.half() * 0, [2, 3], None, None, 1e-5)
torch.native_layer_norm(x.bfloat16(), [3], None, None, 1e-5)
torch.native_group_norm(x.half().view(1, 2, 3), y[:2], None, 1, 2, 3, 1, 1e-5)[1:]
torch.native_batch_norm(x.half() * 0, None, None, None, None, True, 0.1, 1e-5)[1:]
attempt(torch.ones(1, device="meta").pin_memory)
torch.native_channel_shuffle(y.view(1, 6, 1, 1), 2).flatten()
x.dim_order(), x.t().dim_order(), x.t().dim_order(ambiguity_check=True)
torch.ones(1, 2).dim_order(ambiguity_check=True)
x.clone().apply_(lambda v: v + 1), x.clone().map_(x, lambda a, b: a * b)
y.clone().as_strided_((2, 2), (1, 1)), y.clone().as_strided_((2,), (2,), 1)
x.const_data_ptr() == x.data_ptr(), x.name, x.grad_dtype
attempt(x.record_stream, None), x.module_load(x + 1)
torch.detach_copy(x), torch.view_as_real_copy(T([1 + 2j]))
torch.view_as_complex_copy(T([[1.0, 2.0]]))
torch.cond(True, torch.sin, torch.neg, (x,))
torch.cond(x.sum() < 0, torch.sin, torch.neg, (x,))
attempt(torch.cond, x, torch.sin, torch.neg, (x,))
torch.lobpcg(torch.diag(torch.arange(1.0, 13.0)), k=2)[0]
torch.lobpcg(torch.diag(torch.arange(1.0, 13.0)), k=1, largest=False)[0]
attempt(torch.lobpcg, torch.eye(4), k=2)
str(torch.FloatStorage)
torch.return_types.qr_out.__name__, torch.return_types.triangular_solve_out.n_fields
torch.return_types.max.__name__, isinstance(x.max(0), torch.return_types.max)
torch.return_types._lu_with_info.n_fields
torch.return_types._fused_moving_avg_obs_fq_helper.__match_args__
torch._VF._add_relu(x - 3, 1), torch._VF._add_relu_(x - 3, x, alpha=0.5)
torch._weight_norm(T([[1j]]), T([[2.0]]), 0)
torch._fused_sdp_choice(s, s, s), torch._fused_sdp_choice(s, s, s, dropout_p=0.5)
torch._fused_sdp_choice(s, s, s, s > 0), torch._fused_sdp_choice(s[0], s[0], s[0])
torch.ops.aten._scaled_dot_product_attention_math(s, s, s, s, scale=0.3)
torch.ops.aten._scaled_dot_product_attention_math(s, s, s, s > 0.5)
torch._scaled_dot_product_attention_math(s, s, s, is_causal=True)
torch._scaled_dot_product_flash_attention_for_cpu(s, s, s, 0.0, True)
torch._scaled_dot_product_flash_attention_for_cpu(s, s, s, attn_mask=s)
attempt(torch._scaled_dot_product_flash_attention_for_cpu, s[0], s[0], s[0])
attempt(torch._scaled_dot_product_flash_attention_for_cpu, s, s, s, 0.5)
attempt(torch._scaled_dot_product_flash_attention_for_cpu, s, s, s, attn_mask=s > 0)
aten.convolution_backward(*conv, [2], [1], [0], [1], False, [0], 2, [True] * 3)
aten.convolution_backward(*conv, None, [1], [0], [1], False, [0], 2, [0, 1, 0])
attempt(aten.convolution_backward, *conv, [2], [1], [0], [1], False, [0], 0, [True] * 3)
twice(*given, [2], [1], [1], False, [0], 1, [True] * 3)
twice(None, *given[1:], [2], [1], [1], 0, [0], 1, [True] * 3)
twice(None, None, *given[2:], [2], [1], [1], 0, [0], 1, [0] * 3)
pickle.loads(pickle.dumps(torch.Tensor.add)) is torch.Tensor.add
torch.round(T([1.2345, 0.4755, 0.95]).double(), decimals=3).tolist()
repr(torch._C._ConvBackend.Empty), list(torch._C._ConvBackend.__members__)[:21]
[conv_backend((2, 4) + (5,) * n, 1, t) for n in (1, 2, 3) for t in (0, 1)]
[conv_backend((2, 4) + (5,) * n, 2, t) for n in (1, 2, 3) for t in (0, 1)]
conv_backend((0, 4, 5), 1, False)
attempt(conv_backend, (2, 4, 0), 1, True)
torch._C._get_tracing_state(), torch._C._log_api_usage_once("a")
torch.__version__ > "2.9", torch.__version__ >= (2, 13), torch.__version__ == "2.1"
torch.torch_version.TorchVersion("2.1.0rc1") < "2.1", type(torch.__version__).__name__
torch.utils.deterministic.fill_uninitialized_memory
setattr(torch.utils.deterministic, "fill_uninitialized_memory", 1)
deterministic_fill(False), deterministic_fill(True), deterministic_fill("a")
torch.utils.dlpack.from_dlpack(x)
list(torch.utils.dlpack.DLDeviceType), x.__dlpack_device__()
torch._C._warn(), torch._C._warn_deprecation()
x._fix_weakref(), torch._test_check_tensor(x > -1)
attempt(torch._test_check_tensor, x > 1)
[attempt(x.map_, g, max), attempt(x.map2_, x, g, max), attempt(x.map2_, g, x, max)]
""")
def functions(torch, line):
    x = torch.arange(6.0).view(2, 3)
    names = {"aten": torch.ops.aten, "T": torch.tensor, "attempt": attempt}
    z, w, v = (torch.empty(0) for _ in range(3))
    g = torch.ones(2, 3, requires_grad=True)
    s = torch.arange(8.0).view(2, 1, 2, 2) / 8
    names["pickle"] = pickle
    names["conv"] = (
        torch.ones(1, 2, 5),
        torch.arange(24.0).view(1, 4, 6),
        s.view(2, 2, 2),
    )
    names["s"] = s
    names["twice"] = torch.ops.aten._convolution_double_backward
    names["given"] = (
        torch.arange(8.0).view(1, 2, 4),
        torch.arange(12.0).view(2, 2, 3) / 4,
        torch.ones(2),
        torch.arange(4.0).view(1, 2, 2),
        torch.arange(12.0).view(2, 2, 3),
        torch.arange(8.0).view(1, 2, 4) / 8,
    )

    def conv_backend(shape, d, transposed):
        n, input = len(shape) - 2, torch.ones(shape, dtype=torch.double)
        weight = torch.ones(4, 4, *[1] * n, dtype=torch.double)
        args = [1] * n, [0] * n, [d] * n, bool(transposed), [0] * n, 1
        return torch._C._select_conv_backend(input, weight, None, *args).name

    names["conv_backend"] = conv_backend

    def deterministic_fill(mode):
        try:
            torch._C._set_deterministic_fill_uninitialized_memory(mode)
            return torch._C._get_deterministic_fill_uninitialized_memory()
        except RuntimeError as error:
            return str(error)

    names["deterministic_fill"] = deterministic_fill
    return evaluate(torch, line, x=x, y=torch.arange(6.0), z=z, w=w, v=v, g=g, **names)


@case.lines("""
torch.ones(3, 3), torch.ones(1, 3).expand(4, 3), torch.ones(2, 1, 10)[:, :, ::2]
torch.ones(10)[::2], torch.ones(4, 4).t(), torch.ones(4).as_strided((2, 2), (1, 1))
torch.ones(4, 4)[:, ::2], torch.ones(0, 4)[:, ::2], torch.ones(()), torch.ones(4, 4)[1:]
torch.ones(10).as_strided([2, 1, 5], [1, 0, 2]), torch.ones(0, 1).expand(0, 4)
""")
def overlaps(torch, line):
    return [torch._debug_has_internal_overlap(x) for x in evaluate(torch, line)]


@case
def empty_memory_is_written_to(torch):
    import numpy as np

    x = torch.from_numpy(np.empty((0, 4)))
    x[:, 1::2] *= 1
    yield x, torch.ones(0, 1).expand(0, 4).add_(1)
    # What may be done twice is.
    row = torch.tensor([[0.0, 0.3, 0.7]]).expand(2, 3)
    yield torch.nn.functional.threshold_(row, 0.5, 2.0), row


@case.lines("""
x, x.transpose(0, 1), x.to(memory_format=torch.channels_last), x.permute(3, 1, 2, 0)
torch.ones(1, 2, 3), torch.ones(1, 2, 3).transpose(0, 1), torch.ones(2, 1, 3)
torch.ones(2, 1, 3).transpose(0, 1), torch.ones(0, 3), torch.ones(0, 3).t()
torch.ones(3), torch.ones(()), torch.ones(1, 2, 2, 1), torch.ones(1, 1, 1, 1)
torch.ones(2, 3).expand(4, 2, 3), torch.ones(3, 2).t().expand(4, 2, 3)
torch.ones(40).as_strided((3, 2, 2), (1, 1, 2)), torch.ones(4, 4)[:, ::2]
torch.ones(40).as_strided((3, 2, 2), (4, 0, 2)), torch.ones(2, 2, 1, 2).transpose(0, 1)
torch.ones(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d)[None][0],
torch.ones(2, 1, 1, 2), torch.ones(3, 1)
""")
def dimensions_in_memory(torch, line):
    formats = [torch.contiguous_format, torch.channels_last]
    for x in evaluate(torch, line, x=torch.ones(2, 3, 5, 7)):
        for check in (False, True, formats, []):
            yield attempt(lambda x=x, check=check: x.dim_order(ambiguity_check=check))


@case.over(1, "x", None, (), [1])
def ambiguity_is_asked_for_wrongly(torch, check):
    return torch.ones(2, 3).dim_order(ambiguity_check=check)


@case(warnings=False)
def storages(torch):
    x = torch.arange(3.0)
    yield isinstance(x.storage(), torch.FloatStorage), x.storage().type()
    yield isinstance(x.storage(), torch.LongStorage), x.storage_type() is not None
    yield str(torch.FloatStorage([1, 2])), torch.LongStorage([1, 2]).dtype
    yield len(torch.FloatStorage(3)), torch.DoubleStorage([1]).type()
    memory = x.untyped_storage()
    copied = memory.__copy__()
    yield copied.tolist() == memory.tolist(), copied.data_ptr() == memory.data_ptr()
    memory.note = 3
    yield x.untyped_storage().note, hasattr(copied, "note")


@case
def tensors_of_files(torch):
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path, new = os.path.join(folder, "numbers"), os.path.join(folder, "new")

        def written(name, kind):
            with open(name, "rb") as file:
                return torch.frombuffer(bytearray(file.read()), dtype=kind)

        def refused(*args, **options):
            try:
                torch.from_file(*args, **options)
            except RuntimeError as error:
                return str(error).replace(folder, "")

        with open(path, "wb") as file:
            file.write(torch.arange(4.0).numpy().tobytes())
        x = torch.from_file(path, shared=True, size=4)
        x[1] = 50
        x.add_(1)
        yield x, written(path, torch.float32), x.is_shared()
        y = torch.from_file(path, size=3)
        y[0] = 99
        yield y, written(path, torch.float32), y.is_shared()
        yield torch.from_file(path, True, 6), os.path.getsize(path)
        z = torch.from_file(new, shared=True, size=3, dtype=torch.float64).fill_(2)
        yield z, written(new, torch.float64), torch.from_file(path, size=0)
        half = torch.from_file(path, shared=True, size=4, dtype=torch.bfloat16)
        half[1:].fill_(1)
        half.requires_grad_()
        yield (half * 2).sum(), written(path, torch.int16)
        yield refused(os.path.join(folder, "missing"), size=3), refused(path, size=300)
        yield refused(path, size=-1), refused(folder, shared=True, size=1)


@case(warnings=False)
def storages_of_files(torch):
    import os
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "numbers")

        def refused(cls, *args):
            try:
                cls.from_file(*args)
            except RuntimeError as error:
                return str(error).replace(folder, "")

        with open(path, "wb") as file:
            file.write(torch.arange(4.0).numpy().tobytes())
        typed, raw = torch.FloatStorage, torch.UntypedStorage
        yield raw.from_file(path, nbytes=8).tolist(), raw.from_file(path).nbytes()
        yield refused(raw, path, False, 36), refused(typed, path, False, 5)
        yield refused(torch.TypedStorage, path, False, 4)
        own = typed.from_file(path, False, 3)
        own[0] = 5
        yield own.tolist(), own.filename, own.untyped().filename, own.dtype
        first, second = (typed.from_file(path, True, 6) for _ in range(2))
        torch.FloatTensor(first).fill_(2)
        yield first.data_ptr() == torch.FloatTensor(first).data_ptr()
        yield second.tolist(), second.filename == path, os.path.getsize(path)
        raw.from_file(path, shared=True, nbytes=4)[3] = 0
        yield torch.FloatTensor(first), torch.from_file(path, size=2)


@case
def refused_segments(torch):
    x = torch.tensor([1.0, 2.0, 3.0])
    f = torch.segment_reduce
    yield attempt(f, x, "sum", lengths=torch.tensor([-1, 4]))
    yield attempt(f, x, "sum", lengths=torch.tensor([1.0, 2.0]))
    yield attempt(f, x, "sum", offsets=torch.tensor([0.0, 3.0]))
    yield attempt(f, x.long(), "sum", lengths=torch.tensor([1, 2]))


@case
def convolution(torch):
    f, one = torch.convolution, torch.ones
    x, w = one(1, 2, 5), one(3, 2, 3)
    plain = [1], [0], [1], False, [0], 1
    yield f(x, w, None, *plain), f(x, w, one(3), [2], [1], [2], False, [0], 1)
    yield f(x, one(2, 3, 3), one(3), [2], [1], [1], True, [1], 1)
    deep = one(4, 2, 3, 3), None, [1, 1], [1, 1], [1, 1], False, [0, 0]
    yield f(one(1, 4, 5, 5), *deep, 2), attempt(f, one(2, 5, 5), *deep, 1)
    yield (
        attempt(f, one(1, 3, 5), w, None, *plain),
        attempt(f, x, w.double(), None, *plain),
    )
    yield attempt(f, x, w, one(4), *plain), attempt(f, x, w, None, 1, *plain[1:])
    yield attempt(f, x, w, None, [1], [-1], *plain[2:])
    x = torch.arange(10.0).reshape(1, 2, 5).requires_grad_()
    y = f(x, w, None, *plain)
    yield y.grad_fn.name(), torch.autograd.grad((y * y).sum(), x)


@case
def nan_in_segments(torch):
    lengths = torch.tensor([1, 2, 3, 0])
    for reduce in ("max", "min", "prod"):
        for initial in None, 0, nan, 2:
            for second in nan, 2, 0:
                x = torch.tensor([1, nan, second, nan, 5, 6], requires_grad=True)
                y = torch.segment_reduce(x, reduce, lengths=lengths, initial=initial)
                y.sum().backward()
                yield y.detach(), x.grad


@case
def segments_whose_extreme_is_the_first_value(torch):
    x = torch.tensor([1.0, 2.0, 5.0, 2.0], requires_grad=True)
    lengths = torch.tensor([2, 0, 2])
    for reduce in ("max", "min", "sum"):
        out = torch.segment_reduce(x, reduce, lengths=lengths, initial=2.0)
        yield out.detach(), torch.autograd.grad(out.sum(), x)
    nan = torch.tensor([1.0, float("nan"), 5.0, 2.0])
    yield torch.segment_reduce(nan, "max", lengths=lengths, initial=2.0)
