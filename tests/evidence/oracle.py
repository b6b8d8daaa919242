"""A law for tests, from the polynomial of the limit by Newton continuation on a grid: slow, about 1e-4, independent."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from freeattn.model.attention import Attention


_CELLS = 4000
_START = 1e-5  # mean-one units; below it the polynomial loses its digits


class PolynomialLaw:
    """Softmax law of every output with independent keys and values (arXiv 2610.10033, mean-one form of w).

    w(λ) = ∫ x/(x+λ) dν solves λ²w − λ(1 − cw/γ)Π(−w) − (c(1−c)/γ)Π(−w)² = 0, w ~ 1/λ at infinity; m(z) = (1−w)/λ, λ = −z.
    """

    def __init__(self, spec: Attention, dilation: float = 1.0) -> None:
        beta = float(spec.beta)
        theta_1 = math.expm1(beta**2)
        self.spec = spec
        self._c = beta**2 / theta_1
        self._gamma = float(spec.gamma_kv if spec.output == "head-sum" else spec.gamma_key)
        out = float(spec.gamma_out or 1) if spec.output == "mha" else 1.0
        value = float(spec.gamma_value) if spec.output == "values" else 1.0
        self.mean = theta_1 * out * value * float(spec.value_scale * spec.output_scale) ** 2 * dilation
        self._limits = {
            "mha": lambda: [1, spec.n_heads, spec.gamma_value, spec.gamma_out],
            "values": lambda: [1, spec.n_heads, spec.gamma_value],
            "attention": lambda: [1, spec.n_heads],
            "head-sum": lambda: [1, 1],
        }[spec.output]()
        self._limits = [float(limit) for limit in self._limits]
        zero = 1 - min(self._limits)
        self.atoms = (SimpleNamespace(location=0.0, weight=zero),) if zero > 0 else ()
        self._product = np.poly1d([1.0])
        for limit in self._limits:
            self._product *= np.poly1d([-1 / limit, 1.0])
        right = self._right_edge()
        self.edges = ((0.0, right * self.mean),)
        self._tabulate(zero, right)

    def _right_edge(self) -> float:
        w = -np.geomspace(1e-4, 1e3, 200001)
        q = self._c * w / self._gamma
        s_transform = 2 / (1 - q + np.sqrt((1 + q) ** 2 - 4 * self._c * q))
        return float(np.min(-self._product(w) / (w * s_transform)))

    def _equation(self, lam: Any) -> Any:
        c, g, pi = self._c, self._gamma, self._product
        line = np.poly1d([-c / g, 1.0])

        def evaluate(w: Any) -> tuple[Any, Any]:
            first, square = line * pi, pi * pi
            value = lam**2 * w - lam * first(w) - c * (1 - c) / g * square(w)
            slope = lam**2 - lam * first.deriv()(w) - c * (1 - c) / g * square.deriv()(w)
            return value, slope

        return evaluate

    def _density(self, x: Any) -> Any:
        w = None
        for height in np.geomspace(300.0, 1e-7, 500):
            lam = -(x + 1j * height * np.minimum(np.maximum(x, 1e-9) + height, 1))
            w = 1 / lam if w is None else w
            equation = self._equation(lam)
            for _ in range(4):
                value, slope = equation(w)
                w = w - value / slope
        return np.maximum(((1 - w) / lam).imag / np.pi, 0)

    def _tabulate(self, zero: float, right: float) -> None:
        """Masses of cells between start and right edge; what is left below start goes into one cell at the bottom."""
        start = (_START / right) ** (1 / 8)
        angle = np.arcsin(start) + np.linspace(0, 1, _CELLS + 1) * (np.pi / 2 - np.arcsin(start))
        middle, width = (angle[1:] + angle[:-1]) / 2, np.diff(angle)
        x = right * np.sin(middle) ** 8  # nodes crowd at both ends
        mass = self._density(x) * right * 8 * np.sin(middle) ** 7 * np.cos(middle) * width
        bottom = max(1 - zero - mass.sum(), 0.0)
        assert mass.sum() + bottom - (1 - zero) < 1e-4, "the continuation left its branch"
        self._x = np.concatenate([[0.0], x * self.mean])
        self._mass = np.concatenate([[bottom], mass])
        self._grid = np.concatenate([[0.0], right * self.mean * np.sin(angle) ** 8])
        self._cumulative = zero + np.concatenate([[0.0], np.cumsum(self._mass)])

    def moments(self, k: int) -> list[float]:
        return [float(np.sum(self._mass * self._x**order)) for order in range(1, k + 1)]

    def cdf(self, x: Any) -> Any:
        return np.where(np.asarray(x) < 0, 0.0, np.interp(x, self._grid, self._cumulative))

    def quantile(self, p: Any) -> Any:
        return np.interp(p, self._cumulative, self._grid)
