"""One Adam step of a small convolutional network. For orientation, without a goal."""

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


CASES = [
    Case(
        name=f"1-32-64 channels, {side}x{side}, batch {BATCH}",
        unit="ms",
        engines={**torch_api(torch_program, side), JAX: partial(jax_program, side)},
    )
    for side in (8, 28)
]
