"""One band of a support, represented once: panels of Chebyshev nodes in a variable that resolves the ends.

On each band x = x(θ), 0 ≤ θ ≤ π/2, is chosen so that the parameter q and the mass density g(θ) = ρ(x)·dx/dθ are
analytic up to both ends. Panels are halved until the Chebyshev series of g on each is resolved. They serve two
purposes: they start Newton's method for the density anywhere in the band, and they integrate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from freeattn.errors import ConvergenceError

__all__ = [
    "NODES", "POINTS", "TO_COEFFICIENTS", "WEIGHTS", "BandMap", "LinearMap", "OffsetMap", "PanelBand", "build_panels",
]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

NODES = 16
_RESOLVED = 2e-13  # last coefficients over the largest one of the band: near the rounding of ρ itself
_ROUNDING_FLOOR = 1e-15  # panels whose whole mass is below this share are resolved by definition
_MAX_DEPTH = 45
_MOST_PANELS = 512  # unresolved at once; a smooth density has a handful, at its ends
_TINY = float(np.finfo(float).tiny)
_BISECTIONS = 54  # halvings of [−1, 1] to the last bit of a double
_LINEAR = 1e-5  # of θ: nearer to a hard end g is its tangent to 1e-10, and the series has no digits left
_LOG_SCALE = 0.05  # a left edge below this share of the right one is resolved on a logarithmic scale

POINTS = np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)[::-1]
TO_COEFFICIENTS = np.linalg.inv(chebyshev.chebvander(POINTS, NODES - 1))
_VANDERMONDE = {side: chebyshev.chebvander((POINTS + side) / 2, NODES - 1) for side in (-1, 1)}  # onto halves
WEIGHTS = np.array([2.0 / (1 - k * k) if k % 2 == 0 else 0.0 for k in range(NODES)]) @ TO_COEFFICIENTS


@dataclass(frozen=True)
class BandMap:
    """x(θ) on [left, right].

    order = 0: square-root edges at both ends, x = left cos²θ + right sin²θ, or the same for log x when left is small
    and positive; order = k > 1: hard edge ρ ~ (x − left)^{1/k−1}, x = left + (right − left)·sin^{2k} θ, or at the
    right end with `hard_right`, x = right − (right − left)·cos^{2k} θ.
    """

    left: float
    right: float
    order: float = 0
    hard_right: bool = False

    @property
    def logarithmic(self) -> bool:
        """True when the map acts on log x."""
        return self.order == 0 and 0 < self.left < _LOG_SCALE * self.right

    @property
    def hard_end(self) -> float:
        """Where the density diverges; meant for order > 1 only."""
        return self.right if self.hard_right else self.left

    def inside(self, x: Array) -> NDArray[np.bool_]:
        """Where x is strictly between the ends."""
        return (x > self.left) & (x < self.right)

    def point(self, theta: Array) -> Array:
        """x(θ)."""
        width = self.right - self.left
        if self.hard_right:
            return self.right - width * np.cos(theta) ** (2 * self.order)
        sine = np.sin(theta) ** 2
        if self.order:
            return self.left + width * sine**self.order
        if self.logarithmic:
            log = np.log(self.right / self.left)
            lower = self.left * np.exp(log * sine)
            upper = self.right * np.exp(-log * np.cos(theta) ** 2)
            return np.where(theta < np.pi / 4, lower, upper)
        return np.where(theta < np.pi / 4, self.left + width * sine, self.right - width * np.cos(theta) ** 2)

    def slope(self, theta: Array) -> Array:
        """dx/dθ."""
        twice = np.sin(2 * theta)
        if self.order:
            near = np.cos(theta) if self.hard_right else np.sin(theta)
            return self.order * twice * (self.right - self.left) * near ** (2 * self.order - 2)
        if self.logarithmic:
            return np.log(self.right / self.left) * twice * self.point(theta)
        return (self.right - self.left) * twice

    def angle(self, x: Array) -> Array:
        """θ(x), accurate near both ends."""
        if self.order:
            above, width = (self.right - x if self.hard_right else x - self.left), self.right - self.left
            log = _log_ratio(above, width)
            share = np.minimum(above / width, 1.0)
            near, far = share ** (0.5 / self.order), np.sqrt(-np.expm1(log / self.order))
            return np.arctan2(far, near) if self.hard_right else np.arctan2(near, far)
        if self.logarithmic:
            below, above = -_log_ratio(self.left, x), -_log_ratio(x, self.right)
        else:
            below, above = x - self.left, self.right - x
        return np.arctan2(np.sqrt(np.maximum(below, 0.0)), np.sqrt(np.maximum(above, 0.0)))


class LinearMap(BandMap):
    """The same without a logarithmic scale."""

    @property
    def logarithmic(self) -> bool:
        return False


class OffsetMap(LinearMap):
    """The same, with x measured from the nearer end in θ: from the right end negative.

    Beside an end where the density diverges, x itself has not the digits that the density asks for.
    """

    def point(self, theta: Array) -> Array:
        width, power = self.right - self.left, self.order or 1
        middle = np.pi / 4
        from_left = width * np.sin(np.minimum(theta, middle)) ** (2 * power)
        from_right = width * np.expm1(power * np.log1p(-np.cos(np.maximum(theta, middle)) ** 2))
        return np.where(theta < middle, from_left, from_right)


def _log_ratio(small: Array | float, large: Array | float) -> Array:
    """log(small/large) ≤ 0, without cancellation where the two are close."""
    share = np.maximum(small / np.maximum(large, _TINY), _TINY)
    close = np.maximum((large - small) / np.maximum(large, _TINY), 0.0)
    return np.where(share > 0.5, np.log1p(-np.minimum(close, 0.5)), np.log(np.minimum(share, 1.0)))


@dataclass(frozen=True)
class PanelBand:
    """Panels of one band: breakpoints in θ, Chebyshev coefficients of the solution and of g, masses, cumulative mass.

    The solution is what the engine solves for at each x: one number δ, or a vector of unknowns.
    """

    map: BandMap
    breaks: Array  # panels + 1
    delta: Complex  # panels × NODES (× unknowns), Chebyshev coefficients of the solution
    density: Array  # panels × NODES, Chebyshev coefficients of g
    primitive: Array  # panels × (NODES + 1), Chebyshev coefficients of ∫ g from the panel's start
    cumulative: Array  # panels + 1, mass up to each break

    @property
    def mass(self) -> float:
        """Mass of the band."""
        return float(self.cumulative[-1])

    def locate(self, theta: Array) -> tuple[NDArray[np.intp], Array]:
        """(panel, local coordinate in [−1, 1])."""
        panel = np.clip(np.searchsorted(self.breaks, theta, side="right") - 1, 0, self.breaks.size - 2)
        low, high = self.breaks[panel], self.breaks[panel + 1]
        return panel, (2 * theta - low - high) / (high - low)

    def guess(self, theta: Array) -> Complex:
        """The solution at θ by interpolation: a start for Newton's method."""
        panel, local = self.locate(theta)
        return _clenshaw(self.delta[panel], local)

    def density_series(self, x: Array) -> Array:
        """ρ(x) from the series of g, or from its tangent beside a hard end; its limit 0 at a square-root edge."""
        theta = self.map.angle(x)
        panel, local = self.locate(theta)
        slope = self.map.slope(theta)
        with np.errstate(divide="ignore", invalid="ignore"):
            rho = _clenshaw(self.density[panel], local) / slope
        rho = np.where(slope > 0, np.maximum(rho, 0.0), 0.0)
        beside = self.beside_hard_end(x)
        if beside.any():  # ρ = c·|x − x₀|^{1/k − 1}, from g = t·g'(0)
            order, width = self.map.order, self.map.right - self.map.left
            with np.errstate(divide="ignore"):
                rho[beside] = self._hard_slope * self._from_hard_end(x[beside]) ** (2 - 2 * order) / (2 * order * width)
        return rho

    def beside_hard_end(self, x: Array) -> NDArray[np.bool_]:
        """Where the series of g has no digits, and its tangent at a hard end has."""
        return self._from_hard_end(x) < _LINEAR if self.map.order else np.zeros(x.shape, dtype=bool)

    def _from_hard_end(self, x: Array) -> Array:
        """t = (|x − x₀|/width)^{1/2k}, the angle from a hard end x₀ next to it; π/2 − θ has not its digits."""
        return (np.abs(x - self.map.hard_end) / (self.map.right - self.map.left)) ** (0.5 / self.map.order)

    @property
    def _hard_slope(self) -> float:
        """|dg/dθ| at the hard end, where g is 0."""
        panel, side = (-1, 1.0) if self.map.hard_right else (0, -1.0)
        ends = self.breaks[[-2, -1] if self.map.hard_right else [0, 1]]
        n = np.arange(NODES)
        return float(abs(self.density[panel] @ (n**2 * side ** (n + 1))) * 2 / (ends[1] - ends[0]))

    @property
    def _linear(self) -> bool:
        """Whether mass near θ = 0 is that of the tangent of g."""
        return bool(self.map.order) and not self.map.hard_right

    def angle_of_mass(self, mass: Array) -> Array:
        """θ with `mass_to(θ)` = mass, by bisection in the one panel that holds it."""
        panel = np.clip(np.searchsorted(self.cumulative, mass, side="right") - 1, 0, self.breaks.size - 2)
        low, high = np.full(mass.shape, -1.0), np.full(mass.shape, 1.0)
        wanted, rows = mass - self.cumulative[panel], self.primitive[panel]
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            below = _clenshaw(rows, middle) < wanted
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        start, end = self.breaks[panel], self.breaks[panel + 1]
        theta = (start + end) / 2 + (end - start) / 2 * (low + high) / 2
        return np.where(theta < _LINEAR, np.sqrt(2 * mass / self._hard_slope), theta) if self._linear else theta

    def mass_to(self, theta: Array) -> Array:
        """∫ g from the band's left end to θ."""
        panel, local = self.locate(theta)
        mass = np.clip(self.cumulative[panel] + _clenshaw(self.primitive[panel], local), 0.0, self.mass)
        return np.where(theta < _LINEAR, self._hard_slope * theta**2 / 2, mass) if self._linear else mass

    def integrate(self, function: Callable[[Array], Any]) -> Any:
        """∫ f(x) ρ(x) dx over the band, f real or complex; panels are halved where f is rougher than g.

        Raises:
            ConvergenceError: when f is not resolved.
        """
        todo = [(k, -1.0, 1.0, 0) for k in range(self.breaks.size - 1)]
        total, scale = 0.0, 0.0
        while todo:
            panel, low, high, depth = todo.pop()
            local = (high + low) / 2 + (high - low) / 2 * POINTS
            start, end = self.breaks[panel], self.breaks[panel + 1]
            theta = (start + end) / 2 + (end - start) / 2 * local
            values = np.asarray(function(self.map.point(theta))) * chebyshev.chebval(local, self.density[panel])
            part = (WEIGHTS @ values).item() * (high - low) / 2 * (end - start) / 2
            tail = np.abs(TO_COEFFICIENTS[-2:] @ values).max() * (end - start) * (high - low)
            scale = max(scale, abs(part), abs(total))
            if tail <= 1e-12 * scale or tail == 0:
                total += part
            elif depth >= _MAX_DEPTH:
                raise ConvergenceError("integration against the law", tail / scale, 1e-12, "give a smoother function")
            else:
                middle = (low + high) / 2
                todo += [(panel, low, middle, depth + 1), (panel, middle, high, depth + 1)]
        return total


def _clenshaw(coefficients: NDArray[Any], local: Array) -> NDArray[Any]:
    """Row-wise Chebyshev series: points × NODES (× unknowns)."""
    place = local.reshape(local.shape + (1,) * (coefficients.ndim - 2))
    total = np.zeros(coefficients[:, 0].shape, dtype=coefficients.dtype)
    previous = np.zeros_like(total)
    for k in range(coefficients.shape[1] - 1, 0, -1):
        total, previous = 2 * place * total - previous + coefficients[:, k], total
    return place * total - previous + coefficients[:, 0]


def build_panels(
    band_map: BandMap,
    solve: Callable[[Array, Complex | None], tuple[Complex, Array]],
    resolved: float = _RESOLVED,
) -> PanelBand:
    """Halve panels of [0, π/2] until g is resolved on each.

    Args:
        solve: (x, start or None) ↦ (solution, ρ) at points inside the band; None asks for continuation from infinity.
        resolved: last coefficients of g over the largest one of the band; not below the accuracy of ρ.

    Raises:
        ConvergenceError: when a panel is still rough at the smallest size.
    """
    half = np.pi / 2
    finished: list[tuple[float, float, Complex, Array]] = []
    todo: list[tuple[float, float, Complex | None]] = [(half * k / 4, half * (k + 1) / 4, None) for k in range(4)]
    peak = 0.0
    for depth in range(_MAX_DEPTH):
        theta = np.array([(a + b) / 2 + (b - a) / 2 * POINTS for a, b, _ in todo])
        starts = None if depth == 0 else np.concatenate([start for _, _, start in todo if start is not None])
        delta, rho = solve(band_map.point(theta).ravel(), starts)
        mass = rho.reshape(theta.shape) * band_map.slope(theta)
        peak = max(peak, float(mass.max()))
        todo = _refine(todo, delta.reshape(theta.shape + delta.shape[1:]), mass, peak, finished, resolved)
        if not todo:
            return _assemble(band_map, finished)
        if len(todo) > _MOST_PANELS:
            break
    raise ConvergenceError(
        "resolution of a band", None, resolved, f"the band [{band_map.left:.6g}, {band_map.right:.6g}] is not resolved"
    )


def _refine(
    todo: list[tuple[float, float, Complex | None]], delta: Complex, mass: Array, peak: float,
    finished: list[tuple[float, float, Complex, Array]], resolved: float,
) -> list[tuple[float, float, Complex | None]]:
    children: list[tuple[float, float, Complex | None]] = []
    for (a, b, _), row, values in zip(todo, delta, mass, strict=True):
        coefficients, series = TO_COEFFICIENTS @ row, TO_COEFFICIENTS @ values
        tail = np.abs(series[-3:]).max()
        if tail <= resolved * peak or tail * (b - a) <= _ROUNDING_FLOOR * peak:
            finished.append((a, b, coefficients, series))
            continue
        middle = (a + b) / 2
        for low, high, side in ((a, middle, -1), (middle, b, 1)):
            children.append((low, high, _VANDERMONDE[side] @ coefficients))
    return children


def _assemble(band_map: BandMap, finished: list[tuple[float, float, Complex, Array]]) -> PanelBand:
    finished.sort(key=lambda panel: panel[0])
    breaks = np.array([panel[0] for panel in finished] + [np.pi / 2])
    primitive = []
    for a, b, _, series in finished:
        primitive.append(chebyshev.chebint(series * (b - a) / 2, lbnd=-1))
    masses = [float(chebyshev.chebval(1.0, row)) for row in primitive]
    return PanelBand(
        band_map, breaks, np.array([panel[2] for panel in finished]), np.array([panel[3] for panel in finished]),
        np.array(primitive), np.concatenate([[0.0], np.cumsum(masses)]),
    )
