"""Moments of one row of normalized weights at a finite number of tokens, exactly.

A row has n iid scores βχ_j, χ_j ~ N(0, 1), and weights A_j = f(βχ_j)/Σ_i f(βχ_i) with f > 0. Since
1/s^k = ∫₀^∞ t^{k−1} e^{−ts} dt/(k−1)!, and with g = f(βχ)/E f(βχ) (any factor of f drops out),

    n E A_1^k χ_1^l = n/(k−1)! ∫₀^∞ t^{k−1} E[g^k χ^l e^{−tg}] φ(t)^{n−1} dt,    φ(t) = E e^{−tg}.

Both integrals are sums over equal steps, of χ and of log t: everything is analytic there, so that they converge
geometrically (kinks of f: Gauss-Legendre quadrature between them). Steps of log t divide log 2: from t to 2t every
e^{−tg} is squared, and the sums run on integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from operator import mul
from typing import Any, NamedTuple, final

from freeattn.errors import ConvergenceError, InputError
from freeattn.model.precision import context_for_results, own_context
from freeattn.model.scores import ScoreFunction

__all__ = ["RowMoment", "participation", "row_moment", "row_variance"]

_FEW_DIGITS = 15  # where the integrals begin and end
_GUARD_DIGITS = 1  # rounding of some thousand terms, and steps that are a little too long
_REFINEMENTS = 6
_RATIO = 1.5  # of one step to the next finer one
_MOST_PRODUCTS = 2_000_000  # some five seconds
_PANEL_DEGREE = 4  # of mpmath's Gauss-Legendre rules: 24 nodes
_PANEL_NODES = 24
_SPARE_BITS = 24
_DIGITS_OF_POWERS = {2: 9, 4: 6}  # of I_k at least, relative to the value for equal weights: 1 − V_n/θ₁ is small
_LARGE = 10.0  # logarithms of u beyond which e^{−u} is 0 in doubles


class RowMoment(NamedTuple):
    """A moment of a row and an estimate of its absolute error (mpmath numbers)."""

    value: Any
    error: Any


@final
@dataclass(frozen=True)
class _Row:
    """What is integrated: score function, β and n, with the powers k of A_1 and l of χ_1."""

    scores: ScoreFunction
    beta: Any
    n_tokens: int
    power: int
    degree: int


class _Nodes(NamedTuple):
    """Values of χ with their weights under N(0, 1), and g there."""

    chi: Sequence[Any]
    mass: Sequence[Any]
    g: Sequence[Any]


@lru_cache(maxsize=256)
def row_moment(
    scores: ScoreFunction, beta: Any, n_tokens: int, power: int, degree: int = 0, digits: int = 15
) -> RowMoment:
    """n E A_1^power χ_1^degree of a row of n_tokens weights, to an absolute error of about 10^{−digits}.

    (2, 0) is the inverse participation ratio I_n = E Σ_j A_j², (1, 1) the coefficient of the score in n A_1.

    Args:
        scores: a row-normalized score function.
        beta: a number that mpmath takes.

    Raises:
        InputError: when f is negative somewhere, or 0 so often that all weights of a row may be.
        ConvergenceError: when the steps do not get short enough: β far above √log n, or an undeclared kink.
    """
    row = _Row(scores, beta, n_tokens, power, degree)
    wanted = digits + math.ceil(math.log10(n_tokens)) + _GUARD_DIGITS
    scale = _RATIO
    coarse, error = _sum(row, wanted, scale), None
    for _ in range(_REFINEMENTS):
        scale /= _RATIO
        fine = _sum(row, wanted, scale)
        change = abs(fine - coarse)
        error = change**_RATIO  # the logarithm of the error goes like 1/step
        if error <= fine.context.mpf(10) ** (-digits):
            results = context_for_results(wanted)
            return RowMoment(results.convert(fine), results.convert(error))
        coarse = fine
    raise ConvergenceError(
        f"quadrature over rows of {n_tokens} tokens with score function {scores.name!r}", float(error or 1),
        10.0**-digits, "ask for fewer digits, or declare every point where the function is not smooth in kinks=…",
    )


def participation(scores: ScoreFunction, beta: float, n_tokens: int, order: int) -> float:
    """I_k = E Σ_j A_j^k of a normalized row over n iid scores N(0, β²); k is 2 (inverse participation ratio) or 4."""
    digits = _DIGITS_OF_POWERS[order] + math.ceil((order - 1) * math.log10(n_tokens))  # I_k ≥ n^{1−k}
    return float(row_moment(scores, beta, n_tokens, order, digits=digits).value)


def row_variance(scores: ScoreFunction, beta: float, n_tokens: int) -> float:
    """V_n = Var n A_1 = n I_2 − 1, in doubles: about nine digits less those that cancel at small β."""
    return n_tokens * participation(scores, beta, n_tokens, 2) - 1


def _sum(row: _Row, digits: int, scale: float) -> Any:
    """The double sum with steps `scale` times those that softmax needs."""
    decades = digits * math.log(10)
    step = scale * math.pi**2 / decades  # analytic for |Im log t| < π/2: the error is e^{−π²/step}
    chi_step = min(step / max(float(row.beta), 1e-9), scale * math.pi * math.sqrt(2 / decades))
    rough = _nodes(row, own_context(_FEW_DIGITS), digits, 2 * chi_step)
    first, last = _ends(row, rough, digits)
    per_doubling = math.ceil(math.log(2) / step)
    count = 2 * _reach(digits) / chi_step
    if count * (last - first) * per_doubling > _MOST_PRODUCTS:
        raise ConvergenceError(
            f"quadrature over rows of {row.n_tokens} tokens at beta = {float(row.beta):.4g} to {digits} digits", None,
            None, "so few tokens carry a row that no law describes it: take a smaller beta, or ask for fewer digits",
        )
    bits = math.ceil(digits * math.log2(10)) + (last - first) + row.power * max(last, 0) + _SPARE_BITS
    context = own_context(math.ceil(bits / math.log2(10)))
    nodes = _nodes(row, context, digits, chi_step)
    starts = [context.mpf(2) ** (first + context.mpf(k) / per_doubling) for k in range(per_doubling)]
    terms = [term for start in starts for term in _doublings(row, nodes, context, start, bits, digits)]
    factor = context.mpf(row.n_tokens) * context.ln2 / per_doubling / math.factorial(row.power - 1)
    return factor * context.fsum(terms)


def _doublings(row: _Row, nodes: _Nodes, context: Any, t: Any, bits: int, digits: int) -> Iterator[Any]:
    """t^k E[g^k χ^l e^{−tg}] φ(t)^{n−1} at t, 2t, 4t, … until rows have no room left; fixed point of `bits` bits."""

    def fixed(values: Sequence[Any]) -> list[int]:
        return [int(context.ldexp(value, bits)) for value in values]

    mass = fixed(nodes.mass)
    weights = fixed([
        p * g**row.power * x**row.degree for x, p, g in zip(nodes.chi, nodes.mass, nodes.g, strict=True)
    ])
    decay = fixed([context.exp(-t * g) for g in nodes.g])
    least = context.mpf(10) ** (-digits)
    while True:
        room = context.ldexp(sum(map(mul, mass, decay)), -2 * bits) ** (row.n_tokens - 1)
        if room < least:
            return
        yield t**row.power * context.ldexp(sum(map(mul, weights, decay)), -2 * bits) * room
        decay = [(value * value) >> bits for value in decay]
        t = 2 * t


def _ends(row: _Row, nodes: _Nodes, digits: int) -> tuple[int, int]:
    """Powers of two between which t contributes, found on few nodes in doubles."""
    logs = [float(g.context.log(g)) if g > 0 else -math.inf for g in nodes.g]
    mass = [float(p) for p in nodes.mass]
    tails = [p * (1 + abs(float(x))) ** row.degree for x, p in zip(nodes.chi, mass, strict=True)]
    small = 10.0**-digits
    empty = sum(p for p, log in zip(mass, logs, strict=True) if log == -math.inf) ** (row.n_tokens - 1)
    if empty > small:
        allowed = (
            f"a function that is positive with probability one: all weights of a row of {row.n_tokens} tokens are 0 "
            f"with probability {empty:.2g} or less, and have no sum to be divided by"
        )
        raise InputError("scores", row.scores.name, allowed)

    def us(exponent: int) -> list[float]:
        shift = exponent * math.log(2)
        return [math.exp(min(log + shift, _LARGE)) for log in logs]

    def part(exponent: int) -> float:
        return sum(p * u**row.power * math.exp(-u) for p, u in zip(tails, us(exponent), strict=True))

    def room(exponent: int) -> float:
        mean = sum(p * math.exp(-u) for p, u in zip(mass, us(exponent), strict=True))
        return min(mean, 1.0) ** (row.n_tokens - 1)  # few nodes: the sum may exceed 1

    first = last = -row.n_tokens.bit_length()
    while part(first) > small:
        first -= 4
    while room(last) > small:
        last += 1
    return first, last


def _reach(digits: int) -> float:
    """The Gaussian mass beyond is below the precision; u^k e^{−u} is bounded, so that no weight moves it."""
    return math.sqrt(2 * math.log(10) * digits)


def _nodes(row: _Row, context: Any, digits: int, step: float) -> _Nodes:
    """Nodes and weights on |χ| ≤ reach with steps of about `step`."""
    reach, beta = context.mpf(_reach(digits)), context.mpf(row.beta)
    width = reach / math.ceil(_reach(digits) / step)
    if row.scores.kinks:
        chi, weights = _between_kinks(row, context, reach, width)
    else:
        count = int(context.nint(reach / width))
        chi = [k * width for k in range(-count, count + 1)]
        weights = [width] * len(chi)
    values = [row.scores.value(beta * x, context) for x in chi]
    if any(value < 0 for value in values) or not any(value > 0 for value in values):
        raise InputError("scores", row.scores.name, "a positive function when rows are normalized")
    mass = [w * context.npdf(x) for x, w in zip(chi, weights, strict=True)]
    mean = context.fdot(mass, values)
    return _Nodes(chi, mass, [value / mean for value in values])


def _between_kinks(row: _Row, context: Any, reach: Any, step: Any) -> tuple[list[Any], list[Any]]:
    """Gauss-Legendre nodes on panels that end at the kinks, about as dense as equal steps."""
    kinks = (context.mpf(kink) / context.mpf(row.beta) for kink in row.scores.kinks)
    ends = [-reach, *sorted(kink for kink in kinks if abs(kink) < reach), reach]
    rule = context._gauss_legendre
    chi, weights = [], []
    for low, high in pairwise(ends):
        panels = max(1, math.ceil(float((high - low) / step) * math.pi / 2 / _PANEL_NODES))
        width = (high - low) / panels
        for panel in range(panels):
            pairs = rule.get_nodes(low + panel * width, low + (panel + 1) * width, _PANEL_DEGREE, context.prec)
            chi += [x for x, _ in pairs]
            weights += [w for _, w in pairs]
    return chi, weights
