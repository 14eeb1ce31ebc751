"""Compiled programs that several files of tests run, and an argument for them."""

import numpy as np

from tests.capi.artifacts import Buffer, Program, elementwise

# Runs longer than what is run in the caller's thread, and says so.
SLOW = "for (volatile int r = 0; r < 30000000; ++r) {}"
SLOW_FLOPS = 10**10

ADD_ONE = Program((Buffer((4,)),), (Buffer((4,)),), elementwise("x[i] + 1", 4))
ADD_ONE_SLOWLY = Program((Buffer((4,)),), (Buffer((4,)),), SLOW + elementwise("x[i] + 1", 4), flops=SLOW_FLOPS)
SUM = Program((Buffer((2, 2)), Buffer((2, 2))), (Buffer((2, 2)),), elementwise("x[i] + y[i]", 4, 2))
DOUBLE_IN_PLACE = Program((Buffer((4,), donated=True),), (Buffer((4,), alias=0),), elementwise("x[i] * 2", 4))


def x4(client, device=0, **kwargs):
    """Four floats, 0 to 3, on a device."""
    return client.put(np.arange(4, dtype=np.float32), device=device, **kwargs)
