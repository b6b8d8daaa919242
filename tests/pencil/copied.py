"""Models with copies, and the same models with every copy written out as letters of its own."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

from freeattn.model.expression import Expression, gaussian, wigner
from freeattn.model.letters import Copies, copies, space
from freeattn.model.terms import Factor, Term
from freeattn.theory.pencil import count_of

N, P = space("n", 20), space("p", 30)


def written_out(expression: Expression) -> Expression:
    """The same expression without families: one letter for each copy."""
    terms = []
    for term in expression.terms:
        for choice in product(*(range(int(count_of(s.family))) for s in term.sums)):
            word = []
            for place, factor in enumerate(term.word):
                here = {s.family: c for s, c in zip(term.sums, choice, strict=True) if s.start <= place < s.stop}
                mark = "".join(f"_{here[family]}" for family in factor.letter.chain)
                letter = replace(factor.letter, name=factor.letter.name + mark, per=None)
                word.append(Factor(letter, factor.transposed))
            terms.append(Term(term.coefficient, tuple(word)))
    return Expression(expression.rows, expression.columns, tuple(terms))


def families(count: int) -> Copies:
    return copies("heads", count)


def even(heads):
    """Σ_r A_r S A_rᵀ: every sign of A_r cancels, but S is shared and alone between the two."""
    a, s = gaussian("A", N, P, Fraction(1, 30), per=heads), gaussian("S", P, P, Fraction(1, 30))
    return heads.sum(a @ s @ a.T)


def even_chain(heads):
    """Σ_r A_r B_r S B_rᵀ A_rᵀ with a Wigner letter inside."""
    a, b = gaussian("A", N, P, 1, per=heads), gaussian("B", P, N, 1, per=heads)
    return heads.sum(a @ b @ wigner("S", N) @ b.T @ a.T)


def gram(heads):
    """Σ_r A_r A_rᵀ + A_r B: the mean over copies is not zero."""
    a, b = gaussian("A", N, P, 1, per=heads), gaussian("B", P, N)
    return heads.sum(a @ a.T + a @ b)


def double_sum(heads):
    """(Σ_r A_r C A_rᵀ)(Σ_s A_s): one letter in two sums."""
    a, c = gaussian("A", N, P, 1, per=heads), gaussian("C", P, P)
    return heads.sum(a @ c @ a.T) @ heads.sum(a)


def latent(heads):
    """Σ_r Q_r (D U_r)ᵀ D T_r: one matrix D that all copies share, twice a copy."""
    q, d = gaussian("Q", N, P, 1, per=heads), gaussian("D", N, P)
    u, t = gaussian("U", P, P, 1, per=heads), gaussian("T", P, N, 1, per=heads)
    return heads.sum(q @ (d @ u).T @ d @ t)
