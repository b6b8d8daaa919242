"""Proofs that a root exists, is unique, and is the physical one.

At a point ũ with exact residual F(ũ) and a preconditioner R ≈ F'(ũ)⁻¹, the map u ↦ u − RF(u) is a contraction on a
polydisc around ũ when ω + κρ ≤ ρ (|RF(ũ)| ≤ ω·size, |1 − RF'|·size ≤ κ·size over the polydisc of radii ρ·size). Its
only fixed point there obeys |u − ũ| ≤ ω/(1 − κ)·size, and one more application of the map gives twice the digits. The
mathematics, with the theorem that decides the branch, is in docs/certificates.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from freeattn.errors import CertificationError
from freeattn.numerics.array_balls import Ball, about, positive_definite, product, slack
from freeattn.numerics.enclosures import double_of
from freeattn.numerics.exact_traces import ExactTraces, Pair
from freeattn.numerics.trace_balls import Contraction, TraceBalls, contraction, solution
from freeattn.numerics.trace_equation import TraceEquation

__all__ = [
    "NARROWEST", "NOT_A_ROOT", "WIDER", "Root", "System", "Value", "correction", "disturbance_of", "in_cone",
    "increasing", "preconditioner", "prove", "refine", "value_of",
]

Numbers = NDArray[Any]
Real = NDArray[np.float64]

NOT_A_ROOT = 1e-6  # a correction larger than this, relative, says that the start is no root
WIDER = 8.0  # the polydisc over the first correction
NARROWEST = 1e-15  # relative radius of the polydisc
_ROUNDS = 40


class System(NamedTuple):
    """One equation: in doubles for starts, exact, and in balls. `width` bounds, relative, how far any true weight, and
    z itself, may be from what `exact` takes; it is far below the rounding of doubles."""

    equation: TraceEquation
    exact: ExactTraces
    balls: TraceBalls
    width: float


class Root(NamedTuple):
    """A root that exists, alone in a polydisc around `origin`: |u − centre| ≤ reach, the centre being in it too."""

    origin: list[Pair]
    centre: list[Pair]
    residual: Numbers
    output: Pair
    disturbed: Real
    proof: Contraction
    polydisc: Ball
    matrices: list[Ball]
    slope_of_output: Ball

    @property
    def reach(self) -> Real:
        """Bound of |u − centre|."""
        return correction(self.proof, self.residual, self.disturbed) / (1 - self.proof.share) * self.proof.size


class Value(NamedTuple):
    """m within `radius` of an exact midpoint."""

    middle: Pair
    radius: float


def prove(system: System, start: Numbers, z: Pair) -> Root:
    """Existence and uniqueness of a root next to a solution in doubles (real ones among real numbers).

    Raises:
        CertificationError: when the start is no root, or the contraction is not proved.
    """
    real = not np.iscomplexobj(start)
    place = np.array([double_of(z[0]) if real else complex(double_of(z[0]), double_of(z[1]))])
    centre = [(fmpq(*float(v.real).as_integer_ratio()), fmpq(*float(v.imag).as_integer_ratio())) for v in start]
    exact, output = system.exact.residual(centre, z, real)
    residual = _doubles(exact, real)
    rough = system.equation.matrices(start[None], place)
    size = np.asarray(system.equation.sizes(rough)[0])
    inverse = preconditioner(system.equation.jacobian(rough)[0], size, size)
    first = float(np.max(np.abs(inverse @ residual) / size, initial=0.0))
    if not first < NOT_A_ROOT:
        raise CertificationError(f"the start is not a root: its relative correction is {first:.3g}")
    wide = WIDER * first + NARROWEST
    polydisc, point = Ball(start, wide * size * (1 + slack(1))), about(place[0])
    matrices = system.balls.inverses(polydisc, point, [g[0] for g in rough])
    jacobian, slope = system.balls.jacobian(matrices)
    proof = contraction(jacobian, inverse, size)
    disturbed = _disturbance(system, matrices, polydisc, point)
    if not correction(proof, residual, disturbed[: len(size)]) <= (1 - proof.share) * wide * (1 - slack(1)):
        raise CertificationError("Newton's map is not proved to map the neighbourhood of the root into itself")
    return Root(centre, centre, residual, output, disturbed, proof, polydisc, matrices, slope)


def preconditioner(jacobian: Numbers, size: Real, rows: Real) -> Numbers:
    """An approximate inverse, taken in units of the sizes of unknowns and equations."""
    try:
        with np.errstate(all="ignore"):
            return np.asarray(np.linalg.inv(jacobian * (size / rows[:, None])) * (size[:, None] / rows))
    except np.linalg.LinAlgError:
        raise CertificationError("the Jacobian is singular at the start") from None


def correction(proof: Contraction, residual: Numbers, disturbed: Real) -> float:
    """ω: a bound of |RF| in units of `size`, for the true weights too."""
    terms, moduli = slack(len(residual)), np.abs(proof.inverse)
    size = np.abs(proof.inverse @ residual) + moduli @ (terms * np.abs(residual) + disturbed[: len(residual)])
    return float(np.max(size / proof.size, initial=0.0)) * (1 + terms)


def _disturbance(system: System, matrices: list[Ball], u: Ball, z: Ball) -> Real:
    """How far Φ(ũ) and m(ũ) (last entry) of the true weights may be from those of their centres.

    Relative changes w of all weights and of z move a matrix A by at most 3w|A|, |A| the sum of the moduli of its
    terms, hence its inverse by 3w|G||A||G|; a coefficient of a read moves the value by w.
    """
    moved = []
    for ball, sector in zip(matrices, system.balls.sectors, strict=True):
        terms = np.abs(sector.constant) + float(np.abs(z.middle)) * sector.point + system.balls.moduli(sector, u.middle)
        moved.append(ball.size @ terms @ ball.size + ball.size)
    return disturbance_of(system, moved)


def disturbance_of(system: System, moved: list[Real]) -> Real:
    """The same from bounds of the inverses that a relative change of one w moves, in units of w."""
    phi, output = system.balls.bounds(moved)
    return np.asarray(np.concatenate([phi, output]) * (4 * system.width * (1 + slack(99))))


def refine(system: System, root: Root, z: Pair) -> Root:
    """The same root with a centre that Newton's method has moved, exactly.

    Raises:
        CertificationError: when the centre would leave the polydisc.
    """
    real = not np.iscomplexobj(root.residual)
    step = root.proof.inverse @ root.residual
    centre = [
        (a - fmpq(*float(s.real).as_integer_ratio()), b - fmpq(*float(s.imag).as_integer_ratio()))
        for (a, b), s in zip(root.centre, step, strict=True)
    ]
    moved = _doubles([(a - c, b - d) for (a, b), (c, d) in zip(centre, root.origin, strict=True)], real)
    if not np.all(np.abs(moved) * (1 + slack(1)) <= root.polydisc.radius):
        raise CertificationError("Newton's method leaves the neighbourhood that was proved")
    exact, output = system.exact.residual(centre, z, real)
    return root._replace(centre=centre, residual=_doubles(exact, real), output=output)


def value_of(root: Root) -> Value:
    """m at the root: m(ũ) exactly, and ∂m/∂u over the polydisc times u − ũ = −RF(ũ) + K·reach."""
    terms, moduli = slack(len(root.residual)), np.abs(root.proof.inverse)
    step = -(root.proof.inverse @ root.residual)
    error = moduli @ (terms * np.abs(root.residual) + root.disturbed[:-1]) + root.proof.defect @ root.reach
    slope = root.slope_of_output
    change = (slope.middle @ step)[0]
    radius = slope.size @ error + (slope.radius + terms * np.abs(slope.middle)) @ np.abs(step)
    middle = tuple(
        part + fmpq(*float(shift).as_integer_ratio())
        for part, shift in zip(root.output, (change.real, change.imag), strict=True)
    )
    return Value((middle[0], middle[1]), float(radius[0] + root.disturbed[-1]) * (1 + terms))


# The branch ----------------------------------------------------------------------------------------------------------


def in_cone(system: System, root: Root) -> bool:
    """Whether all matrices of traces have a positive definite imaginary part, proved."""
    return all(positive_definite(Ball(g.middle.imag, g.radius)) for g in system.balls.symmetric(root.matrices))


def increasing(system: System, root: Root) -> bool:
    """Whether all matrices of traces of a real root have a positive definite derivative in z, proved."""
    tangent = solution(root.proof, system.balls.slope(root.matrices))
    rates = []
    for g, sector, energy in zip(root.matrices, system.balls.sectors, system.balls.energy(tangent), strict=True):
        change = Ball(sector.point + energy.middle, energy.radius + slack(1) * (sector.point + np.abs(energy.middle)))
        rates.append(product(product(g, change), g))
    return all(positive_definite(rate) for rate in system.balls.symmetric(rates))


def _doubles(pairs: Sequence[Pair], real: bool) -> Numbers:
    if real:
        return np.array([double_of(x) for x, _ in pairs])
    return np.array([complex(double_of(x), double_of(y)) for x, y in pairs])
