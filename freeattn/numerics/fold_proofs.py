"""Proofs that an edge exists: the bordered system of a fold, by the same contraction as `root_proofs`.

Unknowns are (u, x, φ), equations F(u, x) = 0, F_u φ = 0, ℓ·φ = 1. A root with regular derivative is a simple fold: with
s along φ the solutions near it are x = x₀ + cs² + …, u = u₀ + sφ + …, where

    F_u w + c F_x = −½ F_uu φφ,    ℓ·w = 0.

If every matrix of traces changes by a definite amount along φ, all of one sign, then on the side where s is imaginary
one of the two solutions is physical, with positive density, and on the other side one of the two real ones is.
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
from freeattn.numerics.folds import Fold, bordered_system, framed
from freeattn.numerics.root_proofs import (
    NARROWEST,
    NOT_A_ROOT,
    WIDER,
    System,
    correction,
    disturbance_of,
    preconditioner,
)
from freeattn.numerics.trace_balls import Contraction, contraction, solution

__all__ = ["ProvedFold", "prove_fold", "refine_fold"]

Numbers = NDArray[Any]
Real = NDArray[np.float64]


class ProvedFold(NamedTuple):
    """A fold alone in a neighbourhood: the band lies to the left of a right end."""

    origin: list[fmpq]
    centre: list[fmpq]
    gauge: list[fmpq]
    residual: Real
    disturbed: Real
    proof: Contraction
    radius: Real
    right_end: bool

    @property
    def edge(self) -> tuple[fmpq, float]:
        """(x, bound of the distance of the edge from it), by one more application of Newton's map."""
        place, terms, moduli = len(self.centre) // 2, slack(len(self.centre)), np.abs(self.proof.inverse)
        share = correction(self.proof, self.residual, self.disturbed) / (1 - self.proof.share)
        error = moduli @ (terms * np.abs(self.residual) + self.disturbed) + self.proof.defect @ self.proof.size * share
        step = float((self.proof.inverse @ self.residual)[place])
        return self.centre[place] - fmpq(*step.as_integer_ratio()), float(error[place]) * (1 + terms)


class _Near(NamedTuple):
    """Bounds over the neighbourhood: inverses, G Σφ G, derivatives."""

    matrices: list[Ball]
    turned: list[Ball]
    jacobian: Ball
    slope: Ball
    second: Ball
    mixed: Ball


def prove_fold(system: System, fold: Fold) -> ProvedFold:
    """Existence and uniqueness of a fold next to one in doubles, and that it is an edge of the law.

    Raises:
        CertificationError: when there is no proof.
    """
    equation, count = system.equation, system.balls.count
    rough = equation.matrices(fold.traces[None], np.array([fold.x]))
    sizes = np.asarray(equation.sizes(rough)[0])
    frame = framed(sizes, fold.x or 1.0, fold.direction)
    gauge, size = frame.gauge, frame.scale
    start = np.concatenate([fold.traces, [fold.x], frame.direction])
    _, matrix = bordered_system(equation, fold.traces, fold.x, frame.direction, gauge)
    inverse = preconditioner(matrix, size, frame.weights)
    centre, exact_gauge = _exactly(start), _exactly(gauge)
    residual = _residual(system, centre, exact_gauge)
    first = float(np.max(np.abs(inverse @ residual) / size))
    if not first < NOT_A_ROOT:
        raise CertificationError(f"the start is not a fold: its relative correction is {first:.3g}")
    wide = WIDER * first + NARROWEST
    radius = wide * size * (1 + slack(1))
    u, x, phi = (Ball(start[part], radius[part]) for part in _parts(count))
    near = _near(system, system.balls.inverses(u, Ball(x.middle[0], x.radius[0]), [g[0] for g in rough]), phi)
    proof = contraction(_derivative(near, gauge), inverse, size)
    disturbed = _disturbance(system, near, u, x, phi)
    if not correction(proof, residual, disturbed) <= (1 - proof.share) * wide * (1 - slack(1)):
        raise CertificationError("Newton's map is not proved to map the neighbourhood of the fold into itself")
    _check_direction(system, near)
    right_end = _real_side_above(near, gauge, phi, size[: count + 1])
    return ProvedFold(centre, centre, exact_gauge, residual, disturbed, proof, radius, right_end)


def refine_fold(system: System, fold: ProvedFold) -> ProvedFold:
    """The same fold with a centre that Newton's method has moved, exactly.

    Raises:
        CertificationError: when the centre would leave the neighbourhood.
    """
    step = fold.proof.inverse @ fold.residual
    centre = [a - b for a, b in zip(fold.centre, _exactly(step), strict=True)]
    moved = np.array([double_of(abs(a - b)) for a, b in zip(centre, fold.origin, strict=True)])
    if not np.all(moved * (1 + slack(1)) <= fold.radius):
        raise CertificationError("Newton's method leaves the neighbourhood that was proved")
    return fold._replace(centre=centre, residual=_residual(system, centre, fold.gauge))


def _parts(count: int) -> tuple[slice, slice, slice]:
    return slice(0, count), slice(count, count + 1), slice(count + 1, None)


def _exactly(values: Real) -> list[fmpq]:
    return [fmpq(*float(v).as_integer_ratio()) for v in values]


def _residual(system: System, centre: Sequence[fmpq], gauge: Sequence[fmpq]) -> Real:
    count = system.balls.count
    found = system.exact.bordered(centre[:count], centre[count], centre[count + 1 :], gauge)
    return np.array([double_of(v) for v in found])


def _near(system: System, g: list[Ball], phi: Ball) -> _Near:
    balls = system.balls
    turned = [product(product(a, e), a) for a, e in zip(g, balls.energy(phi), strict=True)]
    jacobian, _ = balls.jacobian(g)
    one, other = balls.bilinear(g, turned)[0], balls.bilinear(turned, g)[0]
    points = [about(sector.point) for sector in balls.sectors]
    mixed = [
        _sum(product(product(a, p), t), product(product(t, p), a)) for a, p, t in zip(g, points, turned, strict=True)
    ]
    return _Near(g, turned, jacobian, balls.slope(g), _negative(_sum(one, other)), _negative(balls.read(mixed)))


def _derivative(near: _Near, gauge: Real) -> Ball:
    """The matrix of derivatives of (F, F_u φ, ℓ·φ − 1) in (u, x, φ)."""
    count = len(gauge)
    middle, radius = (np.zeros((2 * count + 1, 2 * count + 1)) for _ in range(2))
    slope = _negative(near.slope)
    for whole, number in ((middle, 0), (radius, 1)):
        whole[:count, :count], whole[:count, count] = near.jacobian[number], slope[number]
        whole[count:-1, :count], whole[count:-1, count] = near.second[number], near.mixed[number]
        whole[count:-1, count + 1 :] = near.jacobian[number]
    middle[-1, count + 1 :] = gauge
    return Ball(middle, radius)


def _disturbance(system: System, near: _Near, u: Ball, x: Ball, phi: Ball) -> Real:
    """How far the residual of the true weights may be from that of their centres (see `root_proofs`)."""
    first, second = [], []
    for g, sector in zip(near.matrices, system.balls.sectors, strict=True):
        terms = np.abs(sector.constant) + abs(float(x.middle[0])) * sector.point + system.balls.moduli(sector, u.middle)
        change, size = system.balls.moduli(sector, phi.middle), g.size
        spread = size @ terms @ size
        first.append(spread + size)
        second.append(spread @ change @ size + size @ change @ spread + size @ change @ size)
    found = [disturbance_of(system, matrices)[:-1] for matrices in (first, second)]
    return np.concatenate([*found, [0.0]])


def _check_direction(system: System, near: _Near) -> None:
    """Along φ all matrices of traces change by a definite amount of one sign."""
    changes = system.balls.symmetric(near.turned)
    if not (all(map(positive_definite, changes)) or all(positive_definite(_negative(c)) for c in changes)):
        raise CertificationError(
            "the fold is not an edge of the law, or not provably: along its null vector the matrices of traces do not "
            "all change by definite amounts of one sign"
        )


def _real_side_above(near: _Near, gauge: Real, phi: Ball, size: Real) -> bool:
    """Whether c > 0: real solutions at x > x₀, so that the band is below."""
    count = len(gauge)
    middle, radius = (np.zeros((count + 1, count + 1)) for _ in range(2))
    slope = _negative(near.slope)
    for whole, number in ((middle, 0), (radius, 1)):
        whole[:count, :count], whole[:count, count] = near.jacobian[number], slope[number]
    middle[-1, :count] = gauge
    proof = contraction(Ball(middle, radius), preconditioner(middle, size, np.concatenate([size[:-1], [1.0]])), size)
    curved = product(near.second, Ball(phi.middle[:, None], phi.radius[:, None]))
    right = Ball(np.append(-curved.middle[:, 0] / 2, 0.0), np.append(curved.radius[:, 0], 0.0))
    c = Ball(*(part[-1] for part in solution(proof, right)))
    if not abs(c.middle) > c.radius:
        raise CertificationError("the fold is degenerate, or nearly: two edges are too close to each other")
    return bool(c.middle > 0)


def _sum(left: Ball, right: Ball) -> Ball:
    middle = left.middle + right.middle
    return Ball(middle, (left.radius + right.radius + slack(1) * np.abs(middle)) * (1 + slack(1)))


def _negative(ball: Ball) -> Ball:
    return Ball(-ball.middle, ball.radius)
