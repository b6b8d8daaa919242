"""Inverses of small matrices: right entry by entry, and not-a-number instead of a wrong number."""

from __future__ import annotations

import numpy as np
import pytest

from freeattn.numerics.small_inverse import inverses


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8])
def test_product_with_the_matrix_is_the_identity(size):
    rng = np.random.default_rng(size)
    matrices = rng.normal(size=(7, size, size)) + 1j * rng.normal(size=(7, size, size))
    assert np.allclose(inverses(matrices) @ matrices, np.eye(size), atol=1e-11)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_a_singular_matrix_gives_no_number_and_leaves_the_others(size):
    matrices = np.stack([np.zeros((size, size)), np.eye(size), np.full((size, size), np.nan)]).astype(complex)
    found = inverses(matrices)
    assert np.all(np.isnan(found[0])) and np.all(np.isnan(found[2]))  # noqa: PT018
    assert np.array_equal(found[1], np.eye(size))


def test_small_entries_beside_large_ones_keep_their_digits():
    """[[−a, −1], [−1, −b]] with a b = 1e-22: the entries of the inverse are −b/(1 − ab) … to rounding."""
    a, b = 3e-17 + 1e-18j, 4e-6 - 1e-7j
    found = inverses(np.array([[[-a, -1], [-1, -b]]]))[0]
    exact = np.array([[-b, 1], [1, -a]]) / (a * b - 1)
    assert np.max(np.abs(found / exact - 1)) < 1e-15
