"""free-matrix-laws: words in square Gaussian matrices by a self-adjoint linearization that the user writes.

The word x_1 … x_2k = G_1 … G_k G_kᵀ … G_1ᵀ has the 2k × 2k linearization with the letters on the antidiagonal and −1
just below it. G = (s + i s')/√2 with semicircular s, s' has the limits of a real Gaussian matrix.
`solve_cauchy_linearized` is run 1e-3 above the axis, the lower end of what its documentation advises, started from the
solution at the neighbouring point as it advises too. Rectangular matrices have no linearization of this form; the
pinned commit has no scalar Marchenko-Pastur law yet (a later one has). It returns neither edges nor atoms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from free_matrix_laws import transforms
from protocol import CannotError, answer, serve

HEIGHT = 1e-3


def linearization(count: int) -> tuple[np.ndarray, np.ndarray]:
    """(constant matrix, coefficients of the semicircular letters) of G_1 … G_k G_kᵀ … G_1ᵀ."""
    size = 2 * count
    constant = np.zeros((size, size), dtype=complex)
    for row in range(1, size):
        constant[row, size - row] = -1
    letters = []
    for row in range(count):
        for entry in (1, 1j):
            letter = np.zeros((size, size), dtype=complex)
            letter[row, size - 1 - row], letter[size - 1 - row, row] = entry, np.conj(entry)
            letters.append(letter / math.sqrt(2))
    return constant, np.array(letters)


class LinearizationMethod:
    def prepare(self, ratios: tuple[float, ...]) -> Any:
        if set(ratios) != {1.0}:
            raise CannotError("no rectangular matrices")
        return linearization(len(ratios))

    def density(self, state: Any, points: np.ndarray) -> np.ndarray:
        constant, letters = state
        solution, values = None, []
        for x in points[::-1]:  # from the right, where the density is small, to the hard edge
            solution = transforms.solve_cauchy_linearized(
                complex(x, HEIGHT), constant, letters, eps_reg=HEIGHT, G0=solution
            )
            values.append(-solution[0, 0].imag / math.pi)
        return np.array(values[::-1])

    def describe(self, _: Any) -> dict[str, Any]:
        return {}


if __name__ == "__main__":
    serve(lambda request: answer(LinearizationMethod(), request))
