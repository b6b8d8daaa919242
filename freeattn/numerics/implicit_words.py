"""Derivatives of a law given by words with respect to its parameters, from its Dyson equation.

With m the Stieltjes transform of M Mᵀ in the unit of the equation, μ its mean and z = −λμ, the law of mean one has

    w(λ) = 1 + z m(z),        w' = −μ (m + z m'),

so that derivatives by a parameter follow from those of m and m' at fixed z (`trace_variations`) and from that of μ.
This one, and those of all moments, come from the exact series at infinity. An edge of mean one is x/μ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from typing import Any

import sympy as sp

from freeattn.errors import ConvergenceError, InputError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.precision import new_context, own_context
from freeattn.numerics.compile import rational_value
from freeattn.numerics.dual_numbers import Dual
from freeattn.numerics.dyson_tables import tables_of
from freeattn.numerics.exact_words import ExactWords, symbols_held
from freeattn.numerics.implicit import Slopes, theta_rates
from freeattn.numerics.network import NetworkEngine
from freeattn.numerics.polynomials import to_context
from freeattn.numerics.trace_variations import TraceVariations, Variation
from freeattn.theory import symbols as sym
from freeattn.theory.attention_words import Thetas
from freeattn.theory.exact_moments import mean_one_moments
from freeattn.theory.field import as_expression
from freeattn.theory.moments import moments
from freeattn.theory.pencil import size_of
from freeattn.theory.rank import generic_rank
from freeattn.theory.word_parameters import Rates, common_beta, rates_of

__all__ = ["ImplicitWords"]

_GUARD_DIGITS = 15  # for the condition of the equation
_KEPT = 2048  # points whose derivatives are kept: a loss takes some hundred
_SAME_EDGE = 1e-9  # relative distance of an edge from the fold that it is
_STEP = sp.Rational(1, 10**40)  # of a size, along which a rank is linear
_T = sp.Dummy("t")


@dataclass(frozen=True)
class ImplicitWords:
    """The Dyson equation of one law with its derivatives.

    Attributes:
        exact: the exact side of the law.
        engine: its numbers.

    Raises:
        NotCoveredError: for infinitely many heads, and where there is nothing to vary.
    """

    exact: ExactWords
    engine: NetworkEngine

    def __post_init__(self) -> None:
        if self.exact.endless:
            raise NotCoveredError("derivatives of the law of infinitely many heads by the pencil route")
        if not self.parameters:
            raise NotCoveredError(
                "derivatives of a law without symbols to vary: make sizes or variances symbols, and give sizes=…"
            )

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """The ratios and fields that the equation depends on, as `rates_of` names them, and beta; of an expression its
        symbols."""
        held = symbols_held(self.exact.system)
        if not isinstance(self.exact.source, Attention):
            return tuple(str(symbol) for symbol, _ in self.exact.values if symbol in held)
        names = [name for name, slopes in rates_of(self.exact.source).items() if held & set(slopes)]
        limiting = all(pair.scores.n_tokens is None for pair in self.exact.pairs)  # θ's of finite rows have no slopes
        return (*names, "beta") if limiting and common_beta(self.exact.source) else tuple(names)

    def change(self, parameter: str, penalty: Any, w: Any, digits: int) -> Any:  # noqa: ARG002
        """∂w/∂p at λ, which is real or complex, to about `digits`; w is not needed."""
        point, at, mean, mean_change, place = self._at(parameter, penalty, digits)
        z = -point * mean
        return z * at.changes[place] - point * mean_change * (at.m + z * at.slope)

    def slopes(self, parameter: str, penalty: Any, w: Any, digits: int) -> Slopes:
        """w'(λ), ∂w/∂p and ∂w'/∂p."""
        point, at, mean, mean_change, place = self._at(parameter, penalty, digits)
        z, whole = -point * mean, at.m - point * mean * at.slope
        moved = -point * mean_change * (2 * at.slope + z * at.bend)
        bend = at.changes[place] + z * at.changes_of_slope[place] + moved
        return Slopes(-mean * whole, self.change(parameter, point, w, digits), -mean_change * whole - mean * bend)

    def edge(self, parameter: str, x: Any, near: Callable[[], float], digits: int) -> Any:  # noqa: ARG002
        """∂x/∂p of a soft edge x of the law of mean one; `near` is not needed.

        Raises:
            ConvergenceError: where x is no fold, or edges of two branches coincide.
        """
        place, (mean, mean_change) = self._place(parameter), self._mean(parameter, digits)
        raw = float(x * mean)
        folds = [fold for pair in self.engine.folds for fold in pair if fold is not None]
        number = min(range(len(folds)), key=lambda k: abs(folds[k].x - raw), default=None)
        if number is None or abs(folds[number].x - raw) > _SAME_EDGE * abs(raw):
            raise ConvergenceError("the fold at an edge", None, _SAME_EDGE, "the edge is not the end of a band")
        return (self._edges(digits)(number)[place] - x * mean_change) / mean

    def moments(self, parameter: str, order: int, digits: int) -> tuple[Any, ...]:
        """∂m_k/∂p of the moments m_1 … m_order of the law of mean one."""
        self._place(parameter)
        context = own_context(digits + _GUARD_DIGITS)
        found = mean_one_moments(self._varied_moments(parameter, order, digits))
        return tuple(_number(sp.diff(m, _T).subs(_T, 0), digits, context) for m in found)

    def out_change(self, parameter: str) -> Fraction:
        """∂γ_O/∂p of a layer with an output map: ties may set γ_O."""
        self._place(parameter)
        return _fraction(self._rates(parameter, _GUARD_DIGITS).get(sym.D_OUT, sp.Integer(0)))

    def rank_change(self, parameter: str) -> Fraction | None:
        """∂/∂p of the rank of M over its rows; None where it has a kink.

        Rank and number of rows are linear in the sizes on either side of a point: differences of them are exact.
        """
        numbers, total = self.exact.numbers(_GUARD_DIGITS), Fraction(0)
        rank, rows = self._rank_and_rows(numbers)
        for symbol, rate in self._rates(parameter, _GUARD_DIGITS).items():
            sides = [
                [(moved - here) / step for moved, here in zip(
                    self._rank_and_rows({**numbers, symbol: numbers[symbol] + step}), (rank, rows), strict=True)]
                for step in (_STEP, -_STEP)
            ]
            if sides[0] != sides[1]:
                return None
            of_rank, of_rows = sides[0]
            total += _fraction((of_rank - rank / rows * of_rows) / rows * _rational(rate, _GUARD_DIGITS))
        return total

    # Small steps -------------------------------------------------------------------------------------------------

    def _rank_and_rows(self, numbers: Mapping[Any, Any]) -> tuple[sp.Rational, sp.Rational]:
        expression = self.exact.system.expression
        matrix = expression.T if self.exact.system.pencil.of == "cogram" else expression
        return as_expression(generic_rank(matrix, numbers)), size_of(matrix.rows).xreplace(dict(numbers))

    def _place(self, parameter: str) -> int:
        if parameter not in self.parameters:
            raise InputError("parameter", parameter, f"one of {', '.join(self.parameters)}")
        return self.parameters.index(parameter)

    def _rates(self, parameter: str, digits: int) -> Rates:
        """The derivatives of the symbols of the equation by a parameter."""
        if not isinstance(self.exact.source, Attention):
            return {symbol: sp.Integer(1) for symbol, _ in self.exact.values if str(symbol) == parameter}
        if parameter != "beta":
            return rates_of(self.exact.source)[parameter]
        (pair,) = self.exact.pairs
        return _theta_rates(pair, self.exact.homogeneous, digits)

    def _at(self, parameter: str, penalty: Any, digits: int) -> tuple[Any, Variation, Any, Any, int]:
        """λ, derivatives of m at −λμ, μ, ∂μ/∂p, and the number of p."""
        place, (mean, mean_change) = self._place(parameter), self._mean(parameter, digits)
        point = own_context(digits + _GUARD_DIGITS).convert(penalty)
        return point, self._points(digits)(-point * mean), mean, mean_change, place

    def _mean(self, parameter: str, digits: int) -> tuple[Any, Any]:
        """The mean in the unit of the equation, and its derivative."""
        context = own_context(digits + _GUARD_DIGITS)
        (mean,) = self._varied_moments(parameter, 1, digits)
        numbers = mean.subs(_T, 0), sp.diff(mean, _T).subs(_T, 0)
        return _number(numbers[0], digits, context), _number(numbers[1], digits, context)

    @cached_property
    def _varied_moments(self) -> Callable[[str, int, int], tuple[sp.Expr, ...]]:
        """Moments in the unit of the equation, with the symbols moved along a parameter by their rates times t."""
        @cache
        def found(parameter: str, order: int, digits: int) -> tuple[sp.Expr, ...]:
            values: dict[sp.Symbol, sp.Expr] = dict(self.exact.numbers(digits + _GUARD_DIGITS))
            for symbol, rate in self._rates(parameter, digits + _GUARD_DIGITS).items():
                values[symbol] += rate * _T
            return moments(self.exact.system, order, values)

        return found

    @cached_property
    def _variations(self) -> Callable[[int], TraceVariations]:
        """The equation with dual numbers, to some digits."""
        @cache
        def found(digits: int) -> TraceVariations:
            working = 2 * (digits + _GUARD_DIGITS)
            context, numbers = new_context(working), self.exact.numbers(working)
            rates = [self._rates(name, working) for name in self.parameters]

            def number(value: sp.Expr) -> Dual:
                value = sp.sympify(value)
                partial = {s: sp.diff(value, s).xreplace(numbers) for s in value.free_symbols}
                changes = (sp.Add(*(partial[s] * r for s, r in rate.items() if s in partial)) for rate in rates)
                slopes = tuple(_number(change, working, context) for change in changes)
                return Dual(_number(value.xreplace(numbers), working, context), slopes)

            return TraceVariations(tables_of(self.exact.system, number=number), context, len(self.parameters))

        return found

    @cached_property
    def _points(self) -> Callable[[int], Callable[[Any], Variation]]:
        """Derivatives of m at points, kept for the next parameter."""
        @cache
        def to(digits: int) -> Callable[[Any], Variation]:
            @lru_cache(maxsize=_KEPT)
            def at(z: Any) -> Variation:
                precise, start, point = self.engine.start_at(z, digits + _GUARD_DIGITS)
                traces, context = precise.traces(start, point), precise.context
                if context.im(z) < 0:
                    traces = [context.conj(u) for u in traces]
                return self._variations(digits).at(traces, z)

            return at

        return to

    @cached_property
    def _edges(self) -> Callable[[int], Callable[[int], list[Any]]]:
        """Derivatives of the folds, in the unit of the equation."""
        @cache
        def to(digits: int) -> Callable[[int], list[Any]]:
            @cache
            def at(number: int) -> list[Any]:
                fold = [fold for pair in self.engine.folds for fold in pair if fold is not None][number]
                x, traces = self.engine.traces_to(digits + _GUARD_DIGITS).fold_traces(fold)
                return self._variations(digits).edge(traces, x, fold.direction.tolist())

            return at

        return to


def _theta_rates(pair: Thetas, homogeneous: bool, digits: int) -> Rates:
    """∂/∂β of θ₁ and θ₂, or of c = θ₂/θ₁ in the place of θ₂ where θ₁ is the unit."""
    rates = theta_rates(pair.scores, pair.beta, digits)
    moving = {pair.theta_2: rates.ratio} if homogeneous else {pair.theta_1: rates.theta_1, pair.theta_2: rates.theta_2}
    return {symbol: sp.Rational(int(rate.p), int(rate.q)) for symbol, rate in moving.items()}


def _rational(value: sp.Expr, digits: int) -> sp.Rational:
    number = rational_value(value, digits)
    return sp.Rational(int(number.p), int(number.q))


def _number(value: sp.Expr, digits: int, context: Any) -> Any:
    return to_context(rational_value(value, digits), context)


def _fraction(value: sp.Expr) -> Fraction:
    return Fraction(int(value.p), int(value.q))
