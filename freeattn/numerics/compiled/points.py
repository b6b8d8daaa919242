"""Kernels over points: what `CompiledEquation` calls, one after another, nothing shared between points."""

from __future__ import annotations

from typing import Any

import numpy as np

from freeattn.numerics.compiled.algebra import decomposed, substituted
from freeattn.numerics.compiled.kernels import (
    evaluate, in_cone, increasing, inverses_at, jacobian, natural_sizes, newton, output_bound, rates,
    read_output, tangent, workspace,
)
from freeattn.numerics.compiled.scalars import kernel, modulus, scaled
from freeattn.numerics.trace_equation import EPSILON

__all__ = [
    "bilinears", "cones", "errors", "increases", "inverted", "newtons", "outputs", "rated", "residuals", "sized",
    "tangents",
]


@kernel
def inverted(t: Any, u: Any, z: Any, g: Any) -> None:
    """g ← the matrices G at u."""
    w = workspace(t, u[0])
    for k in range(len(z)):
        inverses_at(t, u[k], z[k], w)
        g[k] = w.g


@kernel
def residuals(t: Any, u: Any, z: Any, g: Any, phi: Any, residual: Any) -> None:
    """g, phi, residual ← G, Φ and |Φ − u|/B at u."""
    w = workspace(t, u[0])
    for k in range(len(z)):
        residual[k] = evaluate(t, u[k], z[k], w)
        g[k], phi[k] = w.g, w.phi


@kernel
def newtons(t: Any, start: Any, z: Any, found: Any, residual: Any) -> None:
    """found, residual ← the best iterates of Newton's method, and theirs."""
    w = workspace(t, start[0])
    for k in range(len(z)):
        residual[k] = newton(t, start[k], z[k], w, found[k])


@kernel
def cones(t: Any, u: Any, z: Any, good: Any) -> None:
    """good ← whether the solutions u are in the cone."""
    w = workspace(t, u[0])
    for k in range(len(z)):
        inverses_at(t, u[k], z[k], w)
        good[k] = in_cone(t, w)


@kernel
def increases(t: Any, u: Any, z: Any, good: Any) -> None:
    """good ← whether the traces of the real solutions u increase."""
    w = workspace(t, u[0])
    for k in range(len(z)):
        inverses_at(t, u[k], z[k], w)
        good[k] = increasing(t, w)


@kernel
def _taken(w: Any, g: Any) -> None:
    """G and |G|, from matrices."""
    w.g[:] = g
    for m in range(len(g)):
        w.large[m] = modulus(g[m])


@kernel
def tangents(t: Any, g: Any, found: Any) -> None:
    """found ← du/dz, from matrices."""
    w = workspace(t, found[0])
    for k in range(len(g)):
        _taken(w, g[k])
        tangent(t, w)
        found[k] = w.right


@kernel
def rated(t: Any, g: Any, u: Any, found: Any) -> None:
    """found ← dG/dz, from matrices; u only tells the number of unknowns."""
    w = workspace(t, u[0])
    for k in range(len(g)):
        _taken(w, g[k])
        rates(t, w)
        found[k] = w.a


@kernel
def sized(t: Any, g: Any, u: Any, found: Any) -> None:
    """found ← natural sizes, from matrices."""
    w = workspace(t, u[0])
    for k in range(len(g)):
        _taken(w, g[k])
        natural_sizes(t, w)
        found[k] = w.sizes


@kernel
def bilinears(t: Any, left: Any, right: Any, found: Any) -> None:
    """found ← the reads of L·E_e·R."""
    found[:] = 0.0
    for k in range(len(left)):
        for i in range(len(t.products_value)):
            product = left[k, t.products[i, 2]] * right[k, t.products[i, 3]]
            found[k, t.products[i, 0], t.products[i, 1]] += scaled(product, t.products_value[i])


@kernel
def outputs(t: Any, g: Any, u: Any, found: Any) -> None:
    """found ← m, from matrices."""
    w = workspace(t, u[0])
    for k in range(len(g)):
        w.g[:] = g[k]
        found[k] = read_output(t, w)


@kernel
def errors(t: Any, u: Any, z: Any, found: Any) -> None:
    """found ← how far off m may be by rounding: ε·B through the inverse Jacobian, and through the last inverses."""
    w = workspace(t, u[0])
    count = len(u[0])
    shift = np.empty(count)
    for k in range(len(z)):
        evaluate(t, u[k], z[k], w)
        jacobian(t, w)
        shift[:] = 0.0 if decomposed(w.matrix, w.order) else np.inf
        for e in range(count):
            w.right[:] = 0.0
            w.right[e] = 1.0
            substituted(w.matrix, w.order, w.right)
            for i in range(count):
                shift[i] += modulus(w.right[i]) * EPSILON * w.bound[e] / w.sizes[e]
        for e in range(count):
            shift[e] *= w.sizes[e]
        found[k] = output_bound(t, w, shift)
        if not found[k] < np.inf:
            found[k] = np.inf
