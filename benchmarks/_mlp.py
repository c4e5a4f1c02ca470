"""One Adam step of a three-layer perceptron, for the PyTorch API and for JAX.

The learning rate is tiny: over tens of thousands of steps the numbers must stay
ordinary ones, as arithmetic with denormal numbers takes another time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LR = 1e-6
CLASSES = 10


@dataclass(frozen=True)
class Shape:
    sizes: tuple[int, ...]
    batch: int

    def __str__(self) -> str:
        return f"{'-'.join(map(str, self.sizes))}, batch {self.batch}"


SMALL = Shape((8, 16, 16, CLASSES), 8)
MEDIUM = Shape((64, 256, 256, CLASSES), 64)
LARGE = Shape((784, 1024, 1024, CLASSES), 128)


def torch_parts(torch: Any, shape: Shape) -> tuple[Any, Any, Any, Any, Any]:
    """Model, optimizer, inputs, labels and loss function."""
    torch.manual_seed(0)
    layers = []
    for size, next_size in zip(shape.sizes, shape.sizes[1:], strict=False):
        layers += [torch.nn.Linear(size, next_size), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.Adam(model.parameters(), lr=LR)
    inputs = torch.randn(shape.batch, shape.sizes[0])
    labels = torch.randint(0, CLASSES, (shape.batch,))
    return model, optimizer, inputs, labels, torch.nn.CrossEntropyLoss()


def torch_step(torch: Any, shape: Shape) -> Callable[[], float]:
    """The step as scripts write it; it returns the loss as a number."""
    model, optimizer, inputs, labels, loss_function = torch_parts(torch, shape)

    def step() -> float:
        optimizer.zero_grad()
        loss = loss_function(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def jax_step(shape: Shape) -> Callable[[], float]:
    """The same by hand: one jitted program, its state donated."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import optax

    random = np.random.default_rng(0)
    parameters = []
    for size, next_size in zip(shape.sizes, shape.sizes[1:], strict=False):
        bound = size**-0.5
        weight = random.uniform(-bound, bound, (size, next_size)).astype(np.float32)
        bias = random.uniform(-bound, bound, next_size).astype(np.float32)
        parameters.append((jnp.asarray(weight), jnp.asarray(bias)))
    inputs = jnp.asarray(
        random.normal(size=(shape.batch, shape.sizes[0])).astype(np.float32)
    )
    labels = jnp.asarray(random.integers(CLASSES, size=shape.batch).astype(np.int32))
    optimizer = optax.adam(LR)

    def loss_function(parameters, inputs, labels):
        hidden = inputs
        for weight, bias in parameters[:-1]:
            hidden = jax.nn.relu(hidden @ weight + bias)
        weight, bias = parameters[-1]
        losses = optax.softmax_cross_entropy_with_integer_labels(
            hidden @ weight + bias, labels
        )
        return losses.mean()

    def update(parameters, state, inputs, labels):
        loss, slopes = jax.value_and_grad(loss_function)(parameters, inputs, labels)
        updates, state = optimizer.update(slopes, state)
        return optax.apply_updates(parameters, updates), state, loss

    jitted = jax.jit(update, donate_argnums=(0, 1))
    state = optimizer.init(parameters)

    def step() -> float:
        nonlocal parameters, state
        parameters, state, loss = jitted(parameters, state, inputs, labels)
        return float(loss)

    return step
