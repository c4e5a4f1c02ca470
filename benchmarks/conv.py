"""One Adam step of a small convolutional network; single layers of many kinds.

For orientation, without a goal.
"""

from dataclasses import dataclass
from functools import partial

from ._case import JAX, Case, torch_api
from ._measure import timed, timed_on_best_threads

LR = 1e-6  # see _mlp
BATCH = 64


def torch_program(torch, side):
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * (side // 2) ** 2, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    images = torch.randn(BATCH, 1, side, side)
    labels = torch.randint(0, 10, (BATCH,))
    loss_function = nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad()
        loss = loss_function(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return timed_on_best_threads(torch, step, scale=1e3)


def jax_program(side):
    """By hand: channels last, which XLA likes best, and pooling as a reshape."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    random = np.random.default_rng(0)

    def uniform(*shape, inputs):
        bound = inputs**-0.5
        return jnp.asarray(random.uniform(-bound, bound, shape).astype(np.float32))

    flat = 64 * (side // 2) ** 2
    parameters = {
        "conv1": (uniform(3, 3, 1, 32, inputs=9), uniform(32, inputs=9)),
        "conv2": (uniform(3, 3, 32, 64, inputs=288), uniform(64, inputs=288)),
        "linear": (uniform(flat, 10, inputs=flat), uniform(10, inputs=flat)),
    }
    images = jnp.asarray(random.normal(size=(BATCH, side, side, 1)).astype(np.float32))
    labels = jnp.asarray(random.integers(10, size=BATCH).astype(np.int32))
    optimizer = optax.adam(LR)

    def convolve(x, weight, bias):
        layout = ("NHWC", "HWIO", "NHWC")
        y = jax.lax.conv_general_dilated(
            x, weight, (1, 1), "SAME", dimension_numbers=layout
        )
        return jax.nn.relu(y + bias)

    def loss_function(parameters, images, labels):
        x = convolve(images, *parameters["conv1"])
        x = convolve(x, *parameters["conv2"])
        x = x.reshape(BATCH, side // 2, 2, side // 2, 2, 64).max((2, 4))
        weight, bias = parameters["linear"]
        scores = x.reshape(BATCH, -1) @ weight + bias
        return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()

    def update(parameters, state, images, labels):
        loss, slopes = jax.value_and_grad(loss_function)(parameters, images, labels)
        updates, state = optimizer.update(slopes, state)
        return optax.apply_updates(parameters, updates), state, loss

    jitted = jax.jit(update, donate_argnums=(0, 1))
    state = optimizer.init(parameters)

    def step():
        nonlocal parameters, state
        parameters, state, loss = jitted(parameters, state, images, labels)
        return float(loss)

    return timed(step, scale=1e3)


@dataclass(frozen=True)
class Layer:
    """One convolution of images, and its gradients.

    Without a stride they are padded to keep their size.
    """

    name: str
    batch: int
    side: int
    inputs: int
    outputs: int
    kernel: int
    groups: int = 1
    stride: int = 1

    @property
    def padding(self):
        return self.kernel // 2 if self.stride == 1 else 0

    @property
    def shapes(self):
        kernel = (self.kernel,) * 2
        return (
            (self.batch, self.inputs, self.side, self.side),
            (self.outputs, self.inputs // self.groups, *kernel),
        )


LAYERS = [
    Layer("depthwise 3x3, 64 channels, 32x32", 16, 32, 64, 64, 3, 64),
    Layer("depthwise 7x7, 64 channels, 16x16", 16, 16, 64, 64, 7, 64),
    Layer("3x3 in 32 groups, 128 channels, 16x16", 16, 16, 128, 128, 3, 32),
    Layer("3x3, 32 to 64 channels, 28x28", 64, 28, 32, 64, 3),
    Layer("3x3, 64 channels, 32x32", 16, 32, 64, 64, 3),
    Layer("3x3, 512 channels, 2x2", 32, 2, 512, 512, 3),
    Layer("1x1, 16 to 96 channels, 56x56", 32, 56, 16, 96, 1),
    Layer(
        "patches of 16x16, 3 to 192 channels, 224x224", 8, 224, 3, 192, 16, stride=16
    ),
    Layer("4x4 with stride 2, 64 channels, 32x32", 16, 32, 64, 64, 4, stride=2),
]


def torch_layer(torch, layer):
    torch.manual_seed(0)
    x, w = (torch.randn(shape, requires_grad=True) for shape in layer.shapes)

    def step():
        x.grad = w.grad = None
        y = torch.nn.functional.conv2d(
            x, w, None, layer.stride, layer.padding, 1, layer.groups
        )
        y.square().sum().backward()
        return x.grad[0, 0, 0, 0].item() + w.grad[0, 0, 0, 0].item()

    return timed_on_best_threads(torch, step, scale=1e3)


def jax_layer(layer):
    import jax

    keys = jax.random.split(jax.random.key(0))
    operands = [
        jax.random.normal(key, shape)
        for key, shape in zip(keys, layer.shapes, strict=True)
    ]

    def total(x, w):
        y = jax.lax.conv_general_dilated(
            x,
            w,
            (layer.stride,) * 2,
            [(layer.padding,) * 2] * 2,
            feature_group_count=layer.groups,
        )
        return (y * y).sum()

    jitted = jax.jit(jax.grad(total, (0, 1)))
    return timed(lambda: jax.block_until_ready(jitted(*operands)), scale=1e3)


CASES = [
    Case(
        name=f"1-32-64 channels, {side}x{side}, batch {BATCH}",
        unit="ms",
        engines={**torch_api(torch_program, side), JAX: partial(jax_program, side)},
    )
    for side in (8, 28)
] + [
    Case(
        name=f"{layer.name}, batch {layer.batch}",
        unit="ms",
        engines={**torch_api(torch_layer, layer), JAX: partial(jax_layer, layer)},
    )
    for layer in LAYERS
]
