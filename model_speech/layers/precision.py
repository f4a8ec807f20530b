"""Mixed precision on a CPU: reduced precision for matrix products and convolutions, else float32."""

from collections.abc import Iterator
from contextlib import contextmanager

import keras


@contextmanager
def float32_except_products() -> Iterator[keras.DTypePolicy]:
    """Inside the block, layers are built for float32; the yielded policy is the global one, for products.

    A CPU that multiplies bfloat16 (AVX512_BF16, AMX) computes a product twice as fast as in float32,
    but a sum, a normalisation or a depthwise convolution more slowly: it converts each value.
    """
    products = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float32")
    try:
        yield products
    finally:
        keras.config.set_dtype_policy(products)
