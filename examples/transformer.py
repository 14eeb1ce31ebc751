"""A character-level transformer that learns to write like Python's own documentation.

    bazel run //examples:transformer
    python -m examples.transformer --steps 500

Four layers, width 256, four heads, windows of 128 characters, four windows per batch. The text is `pydoc_data.topics`,
which every CPython carries. The model is trained on Treadle and, from the same weights on the same batches, on
jaxlib's CPU backend; each then writes a sample. The exit code is 0 exactly when the loss on the asked platform,
averaged over the last steps, has fallen below the stated threshold.
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
import time
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from examples import side_by_side

SEED = 7
LAYERS, WIDTH, HEADS, WINDOW, BATCH = 4, 256, 4, 128, 4
LEARNING_RATE = 1e-3
# A model that knows how frequent each character is has a loss of 3.25 nats on this text; one that knows after which
# character each comes, perfectly, 2.46 (the entropies of unigrams, and of bigrams given their first character).
# The threshold lies between: context is being used.
REQUIRED_LOSS = 2.75
AVERAGED_STEPS = 10
TEMPERATURE = 0.6
PROMPT = "The "

Array = npt.NDArray[Any]
Parameters = dict[str, Any]


def load_text() -> str:
    """The documentation's topics in a fixed order, as ASCII: one text of some 700,000 characters."""
    topics: dict[str, str] = pydoc_data.topics.topics
    return "".join(topics[name] for name in sorted(topics)).encode("ascii", "ignore").decode("ascii")


def initial_parameters(vocabulary: int) -> Parameters:
    """Weights scaled by their fan-in, drawn by NumPy so that every platform starts alike.

    What is added to the residual stream starts at half that scale, the logits start close to uniform.
    """
    generator = np.random.default_rng(SEED)

    def weights(*shape: int, scale: float) -> Array:
        return (generator.standard_normal(shape) * scale).astype(np.float32)

    narrow, wide = WIDTH**-0.5, (4 * WIDTH) ** -0.5

    def norm() -> Parameters:
        return {"scale": np.ones(WIDTH, np.float32), "bias": np.zeros(WIDTH, np.float32)}

    return {
        "embedding": weights(vocabulary, WIDTH, scale=0.3),
        "position": weights(WINDOW, WIDTH, scale=0.3),
        "layers": [
            {
                "norm1": norm(),
                "qkv": weights(WIDTH, 3 * WIDTH, scale=narrow),
                "project": weights(WIDTH, WIDTH, scale=narrow / 2),
                "norm2": norm(),
                "up": weights(WIDTH, 4 * WIDTH, scale=narrow),
                "down": weights(4 * WIDTH, WIDTH, scale=wide / 2),
            }
            for _ in range(LAYERS)
        ],
        "norm": norm(),
        "logits": weights(WIDTH, vocabulary, scale=0.3 * narrow),
    }


def layer_norm(layer: Parameters, x: jax.Array) -> jax.Array:
    """Each position scaled to mean 0 and variance 1, then by learnt factors."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(x - mean), axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * layer["scale"] + layer["bias"]


def attention(layer: Parameters, x: jax.Array) -> jax.Array:
    """Causal self-attention."""
    batch, window, width = x.shape
    qkv = (x @ layer["qkv"]).reshape(batch, window, 3, HEADS, width // HEADS)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // HEADS).astype(np.float32)
    causal = jnp.tril(jnp.ones((window, window), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, window, width) @ layer["project"]


def transformer(parameters: Parameters, tokens: jax.Array) -> jax.Array:
    """Logits of the character that follows each position of `tokens` (batch, window)."""
    x = parameters["embedding"][tokens] + parameters["position"]
    for layer in parameters["layers"]:
        x = x + attention(layer, layer_norm(layer["norm1"], x))
        x = x + jax.nn.gelu(layer_norm(layer["norm2"], x) @ layer["up"]) @ layer["down"]
    return layer_norm(parameters["norm"], x) @ parameters["logits"]


def loss_of(parameters: Parameters, windows: jax.Array) -> jax.Array:
    """Mean cross entropy of every next character; `windows` are one longer than the model's."""
    log_probabilities = jax.nn.log_softmax(transformer(parameters, windows[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(log_probabilities, windows[:, 1:, None], axis=-1))


def train_step(
    parameters: Parameters, state: Any, step: jax.Array, windows: jax.Array
) -> tuple[Parameters, Any, jax.Array, jax.Array]:
    """One step of Adam on one batch; also counts the steps."""
    loss, gradients = jax.value_and_grad(loss_of)(parameters, windows)
    step = step + 1
    parameters, state = side_by_side.adam(parameters, state, gradients, step, LEARNING_RATE)
    return parameters, state, step, loss


def write_sample(parameters: Parameters, start: jax.Array, prompt_length: jax.Array, key: jax.Array) -> jax.Array:
    """Continues a window from `prompt_length` to its end, drawing each character from the model's distribution.

    The draw is the maximum of the logits with Gumbel noise; less noise than the model's own distribution has makes
    likelier text. All of it is one compiled loop.
    """
    noise = TEMPERATURE * jax.random.gumbel(key, (WINDOW, parameters["logits"].shape[-1]))

    def write_next(position: jax.Array, tokens: jax.Array) -> jax.Array:
        logits = transformer(parameters, tokens[None])[0, position - 1]
        return tokens.at[position].set(jnp.argmax(logits + noise[position]).astype(tokens.dtype))

    return jax.lax.fori_loop(prompt_length, WINDOW, write_next, start)


def train(run: side_by_side.Run, text: str, steps: int, every: int) -> str:
    """Trains from the start on the run's device and returns a sample; fills in the run's measurements."""
    characters = sorted(set(text))
    codes = {character: code for code, character in enumerate(characters)}
    tokens = np.array([codes[character] for character in text], np.int32)
    parameters = initial_parameters(len(characters))
    zeros = jax.tree.map(np.zeros_like, parameters)
    carry = jax.device_put((parameters, (zeros, zeros), np.float32(0)), run.device)
    choose = np.random.default_rng(SEED)

    def batch() -> jax.Array:
        starts = choose.integers(0, len(tokens) - WINDOW - 1, BATCH)
        return jax.device_put(np.stack([tokens[start : start + WINDOW + 1] for start in starts]), run.device)

    step = run.compile(train_step, *carry, batch(), donate=(0, 1, 2))
    print(f"\n{run.name}: compiled in {run.compile_seconds:.3f} s (after {run.lower_seconds:.3f} s of tracing in JAX)")
    losses = run.curves.setdefault("loss", [])
    for number in range(1, steps + 1):
        start = time.perf_counter()
        *carry, loss = step(*carry, batch())
        losses.append(float(loss))
        run.step_seconds.append(time.perf_counter() - start)
        if number == 1 or number % every == 0 or number == steps:
            print(f"  step {number:4d}  loss {losses[-1]:.4f}  {run.step_seconds[-1] * 1e3:.1f} ms/step")
    run.curves["final loss"] = [float(np.mean(losses[-AVERAGED_STEPS:]))]

    window = np.zeros(WINDOW, np.int32)
    window[: len(PROMPT)] = [codes[character] for character in PROMPT]
    inputs = jax.device_put((window, np.int32(len(PROMPT)), np.array([0, SEED], np.uint32)), run.device)
    sample = np.asarray(jax.jit(write_sample)(carry[0], *inputs))
    return "".join(characters[code] for code in sample)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the example; returns its exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    side_by_side.add_arguments(parser)
    parser.add_argument("--steps", type=int, default=300, help="training steps (default: %(default)s)")
    parser.add_argument(
        "--every", type=int, default=25, help="steps from one progress line to the next (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    if options.steps < 1 or options.every < 1:
        parser.error("--steps and --every must be at least 1")

    runs = side_by_side.open_platforms(options.platform, not options.no_reference)
    text = load_text()
    samples = {}
    for run in runs:
        samples[run.name] = train(run, text, options.steps, options.every)
        print(f"  sample: {samples[run.name]!r}")
    side_by_side.print_table(runs, [(f"loss (last {AVERAGED_STEPS})", "final loss")])
    loss = runs[0].curves["final loss"][0]
    passed = loss < REQUIRED_LOSS
    side_by_side.write_json(
        options.json, runs, example="transformer", required_loss=REQUIRED_LOSS, passed=passed, samples=samples
    )
    print(f"loss on {runs[0].name}: {loss:.4f}, required below {REQUIRED_LOSS}: {'ok' if passed else 'FAILED'}")
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
