"""scikit-rmt 2.1.1: `MarchenkoPasturDistribution(ratio)`, a `scipy.stats` distribution with real entries of variance 1.

It has no products. Its law of ratio above 1 has no atom and no attribute for one; edges are `lambda_minus` and
`lambda_plus`.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from protocol import CannotError, answer, serve
from skrmt.ensemble import MarchenkoPasturDistribution


class DistributionMethod:
    def prepare(self, ratios: tuple[float, ...]) -> Any:
        if len(ratios) > 1:
            raise CannotError("no products of laws")
        return MarchenkoPasturDistribution(ratio=ratios[0])

    def density(self, state: Any, points: np.ndarray) -> np.ndarray:
        return state.pdf(points)

    def describe(self, state: Any) -> dict[str, Any]:
        return {"edges": [[float(state.lambda_minus), float(state.lambda_plus)]]}


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    serve(lambda request: answer(DistributionMethod(), request))
