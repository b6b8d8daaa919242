"""One point of a Dyson equation: matrices, Φ and its rounding, derivatives, Newton's method, which root it is.

The formulas of `TraceEquation`, which has them for arrays of points. Two versions are unavoidable: an array language is
slow for few points, and the reference does without a compiler. `tests/numerics/test_compiled.py` compares them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from freeattn.numerics.compiled.algebra import decomposed, definite, invert, substituted
from freeattn.numerics.compiled.scalars import kernel, modulus, oriented, scaled
from freeattn.numerics.trace_equation import CONE, EPSILON, GOOD_ENOUGH, NEWTON_STEPS, TOLERANCE

__all__ = [
    "Work", "evaluate", "in_cone", "increasing", "inverses_at", "jacobian", "moduli_at", "natural_sizes", "newton",
    "output_bound", "rates", "read_output", "solve", "tangent", "workspace",
]


class Work(NamedTuple):
    """Arrays of one point: A, G, |G|, |A| (moduli of its terms), |G|·|A|, |u|; Φ, B, sizes; Jacobian, right-hand side,
    exchanged rows; scratch vectors of unknowns and of entries."""

    a: Any
    g: Any
    large: Any
    terms: Any
    half: Any
    absolute: Any
    phi: Any
    bound: Any
    sizes: Any
    matrix: Any
    right: Any
    order: Any
    current: Any
    means: Any


@kernel
def workspace(t: Any, u: Any) -> Any:
    """Arrays for points whose unknowns look like u."""
    count, entries, kind = len(u), len(t.constant), u.dtype
    return Work(
        np.empty(entries, kind), np.empty(entries, kind), np.empty(entries), np.empty(entries), np.empty(entries),
        np.empty(count), np.empty(count, kind), np.empty(count), np.empty(count), np.empty((count, count), kind),
        np.empty(count, kind), np.empty(count, np.int64), np.empty(count, kind), np.empty(entries, kind),
    )


@kernel
def inverses_at(t: Any, u: Any, z: Any, w: Any) -> None:
    """A, G and |G| at u."""
    for m in range(len(t.constant)):
        w.a[m] = t.constant[m] - scaled(z, t.point[m])
    for i in range(len(t.energy_value)):
        w.a[t.energy[i, 0]] -= scaled(u[t.energy[i, 1]], t.energy_value[i])
    for k in range(len(t.blocks)):
        start, size = t.blocks[k, 0], t.blocks[k, 1]
        invert(w.a[start : start + size * size], w.g[start : start + size * size], size)
    for m in range(len(t.constant)):
        w.large[m] = modulus(w.g[m])


@kernel
def moduli_at(t: Any, u: Any, z: Any, w: Any) -> None:
    """|A|, the sums of the moduli of its terms, and |G|·|A|."""
    for e in range(len(u)):
        w.absolute[e] = modulus(u[e])
    height = modulus(z)
    for m in range(len(t.constant)):
        w.terms[m] = abs(t.constant[m]) + height * abs(t.point[m])
    for i in range(len(t.energy_value)):
        w.terms[t.energy[i, 0]] += w.absolute[t.energy[i, 1]] * abs(t.energy_value[i])
    _left_product(t, w)


@kernel
def _left_product(t: Any, w: Any) -> None:
    """half ← |G|·terms."""
    for k in range(len(t.blocks)):
        start, size = t.blocks[k, 0], t.blocks[k, 1]
        for p in range(size):
            row = start + p * size
            for q in range(size):
                total = 0.0
                for j in range(size):
                    total += w.large[row + j] * w.terms[start + j * size + q]
                w.half[row + q] = total


@kernel
def _right_entry(w: Any, row: int, column: int, size: int) -> float:
    """The entry of |G|·terms·|G| at a place."""
    total = 0.0
    for j in range(size):
        total += w.half[row + j] * w.large[column + j * size]
    return total


@kernel
def evaluate(t: Any, u: Any, z: Any, w: Any) -> float:
    """G, Φ and B at u; returns |Φ − u|/B, the largest, or inf."""
    inverses_at(t, u, z, w)
    moduli_at(t, u, z, w)
    w.phi[:] = 0.0
    w.bound[:] = 0.0
    for i in range(len(t.reads_value)):
        e = t.reads[i, 0]
        w.phi[e] += scaled(w.g[t.reads[i, 1]], t.reads_value[i])
        w.bound[e] += abs(t.reads_value[i]) * _right_entry(w, t.reads[i, 2], t.reads[i, 3], t.reads[i, 4])
    worst = 0.0
    for e in range(len(u)):
        distance = modulus(w.phi[e] - u[e])
        if distance != 0:
            share = distance / w.bound[e]
            if not share < np.inf:
                return np.inf
            worst = max(worst, share)
    return worst


@kernel
def read_output(t: Any, w: Any) -> Any:
    """m, from G."""
    total = scaled(w.g[0], 0.0)
    for i in range(len(t.output_value)):
        total += scaled(w.g[t.output[i, 0]], t.output_value[i])
    return total


@kernel
def natural_sizes(t: Any, w: Any) -> None:
    """The natural size of each unknown, from |G|."""
    w.sizes[:] = 0.0
    for i in range(len(t.reads_value)):
        large = w.large[t.reads[i, 1]]
        geometric = np.sqrt(w.large[t.reads[i, 5]]) * np.sqrt(w.large[t.reads[i, 6]])
        w.sizes[t.reads[i, 0]] += abs(t.reads_value[i]) * max(large, geometric)
    for e in range(len(w.sizes)):
        if w.sizes[e] == 0:
            w.sizes[e] = 1.0


@kernel
def jacobian(t: Any, w: Any) -> None:
    """matrix ← 1 − ∂Φ/∂u in natural units, sizes ← the units; from G."""
    natural_sizes(t, w)
    w.matrix[:, :] = 0.0
    for i in range(len(t.products_value)):
        product = w.g[t.products[i, 2]] * w.g[t.products[i, 3]]
        w.matrix[t.products[i, 0], t.products[i, 1]] -= scaled(product, t.products_value[i])
    for e in range(len(w.sizes)):
        w.matrix[e, e] += 1.0
        for i in range(len(w.sizes)):
            w.matrix[e, i] = scaled(w.matrix[e, i], w.sizes[i] / w.sizes[e])


@kernel
def solve(w: Any) -> None:
    """right ← the solution of Jacobian·solution = right; not-a-number where singular."""
    for e in range(len(w.sizes)):
        w.right[e] = scaled(w.right[e], 1 / w.sizes[e])
    if decomposed(w.matrix, w.order):
        substituted(w.matrix, w.order, w.right)
        for e in range(len(w.sizes)):
            w.right[e] = scaled(w.right[e], w.sizes[e])
    else:
        w.right[:] = np.nan


@kernel
def tangent(t: Any, w: Any) -> None:
    """right ← du/dz along the branch, from G."""
    jacobian(t, w)
    w.right[:] = 0.0
    for i in range(len(t.slopes_value)):
        w.right[t.slopes[i, 0]] += scaled(w.g[t.slopes[i, 1]] * w.g[t.slopes[i, 2]], t.slopes_value[i])
    solve(w)


@kernel
def newton(t: Any, start: Any, z: Any, w: Any, kept: Any) -> float:
    """Newton's method from the given start: the best iterate in `kept`; returns its residual."""
    best = np.inf
    kept[:] = start
    w.current[:] = start
    for step in range(NEWTON_STEPS):
        residual = evaluate(t, w.current, z, w)
        better = residual < best
        if better:
            kept[:] = w.current
            best = residual
        settled = best <= GOOD_ENOUGH or (best <= TOLERANCE and not better)
        if settled or not residual < np.inf or step == NEWTON_STEPS - 1:
            break
        jacobian(t, w)
        for e in range(len(start)):
            w.right[e] = w.phi[e] - w.current[e]
        solve(w)
        for e in range(len(start)):
            w.current[e] += w.right[e]
    return best


@kernel
def sandwiched(t: Any, w: Any) -> None:
    """a ← G·a in each sector, then a·G: of a change of the matrices A, that of their inverses."""
    for k in range(len(t.blocks)):
        start, size = t.blocks[k, 0], t.blocks[k, 1]
        end = start + size * size
        left, inner = w.g[start:end].reshape((size, size)), w.a[start:end].reshape((size, size))
        product = np.zeros_like(inner)
        for p in range(size):
            for j in range(size):
                for q in range(size):
                    product[p, q] += left[p, j] * inner[j, q]
        inner[:, :] = 0.0
        for p in range(size):
            for j in range(size):
                for q in range(size):
                    inner[p, q] += product[p, j] * left[j, q]


@kernel
def rates(t: Any, w: Any) -> None:
    """a ← dG/dz along the branch, from G."""
    tangent(t, w)
    for m in range(len(t.constant)):
        w.a[m] = t.point[m]
    for i in range(len(t.energy_value)):
        w.a[t.energy[i, 0]] += scaled(w.right[t.energy[i, 1]], t.energy_value[i])
    sandwiched(t, w)


@kernel
def _all_definite(t: Any, entries: Any, noise: float, w: Any) -> bool:
    """Whether the matrices of traces made of the given entries are definite: their imaginary parts if complex."""
    w.means[:] = 0.0
    for i in range(len(t.shares_value)):
        w.means[t.shares[i, 0]] += scaled(entries[t.shares[i, 1]], t.shares_value[i])
    for k in range(len(t.means)):
        start, size = t.means[k, 0], t.means[k, 1]
        if t.means[k, 2]:
            slack = 0.0
            square = w.half[start : start + size * size].reshape((size, size))
            for p in range(size):
                for q in range(size):
                    square[p, q] = oriented(w.means[start + p * size + q])
                slack = max(slack, noise * modulus(w.means[start + p * (size + 1)]) / square[p, p])
            if not definite(square, CONE + 100 * slack):
                return False
    return True


@kernel
def in_cone(t: Any, w: Any) -> bool:
    """Whether every matrix of traces has a positive definite imaginary part (to rounding), from G."""
    return _all_definite(t, w.g, EPSILON, w)


@kernel
def increasing(t: Any, w: Any) -> bool:
    """Whether every matrix of traces of a real solution has a positive definite derivative, from G."""
    rates(t, w)
    return _all_definite(t, w.a, 0.0, w)


@kernel
def output_bound(t: Any, w: Any, shift: Any) -> float:
    """How far off m is when each unknown is off by `shift` and the terms of A by ε; terms are overwritten."""
    for m in range(len(w.terms)):
        w.terms[m] *= EPSILON
    for i in range(len(t.energy_value)):
        w.terms[t.energy[i, 0]] += shift[t.energy[i, 1]] * abs(t.energy_value[i])
    _left_product(t, w)
    total = 0.0
    for i in range(len(t.output_value)):
        total += abs(t.output_value[i]) * _right_entry(w, t.output[i, 1], t.output[i, 2], t.output[i, 3])
    return total
