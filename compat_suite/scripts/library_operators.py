"""Operators that a program registers: fakes, gradients, vmap, libraries, schemas."""

import numpy as np
import torch
from torch import Tensor


@torch.library.custom_op("mylib::crop", mutates_args=())
def crop(pic: torch.Tensor, box: list[int]) -> torch.Tensor:
    x0, y0, x1, y1 = box
    return pic[..., y0:y1, x0:x1].contiguous().clone()


@crop.register_fake
def _(pic, box):
    pic.shape[0]
    x0, y0, x1, y1 = box
    return pic.new_empty(*pic.shape[:-2], y1 - y0, x1 - x0)


img = torch.arange(3 * 6 * 6.0).reshape(3, 6, 6)
print(crop(img, [1, 2, 4, 5]).shape, torch.ops.mylib.crop(img, [0, 0, 2, 2]))


@torch.compile(fullgraph=True, backend="eager")
def f(img):
    return crop(img, (0, 0, 3, 3)) * 2


print(f(img).sum())


@torch.library.custom_op("mylib::paste", mutates_args=())
def paste(im1: torch.Tensor, im2: torch.Tensor, coord: list[int]) -> torch.Tensor:
    assert im1.device == im2.device
    out = im1.clone()
    x, y = coord
    h, w = im2.shape[-2:]
    out[..., y : y + h, x : x + w] = im2
    return out


@paste.register_fake
def _(im1, im2, coord):
    return torch.empty_like(im1)


def backward(ctx, grad_output):
    grad_input = grad_output.new_zeros(ctx.pic_shape)
    grad_input = paste(grad_input, grad_output, ctx.coords)
    return grad_input, None


def setup_context(ctx, inputs, output):
    pic, box = inputs
    ctx.coords = box[:2]
    ctx.pic_shape = pic.shape


crop.register_autograd(backward, setup_context=setup_context)
img = img.clone().requires_grad_()
result = crop(img, [0, 0, 3, 3])
print(result.grad_fn is not None, result.requires_grad)
result.sum().backward()
print(img.grad.sum(), img.grad[0])
examples = [
    [torch.randn(3, 6, 6), [0, 0, 3, 3]],
    [torch.randn(4, 9, 9), [2, 0, 5, 5]],
    [torch.randn(1, 7, 7, requires_grad=True), [1, 1, 4, 4]],
]
for e in examples:
    print(torch.library.opcheck(crop, e))


@torch.library.custom_op(
    "mylib::numpy_sin", mutates_args={"output"}, device_types="cpu"
)
def numpy_sin(input: Tensor, output: Tensor) -> None:
    assert input.device == output.device
    assert input.device.type == "cpu"
    input_np = input.numpy()
    output_np = output.numpy()
    np.sin(input_np, out=output_np)


x = torch.randn(3)
y = torch.empty_like(x)
numpy_sin(x, y)
print(torch.allclose(y, x.sin()), y._version)


@torch.library.custom_op("mylib::two", mutates_args=())
def two(x: Tensor, scale: float = 2.0, *, flag: bool = False) -> tuple[Tensor, Tensor]:
    return x * scale, x.abs() if flag else x.clone()


print(torch.ops.mylib.two.default._schema)
print(torch.ops.mylib.crop.default._schema, crop)
print(two(torch.tensor([-1.0, 2.0]), flag=True))
try:
    two(3)
except Exception as e:
    print(type(e).__name__, str(e).splitlines()[0])
try:
    print(torch.ops.mylib.nothing)
except AttributeError as e:
    print(e)


@two.register_vmap
def two_vmap(info, in_dims, x, scale=2.0, *, flag=False):
    print("vmap", info.batch_size, in_dims[0])
    a, b = two(x, scale, flag=flag)
    return (a, b), (in_dims[0], in_dims[0])


print(torch.vmap(lambda a: two(a, 3.0)[0])(torch.ones(2, 2)))
lib = torch.library.Library("foo", "DEF")
lib.define("bar(Tensor x, int n=2) -> Tensor")


@torch.library.impl(lib, "bar", "CompositeExplicitAutograd")
def bar(x, n=2):
    return x.repeat(n)


print(
    torch.ops.foo.bar(torch.tensor([1, 2])),
    torch.ops.foo.bar.default(torch.tensor([1, 2]), 3),
)
torch.library.define("foo::baz", "(Tensor x) -> Tensor")


@torch.library.impl("foo::baz", "cpu")
def baz(x):
    return torch.from_numpy(np.cos(x.numpy()))


@torch.library.register_fake("foo::baz")
def _(x):
    return torch.empty_like(x)


torch.library.register_autograd(
    "foo::baz",
    lambda ctx, g: -g * ctx.saved_tensors[0].sin(),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
)
x = torch.tensor([0.3, 0.4], requires_grad=True)
torch.ops.foo.baz(x).sum().backward()
print(x.grad, torch.ops.foo.baz(torch.empty(2, device="meta")))


def foo_impl(x: Tensor, y: int | None, z: str = "q") -> Tensor:
    return x


print(torch.library.infer_schema(foo_impl, mutates_args=()))
with torch.library._scoped_library("mm2", "FRAGMENT") as l2:
    l2.define("sq(Tensor x) -> Tensor")
    l2.impl("sq", lambda x: x * x, "CompositeImplicitAutograd")
    print(torch.ops.mm2.sq(torch.tensor(3.0, requires_grad=True)))
