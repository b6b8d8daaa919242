"""freealg 0.12.2, two ways.

"distributions": the classes of `freealg.distributions`. `FussCatalan(p).density` is taken 1e-9 above the axis instead
of the default 2e-4, which blurs; its Newton iteration starts from −1/z either way.

"eigenvalues": what the package is made for, an algebraic curve fitted to eigenvalues alone, without a model. It gets
the 2,000 eigenvalues of one draw (seed 0; drawing is not timed), the exact degrees of the polynomial in m and z, as its
documentation does for laws whose degrees are known, and which coefficients z^i m^j may be there: 0 ≤ j − i ≤ 1, its
option `triangular`, without which the fits are far worse. Everything else is the default of `AlgebraicForm`;
regularization, the exact support and logarithmic scale were tried and did not help. Its errors include the noise of
that draw.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from freealg import AlgebraicForm
from freealg.distributions import FussCatalan, MarchenkoPastur
from protocol import CannotError, answer, serve

SIZE, SEED = 2000, 0
HEIGHT = 1e-9


class DistributionMethod:
    def prepare(self, ratios: tuple[float, ...]) -> Any:
        if len(ratios) == 1:
            return MarchenkoPastur(ratios[0])
        if set(ratios) == {1.0}:
            return FussCatalan(len(ratios))
        raise CannotError("no distribution of unequal ratios")

    def density(self, state: Any, points: np.ndarray) -> np.ndarray:
        return state.density(points, eta=HEIGHT) if isinstance(state, FussCatalan) else state.density(points)

    def describe(self, state: Any) -> dict[str, Any]:
        return {"edges": [[float(end) for end in band] for band in state.support()]}


class EigenvalueMethod:
    def __init__(self, ratios: tuple[float, ...]) -> None:
        rng, rows = np.random.default_rng(SEED), SIZE
        product = np.eye(SIZE)
        for ratio in ratios:
            columns = round(SIZE / ratio)
            product = product @ rng.standard_normal((rows, columns)) / np.sqrt(columns)
            rows = columns
        self.eigenvalues = np.linalg.eigvalsh(product @ product.T)

    def prepare(self, ratios: tuple[float, ...]) -> Any:
        form = AlgebraicForm(self.eigenvalues)
        form.fit(deg_m=len(ratios) + 1, deg_z=len(ratios), triangular=(0, 1))
        return form

    def density(self, state: Any, points: np.ndarray) -> np.ndarray:
        return state.density(points, ac_only=True)

    def describe(self, state: Any) -> dict[str, Any]:
        return {
            "edges": [[float(end) for end in band] for band in state.support()],
            "atoms": [[float(location), float(weight)] for location, weight in state.atoms()],
        }


if __name__ == "__main__":
    serve(
        lambda request: answer(
            DistributionMethod() if request["method"] == "distributions" else EigenvalueMethod(request["ratios"]),
            request,
        )
    )
