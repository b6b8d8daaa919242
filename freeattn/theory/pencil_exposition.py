"""The derivation by a pencil in words and equations: from the Dyson equation to the steps that a reader sees."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Protocol

import sympy as sp

from freeattn.theory.breaking import width_of
from freeattn.theory.dyson import DysonSystem
from freeattn.theory.notation import Notation, latex_of
from freeattn.theory.pencil import Fixed, Pencil, Position
from freeattn.theory.pencil_writing import (
    block_matrix,
    diagonal_row,
    entry_name,
    indexed,
    letter_name,
    letter_row,
    name_of,
    position_value,
    sector_equations,
    words,
)
from freeattn.theory.steps import Equation, Piece, Step, Term, Vanishing
from freeattn.theory.system import ScalarSystem

__all__ = ["pencil_steps"]

N = Notation
_MOST_BLOCKS = 12  # of a pencil that is shown as a matrix
_MOST_TRACES = 20  # that are listed in a sentence
_MOMENTS = 2  # shown; any number can be asked for
_WIDE = 45  # a denominator, by `width_of`
_CHUNK = 24  # characters of words that stay on one line
_COLON = N(r":\ ", ":")
_LAWS = {
    "gram": ("M M^{T}", "M Mᵀ"), "cogram": ("M^{T} M", "MᵀM"), "self-adjoint": ("M", "M"),
}


class Stages(Protocol):
    """What the steps are made from."""

    @property
    def dyson(self) -> DysonSystem: ...

    @property
    def system(self) -> ScalarSystem: ...

    @property
    def values(self) -> tuple[tuple[sp.Symbol, sp.Expr], ...]: ...

    def moments(self, order: int, general: bool = False) -> tuple[sp.Expr, ...]:
        """m_1 … m_order."""


def pencil_steps(stages: Stages) -> tuple[Step, ...]:
    """The steps of a derivation by a pencil, in the order in which they are read."""
    return tuple(_steps(stages))


def _steps(stages: Stages) -> Iterator[Step]:
    system = stages.dyson
    yield _model(system)
    yield _pencil(system)
    yield _pattern(system)
    yield _self_energy(system)
    yield _dyson(system)
    yield _reduced(stages.system, system)
    yield _definitions(stages.system)
    yield _branch()
    yield _moments(stages)
    if stages.values:
        yield Step("values", "Values", ("For this layer",), tuple(
            Equation(f"value-{symbol}", symbol, value) for symbol, value in stages.values if value != symbol
        ))


def _listed(names: Sequence[Notation | sp.Expr]) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    for number, name in enumerate(names):
        pieces += [", ", name] if number else [name]
    return tuple(pieces)


def _model(system: DysonSystem) -> Step:
    law = N(*_LAWS[system.pencil.of])
    letters = tuple(
        Equation(f"letter-{letter.name}", letter_name(letter), letter_row(letter), sign=_COLON)
        for letter in system.pencil.letters
    )
    diagonal = dict.fromkeys(entry.letter for entry in system.pencil.fixed if entry.letter is not None)
    letters += tuple(Equation(f"letter-{a.name}", letter_name(a), diagonal_row(a), sign=_COLON) for a in diagonal)
    return Step(
        "model", "The model",
        ("The law is that of the eigenvalues of ", law, " for the matrix ", N("M", "M"), " below, a polynomial in "
         "independent Gaussian letters with the shapes and variances that follow."),
        (Equation("model", N("M", "M"), words(system.expression), main=True), *letters),
    )


def _pencil(system: DysonSystem) -> Step:
    sentence: tuple[Piece, ...] = (
        "The resolvent is the first block of the inverse of a self-adjoint block matrix ", N("L", "L"),
        " that is linear in the letters. Its blocks are ",
        *_listed([name_of(block.name) for block in system.pencil.blocks]), ". ",
    )
    if len(system.pencil.blocks) <= _MOST_BLOCKS:
        return Step("pencil", "The pencil", (*sentence, "In this order"), tuple(_as_matrix(system.pencil)))
    constant = ("The constant part has ", N("-z", "−z"), " at ", name_of("x"), " and ", N("-1", "−1"), " between ",
                name_of("y_j"), " and ", name_of("w_j"), " and at the last blocks; the other blocks that are not zero, "
                "up to transposition, are")
    return Step("pencil", "The pencil", (*sentence, *constant), tuple(_as_list(system.pencil)))


def _as_matrix(pencil: Pencil) -> Iterator[Equation]:
    """L as a matrix of blocks, with names for coefficients that are not 1."""
    places: list[Position | Fixed] = [*pencil.positions, *pencil.fixed]
    shown: list[Notation] = []
    coefficients: dict[sp.Expr, Notation] = {}
    for place in places:
        name = letter_name(place.letter)
        if place.coefficient not in (1, -1):
            number = len(coefficients) + 1
            c = coefficients.setdefault(place.coefficient, N(f"c_{{{number}}}", f"c{number}"))
            name = N(f"{c.latex}{name.latex}", f"{c.text}·{name.text}") if name.text != "1" else c
        elif place.coefficient == -1:
            name = position_value(place.coefficient, name)
        shown.append(name)
    yield Equation("pencil", N("L", "L"), block_matrix(pencil, shown), main=True)
    for number, (value, name) in enumerate(coefficients.items(), 1):
        yield Equation(f"coefficient-{number}", name, value)


def _as_list(pencil: Pencil) -> Iterator[Equation]:
    places: list[Position | Fixed] = [*pencil.positions, *pencil.fixed]
    for number, place in enumerate(places, 1):
        left = indexed("L", pencil.blocks[place.row].name, pencil.blocks[place.column].name)
        yield Equation(f"pencil-{number}", left, position_value(place.coefficient, letter_name(place.letter)))


def _pattern(system: DysonSystem) -> Step:
    count, entering = len(system.pencil.blocks), [system.symbol(trace) for trace in system.entering]
    shown = (", ", *_listed(entering))
    return Step(
        "pattern", "The zero pattern",
        (f"Of the {count * (count + 1) // 2} normalized traces of blocks of the inverse, those between different "
         f"spaces vanish, and so do all that no pairing of equal letters creates: {len(system.traces)} are left, and "
         f"{len(entering)} of them enter the self-energy", *(shown if len(entering) <= _MOST_TRACES else ()), "."),
    )


def _self_energy(system: DysonSystem) -> Step:
    return Step(
        "self-energy", "The self-energy",
        ("Each pair of positions of a letter contributes its coefficients, the variance and the dimension that is "
         "summed over, times the trace of the blocks on the other side:",),
        tuple(Equation(f"self-energy-{k}", entry_name(system.pencil, entry), value)
              for k, (entry, value) in enumerate(sorted(system.self_energy.items()), 1)),
    )


def _dyson(system: DysonSystem) -> Step:
    equations = []
    for k, sector in enumerate(system.sectors, 1):
        pairs = sector_equations(system, sector, k)
        equations += [Equation(f"dyson-{k}-{i}", left, right) for i, (left, right) in enumerate(pairs, 1)]
    copies = any(block.scope for block in system.pencil.blocks)
    averaged = any(len(sector.nodes) > 1 for sector in system.sectors)
    note = " Inverses with eigenvalues of a diagonal letter are averaged over them." if averaged else ""
    note += " With copies, there is one matrix for what all copies share and one for what sums to zero over them." \
        if copies else ""
    return Step("dyson", "The matrix Dyson equation",
                (f"The matrix falls apart into {len(system.sectors)} small ones.{note}",), tuple(equations))


def _reduced(system: ScalarSystem, dyson: DysonSystem) -> Step:
    count = len(system.unknowns)
    unknowns = tuple(
        Equation(f"unknown-{k}", symbol, _words(system.meaning(symbol)), sign=_COLON)
        for k, symbol in enumerate(system.unknowns, 1)
    )
    equations = tuple(
        Vanishing(f"reduced-{k}", tuple(Term(sp.S.One, term, sp.S.One) for term in sp.Add.make_args(equation)))
        for k, equation in enumerate(system.equations, 1)
    )
    output = Equation("output", N("m(z)", "m(z)"), system.output)
    return Step(
        "reduced", "The reduced system",
        (f"From {count} unknown{'s' if count > 1 else ''} all {len(dyson.entering)} traces follow one after the other, "
         f"by the definitions of the next step, and {count} equation{'s' if count > 1 else ''} remain"
         f"{'' if count > 1 else 's'}:",),
        (*unknowns, *equations, output),
    )


def _words(text: str) -> Notation:
    """Words as a formula that may break between them."""
    parts = textwrap.wrap(text, _CHUNK)
    pieces = tuple(rf"\text{{{part.replace('_', chr(92) + '_')} }}" for part in parts)
    return N("".join(pieces), text, pieces)


def _definitions(system: ScalarSystem) -> Step:
    return Step(
        "definitions", "The traces",
        ("In this order,",),
        tuple(_definition(symbol, value) for symbol, value in system.definitions),
    )


def _definition(symbol: sp.Symbol, value: sp.Expr) -> Equation | Vanishing:
    """symbol = value; a long denominator is multiplied out, or is what 1/symbol is equal to."""
    top, bottom = sp.fraction(value)
    if not bottom.is_Add or width_of(latex_of(bottom)) < _WIDE:
        return Equation(f"definition-{symbol}", symbol, value)
    if top == 1:
        return Equation(f"definition-{symbol}", 1 / symbol, bottom)
    terms = [symbol * term for term in bottom.args] + [-term for term in sp.Add.make_args(top)]
    return Vanishing(f"definition-{symbol}", tuple(Term(sp.S.One, term, sp.S.One) for term in terms), main=False)


def _branch() -> Step:
    return Step(
        "branch", "Which root",
        ("The solution is the one that continues ", N(r"m\sim -1/z", "m ~ −1/z"), " from ", N(r"z=\infty", "z = ∞"),
         " through the upper half-plane. It has ", N(r"\operatorname{Im} m>0", "Im m > 0"), " there, and every matrix "
         "of traces of the Dyson equation has positive definite imaginary part, as compressions of a resolvent do; no "
         "other solution with this property is known. The real axis is reached as a limit from there."),
    )


def _moments(stages: Stages) -> Step:
    values = stages.moments(_MOMENTS, general=True)
    return Step("moments", "Moments", ("The first moments of the law are",), tuple(
        Equation(f"moment-{k}", sp.Symbol(f"m_{k}"), value) for k, value in enumerate(values, 1)
    ))


