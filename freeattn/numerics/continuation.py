"""From z = ∞ to the real axis: Newton's method on a rational curve, along vertical lines, vectorized over points.

Everything is done at the complex conjugate of the spectral point (lower half-plane of x, upper half-plane of z = 1/x
and of q); callers conjugate the Stieltjes transform once. Where the curve has a local test of the physical branch,
every accepted step passes it; otherwise steps are kept short and Newton's correction small against the predictor.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError
from freeattn.numerics.curve import Chart

__all__ = ["Tracker", "newton"]

Complex = NDArray[np.complex128]
Mask = NDArray[np.bool_]

TOLERANCE = 1e-13  # relative residual |x(q)/x − 1| of an accepted root; rounding of the Horner schemes is a few 1e-15
_ROUNDING = 16 * np.finfo(float).eps  # relative rounding of δ, which moves x by |δ x'/x|: no residual can be below that
_WORST = 1e-9  # a residual above this is no root, whatever the rounding
_STEPS = 12  # Newton steps before a point counts as not converged
_POLISH = 2  # Newton steps from an eigenvalue of a companion matrix to a root that the test can judge
_ROUNDS = 600  # continuation rounds; about 60 are typical, an edge at distance 1e-15 needs about 150
_START = 8.0  # first height over the largest |x| of the support: all branches are well separated there


def newton(chart: Chart, delta: Complex, x: Complex, steps: int = _STEPS) -> tuple[Complex, Mask]:
    """Newton's method for log x(δ) = log x from the given start; (δ, converged)."""
    delta = delta.copy()
    best = np.full(delta.shape, np.inf)
    for _ in range(steps):
        with np.errstate(all="ignore"):
            step, residual = chart.newton_step(delta, x)
        done = residual <= TOLERANCE / 100
        stalled = (residual >= best) & (best <= TOLERANCE)
        move = ~(done | stalled) & np.isfinite(step)
        best = np.minimum(best, np.where(np.isfinite(residual), residual, np.inf))
        if not move.any():
            break
        delta = np.where(move, delta + np.where(move, step, 0), delta)
    with np.errstate(all="ignore"):
        _, slope = chart.point(delta)
        _, residual = chart.newton_step(delta, x)
        reachable = np.maximum(TOLERANCE, _ROUNDING * np.abs(delta * slope))
    return delta, np.isfinite(residual) & (residual <= np.minimum(reachable, _WORST))


class Tracker:
    """Finds the physical q by continuation from infinity.

    Args:
        chart: the curve.
        reach: the largest |x| of the support.
        residue: lim q·x(q) at q → 0, which starts the continuation.
    """

    def __init__(self, chart: Chart, reach: float, residue: float) -> None:
        self.chart = chart
        self._reach = reach
        self._residue = residue

    def accept(self, delta: Complex, x: Complex, strict: bool) -> Mask:
        """The local test, or all True when the curve has none."""
        if self.chart.test is None:
            return np.ones(delta.shape, dtype=bool)
        with np.errstate(all="ignore"):
            return self.chart.test(delta, x, strict)

    def solve(self, x: Complex) -> Complex:
        """δ of the physical root at spectral points x̄ with Im x̄ ≤ 0 (Im x̄ = 0 only inside a band).

        Where there is a local test it picks the root among all of them; what it leaves open is decided by continuation.

        Raises:
            ConvergenceError: when some point is not reached.
            BranchError: when the start at infinity is not on the physical branch.
        """
        if self.chart.test is None:
            return self._continued(x)
        delta, good = self.picked(x)
        if not good.all():
            delta[~good] = self._continued(x[~good])
        return delta

    def picked(self, x: Complex) -> tuple[Complex, Mask]:
        """(δ, whether it is a root that passes the test): the one among all roots that does.

        The test tells roots apart, not roots from other numbers: it is asked again once Newton's method has converged.
        """
        roots = self.chart.roots(x)
        points = np.broadcast_to(x[:, None], roots.shape)
        with np.errstate(all="ignore"):
            for _ in range(_POLISH):
                roots = roots + self.chart.newton_step(roots, points)[0]
        passed = np.isfinite(roots) & self._physical(roots, points)
        delta = roots[np.arange(x.size), np.argmax(passed, axis=1)]
        one = passed.sum(axis=1) == 1
        delta[~one] = 1.0
        delta, converged = newton(self.chart, delta, x)
        return delta, one & converged & self._physical(delta, x)

    def picked_at(self, x: complex) -> complex | None:
        """`picked` at one point; None where no root or several pass.

        Python's numbers: arrays of one cost many times what is computed with them. They raise where arrays hold inf.
        """
        passed, test = [], self.chart.test
        for start in self.chart.roots(np.array([x]))[0].tolist():
            try:
                if test is None or test.excludes(start):
                    continue
                root, _ = self._converged_at(start, x, _POLISH)
                if test(root, x, strict=x.imag == 0):
                    passed.append(root)
            except (ArithmeticError, ValueError):
                continue
        if len(passed) != 1 or test is None:
            return None
        try:
            delta, converged = self._converged_at(passed[0], x, _STEPS)
            moved = delta != passed[0]
            return delta if converged and (not moved or test(delta, x, strict=x.imag == 0)) else None
        except (ArithmeticError, ValueError):
            return None

    def _converged_at(self, delta: complex, x: complex, steps: int) -> tuple[complex, bool]:
        """`newton` at one point."""
        best, residual = np.inf, np.inf
        for k in range(steps + 1):
            step, residual = self.chart.newton_step(delta, x)
            if k == steps or residual <= TOLERANCE / 100 or (residual >= best and best <= TOLERANCE):
                break
            best, delta = min(best, residual), delta + step
        if residual <= TOLERANCE:
            return delta, True
        reachable = max(TOLERANCE, _ROUNDING * abs(delta * self.chart.point(delta)[1]))
        return delta, residual <= min(reachable, _WORST)

    def _physical(self, delta: Complex, x: Complex) -> Mask:
        """The local test, strict on the real axis."""
        result = np.empty(delta.shape, dtype=bool)
        for chosen, strict in ((x.imag == 0, True), (x.imag != 0, False)):
            if chosen.any():
                result[chosen] = self.accept(delta[chosen], x[chosen], strict)
        return result

    def _continued(self, x: Complex) -> Complex:
        real, target = x.real, -x.imag
        height = np.maximum(target, _START * (self._reach + np.abs(real)))
        here = real - 1j * height
        delta = self._residue / here - self.chart.origin_double
        delta, good = newton(self.chart, delta, here)
        if not np.all(good & self.accept(delta, here, strict=False)):
            raise BranchError("the continuation could not start: no physical root far from the support")
        return self._descend(real, target, height, delta)

    def _descend(self, real: NDArray[np.float64], target: NDArray[np.float64], height: NDArray[np.float64],
                 delta: Complex) -> Complex:
        ratio = np.full(real.shape, 0.5)
        floor = 1e-16 * np.maximum(np.abs(real), 1e-300)
        active = height > target
        for _ in range(_ROUNDS):
            index = np.flatnonzero(active)
            if not index.size:
                return delta
            following = height[index] * ratio[index]
            following = np.where(following <= np.maximum(target[index], floor[index]), target[index], following)
            moved, good = self._step(real[index], height[index], following, delta[index])
            delta[index] = np.where(good, moved, delta[index])
            height[index] = np.where(good, following, height[index])
            ratio[index] = np.where(good, np.maximum(ratio[index] ** 1.5, 0.1), np.sqrt(ratio[index]))
            if self.chart.test is not None:
                self._shortcut(index, real, target, height, delta)
            active = height > target
        worst = float(np.max((height - target)[active] / self._reach))
        raise ConvergenceError(
            "continuation to the real axis", worst, None, f"it stopped near x = {real[active][0]:.6g}; ask for digits=…"
        )

    def _step(self, real: NDArray[np.float64], height: NDArray[np.float64], following: NDArray[np.float64],
              delta: Complex) -> tuple[Complex, Mask]:
        here, there = real - 1j * height, real - 1j * following
        with np.errstate(all="ignore"):
            value, slope = self.chart.point(delta)
            predicted = delta + (there - here) / (value * slope)
        moved, good = newton(self.chart, predicted, there)
        near = np.abs(moved - predicted) <= 0.5 * np.abs(predicted - delta) + 1e-12 * np.abs(delta)
        return moved, good & near & self.accept(moved, there, strict=False)

    def _shortcut(self, index: NDArray[np.intp], real: NDArray[np.float64], target: NDArray[np.float64],
                  height: NDArray[np.float64], delta: Complex) -> None:
        """Try the target itself: the local test makes any root that passes the right one."""
        low = index[height[index] < 0.05 * self._reach]
        low = low[height[low] > target[low]]
        if not low.size:
            return
        goal = real[low] - 1j * target[low]
        moved, good = newton(self.chart, delta[low], goal, steps=8)
        on_axis = target[low] == 0
        good &= np.where(on_axis, self.accept(moved, goal, strict=True), self.accept(moved, goal, strict=False))
        delta[low] = np.where(good, moved, delta[low])
        height[low] = np.where(good, target[low], height[low])
