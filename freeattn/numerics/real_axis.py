"""The physical solution on the real axis itself.

A point of the axis lies in a band (a complex solution in the cone), in a gap (a real solution whose traces increase),
or too near an edge to tell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.descent import Descent
from freeattn.numerics.trace_equation import VISIBLE, TraceEquation

__all__ = ["BAND", "GAP", "UNKNOWN", "Axis"]

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]
Mask = NDArray[np.bool_]

UNKNOWN, BAND, GAP = 0, 1, 2
_HEIGHTS = (1e-2, 1e-4, 1e-7, 1e-10)  # Im z over |x| from which the axis is tried
_AROUND = 0.3  # Im z over |x| on the way around an edge
_DOUBTFUL = 1e-6  # Im m over |m| below which it is compared with the rounding of m
_STEEPEST = 3.0  # power of x beyond which a trace is not continued as one


class Axis:
    """Solutions at real points."""

    def __init__(self, equation: TraceEquation, descent: Descent) -> None:
        self.equation, self._descent = equation, descent

    def classify(self, x: Real) -> tuple[NDArray[np.int_], Complex]:
        """(BAND, GAP or UNKNOWN, solution on the axis) at each point, by continuation from above."""
        above = x + 1j * _HEIGHTS[0] * np.abs(x)
        return self._lowered(x, above, *self._descent.attempt(above))

    def beyond(self, x: Real, u: Complex, there: Real) -> tuple[NDArray[np.int_], Complex]:
        """The same at points beyond given ones of a band, whose solutions are known: around whatever lies between."""
        above = there + 1j * _AROUND * np.abs(there)
        start, alive = self.equation.newton(self.predicted(u, x, above), above)
        if alive.any():
            alive[alive] = self.equation.in_cone(start[alive], above[alive])
        lower = there + 1j * _HEIGHTS[0] * np.abs(there)
        below, reached = self._descent.follow(above, lower, start)
        return self._lowered(there, lower, below, alive & reached)

    def _lowered(self, x: Real, above: Complex, u: Complex, alive: Mask) -> tuple[NDArray[np.int_], Complex]:
        """Sort points, from solutions a little above them (where `alive`)."""
        status, solution = np.zeros(x.shape, dtype=int), np.full((x.size, self.equation.count), np.nan + 0j)
        for lower in (*_HEIGHTS[1:], 0.0):
            todo = np.flatnonzero((status == UNKNOWN) & alive)
            if not todo.size:
                break
            status[todo], solution[todo] = self._touch(x[todo], above[todo], u[todo])
            todo = np.flatnonzero((status == UNKNOWN) & alive)
            if lower and todo.size:
                following = x[todo] + 1j * lower * np.abs(x[todo])
                u[todo], alive[todo] = self._descent.follow(above[todo], following, u[todo])
                above[todo] = following
        return status, solution

    def _touch(self, x: Real, above: Complex, u: Complex) -> tuple[NDArray[np.int_], Complex]:
        """The axis itself, from the solution a little above it."""
        equation = self.equation
        tangent = equation.tangent(equation.matrices(u, above))
        start = np.where(np.isfinite(tangent), u - 1j * above.imag[:, None] * tangent, u)
        solution, band = self.in_band(start, x)
        gap = np.zeros(x.shape, dtype=bool)
        rest = np.flatnonzero(~band)
        if rest.size:
            real, good = self.in_gap(start[rest].real, x[rest])
            solution[rest], gap[rest] = real, good
        return np.where(band, BAND, np.where(gap, GAP, UNKNOWN)), solution

    def in_band(self, start: Complex, x: Real) -> tuple[Complex, Mask]:
        """Newton on the axis: (solution, whether it is the physical one of a band)."""
        u, good, matrices, cone = self.equation.roots(start, x.astype(complex))
        m = self.equation.output(matrices)
        with np.errstate(all="ignore"):
            good &= cone & (m.imag > VISIBLE * np.abs(m))
            small = np.flatnonzero(good & (m.imag < _DOUBTFUL * np.abs(m)))
            if small.size:  # a real solution of a law far from 0, such as S + 10⁵, has that much by rounding
                error = self.equation.output_error(u[small], x[small].astype(complex), [g[small] for g in matrices])
                good[small] = m.imag[small] > error
        return u, good

    def in_gap(self, start: Real, x: Real) -> tuple[Real, Mask]:
        """Newton among real numbers: (solution, whether it is the physical one of a gap)."""
        u, good = self.equation.newton(start, x)
        if good.any():
            good[good] = self.equation.increasing(u[good], x[good])
        return u, good

    def predicted(self, u: Complex, x: Real, there: Real | Complex) -> Complex:
        """The solution at other points of the band, or above it: every trace continued as a power of x."""
        tangent = self.equation.tangent(self.equation.matrices(u, x.astype(complex)))
        with np.errstate(all="ignore"):
            power = x[:, None] * tangent / u
            moved = u * np.exp(power * np.log(there / x)[:, None])
        usable = np.isfinite(moved) & (np.abs(power) < _STEEPEST)
        return np.where(usable, moved, u)

    def slope(self, u: Complex, x: float) -> Complex:
        """du/dx at one point."""
        return self.equation.tangent(self.equation.matrices(u[None], np.array([x + 0j])))[0]

    def power(self, u: Complex, x: float) -> float:
        """d log ρ / d log x at one point of a band."""
        matrices = self.equation.matrices(u[None], np.array([x + 0j]))
        m, rate = (self.equation.output(values)[0] for values in (matrices, self.equation.rates(matrices)))
        return float(x * rate.imag / m.imag)
