"""The language: normal form, shapes, sums over copies, and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy as sp

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.expression import Expression, gaussian, wigner
from freeattn.model.letters import copies, space

N, P = space("n", 4), space("p", 6)
X, Y, S = gaussian("X", N, P), gaussian("Y", N, P, Fraction(1, 6)), wigner("S", N)


def normal_form(expression: Expression):
    return [(t.coefficient, str(t)) for t in expression.terms]


def test_words_are_collected_and_zeros_dropped():
    assert normal_form(2 * X + 3 * Y - X) == [(1, "X"), (3, "Y")]
    assert (X - X).terms == ()
    assert X + Y == Y + X
    assert hash(X + Y) == hash(Y + X)
    assert normal_form((X + Y) @ (X - Y).T) == [(1, "X Xᵀ"), (-1, "X Yᵀ"), (1, "Y Xᵀ"), (-1, "Y Yᵀ")]


def test_transposes_mirror_words_and_spare_symmetric_letters():
    assert normal_form((S @ X).T) == [(1, "Xᵀ S")]
    assert (S @ X).T.T == S @ X
    assert S.T == S


def test_powers_of_square_expressions():
    assert normal_form((X @ Y.T) ** 2) == [(1, "X Yᵀ X Yᵀ")]
    with pytest.raises(InputError, match=r"\(n × p\)\)\*\*2"):
        X**2
    for power in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="power"):
            S**power


def test_coefficients_are_exact_whatever_number_they_come_as():
    a = sp.Symbol("a")
    assert normal_form(0.5 * X) == normal_form(X / 2) == [(Fraction(1, 2), "X")]
    assert normal_form(np.float64(0.5) * X) == normal_form(X * np.float32(0.5)) == [(Fraction(1, 2), "X")]
    assert normal_form(a * X / a) == [(1, "X")]
    assert (a * X).terms[0].coefficient == a
    for wrong in (True, float("nan"), "2", None):
        with pytest.raises(InputError, match="coefficient"):
            X * wrong
    with pytest.raises(InputError, match="divisor"):
        X / 0


def test_shapes_that_do_not_fit_are_both_shown():
    with pytest.raises(InputError, match=r"\(n × p\) @ \(n × p\)"):
        X @ Y
    with pytest.raises(InputError, match=r"\(n × p\) \+ \(p × n\)"):
        X + Y.T
    with pytest.raises(InputError, match=r"\(n × p\) \* \(n × p\).*@"):
        X * Y
    with pytest.raises(InputError, match="rows of the right factor on p"):
        X @ gaussian("Z", space("other", 6), N)  # equal size, different space


def test_one_name_is_one_thing():
    with pytest.raises(InputError, match="letter X"):
        X + gaussian("X", N, P, 2)
    with pytest.raises(InputError, match="space n"):
        X @ gaussian("Z", P, space("n", 5))


def test_a_sum_over_copies_keeps_one_representative():
    heads = copies("heads", 10**9)
    q, k = gaussian("Q", N, P, 1, heads), gaussian("K", N, P, 1, heads)
    total = heads.sum(q @ k.T @ X)
    assert [(t.coefficient, str(t), t.sums) for t in total.terms] == [(1, "Q Kᵀ X", ((heads, 0, 2),))]
    assert heads.sum(q @ k.T) @ X == total  # what no copy owns stands outside the sum
    assert normal_form(heads.sum(3 * X)) == [(3 * 10**9, "X")]
    assert heads.sum(q.T) == heads.sum(q).T
    assert heads.sum(q) @ heads.sum(k.T) != heads.sum(q @ k.T)


def test_sums_over_copies_that_make_no_sense_are_refused():
    heads, others = copies("heads", 3), copies("others", 2)
    groups = copies("groups", 2)
    inner = copies("inner", 2, within=groups)
    q, o = gaussian("Q", N, P, 1, heads), gaussian("O", P, N, 1, others)
    with pytest.raises(NotCoveredError, match="within"):
        heads.sum(q @ others.sum(o @ X) @ gaussian("R", P, N, 1, heads))
    with pytest.raises(InputError, match="done first"):
        groups.sum(gaussian("I", N, P, 1, inner))
    with pytest.raises(InputError, match="twice"):
        heads.sum(q @ heads.sum(q.T @ X @ q.T) @ q)
    for count in (0, -1, 2.5, float("inf")):
        with pytest.raises(InputError, match="copies heads"):
            copies("heads", count)


def test_letters_check_what_they_are_made_of():
    for variance in (0, -1, float("nan"), True):
        with pytest.raises(InputError, match="variance of X"):
            gaussian("X", N, P, variance)
    with pytest.raises(InputError, match="rows of X"):
        gaussian("X", 4, P)
    with pytest.raises(InputError, match="name"):
        gaussian("", N, P)
    with pytest.raises(InputError, match="space n"):
        space("n", 0)
