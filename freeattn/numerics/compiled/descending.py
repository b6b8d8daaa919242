"""The physical solution in the upper half-plane, point by point: what `TraceEquation.averaged` and `.follow` do."""

from __future__ import annotations

from typing import Any

import numpy as np

from freeattn.numerics.compiled.kernels import (
    evaluate, in_cone, inverses_at, natural_sizes, newton, tangent, workspace,
)
from freeattn.numerics.compiled.scalars import kernel, modulus, scaled
from freeattn.numerics.trace_equation import (
    AVERAGED_STEPS, FIRST_RATIO, HOPELESS, LEAST_RATIO, NEWTON_BASIN, ROUNDS, TOLERANCE,
)

__all__ = ["averages", "descents"]


@kernel
def averages(t: Any, z: Any, found: Any) -> None:
    """found ← averaged iteration from C⁻¹, until a step is small."""
    w = workspace(t, found[0])
    for k in range(len(z)):
        u = found[k]
        u[:] = 0.0
        for _ in range(AVERAGED_STEPS):
            evaluate(t, u, z[k], w)
            natural_sizes(t, w)
            close = True
            for e in range(len(u)):
                close &= modulus(w.phi[e] - u[e]) <= NEWTON_BASIN * w.sizes[e]
                u[e] = scaled(u[e] + w.phi[e], 0.5)
            if close:
                break


@kernel
def _step(t: Any, u: Any, here: complex, there: complex, w: Any, moved: Any) -> bool:
    """moved ← predictor and Newton from here to there; returns whether the result is physical."""
    inverses_at(t, u, here, w)
    tangent(t, w)
    for e in range(len(u)):
        w.current[e] = u[e] + w.right[e] * (there - here)
    if not newton(t, w.current, there, w, moved) <= TOLERANCE:
        return False
    inverses_at(t, moved, there, w)
    return in_cone(t, w)


@kernel
def descents(t: Any, start: Any, points: Any, u: Any, reached: Any) -> None:
    """u, reached ← the solutions u at `start` followed down to `points` (same real parts)."""
    w = workspace(t, u[0])
    moved = np.empty_like(u[0])
    for k in range(len(points)):
        x, target, height, ratio = points[k].real, points[k].imag, start[k].imag, FIRST_RATIO
        for _ in range(ROUNDS):
            if not (height > target and ratio < HOPELESS):
                break
            following = max(height * ratio, target)
            if _step(t, u[k], complex(x, height), complex(x, following), w, moved):
                u[k] = moved
                height, ratio = following, max(ratio**1.5, LEAST_RATIO)
            else:
                ratio = np.sqrt(ratio)
        reached[k] = height <= target
