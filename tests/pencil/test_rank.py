"""Generic ranks from the largest flow, against exact ranks of random integer matrices; and the atoms that follow."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from exact import identity as unit
from exact import value_of
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import blocks, polynomials, squares

from freeattn.errors import InputError
from freeattn.model.expression import concatenate, diagonal, gaussian, identity, wigner
from freeattn.model.letters import copies, space
from freeattn.numerics.dyson_solver import DysonSolver
from freeattn.theory.dyson import dyson_of
from freeattn.theory.pencil import size_of
from freeattn.theory.rank import atoms_of, generic_rank

N, P, Q = space("n", 12), space("p", 5), space("q", 3)


def exact_rank(expression, shift=0):
    """The largest rank of M − shift for a few choices of small integers."""
    best = 0
    for seed in range(3):
        matrix = value_of(expression, seed)
        best = max(best, (matrix - shift * unit(matrix.nrows()) if shift else matrix).rank())
    return best


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.one_of(polynomials(summed=True), squares(), blocks()))
def test_no_matrix_has_a_larger_rank(expression):
    assert exact_rank(expression) <= generic_rank(expression)


def test_ranks_of_words_with_bottlenecks_ties_copies_and_direct_sums():
    heads, groups = copies("heads", 3), copies("groups", 2)
    a, b, c = gaussian("A", N, P), gaussian("B", P, N), gaussian("C", N, Q)
    q, o = gaussian("Q", N, Q, per=heads), gaussian("O", Q, N, per=heads)
    inner = copies("inner", 2, within=groups)
    k, v = gaussian("K", N, Q, per=groups), gaussian("V", Q, N, per=inner)
    d = diagonal("D", N, [0, 2, 1], [1, 2, 1])
    s = wigner("S", N)
    cases = {
        a @ b: 5, a @ a.T: 5, a @ b + c @ c.T: 8, a @ b + a @ a.T: 5, a @ b @ s + s @ c @ c.T: 8,
        heads.sum(q @ o): 9, heads.sum(q @ q.T): 9, heads.sum(q @ o) @ a: 5, heads.sum(q @ o) + a @ b: 12,
        groups.sum(k @ inner.sum(v)): 6, heads.concatenate(q @ o): 9, heads.concatenate(a): 5,
        concatenate(a, c): 8, concatenate(a, c) + concatenate(c @ gaussian("E", Q, P), c): 8,
        concatenate(a.T @ s, (a.T @ a + identity(P))): 5, c @ concatenate(c.T @ s, c.T @ c + identity(Q)): 3,
        d: 9, d @ a: 5, d @ d - 2 * d: 3, d @ s @ d - s: 9 + 3, d - identity(N): 9, (d - 2 * identity(N)) @ s: 6,
        d @ a @ b - a @ b @ d: 10, s: 12, identity(N): 12, a @ b - a @ b + c @ c.T: 3,
    }
    for expression, rank in cases.items():
        assert generic_rank(expression) == rank, str(expression)
        assert exact_rank(expression) == rank, str(expression)


def test_a_basis_of_nodes_that_hides_the_thinnest_cut_in_one_direction():
    """A (s − t) + S (w + s) + T (w + t): three orders of the words, one rank."""
    a, w = gaussian("A", N, N), gaussian("W", N, N)
    narrow = space("m", 1)
    s, t = (gaussian(f"{x}1", N, narrow) @ gaussian(f"{x}2", narrow, N) for x in "st")
    big_s, big_t = (gaussian(f"{x}3", N, narrow) @ gaussian(f"{x}4", narrow, N) for x in "st")
    for words in ((a @ (s - t), big_s @ (w + s), big_t @ (w + t)), (big_s @ (w + s), a @ (s - t), big_t @ (w + t)),
                  (big_t @ (w + t), big_s @ (w + s), a @ (s - t))):
        total = words[0] + words[1] + words[2]
        assert generic_rank(total) == exact_rank(total) == 4


def test_symbols_need_values_and_a_letter_of_variance_zero_is_none():
    n, p, h, v = sp.symbols("n p h v", positive=True)
    rows, columns, heads = space("n", n), space("p", p), copies("heads", h)
    x, y = gaussian("X", rows, columns, per=heads), gaussian("Y", columns, rows, per=heads)
    noise = gaussian("W", rows, rows, v)
    expression = heads.sum(x @ y)
    assert generic_rank(expression, {n: 10**9, p: 3, h: 10**6}) == 3 * 10**6
    assert generic_rank(expression, {n: Fraction(7, 3), p: 1, h: 10**6}) == Fraction(7, 3)
    assert generic_rank(expression + noise, {n: 100, p: 3, h: 2, v: 1}) == 100
    assert generic_rank(expression + noise, {n: 100, p: 3, h: 2, v: 0}) == 6
    with pytest.raises(InputError, match="rational"):
        generic_rank(expression, {n: 10})


def test_atoms_of_gram_laws_and_of_self_adjoint_laws():
    a, b, s = gaussian("A", N, P), gaussian("B", P, N), wigner("S", N)
    third, quarter = Fraction(7, 12), Fraction(1, 4)
    assert atoms_of(a) == ((0, third),)
    assert atoms_of(a, "cogram") == ()
    assert atoms_of(a @ a.T, "self-adjoint") == ((0, third),)
    assert atoms_of(a @ a.T - 2 * identity(N), "self-adjoint") == ((-2, third),)
    assert atoms_of(a @ b + 3 * identity(N)) == ((9, Fraction(2, 12)),)  # M Mᵀ − 9 = AB + (AB)ᵀ + …: rank 10
    assert atoms_of(a @ a.T + 3 * identity(N)) == ((9, third),)
    assert atoms_of(s) == atoms_of(s + identity(N), "self-adjoint") == ()
    assert atoms_of(2 * identity(N)) == ((4, 1),)
    d = diagonal("D", N, [0, 2, 1], [1, 2, 1])
    assert atoms_of(d, "self-adjoint") == ((0, quarter), (1, quarter), (2, Fraction(1, 2)))
    assert atoms_of(d @ s @ d, "self-adjoint") == ((0, quarter),)
    c = gaussian("C", N, Q)
    assert atoms_of(d + c @ c.T, "self-adjoint") == ((2, quarter),)
    assert atoms_of(d) == ((0, quarter), (1, quarter), (4, Fraction(1, 2)))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(squares())
def test_atoms_are_what_matrices_have_at_least(expression):
    symmetric = expression + expression.T
    for location, mass in atoms_of(symmetric, "self-adjoint"):
        size = int(size_of(symmetric.rows))
        shift = int(location.p) if location.q == 1 else None
        if shift is not None:
            assert 1 - Fraction(exact_rank(symmetric, shift), size) >= mass


@pytest.mark.parametrize("of", ["gram", "self-adjoint"])
def test_atoms_are_those_of_the_dyson_equation(of):
    a, d = gaussian("A", N, P, Fraction(1, 12)), diagonal("D", N, [1, 2, 0], [1, 2, 1])
    for expression in (a @ a.T + identity(N), d @ a @ a.T @ d, d @ wigner("S", N, Fraction(1, 12)) @ d,
                       d + gaussian("C", N, space("r", 2)) @ gaussian("C", N, space("r", 2)).T / 12):
        solver = DysonSolver(dyson_of(expression, of))
        for location, mass in atoms_of(expression, of):
            eta = 1e-3 if location else 1e-7  # a hard edge at 0 adds a multiple of √η
            found = (-1j * eta * solver.stieltjes(float(location) + 1j * eta)).real
            assert abs(found - float(mass)) < 0.02
