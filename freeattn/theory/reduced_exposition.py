"""The reduced system in words and equations: its unknowns, and how the other traces follow from them."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable

import sympy as sp

from freeattn.theory.breaking import width_of
from freeattn.theory.dyson import DysonSystem
from freeattn.theory.latex_words import latex_words
from freeattn.theory.notation import Notation, latex_of
from freeattn.theory.pencil_writing import COLON, name_of
from freeattn.theory.steps import Equation, Piece, Step, Term, Vanishing
from freeattn.theory.system import ScalarSystem

__all__ = ["definitions_step", "reduced_step"]

N = Notation
_WIDE = 45  # a denominator, by `width_of`
_CHUNK = 24  # characters of words that stay on one line


def reduced_step(system: ScalarSystem, dyson: DysonSystem) -> Step:
    """The unknowns and their equations."""
    count = len(system.unknowns)
    names = _names(dyson)
    unknowns = tuple(
        Equation(f"unknown-{k}", symbol, _words(system.meaning(symbol), names), sign=COLON)
        for k, symbol in enumerate(system.unknowns, 1)
    )
    others = _meanings(system, names, _auxiliary(system, system.equations))
    equations = tuple(
        Vanishing(f"reduced-{k}", tuple(Term(sp.S.One, term, sp.S.One) for term in sp.Add.make_args(equation)))
        for k, equation in enumerate(system.equations, 1)
    )
    output = Equation("output", N("m(z)", "m(z)"), system.output)
    plural, traces = "s" if count > 1 else "", len(dyson.entering)
    which = f"all {traces} traces follow" if traces > 1 else "the one trace follows"
    return Step(
        "reduced", "The reduced system",
        (f"From {count} unknown{plural} {which} one after the other, by the definitions of the next step, and {count} "
         f"equation{plural} remain{'' if plural else 's'}:",),
        (*unknowns, *others, *equations, output),
    )


def _auxiliary(system: ScalarSystem, expressions: Iterable[sp.Expr]) -> tuple[sp.Symbol, ...]:
    """Defined symbols that are not traces, in the order in which they are defined."""
    inside = {symbol for expression in expressions for symbol in expression.free_symbols}
    return tuple(s for s, _ in system.definitions if s in inside and not s.name.startswith("g_"))


def _meanings(system: ScalarSystem, names: Collection[str], symbols: Iterable[sp.Symbol]) -> tuple[Equation, ...]:
    return tuple(Equation(f"meaning-{s}", s, _words(system.meaning(s), names), sign=COLON) for s in symbols)


def _names(dyson: DysonSystem) -> frozenset[str]:
    """The names of blocks and letters."""
    letters = [*(a.name for a in dyson.pencil.letters), *(f.letter.name for f in dyson.pencil.fixed if f.letter)]
    return frozenset((*letters, *(block.name for block in dyson.pencil.blocks)))


def _words(text: str, names: Collection[str]) -> Notation:
    """Words as a formula that may break between them; names of blocks and letters as they stand elsewhere."""
    pieces = tuple(
        "".join(_word(word, names) for word in part.split()) for part in textwrap.wrap(text, _CHUNK)
    )
    pieces = (*pieces[:-1], pieces[-1].removesuffix(r"\ "))
    return N("".join(pieces), text, pieces)


def _word(word: str, names: Collection[str]) -> str:
    bare = word.strip("(),")
    if bare not in names:
        return rf"\text{{{latex_words(word)} }}"
    before, _, after = word.partition(bare)
    return rf"{before}{name_of(bare).latex}{after}\ "


def definitions_step(system: ScalarSystem, dyson: DysonSystem) -> Step:
    """How all other traces follow from the unknowns."""
    first = set(_auxiliary(system, system.equations))
    used = (*system.equations, *(value for _, value in system.definitions), *(s for s, _ in system.definitions))
    names = [s for s in _auxiliary(system, used) if s not in first]
    flows = any(s.name.startswith("f_") for s, _ in system.definitions)
    sentence: tuple[Piece, ...] = ("In this order,",)
    if flows:
        sentence = ("The flow through a letter at one place of the pencil is what its pairings add to ",
                    N(r"N_p(\Sigma g)_{p,p}/n_x", "N_p·(Σ·g)_p_p/n_x"), " for the block ", N("p", "p"),
                    " at either end, with ", N("N_p", "N_p"), " its size, copies counted, and ", N("n_x", "n_x"),
                    " that of block ", N("x", "x"), ". In this order,")
    return Step(
        "definitions", "The traces", sentence,
        (*_meanings(system, _names(dyson), names), *(_definition(*pair) for pair in system.definitions)),
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
