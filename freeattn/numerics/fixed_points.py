"""Fixed points of a subordination map: in the upper half-plane, on the real axis, and the folds between them."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import ConvergenceError
from freeattn.numerics.subordination import Subordination

__all__ = ["BAND", "GAP", "UNKNOWN", "FixedPoints", "Fold"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

UNKNOWN, GAP, BAND = 0, 1, 2

_STEPS = 400
_TOLERANCE = 4e-15  # of |ω| + |z|: a residual
_ACCEPTED = 1e-11  # of the same: where rounding stops Newton's method above the tolerance
_STALLED, _HOPELESS = 4, 60  # steps in a row without progress: where a small residual is taken, where none is expected
_ITERATIONS = 50  # of the map, which leads to the attracting fixed point from everywhere above the axis
_NEAR_FOLD = 0.5  # of |1 − Φ'|, which is 0 at a fold
_STEP_SLOPE = 1e-6  # of |ω|: for the second derivative
_AT_FOLD = 1e-3  # of |1 − Φ'|: within rounding of an edge it is √rounding
_REAL = 1e-7  # of |ω|: below it ω is tried as real; Im ω ~ √distance, so only within 1e-14 of an edge is this wrong
_FOLD_STEPS = 40
_DIFFERENCE = 1e-2  # of the distance to the edge: steps for second derivatives
_FOLD_TOLERANCE = 4e-15  # of |x| + |ω|
_INFINITE = 1e7  # of |m| times the size of the law: an edge where m is infinite, found to √rounding


class Fold(NamedTuple):
    """A square-root point of the real curve (x, ω); ω may be infinite.

    `singular` says whether m is infinite there: the density then diverges like (x − edge)^{−1/2}. `origins` are the
    atoms whose weights add up to one, when x is the place where they do.
    """

    x: float
    omega: float
    singular: bool
    origins: tuple[float, ...] | None = None


class FixedPoints:
    """The solver of one `Subordination`; `size` is the order of magnitude of its law."""

    def __init__(self, equation: Subordination) -> None:
        self.equation = equation
        self.size = max(abs(equation.reach[0]), abs(equation.reach[1]))

    @cached_property
    def _exchanged(self) -> FixedPoints | None:
        """The solver of the other subordination function, which is finite where this one is not."""
        equation = self.equation.exchanged()
        return None if equation is None else FixedPoints(equation)

    @np.errstate(all="ignore")
    def solve(self, z: Complex, start: Complex | None = None) -> tuple[Complex, NDArray[np.bool_]]:
        """(ω, converged) at Im z ≥ 0: by the other function where this one is too large to be found."""
        omega, done = self._solve(z, start)
        left = np.flatnonzero(~done)
        if left.size and self._exchanged is not None:
            other, found = self._exchanged._solve(z[left], None)
            omega[left[found]], done[left[found]] = self._from_other(z[left[found]], other[found]), True
        return omega, done

    @np.errstate(all="ignore")
    def output(self, z: Complex, omega: Complex) -> Complex:
        """m that belongs to ω."""
        return self.equation(z, omega).output

    def _from_other(self, z: Complex, other: Complex) -> Complex:
        assert self._exchanged is not None  # the caller has solved by it
        omega = self._exchanged.equation.partner(z, other)
        return np.where(np.isfinite(omega), omega, np.inf)

    def _solve(self, z: Complex, start: Complex | None) -> tuple[Complex, NDArray[np.bool_]]:
        """The attracting fixed point: where Newton's method ends at a repelling one, it starts again from the map."""
        omega, done = self._newton(z, start)
        again = np.flatnonzero(done & ~self._attracting(z, omega))
        if again.size:
            at, moved = z[again], omega[again] + 1j * self.size
            for _ in range(_ITERATIONS):
                moved = self.equation(at, moved).image
            omega[again], done[again] = self._newton(at, moved)
            done[again] &= self._attracting(at, omega[again])
        return omega, done

    def _attracting(self, z: Complex, omega: Complex) -> NDArray[np.bool_]:
        return np.abs(self.equation(z, omega).slope) <= 1 + _AT_FOLD

    def _newton(self, z: Complex, start: Complex | None) -> tuple[Complex, NDArray[np.bool_]]:
        """Newton's method where it lowers the residual above the axis, else the map itself."""
        omega = np.where(np.isfinite(start), start, z + 1j * self.size) if start is not None else z + 1j * self.size
        done, active = np.zeros(z.shape, dtype=bool), np.arange(z.size)
        stalled = np.zeros(z.shape, dtype=int)
        value = self.equation(z, omega)
        residual, slope = omega - value.image, value.slope
        best, kept = np.abs(residual), omega.copy()
        for _ in range(_STEPS):
            scale = np.abs(omega) + np.abs(z)
            small = best <= _TOLERANCE * scale
            done |= small | ((stalled >= _STALLED) & (best <= _ACCEPTED * scale))
            active = np.flatnonzero(~done & (stalled < _HOPELESS))
            if not active.size:
                break
            here, at = omega[active], z[active]
            trial = here + self._step(at, here, residual[active], slope[active])
            trial = trial.real + 1j * np.abs(trial.imag)
            trial, found, slopes, good = self._try(at, trial, np.abs(residual[active]))
            if not good.all():
                bad = ~good
                fallback = here[bad] - residual[active][bad]
                fallback = fallback.real + 1j * np.abs(fallback.imag)
                trial[bad], found[bad], slopes[bad], _ = self._try(at[bad], fallback, best[active][bad])
            improved = np.abs(found) < 0.9 * best[active]
            stalled[active] = np.where(improved, 0, stalled[active] + 1)
            omega[active], residual[active], slope[active] = trial, found, slopes
            lower = np.abs(found) < best[active]
            kept[active[lower]], best[active] = trial[lower], np.minimum(best[active], np.abs(found))
        return kept, done & np.isfinite(kept)

    def _step(self, z: Complex, omega: Complex, residual: Complex, slope: Complex) -> Complex:
        """Newton's step, or that of the quadratic model where Φ' is near 1: beside an edge two roots are close.

        Physical is the one above the axis, and of two real ones that with Φ' < 1.
        """
        step = -residual / (1 - slope)
        near = np.flatnonzero(np.abs(1 - slope) < _NEAR_FOLD)
        if near.size:
            h = _STEP_SLOPE * np.abs(omega[near])
            moved = self.equation(z[near], omega[near] + 1j * h).slope
            linear, curvature = 1 - slope[near], -(moved - slope[near]) / (1j * h)
            square = linear**2 - 2 * residual[near] * curvature
            root = np.sqrt(square)
            one, other = (root - linear) / curvature, -(root + linear) / curvature
            upper = np.where(one.imag > other.imag, one, other)
            best = np.where(square.real < 0, upper, -2 * residual[near] / (linear + root))
            step[near] = np.where(np.isfinite(best), best, step[near])
        return step

    def _try(self, z: Complex, omega: Complex, best: Array) -> tuple[Complex, Complex, Complex, NDArray[np.bool_]]:
        value = self.equation(z, omega)
        residual = omega - value.image
        return omega, residual, value.slope, np.abs(residual) < best

    @np.errstate(all="ignore")
    def classify(self, x: Array) -> tuple[NDArray[np.int_], Complex]:
        """(status, ω) at real x: in a band with Im ω > 0, in a gap with real ω, which may be infinite, and Φ' < 1."""
        status, omega = self._classify(x)
        left = np.flatnonzero(status == UNKNOWN)
        if left.size and self._exchanged is not None:
            status[left], other = self._exchanged._classify(x[left])
            omega[left] = self._from_other(x[left].astype(complex), other)
        return status, omega

    def _classify(self, x: Array) -> tuple[NDArray[np.int_], Complex]:
        omega, done = self._solve(x.astype(complex), None)
        size = np.abs(omega)
        above = omega.imag > np.maximum(_REAL * size, _TOLERANCE * (size + np.abs(x)))
        status = np.where(done & above, BAND, UNKNOWN)
        rest = np.flatnonzero(status != BAND)
        if rest.size:
            real, found = self._on_real_curve(x[rest], omega[rest].real.astype(complex))
            status[rest[found]], omega[rest[found]] = GAP, real[found]
            rest = rest[~found & done[rest]]
            at_fold = np.abs(1 - self.equation(x[rest].astype(complex), omega[rest]).slope) < _AT_FOLD
            status[rest] = np.where(at_fold, BAND, GAP)  # within rounding of an edge, or of a pole of Φ
            omega[rest[~at_fold]] = omega[rest[~at_fold]].real
        return status, omega

    def _on_real_curve(self, x: Array, omega: Complex) -> tuple[Complex, NDArray[np.bool_]]:
        z, good = x.astype(complex), np.zeros(x.shape, dtype=bool)
        for _ in range(8):
            value = self.equation(z, omega)
            residual = omega - value.image
            scale = np.abs(omega) + np.abs(z)
            exact = (value.image.imag == 0) & (np.abs(residual) <= _ACCEPTED * scale)
            good = exact & (value.slope.real < 1)
            if (good | ~np.isfinite(residual)).all():
                break
            moved = omega - residual / (1 - value.slope)
            omega = np.where(good, omega, moved.real.astype(complex))
        return omega, good

    @np.errstate(all="ignore")
    def fold(self, x: float, omega: complex, width: float) -> Fold:
        """The point where Φ' = 1 near (x, ω), which lies in a band at most `width` from its end, by Newton's method.

        Raises:
            ConvergenceError: when it is not found.
        """
        try:
            return self._fold(x, omega, width)
        except ConvergenceError:
            if self._exchanged is None:
                raise
        at = np.array([x + 0j])
        found = self._exchanged._fold(x, complex(self.equation.partner(at, np.array([omega]))[0]), width)
        back = self._from_other(np.array([found.x + 0j]), np.array([found.omega + 0j]))
        return found._replace(omega=float(back[0].real))

    def _fold(self, x: float, omega: complex, width: float) -> Fold:
        steps = _DIFFERENCE * width, _DIFFERENCE * omega.imag
        place, moved = np.array([x, omega.real]), np.inf
        for _ in range(_FOLD_STEPS):
            residual, matrix = self._fold_equations(place, steps)
            if not np.isfinite(matrix).all() or np.linalg.det(matrix) == 0:
                break
            step = np.linalg.solve(matrix, residual)
            place = place - step
            moved = float(abs(step[0]) / (abs(place[0]) + abs(place[1])))
            if moved <= _FOLD_TOLERANCE and abs(step[1]) <= omega.imag:
                at = self.equation(*place[:, None].astype(complex))
                singular = not abs(at.output[0]) * self.size < _INFINITE
                return Fold(float(place[0]), float(place[1]), singular)
        raise ConvergenceError(f"an edge near {x:.6g}", moved, _FOLD_TOLERANCE, "a cusp is not covered")

    def _fold_equations(self, place: Array, steps: tuple[float, float]) -> tuple[Array, Array]:
        """(ω − Φ, 1 − Φ') at (x, ω) and their Jacobian; second derivatives by central differences."""
        (x, omega), (dx, dw) = place, steps
        xs, omegas = np.array([x, x + dx, x - dx, x, x]), np.array([omega, omega, omega, omega + dw, omega - dw])
        values = self.equation(xs.astype(complex), omegas.astype(complex))
        slope = values.slope.real
        residual = np.array([omega - values.image[0].real, 1 - slope[0]])
        second = [-(slope[1] - slope[2]) / (2 * dx), -(slope[3] - slope[4]) / (2 * dw)]
        return residual, np.array([[-values.rate[0].real, residual[1]], second])
