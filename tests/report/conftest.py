"""A law in closed form with everything that tables and plots look at: semicircles and an atom at 0."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import mpmath
import numpy as np
import pytest

from freeattn.model.attention import Attention


class Atom(NamedTuple):
    location: float
    weight: Fraction


@dataclass(frozen=True)
class Semicircles:
    """Equal semicircles around `centers` with a common radius, scaled by `scale`, and an atom at 0."""

    spec: Attention
    centers: tuple[float, ...] = (2.0,)
    radius: float = 1.0
    atom: Fraction = Fraction(1, 4)
    scale: float = 1.0

    @property
    def atoms(self):
        return (Atom(0.0, self.atom),) if self.atom else ()

    @property
    def signed(self):
        return min(self.centers) < self.radius

    @property
    def mean(self):
        return float(self.moments(1)[0])

    def moments(self, k, digits=15):
        del digits
        powers = range(1, k + 1)
        mass = (1 - float(self.atom)) / len(self.centers)
        nodes = np.cos(np.pi * np.arange(1, 41) / 41)  # Gauss-Chebyshev of the second kind
        weights = 2 / 41 * np.sin(np.pi * np.arange(1, 41) / 41) ** 2
        points = self.scale * (np.array(self.centers)[:, None] + self.radius * nodes)
        return tuple(mpmath.mpf(float(mass * (points**p @ weights).sum())) for p in powers)

    @property
    def edges(self):
        return tuple((self.scale * (c - self.radius), self.scale * (c + self.radius)) for c in self.centers)

    def edges_to(self, digits):
        del digits
        return tuple((mpmath.mpf(left), mpmath.mpf(right)) for left, right in self.edges)

    @property
    def edge_exponents(self):
        return ((0.5, 0.5),) * len(self.centers)

    @property
    def band_masses(self):
        return ((1 - float(self.atom)) / len(self.centers),) * len(self.centers)

    def density(self, x):
        u = (np.asarray(x, dtype=float)[..., None] / self.scale - np.array(self.centers)) / self.radius
        heights = 2 / np.pi * np.sqrt(np.clip(1 - u**2, 0, None)) / (self.radius * self.scale)
        return heights.sum(axis=-1) * (1 - float(self.atom)) / len(self.centers)

    def cdf(self, x):
        x = np.asarray(x, dtype=float)
        u = np.clip((x[..., None] / self.scale - np.array(self.centers)) / self.radius, -1, 1)
        parts = (0.5 + (u * np.sqrt(1 - u**2) + np.arcsin(u)) / np.pi).sum(axis=-1)
        return (x >= 0) * float(self.atom) + (1 - float(self.atom)) * parts / len(self.centers)

    def quantile(self, p):
        x = np.linspace(0, self.edges[-1][1], 4001)
        return np.interp(p, self.cdf(x), x)

    def normalized(self):
        return replace(self, scale=self.scale / self.mean)


@pytest.fixture
def spec():
    return Attention(
        n_tokens=512, d_model=768, n_heads=12, d_key=64, d_value=64, beta=Fraction(1, 2),
        not_modelled=("causal mask",),
    )


@pytest.fixture
def law(spec):
    return Semicircles(spec)


@pytest.fixture
def two_bands(spec):
    return Semicircles(spec, centers=(2.0, 6.0), atom=Fraction(0))
