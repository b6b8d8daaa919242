"""Values of a spectrum that lie outside the bands of a law.

Beside a soft edge the density goes like a square root, and the outermost of n eigenvalues fluctuates by a multiple of
n^{−2/3} that depends on the curvature of the density there. The length δ of the piece of a band beside its edge that
holds 1/n of the mass has the same power and the same curvature: at a soft edge it is (3π/2)^{2/3} = 2.81 units of the
Tracy–Widom law, which an outermost eigenvalue of a real Gaussian matrix exceeds in one of some four hundred spectra.
Elsewhere (hard edges, cusps) it scales as the eigenvalues there do. So a value is an *outlier* when it is further than
δ from every band. Both ends of every band count; exact zeros do not, the mass at zero is counted by itself.

Source of the fluctuations: Tracy, Widom, Comm. Math. Phys. 177 (1996) 727.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from freeattn.evidence.compare import ComparableLaw, Spectrum

__all__ = ["Outlier", "outliers_of"]


@final
@dataclass(frozen=True)
class Outlier:
    """One value outside the bands.

    Attributes:
        value: the value.
        edge: the end of a band that is nearest in units of δ.
        distance: |value − edge|/δ > 1.
    """

    value: float
    edge: float
    distance: float

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"value": self.value, "edge": self.edge, "distance": self.distance}


def outliers_of(values: Spectrum, law: ComparableLaw) -> tuple[Outlier, ...]:
    """All outliers of a spectrum of n values, the furthest first; see the module for the rule."""
    edges, sides, reaches = _ends(law, len(values))
    left, right = edges[sides < 0], edges[sides > 0]
    inside = ((values[:, None] >= left) & (values[:, None] <= right)).any(axis=1)
    outside = values[~inside & (values != 0)]
    if not outside.size:
        return ()
    distances = np.abs(outside[:, None] - edges) / reaches
    nearest = distances.argmin(axis=1)
    found = [
        Outlier(float(value), float(edges[k]), float(distance))
        for value, k, distance in zip(outside, nearest, distances.min(axis=1), strict=True) if distance > 1
    ]
    return tuple(sorted(found, key=lambda one: -one.distance))


def _ends(law: ComparableLaw, n: int) -> tuple[Spectrum, Spectrum, Spectrum]:
    """Ends of bands, −1 or +1 for left and right, and δ of each (with less than 1/n of the mass: the width)."""
    bands = np.array([[float(end) for end in band] for band in law.edges])
    levels = np.asarray(law.cdf(bands.ravel()), dtype=float).reshape(bands.shape)
    inner = np.clip(levels + np.array([1.0, -1.0]) / n, levels[:, :1], levels[:, 1:])
    # A quantile at the level of an end may be any point of the gap beside it.
    quantiles = np.asarray(law.quantile(inner.ravel()), dtype=float).reshape(bands.shape)
    places = np.clip(quantiles, bands[:, :1], bands[:, 1:])
    full = levels[:, 1] - levels[:, 0] <= 1 / n
    reaches = np.where(full[:, None], bands[:, 1:] - bands[:, :1], np.abs(places - bands))
    return bands.ravel(), np.tile([-1.0, 1.0], len(bands)), reaches.ravel()
