"""Derivatives of a closed law with respect to its ratios and to β, by implicit differentiation of its scalar equation.

The law of mean one obeys P(λ, w; p) = 0 with w(λ) = ∫ x/(x + λ) dν, so that at fixed λ

    ∂w/∂p = −P_p/P_w,        w' = −P_λ/P_w,        ∂w'/∂p = −(P_λp + P_λw ∂w/∂p + (P_wp + P_ww ∂w/∂p) w')/P_w,

and at a soft edge x = −λ, where P = P_w = 0, ∂x/∂p = P_p/P_λ. Polynomials are exact; β enters through c = θ₂/θ₁.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import sympy as sp
from flint import fmpq

from freeattn.errors import ConvergenceError, InputError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.precision import new_context, own_context
from freeattn.model.quadrature import theta_slopes, thetas
from freeattn.model.scores import ScoreFunction
from freeattn.numerics.compile import evaluate, fraction_of, rational_value
from freeattn.numerics.exact import exact_law
from freeattn.theory import symbols as sym
from freeattn.theory.attention_laws import law_of
from freeattn.theory.exact_moments import mean_one_moments
from freeattn.theory.mean_one import scalar_equation
from freeattn.theory.transforms import Law

__all__ = ["ImplicitEquation", "Slopes", "ThetaRates", "theta_rates"]

_NAMES = {
    "gamma_key": sym.GAMMA_KEY, "gamma_value": sym.GAMMA_VALUE, "gamma_out": sym.GAMMA_OUT,
    "gamma_kv": sym.GAMMA_KV, "n_heads": sym.HEADS, "beta": sym.C,
}
_GUARD_DIGITS = 20  # for cancellation between the terms of an expanded polynomial

_ALL = ("l", "w", "p", "lp", "lw", "wp", "ww")
_STEPS = 60

_Table = list[tuple[int, int, Any]]  # powers of λ and w, and the coefficient


class Slopes(NamedTuple):
    """w'(λ), ∂w/∂p and ∂w'/∂p of one parameter at one λ."""

    slope: Any
    change: Any
    change_of_slope: Any


@dataclass(frozen=True)
class ImplicitEquation:
    """The scalar equation of one layer of a closed law, with its derivatives.

    Raises:
        NotCoveredError: for anything but an `Attention` with a closed law.
    """

    spec: Attention

    def __post_init__(self) -> None:
        if not isinstance(self.spec, Attention) or not self.spec.covered_by_transforms:
            raise NotCoveredError(
                "derivatives with respect to ratios of this law: they are available for layers of attention, and for "
                "expressions in letters whose sizes are symbols"
            )

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters that the law depends on; n_heads at fixed ratios of total widths to tokens.

        θ's of finite rows are not differentiated by beta.
        """
        have = {symbol for symbol, _ in law_of(self.spec).values}
        if self.spec.scores.n_tokens is None:
            have.add(sym.C)
        return tuple(name for name, symbol in _NAMES.items() if symbol in have)

    def out_change(self, parameter: str) -> int:
        """∂γ_O/∂p."""
        return int(parameter == "gamma_out")

    def change(self, parameter: str, penalty: Any, w: Any, digits: int) -> Any:
        """∂w/∂p at λ and w(λ), which are real or complex, to about `digits`."""
        values = self._values(parameter, penalty, w, digits, ("w", "p"))
        return -self._chain(parameter, digits) * values["p"] / values["w"]

    def slopes(self, parameter: str, penalty: Any, w: Any, digits: int) -> Slopes:
        """The same with w' and ∂w'/∂p."""
        values = self._values(parameter, penalty, w, digits, _ALL)
        slope, change = -values["l"] / values["w"], -values["p"] / values["w"]
        bend = values["lp"] + values["lw"] * change + (values["wp"] + values["ww"] * change) * slope
        factor = self._chain(parameter, digits)
        return Slopes(slope, factor * change, -factor * bend / values["w"])

    def _values(self, parameter: str, penalty: Any, w: Any, digits: int, names: Sequence[str]) -> dict[str, Any]:
        self._check(parameter)
        context, tables = own_context(digits + _GUARD_DIGITS), _tables(self.spec, parameter, digits)
        point, value = context.convert(penalty), context.convert(w)
        return {name: _evaluated(tables[name], point, value, context) for name in names}

    def edge(self, parameter: str, x: Any, near: Callable[[], float], digits: int) -> Any:
        """∂x/∂p of a soft edge x of the law of mean one; `near` gives w = 1 + x m close to it.

        w there is the double root: Newton for P_w = 0.

        Raises:
            ConvergenceError: when no double root is found.
        """
        self._check(parameter)
        context = own_context(digits + _GUARD_DIGITS)
        point, w, tables = -context.convert(x), context.mpf(near()), _tables(self.spec, parameter, digits)
        tolerance = context.mpf(10) ** -digits
        for _ in range(_STEPS):
            step = _evaluated(tables["w"], point, w, context) / _evaluated(tables["ww"], point, w, context)
            w -= step
            if abs(step) <= tolerance * abs(w):
                break
        values = {name: _evaluated(tables[name], point, w, context) for name in ("", "l", "p")}
        residual = abs(values[""] / (point * values["l"]))
        if not residual <= context.sqrt(tolerance):
            raise ConvergenceError("the root at an edge", float(residual), float(tolerance), "ask for more digits")
        return self._chain(parameter, digits) * values["p"] / values["l"]

    def moments(self, parameter: str, order: int, digits: int) -> tuple[Any, ...]:
        """∂m_k/∂p of the moments m_1 … m_order of the law of mean one."""
        self._check(parameter)
        numbers, factor = _numbers(self.spec, digits), self._chain(parameter, digits)
        symbol, context = _NAMES[parameter], own_context(digits + _GUARD_DIGITS)
        found = []
        law = law_of(self.spec).law.substitute({sym.THETA_1: sp.Integer(1), sym.THETA_2: sym.C})
        for moment in mean_one_moments(law.moments(order)):
            found.append(factor * _as_number(context, evaluate(sp.diff(moment, symbol), numbers)))
        return tuple(found)

    def _check(self, parameter: str) -> None:
        if parameter not in self.parameters:
            raise InputError("parameter", parameter, f"one of {', '.join(self.parameters)}")

    def _chain(self, parameter: str, digits: int) -> Any:
        """1, or dc/dβ."""
        context = own_context(digits + _GUARD_DIGITS)
        if parameter != "beta":
            return context.one
        return _as_number(context, theta_rates(self.spec.scores, self.spec.beta, digits + _GUARD_DIGITS).ratio)


def _as_number(context: Any, value: fmpq) -> Any:
    return context.mpf(int(value.p)) / int(value.q)


@lru_cache(maxsize=64)
def _polynomial(law: Law) -> tuple[tuple[sp.Symbol, ...], dict[tuple[int, ...], fmpq]]:
    """(λ, w, parameters) and the terms of P."""
    expression = scalar_equation(law).polynomial()
    symbols = (sym.LAMBDA, sym.W, *sorted(expression.free_symbols - {sym.LAMBDA, sym.W}, key=str))
    polynomial = sp.Poly(expression, *symbols)
    return symbols, {monomial: fraction_of(c) for monomial, c in polynomial.terms()}


@lru_cache(maxsize=256)
def _tables(spec: Attention, parameter: str, digits: int) -> Mapping[str, _Table]:
    """Coefficients of P and of its derivatives by λ, w and the parameter, by letters l, w, p."""
    symbols, terms = _polynomial(law_of(spec).law)
    places = {"l": 0, "w": 1, "p": symbols.index(_NAMES[parameter])}
    values = _numbers(spec, digits)
    numbers = [values[symbol] for symbol in symbols[2:]]
    found = {}
    for name in ("", *_ALL):
        derived = terms
        for letter in name:
            derived = _derived(derived, places[letter])
        exact = _substituted(derived, numbers)
        context = new_context(digits + _GUARD_DIGITS)
        found[name] = [(i, j, _as_number(context, c)) for (i, j), c in exact.items() if c != 0]
    return found


@lru_cache(maxsize=256)
def _numbers(spec: Attention, digits: int) -> Mapping[sp.Symbol, fmpq]:
    numbers = exact_law(spec).numbers(digits + _GUARD_DIGITS)
    return {**numbers, sym.C: numbers[sym.THETA_2]}


class ThetaRates(NamedTuple):
    """∂/∂β of θ₁, θ₂ and c = θ₂/θ₁."""

    theta_1: fmpq
    theta_2: fmpq
    ratio: fmpq


@lru_cache(maxsize=256)
def theta_rates(scores: ScoreFunction, beta: Any, digits: int) -> ThetaRates:
    """From closed forms, where there are any, else by quadrature."""
    exact = scores.exact_thetas(sym.BETA, sp)
    if exact is not None:
        first, second = map(sp.sympify, exact)
        slopes = (sp.diff(value, sym.BETA) for value in (first, second, second / first))
        return ThetaRates(*(rational_value(slope.subs(sym.BETA, sp.sympify(beta)), digits) for slope in slopes))
    values, (first, second) = thetas(scores, beta, digits), theta_slopes(scores, beta, digits)
    context = own_context(digits + _GUARD_DIGITS)
    theta_1, theta_2 = context.mpf(values.theta_1), context.mpf(values.theta_2)
    ratio = (second - theta_2 / theta_1 * first) / theta_1
    rates = (sp.Float(rate, digits + _GUARD_DIGITS) for rate in (first, second, ratio))
    return ThetaRates(*(rational_value(rate, digits) for rate in rates))


def _derived(terms: Mapping[tuple[int, ...], fmpq], place: int) -> dict[tuple[int, ...], fmpq]:
    return {
        (*m[:place], m[place] - 1, *m[place + 1:]): c * m[place] for m, c in terms.items() if m[place]
    }


def _substituted(terms: Mapping[tuple[int, ...], fmpq], numbers: Sequence[fmpq]) -> dict[tuple[int, int], fmpq]:
    found: dict[tuple[int, int], fmpq] = {}
    for (i, j, *powers), coefficient in terms.items():
        for number, power in zip(numbers, powers, strict=True):
            coefficient *= number**power
        found[i, j] = found.get((i, j), fmpq(0)) + coefficient
    return found


def _evaluated(table: _Table, point: Any, value: Any, context: Any) -> Any:
    points, values = [context.one], [context.one]
    for powers, base, most in ((points, point, 0), (values, value, 1)):
        for _ in range(max((entry[most] for entry in table), default=0)):
            powers.append(powers[-1] * base)
    total = context.zero
    for i, j, coefficient in table:
        total += context.convert(coefficient) * points[i] * values[j]
    return total
