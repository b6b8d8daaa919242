"""Proofs that an edge exists: the bordered system of a fold, by the same contraction as `root_proofs`.

Unknowns are (u, x, φ), equations F(u, x) = 0, F_u φ = 0, ℓ·φ = 1. A root with regular derivative is a simple fold: with
s along φ the solutions near it are x = x₀ + cs² + …, u = u₀ + sφ + …, where

    F_u w + c F_x = −½ F_uu φφ,    ℓ·w = 0.

If every matrix of traces changes by a definite amount along φ, all of one sign, then on the side where s is imaginary
one of the two solutions is physical, with positive density, and on the other side one of the two real ones is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import frexp, ldexp
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import CertificationError
from freeattn.numerics.array_balls import TINY, Ball, negative, product, slack, total
from freeattn.numerics.exact_traces import Dyadic, ExactPoint, Matrix, Turned, added, down, up
from freeattn.numerics.folds import Fold, framed
from freeattn.numerics.root_proofs import (
    NARROWEST,
    NOT_A_ROOT,
    ROUNDING,
    WIDER,
    WIDTHS,
    System,
    Value,
    correction,
    disturbance_of,
    on_grid,
    preconditioner,
)
from freeattn.numerics.sparse_equation import Binary, shifted
from freeattn.numerics.trace_balls import Contraction, TraceBalls, contraction, solution

__all__ = ["FoldNumbers", "ProvedFold", "place_fold", "prove_fold", "refine_fold"]

Numbers = NDArray[Any]
Real = NDArray[np.float64]


class FoldNumbers(NamedTuple):
    """A fold to many digits, numbers as (mantissa, exponent of two): x, u, φ, and the entries of the inverses and of
    their changes along φ, sector by sector and row by row. φ may have any size."""

    x: Binary
    traces: Sequence[Binary]
    direction: Sequence[Binary]
    inverses: Sequence[Binary]
    turned: Sequence[Binary]


class _Place(NamedTuple):
    """(u, x, φ) exactly, with inverses, their changes along φ, and the gauge ℓ times 2^gauge_bits."""

    point: ExactPoint
    phi: list[int]
    turned: list[Matrix]
    gauge: list[int]
    gauge_bits: int

    @property
    def normalization(self) -> float:
        """ℓ·φ − 1."""
        bits = self.point.bits + self.gauge_bits
        return down(sum(a * b for a, b in zip(self.gauge, self.phi, strict=True)) - (1 << bits), bits)


class _Near(NamedTuple):
    """Bounds over the neighbourhood: inverses, G Σφ G, derivatives."""

    matrices: Ball
    turned: Ball
    jacobian: Ball
    slope: Ball
    second: Ball
    mixed: Ball


class ProvedFold(NamedTuple):
    """A fold alone in a neighbourhood of radii `radius`; the exact place is `moved` or less from its centre. The band
    lies to the left of a right end. `start` is the fold in doubles that the proof began with."""

    place: _Place
    moved: Real
    residual: Turned
    disturbed: Real
    proof: Contraction
    radius: Real
    near: _Near
    right_end: bool
    start: Fold

    @property
    def edge(self) -> Value:
        """The edge, by one more application of Newton's map."""
        values, errors = _whole(self.place, self.residual, self.disturbed)
        place, terms = len(self.place.phi), slack(len(values))
        share = correction(self.proof, values, errors) / (1 - self.proof.share)
        row = self.proof.inverse[place]
        error = np.abs(row) @ (terms * np.abs(values) + errors) + self.proof.defect[place] @ self.proof.size * share
        moved, rest = self.place.point.z.plus(-float(row @ values), float(error))
        return Value(moved, rest * (1 + terms))


@np.errstate(all="ignore")  # what is not finite fails every comparison below
def prove_fold(system: System, fold: Fold) -> ProvedFold:
    """Existence and uniqueness of a fold next to one in doubles, and that it is an edge of the law.

    Raises:
        CertificationError: when there is no proof.
    """
    balls, count = system.balls, system.balls.count
    if not all(np.isfinite(part).all() for part in (fold.x, fold.traces, fold.direction)):
        raise CertificationError("the start is no fold: it is not finite")
    x_bits = max(0, system.exact.bits - frexp(fold.x)[1])
    fold = Fold(float(on_grid(np.array([fold.x]), x_bits)[0]), fold.traces, fold.direction)
    g = balls.approximate(fold.traces, fold.x)
    sizes = balls.sizes(g)
    if not (np.isfinite(g).all() and np.isfinite(sizes).all()):
        raise CertificationError("the start is no fold: a matrix is singular there")
    frame = framed(sizes, fold.x or 1.0, fold.direction)
    if not (np.isfinite(frame.direction).all() and np.isfinite(frame.gauge).all()):
        raise CertificationError("the start is no fold: it has no direction")
    bits, gauge_bits = system.exact.grid(sizes), system.exact.grid(1 / sizes)
    u, phi = on_grid(fold.traces, bits), on_grid(frame.direction, bits)
    gauge, size = on_grid(frame.gauge, gauge_bits), frame.scale
    around = _near(balls, Ball(g, np.zeros(balls.shape)), Ball(phi, np.zeros(count)))
    inverse = preconditioner(_derivative(around, gauge).middle, size, frame.weights)
    rough = np.concatenate([u - balls.values(g)[:-1], phi - balls.values(around.turned.middle)[:-1], [gauge @ phi - 1]])
    first = float(np.max(np.abs(inverse @ rough) / size))
    if not first < NOT_A_ROOT:
        raise CertificationError(f"the start is not a fold: its relative correction is {first:.3g}")
    first += ROUNDING * float(np.max(np.abs(inverse) @ frame.weights / size))
    shifts = system.exact.shifts(g)
    place = _Place(
        system.exact.point(u, Dyadic(up(fold.x, x_bits), 0, x_bits), g, bits), [up(v, bits) for v in phi.tolist()],
        system.exact.integers(around.turned.middle, shifts), [up(v, gauge_bits) for v in gauge.tolist()], gauge_bits,
    )
    for share in WIDTHS:
        wide = share * (WIDER * first + NARROWEST)
        proved = _within(system, place, g, (u, np.array(fold.x), phi), gauge, inverse, size, wide)
        if proved is not None:
            return proved
    raise CertificationError("Newton's map is not proved to map the neighbourhood of the fold into itself")


def _within(
    system: System, place: _Place, g: Real, start: tuple[Real, Real, Real], gauge: Real, inverse: Real, size: Real,
    wide: float,
) -> ProvedFold | None:
    """The fold in the neighbourhood of relative radius `wide`; None where Newton's map may leave it."""
    count = system.balls.count
    radius = wide * size * (1 + slack(1))
    u, phi = Ball(start[0], radius[:count]), Ball(start[2], radius[count + 1 :])
    x = Ball(start[1], radius[count])
    near = _near(system.balls, system.balls.inverses(u, x, g), phi)
    proof = contraction(_derivative(near, gauge), inverse, size)
    disturbed = _disturbance(system, near, u, x, phi)
    residual = system.exact.bordered(place.point, place.phi, place.turned, near.matrices, near.turned)
    if not correction(proof, *_whole(place, residual, disturbed)) <= (1 - proof.share) * wide * (1 - slack(1)):
        return None
    if not (system.balls.definite(near.turned) or system.balls.definite(negative(near.turned))):
        raise CertificationError(
            "the fold is not an edge of the law, or not provably: along its null vector the matrices of traces do not "
            "all change by definite amounts of one sign"
        )
    right_end = _real_side_above(near, gauge, phi, size[: count + 1])
    return ProvedFold(place, np.zeros(2 * count + 1), residual, disturbed, proof, radius, near, right_end,
                      Fold(float(start[1]), start[0], start[2]))


def _whole(place: _Place, residual: Turned, disturbed: Real) -> tuple[Real, Real]:
    """(F, F_u φ, ℓ·φ − 1) and bounds of the errors."""
    return np.append(residual.values, place.normalization), np.append(residual.errors, 0.0) + disturbed


def refine_fold(system: System, fold: ProvedFold) -> ProvedFold:
    """The same fold with a place that Newton's method has moved.

    Raises:
        CertificationError: when the place would leave the neighbourhood.
    """
    balls, count, point = system.balls, system.balls.count, fold.place.point
    step = -(fold.proof.inverse @ _whole(fold.place, fold.residual, fold.disturbed)[0])
    du, dx, dphi = step[:count], float(step[count]), step[count + 1 :]
    g, turned = fold.near.matrices.middle, fold.near.turned.middle
    change = dx * balls.point + balls.changes(du)
    inverses = fold.residual.correction + g @ change @ g
    second = fold.residual.second + turned @ change @ g + g @ change @ turned + g @ balls.changes(dphi) @ g
    z = point.z._replace(x=point.z.x + up(dx, point.z.bits))
    place = fold.place._replace(
        point=system.exact.moved(point, du, inverses)._replace(z=z),
        phi=[a + up(v, point.bits) for a, v in zip(fold.place.phi, dphi.tolist(), strict=True)],
        turned=added(fold.place.turned, system.exact.integers(second, point.shifts)),
    )
    return _replaced(system, fold, place, step)


def place_fold(system: System, fold: ProvedFold, numbers: FoldNumbers) -> ProvedFold:
    """The same fold with its place moved to where many digits say that it is; they need not be trusted.

    Raises:
        CertificationError: when that is outside the neighbourhood.
    """
    place, point, blocks = fold.place, fold.place.point, system.balls.blocks
    ux, phi = ([shifted(m, e + point.bits) for m, e in part] for part in (numbers.traces, numbers.direction))
    x = shifted(numbers.x[0], numbers.x[1] + point.z.bits)
    unit, total_phi = point.bits + place.gauge_bits, sum(a * b for a, b in zip(place.gauge, phi, strict=True))
    if not total_phi:
        raise CertificationError("Newton's method leaves the neighbourhood that was proved")
    phi = [(value << unit) // total_phi for value in phi]
    g, turned = (_of_sectors(part, blocks, point.shifts) for part in (numbers.inverses, numbers.turned))
    turned = [[[(value << unit) // total_phi for value in row] for row in matrix] for matrix in turned]
    moved_to = place._replace(point=point._replace(ux=ux, gx=g, z=point.z._replace(x=x)), phi=phi, turned=turned)
    way = [*(down(a - b, point.bits) for a, b in zip(ux, point.ux, strict=True)), down(x - point.z.x, point.z.bits),
           *(down(a - b, point.bits) for a, b in zip(phi, place.phi, strict=True))]
    return _replaced(system, fold, moved_to, np.array(way))


def _of_sectors(entries: Sequence[Binary], blocks: Sequence[int], shifts: Sequence[int]) -> list[Matrix]:
    rest, found = iter(entries), []
    for size, shift in zip(blocks, shifts, strict=True):
        found.append([[shifted(m, e + shift) for m, e in islice(rest, size)] for _ in range(size)])
    return found


def _replaced(system: System, fold: ProvedFold, place: _Place, way: Real) -> ProvedFold:
    """The fold at another place, `way` from the one that it has."""
    moved = _moved(fold, way)
    residual = system.exact.bordered(place.point, place.phi, place.turned, fold.near.matrices, fold.near.turned)
    return fold._replace(place=place, moved=moved, residual=residual)


def _moved(fold: ProvedFold, way: Real) -> Real:
    """How far from the centre a place is that is `way` from the one of a fold, rounding to the grid included."""
    point = fold.place.point
    grid = np.full(len(way), ldexp(2.0, -point.bits))
    grid[len(fold.place.phi)] = ldexp(2.0, -point.z.bits)
    moved = (fold.moved + np.abs(way) + grid) * (1 + slack(2))
    if not np.all(moved <= fold.radius):
        raise CertificationError("Newton's method leaves the neighbourhood that was proved")
    return np.asarray(moved)


def _near(balls: TraceBalls, g: Ball, phi: Ball) -> _Near:
    turned = product(product(g, balls.energy(phi)), g)
    jacobian, _ = balls.jacobian(g)
    second = total(balls.bilinear(g, turned), balls.bilinear(turned, g))
    mixed = balls.read(total(product(balls.at_corners(g), turned), product(balls.at_corners(turned), g)))
    slope = balls.slope(g)
    return _Near(
        g, turned, jacobian, *(negative(Ball(part.middle[:-1], part.radius[:-1])) for part in (slope, second, mixed))
    )


def _derivative(near: _Near, gauge: Real) -> Ball:
    """The matrix of derivatives of (F, F_u φ, ℓ·φ − 1) in (u, x, φ)."""
    count = len(gauge)
    middle, radius = (np.zeros((2 * count + 1, 2 * count + 1)) for _ in range(2))
    for whole, number in ((middle, 0), (radius, 1)):
        whole[:count, :count], whole[:count, count] = near.jacobian[number], near.slope[number]
        whole[count:-1, :count], whole[count:-1, count] = near.second[number], near.mixed[number]
        whole[count:-1, count + 1 :] = near.jacobian[number]
    middle[-1, count + 1 :] = gauge
    return Ball(middle, radius)


def _disturbance(system: System, near: _Near, u: Ball, x: Ball, phi: Ball) -> Real:
    """How far the residual of the true weights may be from that of their centres (see `root_proofs`)."""
    balls, size = system.balls, near.matrices.size
    change = balls.moduli(phi.size, constant=False)
    spread = size @ balls.moduli(u.size, float(x.size)) @ size
    turned = size @ change @ size
    second = spread @ change @ size + size @ change @ spread + turned
    found = [disturbance_of(system, matrices)[:-1] for matrices in (spread + size, second)]
    return np.append(np.concatenate(found), TINY)


def _real_side_above(near: _Near, gauge: Real, phi: Ball, size: Real) -> bool:
    """Whether c > 0: real solutions at x > x₀, so that the band is below."""
    count = len(gauge)
    middle, radius = (np.zeros((count + 1, count + 1)) for _ in range(2))
    for whole, number in ((middle, 0), (radius, 1)):
        whole[:count, :count], whole[:count, count] = near.jacobian[number], near.slope[number]
    middle[-1, :count] = gauge
    proof = contraction(Ball(middle, radius), preconditioner(middle, size, np.append(size[:-1], 1.0)), size)
    curved = product(near.second, Ball(phi.middle[:, None], phi.radius[:, None]))
    right = Ball(np.append(-curved.middle[:, 0] / 2, 0.0), np.append(curved.radius[:, 0], 0.0))
    c = Ball(*(part[-1] for part in solution(proof, right)))
    if not abs(c.middle) > c.radius:
        raise CertificationError("the fold is degenerate, or nearly: two edges are too close to each other")
    return bool(c.middle > 0)
