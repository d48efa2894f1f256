import os
os.environ["JAX_PLATFORMS"] = "purlin,cpu"  # Purlin, by the wheel purlin_jax, and jaxlib's own devices beside it
import jax
import jax.numpy as jnp
slope = jax.jit(jax.grad(lambda x: jnp.sum(jnp.tanh(x) ** 2)))
print(jax.devices()[0].client.platform_version, slope(jnp.arange(3.0)))
