"""A JAX program with nothing of Treadle in it; clean_venv_test runs it with JAX_PLATFORMS=treadle."""

import jax
import jax.numpy as jnp
import numpy as np

assert jax.devices()[0].device_kind == "Treadle CPU", jax.devices()


@jax.jit
def loss(weights: jax.Array, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    """A linear model's squared error."""
    return jnp.mean((inputs @ weights - targets) ** 2)


rows = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
truth = np.array([1.0, -2.0, 0.5], dtype=np.float32)
fit = jnp.zeros(3)
step = jax.jit(lambda weights: weights - 0.1 * jax.grad(loss)(weights, rows, rows @ truth))
for _ in range(200):
    fit = step(fit)
np.testing.assert_allclose(fit, truth, atol=1e-3)
print("fitted on", jax.devices()[0])
