"""The corner of the pencil's inverse is the resolvent, exactly; and the pencil is as small as can be."""

from __future__ import annotations

from fractions import Fraction

import pytest
from exact import inverse_corner, resolvent, value_of
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import blocks, polynomials, squares

from freeattn.errors import InputError
from freeattn.model.expression import Expression, gaussian
from freeattn.model.letters import copies, space
from freeattn.theory.pencil import pencil_of

Z = fmpq(-10007, 3)  # far below every eigenvalue of M Mᵀ ≥ 0


@settings(max_examples=40, deadline=None, derandomize=True)
@given(polynomials(summed=False), st.integers(0, 99))
def test_corner_of_the_inverse_is_the_resolvent(expression, seed):
    if expression.terms:
        assert inverse_corner(pencil_of(expression), Z, seed) == resolvent(value_of(expression, seed), Z)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(polynomials(summed=True), st.integers(0, 99))
def test_copies_written_out_give_the_same_resolvent(expression, seed):
    if expression.terms:
        assert inverse_corner(pencil_of(expression), Z, seed) == resolvent(value_of(expression, seed), Z)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.one_of(squares(), polynomials(summed=True)), st.integers(0, 99))
def test_laws_of_products_from_the_right_and_with_deterministic_letters(expression, seed):
    for of in ("gram", "cogram"):
        if expression.terms:
            known = resolvent(value_of(expression, seed), Z, of)
            assert inverse_corner(pencil_of(expression, of), Z, seed) == known


@settings(max_examples=60, deadline=None, derandomize=True)
@given(squares(), st.integers(0, 99))
def test_self_adjoint_expressions_have_their_own_pencil(expression, seed):
    for symmetric in (expression + expression.T, expression @ expression.T - 2 * expression.T @ expression):
        if symmetric.terms:
            known = resolvent(value_of(symmetric, seed), Z, "self-adjoint")
            assert inverse_corner(pencil_of(symmetric, "self-adjoint"), Z, seed) == known


@settings(max_examples=100, deadline=None, derandomize=True)
@given(blocks(), st.integers(0, 99))
def test_direct_sums_of_rows_and_columns(expression, seed):
    if expression.terms:
        matrix = value_of(expression, seed)
        for of in ("gram", "cogram"):
            assert inverse_corner(pencil_of(expression, of), Z, seed) == resolvent(matrix, Z, of)
        square = expression.T @ expression
        assert value_of(square, seed) == matrix.transpose() * matrix
        assert value_of(expression @ expression.T, seed) == matrix * matrix.transpose()
        known = resolvent(matrix, Z, "cogram")
        assert inverse_corner(pencil_of(square, "self-adjoint"), Z, seed) == known


N = space("n", 2)


def letters(names: str) -> list[Expression]:
    return [gaussian(name, N, N) for name in names]


@pytest.mark.parametrize(
    ("build", "nodes"),
    [
        (lambda a, _b, _c, _d: a, 0),
        (lambda a, b, c, d: a @ b @ c + a @ b @ d, 2),  # one prefix
        (lambda a, b, c, d: a @ b @ d + c @ b @ d, 2),  # one suffix, joined right after the letters that differ
        (lambda a, b, c, d: (2 * a + 3 * b) @ (c - d), 1),  # a product stays a product
        (lambda a, b, c, d: a @ c + b @ d + (a + 2 * b) @ d + d @ (c - 5 * d), 2),  # dependent residuals merge
        (lambda a, b, _c, _d: a + a @ b + a @ b @ a, 2),  # a word that begins with another word
        (lambda a, b, _c, _d: (a + b) ** 4, 3),
    ],
)
def test_number_of_nodes_is_the_least(build, nodes):
    pencil = pencil_of(build(*letters("ABCD")))
    assert len(pencil.blocks) == 2 + 2 * nodes


def test_block_names_and_positions_of_a_chain():
    p, q, o = space("p", 3), space("q", 4), space("o", 5)
    a, b, c = gaussian("A", N, p), gaussian("B", q, p), gaussian("C", q, o)
    pencil = pencil_of(Fraction(2, 3) * a @ b.T @ c)
    assert [(block.name, block.space.name) for block in pencil.blocks] == [
        ("x", "n"), ("y1", "p"), ("w1", "p"), ("y2", "q"), ("w2", "q"), ("y3", "o")
    ]
    placed = [(k.letter.name, pencil.blocks[k.row].name, pencil.blocks[k.column].name) for k in pencil.positions]
    assert placed == [("A", "x", "y1"), ("B", "y2", "w1"), ("C", "w2", "y3")]
    assert [k.coefficient for k in pencil.positions] == [Fraction(2, 3), 1, 1]


def test_heads_enter_the_pencil_once_whatever_their_number():
    for count in (1, 7, 10**6):
        heads = copies("heads", count)
        q, v = gaussian("Q", N, N, per=heads), gaussian("V", N, N, per=heads)
        pencil = pencil_of(heads.sum(q @ v))
        assert [len(block.scope) for block in pencil.blocks] == [0, 1, 1, 0]


def test_what_has_no_pencil_is_refused():
    a, *_ = letters("A")
    with pytest.raises(InputError, match="M = 0 has no law"):
        pencil_of(a - a)
    heads = copies("heads", 4)
    with pytest.raises(InputError, match=r"heads\.sum"):
        pencil_of(gaussian("Q", N, N, per=heads))
