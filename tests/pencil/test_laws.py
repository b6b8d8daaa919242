"""Laws of MᵀM and of M itself, deterministic letters, and direct sums: against closed forms and each other."""

from __future__ import annotations

from fractions import Fraction

import models
import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from random_models import squares
from test_dyson import residuals

import freeattn as fa
from freeattn.errors import InputError, NotCoveredError
from freeattn.model.expression import concatenate, diagonal, gaussian, identity, wigner
from freeattn.model.letters import copies, space
from freeattn.numerics.dyson_solver import DysonSolver
from freeattn.theory.dyson import dyson_of
from freeattn.theory.moments import moments
from freeattn.theory.splitting import split

N, P = space("n", 20), space("p", 30)
S, R = wigner("S", N, Fraction(1, 20)), wigner("R", N, Fraction(1, 20))
X, Y = gaussian("X", N, P, Fraction(1, 30)), gaussian("Y", N, space("q", 10), Fraction(1, 10))
D = diagonal("D", N, [1, -1, 3], [2, 1, 1])
E = diagonal("E", N, [0, 2, 1], [2, 1, 1])
POINTS = np.array([0.3 + 0.2j, -1 + 0.1j, 2.5 + 0.5j, 6 + 1j])


def stieltjes(expression, of="gram", values=None):
    return DysonSolver(dyson_of(expression, of), values).stieltjes(POINTS)


def close(found, known):
    return float(np.max(np.abs(found / known - 1))) < 1e-10


def test_the_semicircle_and_its_moments():
    assert moments(dyson_of(S, "self-adjoint"), 6) == (0, 1, 0, 2, 0, 5)
    assert close(stieltjes(S, "self-adjoint"), (-POINTS + np.sqrt(POINTS - 2) * np.sqrt(POINTS + 2)) / 2)


def test_the_anticommutator_of_two_semicirculars():
    system = dyson_of(S @ R + R @ S, "self-adjoint")
    assert moments(system, 6) == (0, 2, 0, 10, 0, 66)
    assert len(system.pencil.blocks) == 3
    assert close(stieltjes(S @ R + R @ S, "self-adjoint"), stieltjes(R @ R - S @ S, "self-adjoint"))  # rotated by 45°


def test_a_semicircular_and_a_deterministic_diagonal_matrix():
    """D + S: m = Σ w_k/(t_k − z − m)."""
    m = stieltjes(D + S, "self-adjoint")
    assert close(m, 0.5 / (1 - POINTS - m) + 0.25 / (-1 - POINTS - m) + 0.25 / (3 - POINTS - m))


def test_covariant_rows():
    """Rows of covariance T: m = 1/(−z + ∫ t/(1 + y t m)), the Marchenko-Pastur equation with y = n/p."""
    covariance = diagonal("T", P, [1, 4], [2, 1])
    m = stieltjes(X @ covariance @ X.T, "self-adjoint")
    assert close(1 / m, -POINTS + 2 / 3 / (1 + 2 / 3 * m) + 4 / 3 / (1 + 4 * 2 / 3 * m))


@settings(max_examples=25, deadline=None, derandomize=True)
@given(squares())
def test_diagonal_letters_are_numbers_on_their_eigenspaces(expression):
    """The space as a direct sum of eigenspaces is another model of Gaussian letters alone, of the same law."""
    for of, matrix in (("gram", expression), ("self-adjoint", expression + expression.T)):
        if matrix.terms:
            written = split(matrix, {})
            found = [m.subs(written.sizes) for m in moments(dyson_of(written.expression, of), 2)]
            assert list(moments(dyson_of(matrix, of), 2)) == found


def test_both_ways_to_write_diagonal_letters_solve_to_one_law():
    for of, matrix in (("gram", D @ S @ E + X @ X.T), ("self-adjoint", D @ S @ D + E @ X @ X.T @ E - D)):
        written = split(matrix, {})
        assert close(stieltjes(matrix, of), stieltjes(written.expression, of, written.sizes))


def test_one_letter_of_one_eigenvalue_is_a_multiple_of_the_identity():
    two = diagonal("D", N, [2])
    assert close(stieltjes(two @ S + two, "gram"), stieltjes(2 * S + 2 * identity(N)))
    assert moments(dyson_of(identity(N) * 3), 3) == (9, 81, 729)
    assert close(stieltjes(3 * identity(N)), 1 / (9 - POINTS))


@pytest.mark.parametrize("matrix", [X, X @ X.T @ Y, D @ X + 2 * Y @ gaussian("Z", Y.columns, P, 1)])
def test_both_sides_of_a_product_have_the_same_nonzero_eigenvalues(matrix):
    rows, columns = matrix.rows.size, matrix.columns.size
    left, right = stieltjes(matrix), stieltjes(matrix, "cogram")
    assert close(columns * right, rows * left - (columns - rows) / POINTS)


def test_symbols_in_deterministic_letters():
    t, w, c = sp.symbols("t w c", positive=True)
    letter = diagonal("D", N, [t, -t], [w, 1 - w])
    m1, m2 = moments(dyson_of(letter + c * identity(N) + S, "self-adjoint"), 2)
    assert sp.expand(m1 - (t * (2 * w - 1) + c)) == 0
    assert sp.expand(m2 - (t**2 + 2 * c * t * (2 * w - 1) + c**2 + 1)) == 0


@pytest.mark.parametrize("of", ["gram", "cogram"])
def test_scalar_equations_hold_with_diagonal_letters_and_direct_sums(of):
    for expression in (E @ X + X, concatenate(X, D @ Y), S @ D + identity(N)):
        assert max(residuals(expression, of=of)) < 1e-10
    assert max(residuals(D @ S + S @ D - 2 * identity(N), of="self-adjoint")) < 1e-10


def test_a_concatenation_is_the_sum_of_its_parts():
    z = gaussian("Z", N, P, Fraction(1, 30), per=copies("heads", 3))
    family = copies("heads", 3)
    both, total = concatenate(X, Y), X @ X.T + Y @ Y.T
    assert moments(dyson_of(both), 3) == moments(dyson_of(total, "self-adjoint"), 3)
    assert close(stieltjes(both), stieltjes(total, "self-adjoint"))
    heads, parts = family.concatenate(S @ z), family.sum(S @ z @ z.T @ S)
    assert close(stieltjes(heads), stieltjes(parts, "self-adjoint"))
    assert both @ both.T == total
    assert heads @ heads.T == parts
    assert family.concatenate(X) @ family.concatenate(X).T == 3 * X @ X.T


def test_a_letter_on_a_direct_sum_has_a_block_for_each_part():
    both = concatenate(X, Y)
    out = gaussian("O", both.columns, P)
    assert [str(term) for term in (both @ out).terms] == ["X O[1]", "Y O[2]"]
    assert len((out @ out.T).terms) == 4
    assert moments(dyson_of(both @ out), 2) == moments(dyson_of(
        X @ gaussian("A", P, P) + Y @ gaussian("B", Y.columns, P)), 2)
    assert identity(both.columns) @ out == out
    assert both @ identity(both.columns) == both


def test_rows_that_are_a_direct_sum():
    stacked = concatenate(X, Y).T
    assert close(stieltjes(stacked), stieltjes(concatenate(X, Y), "cogram"))
    total = stacked @ concatenate(X, Y)
    assert close(stieltjes(total, "self-adjoint"), stieltjes(stacked))
    assert len(dyson_of(stacked).outputs) == 2


@pytest.mark.parametrize("count", [1, 12, 10**6])
def test_attention_of_all_heads_side_by_side(count):
    """√(n/h)[A_1 … A_h] against the transform calculus: ρ ⊠ MP_{1/h}."""
    heads, n, width = copies("heads", models.h), models.n, models.d_key
    theta_1, theta_2 = models.theta_1, models.theta_2
    query = gaussian("Q", models.TOKENS, models.KEY, theta_2 / (width * n), heads)
    key = gaussian("K", models.TOKENS, models.KEY, 1, heads)
    noise = gaussian("W", models.TOKENS, models.TOKENS, (theta_1 - theta_2) / n, heads)
    system = dyson_of(heads.concatenate(query @ key.T + noise) / sp.sqrt(models.h))
    key_width = Fraction(480, count)
    spec = fa.Attention.from_ratios(gamma_key=Fraction(480, 400), n_heads=count, output="attention", beta=1)
    sizes = {models.n: 400, models.h: count, width: key_width, theta_2: 1,
             theta_1: fa.derive(spec).equivalent.theta_1}
    points = np.linspace(0.01, 4, 20) + 1j * np.geomspace(1e-3, 1, 20)
    found = DysonSolver(system, sizes).stieltjes(points)
    assert np.max(np.abs(found / fa.law(spec).stieltjes(points) - 1)) < 1e-10


def test_refusals():
    with pytest.raises(InputError, match="M = Mᵀ"):
        dyson_of(S @ R, "self-adjoint")
    with pytest.raises(InputError, match="M = Mᵀ"):
        dyson_of(X, "self-adjoint")
    with pytest.raises(InputError, match="cogram"):
        dyson_of(X, "other")
    with pytest.raises(NotCoveredError, match="jointly diagonal"):
        D @ diagonal("F", N, [1, 2])
    with pytest.raises(InputError, match="weights of F"):
        diagonal("F", N, [1, 2], [Fraction(1, 2), Fraction(1, 3)])
    with pytest.raises(InputError, match="eigenvalues of F"):
        diagonal("F", N, [1, 2], [1])
    with pytest.raises(InputError, match="same rows"):
        concatenate(X, X.T)
    with pytest.raises(InputError, match=r"\(n × n\) \+ \(p × p\)"):
        identity(N) + identity(P)
    both = concatenate(X, Y).columns
    with pytest.raises(NotCoveredError, match="direct sum"):
        wigner("B", both)
    heads = copies("heads", 3)
    many = heads.concatenate(gaussian("Z", N, P, per=heads)).columns
    with pytest.raises(NotCoveredError, match="copies of both"):
        gaussian("B", many, N, 1, copies("others", 2))
    for size in (0, -1, 0.5):
        with pytest.raises(InputError, match="space empty"):
            space("empty", size)


def test_weights_are_fractions_counts_or_decimals():
    assert diagonal("D", N, [1, 2], [1, 3]) == diagonal("D", N, [1, 2], [Fraction(1, 4), Fraction(3, 4)])
    assert sum(diagonal("D", N, [1, 2, 3], [0.1, 0.2, 0.7]).letters[0].weights) == 1
