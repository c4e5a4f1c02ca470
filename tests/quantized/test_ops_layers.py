"""`torch.ops.quantized`: what layers of integers call, and packed weights."""

import copy
import io
import pickle

from tests.oracle import attempt, case
from tests.quantized.layers import load, plain

_SETUP = """
Q = torch.ops.quantized
def q(*shape, scale=.1, zero=60, dtype=torch.quint8):
    high = 256 if dtype is torch.quint8 else 128
    codes = torch.randint(high - 256, high, shape)
    codes = codes.to(torch.uint8 if dtype is torch.quint8 else torch.int8)
    if dtype is torch.quint8:
        codes = torch.randint(0, 256, shape).to(torch.uint8)
    return torch._make_per_tensor_quantized_tensor(codes, scale, zero)
def w(*shape, scale=.02, zero=0):
    return torch.quantize_per_tensor(torch.randn(*shape), scale, zero, torch.qint8)
def c(*shape):
    scales, zeros = torch.rand(shape[0]) * .02 + .01, torch.zeros(shape[0]).long()
    return torch.quantize_per_channel(torch.randn(*shape), scales, zeros, 0, s8)
s8 = torch.qint8
last = torch.channels_last
x = torch.randn(5, 10)
def half_of(t):
    return torch._make_per_tensor_quantized_tensor(t.int_repr() // 2, .1, 30)
"""


def _names(torch):
    load(torch)
    exec(_SETUP, found := {"torch": torch})
    return found


@case(warnings=False).lines("""
Q.linear(half_of(q(5, 10)), Q.linear_prepack(w(6, 10), torch.randn(6)), .2, 60)
Q.linear(half_of(q(2, 5, 10)), Q.linear_prepack(w(6, 10, zero=4), None), .2, 60)
Q.linear_relu(half_of(q(5, 10)), Q.linear_prepack(c(6, 10), torch.randn(6)), .2, 60)
Q.linear(half_of(q(3, 600)), Q.linear_prepack(c(6, 600), torch.randn(6)), .9, 60)
Q.linear_dynamic(x, Q.linear_prepack(w(6, 10), torch.randn(6)), True)
Q.linear_dynamic(x * 0, Q.linear_prepack(w(6, 10), torch.randn(6)), True)
Q.linear_dynamic(x * 1e-6, Q.linear_prepack(w(6, 10)), True)
Q.linear_dynamic(x.abs() * 1e-6, Q.linear_prepack(w(6, 10)), True)
Q.linear_dynamic(x[:0], Q.linear_prepack(w(6, 10)), True)
Q.linear_dynamic(x, Q.linear_prepack_fp16(torch.randn(6, 10)))
Q.linear_relu_dynamic(x, Q.linear_prepack(c(6, 10), torch.randn(6)), reduce_range=True)
Q.linear_dynamic_fp16(x, Q.linear_prepack_fp16(torch.randn(6, 10), torch.randn(6)))
Q.linear_relu_dynamic_fp16(x, Q.linear_prepack_fp16(torch.randn(6, 10)))
Q.linear_dynamic_fp16_unpacked_weight(x, torch.randn(6, 10), torch.randn(6))
Q.linear_with_input_q_dq_qweight_dq_output_fp32(x, .05, 60, Q.linear_prepack(w(6, 10)))
Q.linear_unpack(Q.linear_prepack(c(6, 10), torch.ones(6)))
Q.linear_unpack_fp16(Q.linear_prepack_fp16(torch.tensor([[1e6, .1, 1e-9, torch.nan]])))
Q.conv2d_stride(Q.conv2d_prepack(w(2, 3, 2, 2), None, [2, 1], [0, 1], [1, 1], 1))
Q.conv2d_unpack_sizes(Q.conv2d_prepack(w(2, 3, 2, 2), None, [2, 1], [0, 1], [1, 1], 1))
Q.conv1d_prepack(w(2, 3, 2), None, [2], [1], [1], 1)
Q.conv_transpose2d_prepack(w(2, 3, 2, 2), None, [2, 1], [0, 1], [1, 0], [1, 1], 1)
Q.add(q(100), q(100, scale=.07, zero=30), .2, 53)
Q.add(q(2, 16, 5, 5).contiguous(memory_format=last), q(2, 16, 5, 5), .2, 53)
Q.add(q(3, 4), q(4), .3, 53), Q.add_relu(q(7, dtype=s8), q(7, dtype=s8), .2, 5)
Q.mul(q(100), q(100, scale=.07, zero=30), .7, 53), Q.mul_relu(q(7), q(7), .7, 53)
Q.add(q(3), 2.5), Q.add_scalar(q(3), -2), Q.add_scalar_relu(q(3), 1.), Q.mul(q(3), 2.)
Q.add_scalar(q(100), 30.), Q.add_scalar(q(100), -30.), Q.add_scalar_relu(q(9), -30.)
Q.mul_scalar(q(3), -2.), Q.mul_scalar(q(3), 0.), Q.mul_scalar_relu(q(3), -2.)
Q.mul_scalar_relu(q(3), 2.)
Q.add_out(q(3), q(3), q(3)), Q.add(q(3), q(3), out=q(3)), Q.mul_out(q(3), q(3), q(3))
Q.cat([q(2, 3), q(2, 3, scale=.2)], 1, .15, 50), Q.cat([q(2), q(2, scale=.2)], 0, None, None)
Q.cat_relu([q(2, 3), q(2, 3)], 0, .1, 60), Q.cat_out([q(2), q(3)], 0, q(5, scale=.3))
Q.matmul(q(2, 3), q(3, 4), .5, 60)
Q.hardswish(q(100), .2, 5), Q.elu(q(9), .2, 50), Q.elu(q(9), .2, 50, .5, 2., .3)
Q.celu(q(9), .2, 50, .7), Q.leaky_relu(q(100), .2, False, .11, 5), Q.relu6(q(9))
Q.sigmoid(q(100), 1 / 256, 0), Q.softmax(q(3, 4), 1, 1 / 256, 0), Q.clamp(q(9), -1., 2.)
Q.threshold(q(100), .3, 1.), Q.dropout(q(3), .1, 0), Q.max_pool1d(q(1, 4), [2], [2], [0], [1], False)
Q.max_pool2d(q(1, 4, 4), [2, 2], [], [0, 0], [1, 1], False)
Q.batch_norm2d(q(2, 3, 4, 4), *b, .1, .05, 50), Q.batch_norm2d_relu(q(2, 3, 4, 4), *b, .1, .05, 50)
Q.batch_norm3d(q(2, 3, 2, 2, 2), *b, .1, .05, 50), Q.batch_norm1d(q(2, 3), *b, .1, .05, 50)
Q.batch_norm1d_relu(q(2, 3, 4), *b, .1, .05, 50), Q.batch_norm(q(2, 3, 4), *b, .1, .05, 50)
Q.layer_norm(q(2, 3), [3], b[0], b[1], .1, .05, 50), Q.layer_norm(q(2, 3), [3], None, None, .1, .05, 50)
Q.group_norm(q(2, 3, 4), 3, b[0], b[1], .1, .05, 50), Q.instance_norm(q(2, 3, 4), b[0], b[1], .1, .05, 50)
Q.embedding_bag_byte_prepack(x), Q.embedding_bag_4bit_prepack(x)
Q.embedding_bag_2bit_prepack(x[:, :8])
Q.embedding_bag_byte_unpack(Q.embedding_bag_byte_prepack(x))
Q.embedding_bag_4bit_unpack(Q.embedding_bag_4bit_prepack(x))
Q.embedding_bag_byte_rowwise_offsets(Q.embedding_bag_byte_prepack(x), at, off)
Q.embedding_bag_4bit_rowwise_offsets(Q.embedding_bag_4bit_prepack(x), at, off)
Q.embedding_bag_byte_rowwise_offsets(Q.embedding_bag_byte_prepack(x), at, off, include_last_offset=True)
Q.embedding_bag_byte_rowwise_offsets(Q.embedding_bag_byte_prepack(x), at, off, per_sample_weights=torch.rand(4))
Q.embedding_bag_byte_rowwise_offsets(Q.embedding_bag_byte_prepack(x), at, off, False, 0, True, None, torch.tensor([2, -1, 0, 3, 1], dtype=torch.int32))
""")  # noqa: E501
def results(torch, line):
    found = _names(torch)
    found["b"] = torch.rand(3), torch.randn(3), torch.randn(3), torch.rand(3)
    found["at"], found["off"] = torch.tensor([0, 1, 3, 3]), torch.tensor([0, 2])
    return plain(eval(line, found))


@case(warnings=False).lines("""
Q.linear(q(2, 9), Q.linear_prepack(w(6, 10)), .1, 0)
Q.linear(q(10), Q.linear_prepack(w(6, 10)), .1, 0)
Q.linear(q(2, 10, dtype=s8), Q.linear_prepack(w(6, 10)), .1, 0)
Q.linear(q(2, 10), Q.conv2d_prepack(w(2, 3, 2, 2), None, [1, 1], [0, 0], [1, 1], 1), .1, 0)
Q.linear_dynamic(x[:, :9], Q.linear_prepack(w(6, 10)))
Q.linear_dynamic(x.double(), Q.linear_prepack(w(6, 10)))
Q.linear_prepack(q(2, 10))
Q.linear_prepack(w(2, 3, 4))
Q.linear_prepack(w(2, 3), torch.ones(3))
Q.linear_prepack(w(2, 3), torch.ones(2, 1))
Q.linear_tanh(q(2, 10), Q.linear_prepack(w(6, 10)), .1, 0)
Q.conv2d_prepack(w(2, 3), None, [1, 1], [0, 0], [1, 1], 1)
Q.conv2d_prepack(w(2, 3, 2, 2), None, [1], [0, 0], [1, 1], 1)
Q.conv2d_prepack(w(2, 3, 2, 2), None, [1, 1], [0], [1, 1], 1)
Q.conv2d_prepack(w(2, 3, 2, 2), None, [1, 1], [0, 0], [1], 1)
Q.conv2d_prepack(w(2, 3, 2, 2), torch.ones(3), [1, 1], [0, 0], [1, 1], 1)
Q.conv_transpose2d_prepack(c(2, 3, 2, 2), None, [1, 1], [0, 0], [0, 0], [1, 1], 1)
Q.conv2d(q(3, 4, 4), Q.conv2d_prepack(w(2, 3, 2, 2), None, [1, 1], [0, 0], [1, 1], 1), .1, 0)
Q.conv2d(q(1, 2, 4, 4), Q.conv2d_prepack(w(2, 3, 2, 2), None, [1, 1], [0, 0], [1, 1], 1), .1, 0)
Q.conv2d(q(1, 3, 4, 4, dtype=s8), Q.conv2d_prepack(w(2, 3, 2, 2), None, [1, 1], [0, 0], [1, 1], 1), .1, 0)
Q.add(q(3), q(3, dtype=s8), .1, 0)
Q.mul(q(3), q(3, dtype=s8), .1, 0)
Q.add(q(3), q(4), .1, 0)
Q.batch_norm2d(q(2, 3), *[torch.ones(3)] * 4, .1, .1, 0)
Q.batch_norm2d(q(2, 3, 1, 1), None, *[torch.ones(3)] * 3, .1, .1, 0)
Q.embedding_bag_prepack(w(2, 3))
Q.embedding_bag_4bit_prepack(x[:, :3])
Q.embedding_bag_byte_rowwise_offsets(Q.embedding_bag_byte_prepack(x), torch.tensor([0]))
Q.nothing
""")  # noqa: E501
def refusals(torch, line):
    found = _names(torch)
    return attempt(lambda: plain(eval(line, found)))


@case(warnings=False, message=False).lines("""
Q.linear(x, Q.linear_prepack(w(6, 10)), .1, 0)
Q.linear_dynamic(q(2, 10), Q.linear_prepack(w(6, 10)))
Q.linear_prepack(x)
Q.linear(q(2, 10), 3, .1, 0)
Q.conv2d(torch.ones(1, 3, 4, 4), Q.conv2d_prepack(w(2, 3, 2, 2), None, [1, 1], [0, 0], [1, 1], 1), .1, 0)
Q.hardswish(x, .1, 0)
Q.cat([x], 0, .1, 0)
""")  # noqa: E501
def of_other_tensors(torch, line):
    found = _names(torch)
    return attempt(lambda: plain(eval(line, found)))


@case(warnings=False).lines("""
Q.linear_prepack(w(2, 3), torch.ones(2))
Q.linear_prepack(c(2, 3))
Q.linear_prepack_fp16(torch.randn(2, 3))
Q.conv2d_prepack(w(2, 1, 2, 2), None, [2, 1], [0, 1], [1, 1], 2)
Q.conv3d_prepack(c(2, 1, 2, 2, 2), torch.ones(2), [1, 1, 1], [0, 0, 0], [1, 2, 1], 1)
Q.conv_transpose1d_prepack(w(2, 1, 2), None, [2], [0], [1], [1], 1)
Q.embedding_bag_prepack(rows)
Q.make_quantized_cell_params_dynamic(p, p, torch.ones(8), torch.ones(8), True)
Q.make_quantized_cell_params_fp16(p16, p16)
""")
def packed(torch, line):
    """Packed weights, pickled, copied and in files."""
    found = _names(torch)
    scales, zeros = torch.tensor([0.1, 0.2]), torch.tensor([0.5, 1.0])
    of = torch.quantize_per_channel
    found["rows"] = of(torch.randn(2, 3), scales, zeros, 0, torch.quint8)
    found["p"] = found["Q"].linear_prepack(found["w"](8, 2), torch.ones(8))
    found["p16"] = found["Q"].linear_prepack_fp16(torch.randn(8, 2))
    made = eval(line, found)
    yield type(made).__name__, str(made), str(made._type()), made._method_names()
    yield plain(made)
    yield plain(pickle.loads(pickle.dumps(made))), plain(copy.deepcopy(made))
    torch.save({"a": made}, file := io.BytesIO())
    file.seek(0)
    yield plain(torch.load(file, weights_only=False))
    for name in made._method_names()[2:]:
        yield name, plain(getattr(made, name)())


@case
def names(torch):
    Q = torch.ops.quantized
    yield str(Q.linear), repr(Q.linear), str(Q.linear.default), str(Q.add.out)
    yield repr(Q.linear.default)
