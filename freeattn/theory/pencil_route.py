"""The route by linear pencils: from a polynomial in letters to its Dyson equation and the reduced scalar system."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, cast

import sympy as sp

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.expression import Expression
from freeattn.model.quadrature import thetas
from freeattn.model.quantities import is_symbolic
from freeattn.theory import symbols as sym
from freeattn.theory.algebraic_curve import TELLING_MOMENTS, AlgebraicCurve, curve_of_series
from freeattn.theory.assumptions import Assumption, Rule
from freeattn.theory.attention_words import words_of
from freeattn.theory.derivation import Derivation
from freeattn.theory.dyson import DysonSystem, dyson_of
from freeattn.theory.expansion import expansion_of
from freeattn.theory.exports.dyson_program import dyson_program, symbols_of
from freeattn.theory.exports.heading import heading_of
from freeattn.theory.exports.program import DysonProgram, inputs_of
from freeattn.theory.given_values import GivenValues, given_values, with_thetas
from freeattn.theory.minimal_polynomial import minimal_polynomial
from freeattn.theory.modular_series import ModularSeries
from freeattn.theory.moments import free_cumulants, moments
from freeattn.theory.pencil import Pencil, Product, check_product
from freeattn.theory.pencil_exposition import pencil_steps
from freeattn.theory.record import assumption_record, expression_record, rule_record, step_record
from freeattn.theory.reduce import ELIMINATION, scalar_system
from freeattn.theory.splitting import alive, exact_values
from freeattn.theory.square_roots import without_roots
from freeattn.theory.steps import Step
from freeattn.theory.system import ScalarSystem
from freeattn.theory.weights import as_fmpq

__all__ = ["PencilDerivation", "layer_derivation", "pencil_derivation"]

_MOMENTS = 2  # in the record
_DIGITS = 20  # of numbers in programs


@dataclass(frozen=True, repr=False)
class PencilDerivation(Derivation):
    """Every stage from a polynomial in letters to its reduced system, and its written forms.

    Attributes:
        source: what was derived, an `Expression` or an `Attention`.
        dyson: the matrix Dyson equation.
        system: the reduced system: few unknowns, definitions of all traces, their meanings.
        values: (symbol, exact value or expression in the user's symbols).
        assumptions, rules: what the derivation rests on, each with its source.
    """

    source: Any
    dyson: DysonSystem
    system: ScalarSystem
    values: tuple[tuple[sp.Symbol, sp.Expr], ...]
    assumptions: tuple[Assumption, ...]
    rules: tuple[Rule, ...]

    def __repr__(self) -> str:
        name = str(self.dyson.expression)
        shown = name if len(name) <= 60 else f"{name[:59]}…"
        return f"<PencilDerivation of {shown}, {len(self.steps)} steps: print(derivation.text())>"

    @property
    def expression(self) -> Expression:
        """The matrix M as a polynomial in letters."""
        return self.dyson.expression

    @property
    def pencil(self) -> Pencil:
        """The linear pencil of M."""
        return self.dyson.pencil

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The derivation as numbered steps: a sentence and equations each."""
        return pencil_steps(self)

    def moments(self, order: int, general: bool = False) -> tuple[sp.Expr, ...]:
        """m_1 … m_order of the law, exact, in the symbols of the model; values that are rational are put in, not θ's.

        Raises:
            InputError: for an order that is not a positive integer.
        """
        return moments(self.dyson, order, {} if general else self.numbers)

    def free_cumulants(self, order: int, general: bool = False) -> tuple[sp.Expr, ...]:
        """κ_1 … κ_order of the law, exact; symbols and errors as for `moments`."""
        return free_cumulants(self.dyson, order, {} if general else self.numbers)

    def polynomial(
        self, normalized: bool = True, general: bool = False, values: GivenValues | None = None
    ) -> sp.Expr:
        """P(z, m) = 0 for rational values of all symbols; see `Derivation.polynomial`.

        Raises:
            NotCoveredError: for general=True: elimination with symbols has no end here.
        """
        if general:
            raise NotCoveredError("a polynomial in all symbols by the pencil route: give rational `values` for them")
        return self.curve(normalized, values).expression

    def curve(self, normalized: bool = True, values: GivenValues | None = None) -> AlgebraicCurve:
        """The algebraic curve for rational values of all symbols; see `Derivation.curve`."""
        return _curve(self.dyson, tuple(sorted(self._rational(normalized, values).items(), key=str)), normalized)

    def _rational(self, normalized: bool, values: GivenValues | None) -> dict[sp.Symbol, sp.Rational]:
        """A rational number for every symbol of the equation: given ones first, then those of the source."""
        needed = {symbol for weight in expansion_of(self.dyson).weights for symbol in weight.free_symbols}
        by_ratio = normalized and self._homogeneous
        given = with_thetas(given_values(values, needed | ({sym.C} if by_ratio else set())))
        found = {**self._own_rational, **given}
        missing = sorted(str(symbol) for symbol in needed - set(found))
        if missing:
            hint = ", or for c" if by_ratio and str(sym.THETA_2) in missing else ""
            example = f"such as values={{{missing[0]!r}: '1/3'}}"
            raise InputError("values", None, f"a rational number for each of {', '.join(missing)}{hint}, {example}")
        return {symbol: found[symbol] for symbol in needed}

    @property
    def _own_rational(self) -> dict[sp.Symbol, sp.Rational]:
        """The rational values of the source; θ₁ and θ₂ of a score function only where both are."""
        own = {symbol: value for symbol, value in self.values if value.is_Rational}
        if isinstance(self.source, Attention):
            for pair in words_of(self.source).thetas:
                if not {pair.theta_1, pair.theta_2} <= set(own):
                    own = {symbol: own[symbol] for symbol in own if symbol not in (pair.theta_1, pair.theta_2)}
        return own

    @property
    def _homogeneous(self) -> bool:
        """Whether the mean-one law depends on θ₁ and θ₂ by c = θ₂/θ₁ alone."""
        return isinstance(self.source, Attention) and words_of(self.source).homogeneous

    @property
    def program(self) -> DysonProgram:
        """The small matrices of the Dyson equation, for exports to other languages.

        Words that are zero for this source are left out: traces that only they create have no equation.
        """
        values = dict(self.values)
        dyson = dyson_of(alive(self.expression, exact_values(values)), self.pencil.of)
        heading = heading_of(f"Limiting spectral law of {self.expression}.", self.steps, self.rules)
        return dyson_program(dyson, heading, inputs_of(symbols_of(dyson), self.value_of, self._number))

    def _number(self, symbol: sp.Symbol) -> sp.Expr | None:
        """The value of a symbol to 20 digits, θ₁ and θ₂ by quadrature where they have no closed form."""
        value = self.value_of(symbol)
        if value.is_number:
            return sp.N(value, _DIGITS)
        for pair in words_of(self.source).thetas if isinstance(self.source, Attention) else ():
            if symbol in (pair.theta_1, pair.theta_2) and not is_symbolic(pair.beta):
                found = thetas(pair.scores, pair.beta, _DIGITS)
                return sp.Float(found.theta_1 if symbol == pair.theta_1 else found.theta_2, _DIGITS)
        return None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: every equation as srepr, LaTeX and text, the assumptions, rules and values."""
        source = self.source
        return {
            "route": "pencil",
            "source": {"expression": str(source)} if isinstance(source, Expression) else source.to_dict(),
            "steps": [step_record(step) for step in self.steps],
            "values": {str(symbol): expression_record(value) for symbol, value in self.values},
            "pencil": self._pencil_record(),
            "system": self._system_record(),
            "moments": [expression_record(moment) for moment in self.moments(_MOMENTS)],
            "assumptions": [assumption_record(a) for a in self.assumptions],
            "rules": [rule_record(rule) for rule in self.rules],
            "not_modelled": list(getattr(source, "not_modelled", ())),
        }

    def _pencil_record(self) -> dict[str, Any]:
        blocks = self.pencil.blocks
        return {
            "blocks": [{"name": b.name, "space": b.space.name, "copies": [f.name for f in b.scope]} for b in blocks],
            "positions": [
                {"letter": p.letter.name, "row": blocks[p.row].name, "column": blocks[p.column].name,
                 "coefficient": expression_record(p.coefficient)} for p in self.pencil.positions
            ],
            "traces": [str(symbol) for symbol in self.dyson.unknowns],
            "entering": [str(self.dyson.symbol(trace)) for trace in self.dyson.entering],
        }

    def _system_record(self) -> dict[str, Any]:
        return {
            "unknowns": [str(u) for u in self.unknowns],
            "equations": [expression_record(e) for e in self.equations],
            "definitions": [{"symbol": str(s), **expression_record(v)} for s, v in self.system.definitions],
            "meanings": {str(symbol): words for symbol, words in self.system.meanings},
            "output": expression_record(self.system.output),
            "parameters": [str(p) for p in self.system.parameters],
        }


def pencil_derivation(source: Expression, of: str = "gram") -> PencilDerivation:
    """The derivation of the law of a polynomial in letters.

    Raises:
        InputError: for an expression without terms, or with letters of a copy that no sum binds; for another `of`.
    """
    check_product(source, cast(Product, of))
    dyson = dyson_of(source, of)
    system = scalar_system(dyson)
    return PencilDerivation(source, dyson, system, (), system.assumptions, (*dyson.rules, ELIMINATION))


@lru_cache(maxsize=64)
def _curve(dyson: DysonSystem, values: tuple[tuple[sp.Symbol, sp.Rational], ...], normalized: bool) -> AlgebraicCurve:
    numbers, expansion = dict(values), expansion_of(dyson)
    expansion, weights = without_roots(expansion, [weight.subs(numbers) for weight in expansion.weights])
    if irrational := [weight for weight in weights if not weight.is_Rational]:
        raise InputError("expression", str(irrational[0]), "rational coefficients and variances for an algebraic curve")
    series = ModularSeries(expansion, list(map(as_fmpq, weights)))
    curve = AlgebraicCurve.from_coefficients(minimal_polynomial(series))
    if not curve.irreducible:
        curve = curve_of_series(curve, moments(dyson, TELLING_MOMENTS, numbers))
    if not normalized:
        return curve
    mean = moments(dyson, 1, numbers)[0]
    if not mean > 0:
        raise NotCoveredError(f"a law of mean {mean} has no mean-one form; ask for the law itself (normalized=False)")
    return curve.dilated(1 / mean)


def layer_derivation(spec: Attention) -> PencilDerivation:
    """The derivation of the law of a layer from its words.

    Raises:
        NotCoveredError: for a layer without words, and for infinitely many heads, whose equations are a limit.
    """
    words = words_of(spec)
    if any(value is sp.oo for _, value in words.values):
        raise NotCoveredError(
            "derivation for infinitely many heads by the pencil route: derive the layer with a symbol for n_heads and "
            "let it grow at fixed total widths (freeattn.law takes that limit in numbers)"
        )
    dyson = dyson_of(words.expression, words.of)
    system = scalar_system(dyson)
    values = (*words.values, *(pair for thetas in words.thetas for pair in thetas.exact.items()))
    return PencilDerivation(
        spec, dyson, system, values, tuple(dict.fromkeys((*words.assumptions, *system.assumptions))),
        tuple(dict.fromkeys((*words.rules, *dyson.rules, ELIMINATION))),
    )
