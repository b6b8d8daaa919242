"""Kernels over points: what `CompiledEquation` calls. Points are treated one after another, nothing is shared.

Compiling one costs some seconds: hence few of them, each with several results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from freeattn.numerics.compiled.algebra import decomposed, inverted
from freeattn.numerics.compiled.kernels import (
    ABSOLUTE,
    BOUND,
    CHANGE,
    CURRENT,
    LARGE,
    PHI,
    RIGHT,
    SIZES,
    G,
    evaluate,
    in_cone,
    increasing,
    jacobian,
    newton,
    output_bound,
    rates,
    sandwiched,
    tangent,
    workspace,
)
from freeattn.numerics.compiled.packed import ENERGY, PRODUCTS, SLOPES
from freeattn.numerics.compiled.scalars import kernel, modulus, scaled
from freeattn.numerics.trace_equation import (
    EPSILON,
    FIRST_RATIO,
    HOPELESS,
    LEAST_RATIO,
    NEWTON_BASIN,
    NEWTON_STEPS,
    ROUNDS,
    TOLERANCE,
)

__all__ = ["averages", "bilinears", "borders", "derivatives", "descents", "errors", "roots"]


@kernel
def roots(t: Any, start: Any, z: Any, steps: int, found: Any, residual: Any, g: Any, phi: Any, cone: Any) -> None:
    """Newton's method: found, residual, g, phi ← the best iterates, their residuals, matrices and Φ.

    cone ← whether they are in the cone.
    """
    w = workspace(t, start.shape[1])
    for k in range(len(z)):
        residual[k] = newton(t, start[k], z[k], steps, w, found[k])
        g[k], phi[k] = w.entries[G], w.unknowns[PHI]
        cone[k] = in_cone(t, w)


@kernel
def derivatives(t: Any, g: Any, sizes: Any, tangents: Any, changes: Any, rising: Any) -> None:
    """sizes, tangents, changes ← natural sizes of the unknowns, du/dz and dG/dz, from matrices.

    rising ← whether real parts of all matrices of traces have a positive definite derivative.
    """
    w = workspace(t, sizes.shape[1])
    for k in range(len(g)):
        for m in range(g.shape[1]):
            w.entries[G, m], w.moduli[LARGE, m] = g[k, m], modulus(g[k, m])
        rates(t, w)
        sizes[k], tangents[k], changes[k] = w.sizes[SIZES], w.unknowns[RIGHT], w.entries[CHANGE]
        rising[k] = increasing(t, w)


@kernel
def bilinears(t: Any, left: Any, right: Any, found: Any) -> None:
    """found ← the reads of L·E_e·R."""
    found[:] = 0.0
    for k in range(len(left)):
        for i in range(t.sections[PRODUCTS], t.sections[PRODUCTS + 1]):
            product = left[k, t.terms[i, 2]] * right[k, t.terms[i, 3]]
            found[k, t.terms[i, 0], t.terms[i, 1]] += scaled(product, t.values[i])


@kernel
def borders(t: Any, u: Any, x: float, phi: Any, gauge: Any, residual: Any, matrix: Any) -> None:
    """residual, matrix ← (F, F_u φ, ℓ·φ − 1) at one real point and its derivatives in (u, x, φ); matrix holds zeros."""
    w, count = workspace(t, len(u)), len(u)
    evaluate(t, u, complex(x, 0.0), w)
    g, turned = w.entries[G], w.entries[CHANGE]
    turned[:] = 0.0
    for i in range(t.sections[ENERGY], t.sections[ENERGY + 1]):
        turned[t.terms[i, 0]] += phi[t.terms[i, 1]] * t.values[i]
    sandwiched(t, w)
    for i in range(t.sections[PRODUCTS], t.sections[PRODUCTS + 1]):
        row, column, left, right = t.terms[i, 0], t.terms[i, 1], t.terms[i, 2], t.terms[i, 3]
        matrix[row, column] -= (g[left] * g[right]).real * t.values[i]
        matrix[count + row, column] -= (g[left] * turned[right] + turned[left] * g[right]).real * t.values[i]
    for i in range(t.sections[SLOPES], t.sections[SLOPES + 1]):
        row, left, right = t.terms[i, 0], t.terms[i, 1], t.terms[i, 2]
        matrix[row, count] -= (g[left] * g[right]).real * t.values[i]
        matrix[count + row, count] -= (g[left] * turned[right] + turned[left] * g[right]).real * t.values[i]
    residual[2 * count] = -1.0
    for e in range(count):
        matrix[e, e] += 1.0
        matrix[2 * count, count + 1 + e] = gauge[e]
        residual[2 * count] += gauge[e] * phi[e]
        residual[e], residual[count + e] = u[e].real - w.unknowns[PHI, e].real, 0.0
        for i in range(count):
            matrix[count + e, count + 1 + i] = matrix[e, i]
            residual[count + e] += matrix[e, i] * phi[i]


@kernel
def errors(t: Any, u: Any, z: Any, found: Any) -> None:
    """found ← how far off m may be by rounding: ε·B through the inverse Jacobian, and through the last inverses."""
    w = workspace(t, u.shape[1])
    shift, bound, sizes, inverse = w.sizes[ABSOLUTE], w.sizes[BOUND], w.sizes[SIZES], np.empty_like(w.matrix)
    for k in range(len(z)):
        evaluate(t, u[k], z[k], w)
        jacobian(t, w)
        regular = decomposed(w.matrix, w.order)
        inverted(w.matrix, w.order, inverse)
        for e in range(len(shift)):
            shift[e] = 0.0 if regular else np.inf
            for i in range(len(shift)):
                shift[e] += modulus(inverse[e, i]) * EPSILON * bound[i] / sizes[i]
            shift[e] *= sizes[e]
        found[k] = output_bound(t, w)


@kernel
def averages(t: Any, z: Any, steps: int, u: Any) -> None:
    """u ← averaged iteration from C⁻¹, until a step is small."""
    w = workspace(t, u.shape[1])
    phi, sizes = w.unknowns[PHI], w.sizes[SIZES]
    for k in range(len(z)):
        u[k] = 0.0
        for _ in range(steps):
            evaluate(t, u[k], z[k], w)
            jacobian(t, w)
            close = True
            for e in range(len(phi)):
                close &= modulus(phi[e] - u[k, e]) <= NEWTON_BASIN * sizes[e]
                u[k, e] = scaled(u[k, e] + phi[e], 0.5)
            if close:
                break


@kernel
def descents(t: Any, start: Any, points: Any, u: Any, reached: Any) -> None:
    """u, reached ← the solutions u at `start` followed down to `points` (same real parts)."""
    w = workspace(t, u.shape[1])
    right, moved, predicted = w.unknowns[RIGHT], np.empty(u.shape[1], np.complex128), w.unknowns[CURRENT]
    for k in range(len(points)):
        x, target, height, ratio = points[k].real, points[k].imag, start[k].imag, FIRST_RATIO
        evaluate(t, u[k], start[k], w)
        for _ in range(ROUNDS):
            if not (height > target and ratio < HOPELESS):
                break
            following = max(height * ratio, target)
            tangent(t, w)
            for e in range(len(moved)):
                predicted[e] = u[k, e] + right[e] * complex(0.0, following - height)
            residual = newton(t, predicted, complex(x, following), NEWTON_STEPS, w, moved)
            if residual <= TOLERANCE and in_cone(t, w):
                u[k] = moved
                height, ratio = following, max(ratio**1.5, LEAST_RATIO)
            else:
                evaluate(t, u[k], complex(x, height), w)
                ratio = np.sqrt(ratio)
        reached[k] = height <= target
