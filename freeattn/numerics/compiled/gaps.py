"""Points of a gap, all in one pass: Newton's method, whether the root is the physical one, m, and its rounding.

Everything is real there: one real inverse of the Jacobian serves the derivatives and the bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from freeattn.numerics.compiled.algebra import real_inverse
from freeattn.numerics.compiled.kernels import (
    ABSOLUTE,
    BOUND,
    RIGHT,
    SIZES,
    changed,
    increasing,
    jacobian,
    newton,
    output,
    output_bound,
    slope,
    workspace,
)
from freeattn.numerics.compiled.scalars import kernel
from freeattn.numerics.trace_equation import EPSILON, NEWTON_STEPS, TOLERANCE

__all__ = ["gap_values"]


@kernel
def gap_values(t: Any, start: Any, x: Any, m: Any, error: Any, good: Any) -> None:
    """m, error, good ← m at real points, how far off it may be by rounding, whether the root is the physical one."""
    count = start.shape[1]
    w, kept = workspace(t, count), np.empty(count, np.complex128)
    matrix, inverse, moved = np.empty((count, count)), np.empty((count, count)), np.empty(count)
    shift, bound, sizes, right = w.sizes[ABSOLUTE], w.sizes[BOUND], w.sizes[SIZES], w.unknowns[RIGHT]
    for k in range(len(x)):
        residual = newton(t, start[k], complex(x[k], 0.0), NEWTON_STEPS, w, kept)
        m[k], error[k], good[k] = output(t, w).real, np.inf, False
        if not residual <= TOLERANCE:
            continue
        jacobian(t, w)
        for e in range(count):
            for i in range(count):
                matrix[e, i] = w.matrix[e, i].real
        if not real_inverse(matrix, inverse):
            continue
        slope(t, w)
        for e in range(count):
            moved[e] = right[e].real / sizes[e]
        for e in range(count):
            total = shift[e] = 0.0
            for i in range(count):
                total += inverse[e, i] * moved[i]
                shift[e] += abs(inverse[e, i]) * EPSILON * bound[i] / sizes[i]
            right[e] = total * sizes[e]
            shift[e] *= sizes[e]
        changed(t, w)
        good[k] = increasing(t, w)
        error[k] = output_bound(t, w)
