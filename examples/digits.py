"""A small convolutional network that learns to read handwritten digits.

    bazel run //examples:digits
    python -m examples.digits --epochs 20

The data are scikit-learn's 1,797 digits of 8x8 pixels (real, and inside its wheel). The network is trained on Treadle
and, from the same weights on the same batches, on jaxlib's CPU backend. The exit code is 0 exactly when the network
trained on the asked platform reads at least 97% of the digits that it has not seen.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

from examples import side_by_side

SEED = 2024
TEST_IMAGES = 360
BATCH = 64
LEARNING_RATE = 2e-3
REQUIRED_ACCURACY = 0.97

Array = npt.NDArray[Any]
Parameters = dict[str, Any]


def load_data() -> tuple[Array, Array, Array, Array]:
    """Images (N, 8, 8, 1) scaled to [0, 1] and labels, split once and for all: train, then test."""
    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.target))
    images = (digits.images[order, :, :, None] / 16.0).astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    return images[TEST_IMAGES:], labels[TEST_IMAGES:], images[:TEST_IMAGES], labels[:TEST_IMAGES]


def initial_parameters() -> Parameters:
    """He-initialised weights, drawn by NumPy so that every platform starts alike."""
    generator = np.random.default_rng(SEED)

    def weights(*shape: int) -> Array:
        fan_in = int(np.prod(shape[:-1]))
        values: Array = generator.standard_normal(shape) * np.sqrt(2.0 / fan_in)
        return values.astype(np.float32)

    return {
        "conv1": {"kernel": weights(3, 3, 1, 16), "bias": np.zeros(16, np.float32)},
        "conv2": {"kernel": weights(3, 3, 16, 32), "bias": np.zeros(32, np.float32)},
        "dense": {"kernel": weights(4 * 4 * 32, 64), "bias": np.zeros(64, np.float32)},
        "logits": {"kernel": weights(64, 10), "bias": np.zeros(10, np.float32)},
    }


def convolution(layer: Parameters, x: jax.Array) -> jax.Array:
    """A 3x3 convolution that keeps the picture's size, with a bias and a ReLU."""
    y = jax.lax.conv_general_dilated(
        x, layer["kernel"], window_strides=(1, 1), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jax.nn.relu(y + layer["bias"])


def max_pool(x: jax.Array) -> jax.Array:
    """The maximum of each 2x2 square."""
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def network(parameters: Parameters, images: jax.Array) -> jax.Array:
    """The logits of the ten digits."""
    x = convolution(parameters["conv1"], images)
    x = max_pool(convolution(parameters["conv2"], x))
    x = x.reshape(x.shape[0], -1)
    x = jax.nn.relu(x @ parameters["dense"]["kernel"] + parameters["dense"]["bias"])
    return x @ parameters["logits"]["kernel"] + parameters["logits"]["bias"]


def loss_of(parameters: Parameters, images: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean cross entropy."""
    log_probabilities = jax.nn.log_softmax(network(parameters, images))
    return -jnp.mean(jnp.sum(log_probabilities * jax.nn.one_hot(labels, 10), axis=-1))


def train_step(
    parameters: Parameters, state: Any, step: jax.Array, images: jax.Array, labels: jax.Array
) -> tuple[Parameters, Any, jax.Array, jax.Array]:
    """One step of Adam on one batch; also counts the steps."""
    loss, gradients = jax.value_and_grad(loss_of)(parameters, images, labels)
    step = step + 1
    parameters, state = side_by_side.adam(parameters, state, gradients, step, LEARNING_RATE)
    return parameters, state, step, loss


def correct(parameters: Parameters, images: jax.Array, labels: jax.Array) -> jax.Array:
    """How many images the network reads rightly."""
    return jnp.sum(jnp.argmax(network(parameters, images), axis=-1) == labels)


def train(run: side_by_side.Run, epochs: int) -> None:
    """Trains from the start on the run's device, printing a line per epoch and filling in its measurements."""
    train_images, train_labels, *test_set = load_data()
    zeros = jax.tree.map(np.zeros_like, initial_parameters())
    carry = jax.device_put((initial_parameters(), (zeros, zeros), np.float32(0)), run.device)
    test_images, test_labels = jax.device_put(test_set, run.device)
    batch = jax.device_put((train_images[:BATCH], train_labels[:BATCH]), run.device)
    step = run.compile(train_step, *carry, *batch, donate=(0, 1, 2))
    count = run.compile(correct, carry[0], test_images, test_labels)
    print(f"\n{run.name}: compiled in {run.compile_seconds:.3f} s (after {run.lower_seconds:.3f} s of tracing in JAX)")

    losses, accuracies = run.curves.setdefault("loss", []), run.curves.setdefault("accuracy", [])
    shuffle = np.random.default_rng(SEED)
    for epoch in range(1, epochs + 1):
        epoch_start = time.perf_counter()
        order = shuffle.permutation(len(train_labels))
        epoch_losses = []
        for first in range(0, len(order) - BATCH + 1, BATCH):
            chosen = order[first : first + BATCH]
            start = time.perf_counter()
            batch = jax.device_put((train_images[chosen], train_labels[chosen]), run.device)
            *carry, loss = step(*carry, *batch)
            epoch_losses.append(float(loss))
            run.step_seconds.append(time.perf_counter() - start)
        losses.append(float(np.mean(epoch_losses)))
        accuracies.append(int(count(carry[0], test_images, test_labels)) / TEST_IMAGES)
        seconds = time.perf_counter() - epoch_start
        print(f"  epoch {epoch:2d}  loss {losses[-1]:.4f}  test accuracy {accuracies[-1]:.4f}  {seconds:.3f} s/epoch")


def draw(runs: Sequence[side_by_side.Run], name: str) -> None:
    """Draws loss and test accuracy against the epoch into a picture."""
    import matplotlib as mpl  # noqa: PLC0415 (it takes half a second, and only the end needs it)

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    # The two runs nearly coincide: the second is dashed, so that both are seen.
    for run, style in zip(runs, ("-", "--"), strict=False):
        epochs = range(1, len(run.curves["loss"]) + 1)
        axes[0].plot(epochs, run.curves["loss"], style, label=run.name)
        axes[1].plot(epochs, run.curves["accuracy"], style, label=run.name)
    axes[0].set(xlabel="epoch", ylabel="training loss", yscale="log", title="Cross entropy")
    axes[1].set(xlabel="epoch", ylabel="test accuracy", title=f"{TEST_IMAGES} unseen digits")
    axes[1].axhline(REQUIRED_ACCURACY, color="grey", linewidth=0.8, linestyle=":", label="required")
    for axis in axes:
        axis.legend()
        axis.grid(alpha=0.3)
    path = side_by_side.output_path(name)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    print(f"training curves written to {path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the example; returns its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    side_by_side.add_arguments(parser)
    parser.add_argument("--epochs", type=int, default=15, help="passes over the training set (default: %(default)s)")
    parser.add_argument("--picture", default="digits.png", help="where to draw the curves (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")

    runs = side_by_side.open_platforms(options.platform, not options.no_reference)
    for run in runs:
        train(run, options.epochs)
    side_by_side.print_table(runs, [("loss", "loss"), ("test accuracy", "accuracy")])
    draw(runs, options.picture)
    accuracy = runs[0].curves["accuracy"][-1]
    passed = accuracy >= REQUIRED_ACCURACY
    side_by_side.write_json(options.json, runs, example="digits", required_accuracy=REQUIRED_ACCURACY, passed=passed)
    print(
        f"test accuracy on {runs[0].name}: {accuracy:.4f}, required {REQUIRED_ACCURACY}: {'ok' if passed else 'FAILED'}"
    )
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
