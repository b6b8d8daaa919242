"""Proofs that a root exists, is unique, and is the physical one.

At a point ũ with residual F(ũ) and a preconditioner R ≈ F'(ũ)⁻¹, the map u ↦ u − RF(u) is a contraction on a
polydisc around ũ when ω + κρ ≤ ρ (|RF(ũ)| ≤ ω·size, |1 − RF'|·size ≤ κ·size over the polydisc of radii ρ·size). Its
only fixed point there obeys |u − ũ| ≤ ω/(1 − κ)·size, and one more application of the map gives twice the digits. The
mathematics, with the theorem that decides the branch, is in docs/certificates.md.
"""

from __future__ import annotations

from math import ldexp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import CertificationError
from freeattn.numerics.array_balls import TINY, Ball, about, product, slack, total
from freeattn.numerics.exact_traces import Dyadic, ExactPoint, ExactTraces, Pair, Residual, down
from freeattn.numerics.trace_balls import Contraction, TraceBalls, contraction, solution
from freeattn.numerics.trace_equation import EPSILON

__all__ = [
    "NARROWEST", "NOT_A_ROOT", "ROUNDING", "WIDER", "WIDTHS", "Root", "System", "Value", "correction",
    "disturbance_of", "in_cone", "increasing", "on_grid", "preconditioner", "prove", "refine", "value_of",
]

Numbers = NDArray[Any]
Real = NDArray[np.float64]

NOT_A_ROOT = 1e-6  # a correction larger than this, relative, says that the start is no root
WIDER = 8.0  # the polydisc over the first correction
NARROWEST = 1e-15  # relative radius of the polydisc
ROUNDING = 0.5 * EPSILON  # of the sizes of unknowns: what residuals in doubles are off by, typically
_FINEST = 1000  # a power of two that doubles still hold
WIDTHS = (1.0, 16.0)  # of the polydisc, tried in turn


class System(NamedTuple):
    """One equation: exact, and in balls. `width` bounds, relative, how far any true weight, and z itself, may be from
    what `exact` takes; it is far below the rounding of doubles."""

    exact: ExactTraces
    balls: TraceBalls
    width: float


class Root(NamedTuple):
    """A root that exists, alone in a polydisc around a solution in doubles; the exact `point`, which Newton's method
    moves, is in it, `moved` or less from its centre."""

    point: ExactPoint
    moved: Real
    residual: Residual
    disturbed: Real
    proof: Contraction
    polydisc: Ball
    matrices: Ball
    slope_of_output: Ball

    @property
    def reach(self) -> Real:
        """Bound of the distance of the root from the point."""
        omega = correction(self.proof, self.residual.values, self.residual.errors + self.disturbed[:-1])
        return omega / (1 - self.proof.share) * self.proof.size


class Value(NamedTuple):
    """m within `radius` of a midpoint."""

    middle: Dyadic
    radius: float


@np.errstate(all="ignore")  # what is not finite fails every comparison below
def prove(system: System, start: Numbers, z: Pair) -> Root:
    """Existence and uniqueness of a root next to a solution in doubles (real ones among real numbers).

    Raises:
        CertificationError: when the start is no root, or the contraction is not proved.
    """
    balls, exact, place = system.balls, system.exact, system.exact.dyadic(z)
    number = complex(down(place.x, place.bits), down(place.y, place.bits))
    middle = number if np.iscomplexobj(start) else number.real
    if not np.isfinite(start).all():
        raise CertificationError("the start is not a root: it is not finite")
    near = balls.approximate(start, middle)
    size = balls.sizes(near)
    if not (np.isfinite(near).all() and np.isfinite(size).all()):
        raise CertificationError("the start is not a root: a matrix is singular there")
    bits = exact.grid(size)
    start = on_grid(start, bits)
    inverse = preconditioner(np.eye(balls.count) - balls.derivative(near), size, size)
    first = float(np.max(np.abs(inverse @ (start - balls.values(near)[:-1])) / size, initial=0.0))
    if not first < NOT_A_ROOT:
        raise CertificationError(f"the start is not a root: its relative correction is {first:.3g}")
    first += ROUNDING * float(np.max(np.abs(inverse) @ size / size, initial=0.0))
    point = exact.point(start, place, near, bits)
    for share in WIDTHS:
        wide = share * (WIDER * first + NARROWEST)
        polydisc = Ball(start, wide * size * (1 + slack(1)))
        matrices = balls.inverses(polydisc, about(np.asarray(middle)), near)
        jacobian, slope = balls.jacobian(matrices)
        proof = contraction(jacobian, inverse, size)
        disturbed = _disturbance(system, matrices, polydisc, abs(number))
        residual = exact.residual(point, matrices)
        omega = correction(proof, residual.values, residual.errors + disturbed[:-1])
        if omega <= (1 - proof.share) * wide * (1 - slack(1)):
            return Root(point, np.zeros(len(size)), residual, disturbed, proof, polydisc, matrices, slope)
    raise CertificationError("Newton's map is not proved to map the neighbourhood of the root into itself")


def on_grid(values: Numbers, bits: int) -> Numbers:
    """Doubles cut off to multiples of 2^−bits."""
    grid = ldexp(1.0, -min(bits, _FINEST))
    if np.iscomplexobj(values):
        return on_grid(values.real, bits) + 1j * on_grid(values.imag, bits)
    return np.asarray(values - np.fmod(values, grid))


def preconditioner(jacobian: Numbers, size: Real, rows: Real) -> Numbers:
    """An approximate inverse, taken in units of the sizes of unknowns and equations."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(np.linalg.inv(jacobian * (size / rows[:, None])) * (size[:, None] / rows))
    except np.linalg.LinAlgError:
        raise CertificationError("the Jacobian is singular at the start") from None


def correction(proof: Contraction, residual: Numbers, errors: Real) -> float:
    """ω: a bound of |RF| in units of `size`, F being the residual up to errors."""
    terms, moduli = slack(len(residual)), np.abs(proof.inverse)
    size = np.abs(proof.inverse @ residual) + moduli @ (terms * np.abs(residual) + errors)
    return float(np.max(size / proof.size, initial=0.0)) * (1 + terms)


def _disturbance(system: System, matrices: Ball, u: Ball, z: float) -> Real:
    """How far Φ and m (last entry) of the true weights may be from those of their centres, anywhere in the polydisc.

    Relative changes w of all weights and of z move a matrix A by at most w|A|, |A| the sum of the moduli of its terms,
    hence its inverse by w|G||A||G|, both inverses being in the ball; a coefficient of a read moves the value by w.
    """
    size = matrices.size
    return disturbance_of(system, size @ system.balls.moduli(u.size, z) @ size + size)


def disturbance_of(system: System, moved: Real) -> Real:
    """The same from bounds of the inverses that a relative change of one w moves, in units of w."""
    return np.asarray(system.balls.bounds(moved) * (4 * system.width * (1 + slack(99))) + TINY)


def refine(system: System, root: Root) -> Root:
    """The same root with a point that Newton's method has moved.

    Raises:
        CertificationError: when the point would leave the polydisc.
    """
    step, near = -(root.proof.inverse @ root.residual.values), root.matrices.middle
    moved = (root.moved + np.abs(step) + ldexp(2.0, -root.point.bits)) * (1 + slack(2))
    if not np.all(moved <= root.polydisc.radius):
        raise CertificationError("Newton's method leaves the neighbourhood that was proved")
    inverses = root.residual.correction + near @ system.balls.changes(step) @ near
    point = system.exact.moved(root.point, step, inverses)
    return root._replace(point=point, moved=moved, residual=system.exact.residual(point, root.matrices))


def value_of(root: Root) -> Value:
    """m at the root: m(ũ) and ∂m/∂u over the polydisc times u − ũ = −RF(ũ) + K·reach."""
    values, terms, moduli = root.residual.values, slack(len(root.residual.values)), np.abs(root.proof.inverse)
    step = -(root.proof.inverse @ values)
    error = moduli @ (terms * np.abs(values) + root.residual.errors + root.disturbed[:-1])
    error += root.proof.defect @ root.reach
    slope = root.slope_of_output
    radius = slope.size @ error + (slope.radius + terms * np.abs(slope.middle)) @ np.abs(step)
    middle, rest = root.residual.output.plus(complex((slope.middle @ step)[0]), root.residual.output_error)
    return Value(middle, float(radius[0] + root.disturbed[-1] + rest) * (1 + terms))


# The branch ----------------------------------------------------------------------------------------------------------


def in_cone(system: System, root: Root) -> bool:
    """Whether all matrices of traces have a positive definite imaginary part, proved."""
    return system.balls.definite(Ball(root.matrices.middle.imag, root.matrices.radius))


def increasing(system: System, root: Root) -> bool:
    """Whether all matrices of traces of a real root have a positive definite derivative in z, proved."""
    balls, g = system.balls, root.matrices
    slope = balls.slope(g)
    tangent = solution(root.proof, Ball(slope.middle[:-1], slope.radius[:-1]))
    change = total(balls.energy(tangent), Ball(balls.point, np.zeros(balls.shape)))
    return balls.definite(product(product(g, change), g))
