"""Words and pencils are read back from LaTeX, and evaluated beside the expression on random small integer matrices."""

from __future__ import annotations

import math
import random
from itertools import product
from typing import Any

import numpy as np
import pytest
import sympy as sp
from latex_reader import ReadTerm, displays, plain, read, read_blocks, read_words, sides
from test_pencil_derivation import SOURCES

import freeattn as fa
from freeattn.model.expression import Expression
from freeattn.model.letters import AnyLetter, Diagonal, Inclusion, Space
from freeattn.model.terms import Term
from freeattn.theory.derive import symbolic_spec
from freeattn.theory.field import as_expression
from freeattn.theory.pencil_route import PencilDerivation

N, P, H = fa.space("n", 3), fa.space("p", 2), fa.copies("heads", 2)
A, B, C = fa.gaussian("A", N, P, 1), fa.gaussian("B", P, N, 1), fa.gaussian("C", N, P, 1, H)
CASES: dict[str, Any] = {
    **SOURCES,
    "mha": lambda: symbolic_spec("mha"),
    "attention": lambda: symbolic_spec("attention"),
    "values, K = V": lambda: symbolic_spec("values", "key-value"),
    "two sums": lambda: H.sum(C @ B) @ H.sum(C @ B) - 3 * A @ B / 7,
    "side by side": lambda: fa.concatenate(A, 2 * B.T),
}
Name = tuple[str, tuple[int, ...]]


class Letters:
    """Random integer matrices for the letters of an expression, `copies` of each family."""

    def __init__(self, expression: Expression, copies: int) -> None:
        self.copies = copies
        self.letters: dict[str, AnyLetter] = {}
        for term in expression.terms:
            for factor in term.word:
                letter = factor.letter
                name = f"J{letter.number + 1}" if isinstance(letter, Inclusion) else letter.name
                assert self.letters.setdefault(name, letter) == letter, "two letters of one name"

    def size(self, space: Space) -> int:
        if not space.parts:
            return random.Random(f"size {space.name}").randint(2, 4)
        return sum(self.part(space, k) for k in range(len(space.parts)))

    def part(self, space: Space, number: int) -> int:
        part = space.parts[number]
        return self.size(part.space) * self.copies ** (len(part.per.chain) if part.per else 0)

    def matrix(self, name: str, chosen: dict[str, int]) -> np.ndarray:
        letter = self.letters[name]
        index = [chosen[family.name] for family in letter.chain]
        rows, columns = self.size(letter.rows), self.size(letter.columns)
        if isinstance(letter, Inclusion):
            before = sum(self.part(letter.whole, k) for k in range(letter.number))
            before += columns * sum(i * self.copies**k for k, i in enumerate(reversed(index)))
            return np.eye(rows, dtype=object)[:, before : before + columns]
        draw = np.random.default_rng([*name.encode(), *index])
        found = draw.integers(-3, 4, (rows, columns)).astype(object)
        if isinstance(letter, Diagonal):
            return np.diag(np.diag(found))
        return found + found.T if letter.symmetric else found


def number(coefficient: Any) -> sp.Expr:
    """At random rational values that depend on the names of symbols only."""
    value = plain(sp.sympify(coefficient))
    at = {s: sp.Rational(random.Random(s.name).randint(2, 99), 7) for s in value.free_symbols}
    return value.xreplace(at)


def as_read(term: ReadTerm, letters: Letters, shape: tuple[int, int]) -> np.ndarray:
    def rest(pieces: Any, chosen: dict[str, int]) -> Any:
        if not pieces:
            return None
        (head, mark), tail = pieces[0], pieces[1:]
        if head == "sum":
            return sum(rest(tail, {**chosen, mark: copy}) for copy in range(letters.copies))
        found = letters.matrix(head, chosen)
        found, after = found.T if mark else found, rest(tail, chosen)
        return found if after is None else found @ after

    found = rest(term.pieces, {})
    return number(term.coefficient) * (np.eye(*shape, dtype=object) if found is None else found)


def as_built(term: Term, letters: Letters, shape: tuple[int, int]) -> np.ndarray:
    """By the stretches of the term: each letter takes the copy of the stretches that it stands in."""
    total = np.zeros(shape, dtype=object)
    for copies in product(range(letters.copies), repeat=len(term.sums)):
        value = np.eye(shape[0], dtype=object)
        for place, factor in enumerate(term.word):
            chosen = {s.family.name: r for s, r in zip(term.sums, copies, strict=True) if s.start <= place < s.stop}
            letter = factor.letter
            name = f"J{letter.number + 1}" if isinstance(letter, Inclusion) else letter.name
            found = letters.matrix(name, chosen)
            value = value @ (found.T if factor.transposed else found)
        total = total + value
    return number(as_expression(term.coefficient)) * total


def case(name: str) -> tuple[PencilDerivation, dict[str, str]]:
    """A derivation and its displayed formulas, by name."""
    d = fa.derive(CASES[name]() if callable(CASES[name]) else CASES[name], route="pencil" if "," in name or name in (
        "mha", "attention") else None)
    assert isinstance(d, PencilDerivation)
    equations = [e for step in d.steps for e in step.equations]
    return d, {e.name: formula for e, formula in zip(equations, displays(d.latex()), strict=True)}


@pytest.mark.parametrize("name", CASES)
def test_words_read_back(name: str) -> None:
    d, formulas = case(name)
    expression, letters = d.expression, Letters(d.expression, 2)
    shape = (letters.size(expression.rows), letters.size(expression.columns))
    read_off = sum(as_read(term, letters, shape) for term in read_words(sides(formulas["model"])[1]))
    built = sum(as_built(term, letters, shape) for term in expression.terms)
    assert read_off.shape == built.shape == shape
    assert all(sp.expand(a - b) == 0 for a, b in zip(read_off.ravel(), built.ravel(), strict=True))
    assert any(value != 0 for value in built.ravel())


@pytest.mark.parametrize("name", ["repeated", "heads", "X", "latent", "mha", "attention", "side by side"])
def test_pencils_read_back(name: str) -> None:
    """The corner of the inverse of the displayed pencil is (M Mᵀ − z)⁻¹ of the displayed words, one copy of each.

    Larger pencils are displayed as a list of their entries.
    """
    d, formulas = case(name)
    letters = Letters(d.expression, 1)
    cells = read_blocks(sides(formulas["pencil"])[1])
    known = {sides(f)[0]: sides(f)[1] for key, f in formulas.items() if key.startswith("coefficient")}
    factors = {read(symbol): read(value) for symbol, value in known.items()}
    first = {family.name: 0 for letter in letters.letters.values() for family in letter.chain}
    found = [[cell[1] and letters.matrix(cell[1][0], first) for cell in row] for row in cells]
    matrices = [[m if m is None or not cell[1][1] else m.T for m, cell in zip(*rows, strict=True)]
                for rows in zip(found, cells, strict=True)]
    sizes = [next(m.shape[0] for m in row if m is not None) for row in matrices]
    z = sp.Rational(-5, 3)

    def block(i: int, j: int) -> np.ndarray:
        factor = number(sp.sympify(cells[i][j][0]).xreplace(factors).xreplace({sp.Symbol("z"): z}))
        matrix = np.eye(sizes[i], sizes[j], dtype=object) if matrices[i][j] is None else matrices[i][j]
        return factor * matrix

    pencil = sp.Matrix(np.block([[block(i, j) for j in range(len(sizes))] for i in range(len(sizes))]))
    shape = (sizes[0], letters.size(d.expression.columns))
    words = sp.Matrix(sum(as_read(term, letters, shape) for term in read_words(sides(formulas["model"])[1])))
    right = sp.Matrix.vstack(sp.eye(sizes[0]), sp.zeros(pencil.rows - sizes[0], sizes[0]))
    corner = pencil.LUsolve(right)[: sizes[0], :]
    assert (words * words.T - z * sp.eye(sizes[0])) * corner == sp.eye(sizes[0])


def test_wrong_words_are_told_apart() -> None:
    expression = SOURCES["heads"]()
    letters = Letters(expression, 2)
    shape = (letters.size(expression.rows), letters.size(expression.columns))

    def value(latex: str) -> list[Any]:
        return list(sum(as_read(term, letters, shape) for term in read_words(latex)).ravel())

    right = r"\sum_{\mathrm{heads}}\,A\,{B}^{T}\,X + \sum_{\mathrm{heads}}\,W\,X"
    assert value(right) == [sum(column) for column in zip(value(right), [0] * math.prod(shape), strict=True)]
    for old, new in (("+", "-"), (r"{B}^{T}", "B"), ("A", "2\\,A"), ("W", "A")):
        assert value(right.replace(old, new, 1)) != value(right)
