"""Functions in the forms that only PyTorch's dispatcher has."""

from __future__ import annotations

from tests.oracle import attempt, case, evaluate


@case(warnings=False).lines(
    """
    aten._softmax(g, 1, False), aten._softmax.default(x, -1, False)
    aten._log_softmax(g, 1, False), aten._log_softmax.default(x.half(), 0, False)
    attempt(aten._softmax, x.half(), 1, True), attempt(aten._softmax, x, 1, True)
    attempt(aten._log_softmax, x.half(), 1, True), attempt(aten._softmax, x, 3, False)
    attempt(aten._softmax, x.long(), 0, False)
    aten.upsample_nearest2d(m, [4, 4]), aten.upsample_nearest2d(m, [4, 4], None)
    aten.upsample_nearest2d(m, [3, 4], 1.5, 2.0)
    aten.upsample_nearest2d(m, [3, 4], scales_w=2.0)
    aten.upsample_nearest2d.vec(m, None, [2.0, 2.0])
    aten.upsample_nearest1d(m[0], [5]), aten.upsample_nearest3d(m[None], [2, 4, 4])
    aten.upsample_bilinear2d(m, [4, 4], False)
    aten.upsample_bilinear2d(m, [3, 3], True, None, None)
    aten.upsample_bilinear2d(m, [3, 3], align_corners=True)
    aten.upsample_bicubic2d(m, [3, 3], False), aten.upsample_linear1d(m[0], [3], False)
    aten.upsample_trilinear3d(m[None], [2, 3, 3], False)
    aten._upsample_nearest_exact2d(m, [3, 3])
    attempt(aten.upsample_nearest2d, m[0], [4, 4])
    attempt(aten.upsample_nearest2d, m, [4])
    [aten.upsample_nearest2d(m, [4, 4], out=o), o]
    [aten.upsample_bilinear2d(m, [4, 4], False, out=o), o]
    aten.upsample_nearest1d(m[0], [5], out=torch.empty(0))
    aten.upsample_nearest2d(m, [4, 4], out=o.mT).stride()
    attempt(lambda: aten.upsample_nearest2d(m, [4, 4], out=o.double()))
    attempt(lambda: aten.upsample_nearest2d(m.requires_grad_(), [4, 4], out=o))
    aten.upsample_nearest2d(m.mT, [2, 2], out=torch.empty(0)).stride()
    [aten.reflection_pad2d(m, [1, 0, 1, 1], out=torch.empty(0)), o]
    attempt(lambda: aten.replication_pad1d(m[0], [2, 1], out=o.double()))
    aten.reflection_pad2d(m, [1, 0, 1, 1]), aten.replication_pad1d(m[0], [2, 1])
    [attempt(aten.reflection_pad2d, m, [1] * n) for n in (0, 3)]
    [attempt(aten.replication_pad1d, m, [1] * n) for n in (0, 3)]
    aten._adaptive_avg_pool2d(m, [1, 2])
    aten.new_zeros(x, [2]), aten.new_zeros.default(x, [2, 2], dtype=torch.int32)
    aten.new_ones(x, [2]), aten.new_full(x, [2], 3), aten.new_empty(x, [2]).shape
    aten.new_empty_strided(x, [2, 2], [1, 2]).stride()
    aten.lift_fresh(x), aten.lift_fresh_copy(x), aten._unsafe_view(x, [3, 2])
    aten._local_scalar_dense(torch.tensor(3.0)), aten._local_scalar_dense(x)
    aten.sym_size(x), aten.sym_size.int(x, 1), aten.sym_size.default(x)
    aten.sym_stride.int(x, 0), aten.sym_numel(x), aten.sym_storage_offset(x[1])
    aten.size(x), aten.size.int(x, 0), aten.stride(x), aten.dim(x)
    aten.item(torch.tensor(2)), aten.contiguous(x.T), aten.type_as(x, x.long())
    aten.resize_(torch.arange(4), [2, 2])
    aten.fill_diagonal_(x[:, :2], 7), aten.fill_diagonal_.default(x.clone(), 1.0), x
    aten.t_(x.clone()), aten.transpose_(x.clone(), 0, 1), aten.unsqueeze_(x[0], 0)
    aten.squeeze_(x[:1]), aten.squeeze_.dim(x[:1], 1), aten.swapaxes_(x.clone(), 0, 1)
    aten.scatter_.value(x.clone(), 1, torch.tensor([[1], [0]]), 9.0)
    attempt(aten.view_as, x, m), aten.expand_as(x[0], x), aten.is_contiguous(x.t())
    aten.uniform_(x, 2, 2), aten.normal_.default(x, 1.0, 0.0), aten.bernoulli_(x, 1.0)
    aten.to.dtype(x, torch.int32), aten.to.other(x, x.half())
    aten.requires_grad_(x, True), aten.polygamma_(x, 1)
    aten.to.device(x, "cpu", torch.float64), aten.to_dense(aten.to_sparse(torch.eye(2)))
    aten.indices(torch.eye(2).to_sparse()), aten._nnz(torch.eye(2).to_sparse())
    aten.index_reduce_(x.clone(), 0, torch.tensor([0]), x[1:], "prod")
    aten._addmm_activation(torch.zeros(3), torch.eye(2), x - 2)
    aten._addmm_activation(x[0], torch.eye(2), x, beta=2, alpha=0.5, use_gelu=True)
    torch._addmm_activation(torch.zeros(3), torch.eye(2), x - 2)
    torch._addmm_activation(x[0], torch.eye(2), x - 2, use_gelu=True, out=x), x
    torch._addmm_activation(x[0], torch.eye(2), x, out=torch.empty(2, 3).double())
    torch._addmm_activation(x[0], torch.eye(2), x, out=g)
    torch._addmm_activation(x[0], torch.eye(2), x, out=3)
    torch._softmax(x, 0, 3)
    torch._stack([x, 3])
    torch._cast_Int(x, 3.0)
    torch._euclidean_dist(x)
    aten._index_put_impl_(x.clone(), [torch.tensor([0, 0])], x * 2, True, False)
    aten.log_sigmoid_forward(x)
    aten.full([2], 3), aten.full([2], 3.5), aten.full.default([2, 2], True)
    aten.full([2], 1, dtype=torch.float16), aten.full([2], 1, pin_memory=False)
    aten.full_like(x, 2), aten.arange(3), aten.arange.start_step(0, 6, 2)
    aten.eye(2), aten.linspace(0, 1, 3), aten.zeros([2]), aten.scalar_tensor(3.0)
    """
)
def calls(torch, line):
    x = torch.arange(6.0).view(2, 3)
    return evaluate(
        torch,
        line,
        x=x,
        g=x.clone().requires_grad_(),
        m=torch.arange(8.0).view(1, 2, 2, 2),
        o=torch.zeros(1, 2, 4, 4),
        aten=torch.ops.aten,
        attempt=attempt,
    )


@case
def what_is_no_form_of_an_operator(torch):
    sin = torch.ops.aten.sin
    for name in ("overloadpacket", "namespace", "name", "_overloadname"):
        yield attempt(getattr, sin, name), hasattr(sin.default, name)
    yield str(sin.default.overloadpacket)
