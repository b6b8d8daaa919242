"""Derivatives for laws given by words: against the closed laws, and against differences of numbers with many digits."""

import math
from fractions import Fraction

import pytest
import sympy as sp

import freeattn as fa
from freeattn.errors import InputError, NotCoveredError
from freeattn.numerics.implicit_words import ImplicitWords
from freeattn.predict import degrees_of_freedom, flow_loss, ridge_error, sensitivities
from freeattn.theory.word_parameters import rates_of

STEP = Fraction(1, 10**9)
HALVES = fa.FeatureCovariance([Fraction(1, 2), Fraction(3, 2)], [Fraction(1, 2), Fraction(1, 2)])
BASE = {
    "gamma_key": Fraction(3, 2), "gamma_value": Fraction(5, 4), "gamma_out": Fraction(7, 4),
    "tokens_per_width": Fraction(2, 3), "n_heads": 4,
}
TIED = {"gamma_value": None, "gamma_out": None}
FIELDS = {  # what is not a ratio, from what is varied
    "rho": lambda rho: {"tie": fa.KeyValueCorrelation(rho)},
    "latent_rank": lambda rank: {"latent": fa.Latent(rank)},
    "query_latent_rank": lambda rank: {"query_latent": fa.Latent(rank)},
}
KINDS = {
    "gaussian": {"inputs": "gaussian"},
    "covariance": {"inputs": HALVES},
    "correlated": {"rho": Fraction(3, 5), "gamma_value": None},
    "output-key": {"inputs": "gaussian", "tie": "output-key", **TIED},
    "output-key, orthogonal": {"tie": "key-value-output", **TIED},
    "latent": {
        "latent_rank": Fraction(4, 5), "query_latent_rank": Fraction(6, 5), "position_width": Fraction(1, 8),
    },
    "residual": {"residual": Fraction(1, 2), "gamma_out": None},
}
FAST = [("correlated", "rho")]
SLOW = [
    ("gaussian", "beta"), ("output-key", "tokens_per_width"), ("latent", "latent_rank"),
    ("gaussian", "gamma_value"), ("gaussian", "tokens_per_width"), ("covariance", "tokens_per_width"),
    ("covariance", "gamma_key"), ("correlated", "beta"), ("output-key, orthogonal", "tokens_per_width"),
    ("output-key, orthogonal", "gamma_key"), ("latent", "query_latent_rank"), ("latent", "position_width"),
    ("latent", "gamma_out"), ("residual", "residual"), ("residual", "tokens_per_width"), ("residual", "beta"),
]


def layer(kind, **changes):
    given = {**BASE, **KINDS[kind], **changes}
    for name in set(FIELDS) & set(given):
        given |= FIELDS[name](given.pop(name))
    return fa.Attention.from_ratios(**given)


def value_of(kind, parameter):
    return Fraction({"beta": 1, **BASE, **KINDS[kind]}[parameter])


def central(numbers, step=STEP):
    """Central differences of lists of numbers with many digits, from the points one step above and below."""
    above, below = numbers(step), numbers(-step)
    context = above[0].context
    width = 2 * context.mpf(step.numerator) / step.denominator
    return [float((context.convert(a) - context.convert(b)) / width) for a, b in zip(above, below, strict=True)]


def predicted(law, output=True):
    error = [ridge_error(law, "0.01", "0.1", digits=30)] if output else []
    edges = [x for band in law.normalized().edges_to(30) for x in band]
    slope = degrees_of_freedom(law, "0.01", derivative=1, digits=30)
    return [*error, slope, law.normalized().moments(3, digits=30)[2], *edges]


def changes(law, parameter):
    found = sensitivities(law)
    return [
        found.ridge_error("0.01", "0.1")[parameter], found.degrees_of_freedom("0.01", derivative=1)[parameter],
        found.moments(3)[parameter][2], *(x for band in found.edges()[parameter] for x in band),
    ]


@pytest.mark.parametrize(
    ("kind", "parameter"), [*FAST, *(pytest.param(*case, marks=pytest.mark.slow) for case in SLOW)]
)
def test_central_differences(kind, parameter):
    value = value_of(kind, parameter)
    expected = central(lambda step: predicted(fa.law(layer(kind, **{parameter: value + step}))))
    assert changes(fa.law(layer(kind)), parameter) == pytest.approx(expected, rel=1e-13)


@pytest.mark.slow
def test_unequal_heads():
    """Widths and β of each family's own; sizes are integers, so that the smallest step is 1e-7 of them."""
    heads = [fa.Heads(1, 3 * 10**6, 4 * 10**6), fa.Heads(2, 2 * 10**6, 10**7, beta=2)]
    spec = fa.Attention(n_tokens=10**7, d_model=2 * 10**7, heads=heads, inputs="gaussian")
    step = Fraction(1, 10**7)
    expected = central(
        lambda s: predicted(fa.law(spec.replace(heads=[heads[0], fa.Heads(2, 2 * 10**6 + s / step, 10**7, beta=2)]))),
        step,
    )
    law = fa.law(spec)
    assert "beta" not in sensitivities(law).parameters  # no common one
    found = changes(law, "heads[1].gamma_key")
    assert [2 * x for x in found] == pytest.approx(expected, rel=1e-11)  # γ of two heads


def agree(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-13, abs=1e-16), name


CLOSED = fa.Attention.from_ratios(Fraction(3, 2), Fraction(5, 4), Fraction(1, 3), n_heads=6)


@pytest.mark.parametrize(
    "spec", [
        pytest.param(CLOSED, marks=pytest.mark.slow, id="mha"),
        pytest.param(fa.Attention.from_ratios(2, None, Fraction(5, 4), n_heads=4, tie="key-value"),
                     marks=pytest.mark.slow, id="keys are values"),
        pytest.param(fa.Attention.from_ratios(Fraction(1, 4), n_heads=16, output="attention"), id="two bands"),
    ],
)
def test_both_routes(spec):
    closed, words = (sensitivities(fa.law(spec, route=route)) for route in ("transform", "pencil"))
    assert set(closed.parameters) == set(words.parameters)
    if spec.has_output_map:
        agree(words.ridge_error("0.01", "0.1"), closed.ridge_error("0.01", "0.1"))
    agree(words.degrees_of_freedom("0.01", derivative=1), closed.degrees_of_freedom("0.01", derivative=1))
    for name in closed.parameters:
        assert words.moments(3)[name] == pytest.approx(closed.moments(3)[name], rel=1e-14)
        for band, expected in zip(words.edges()[name], closed.edges()[name], strict=True):
            assert band == pytest.approx(expected, rel=1e-13)


@pytest.mark.slow
def test_flow_on_both_routes():
    """A rank below n: the plateau moves too."""
    closed, words = (sensitivities(fa.law(CLOSED, route=route)) for route in ("transform", "pencil"))
    agree(words.flow_loss("1.5"), closed.flow_loss("1.5"))
    agree(words.arrival_time("0.8"), closed.arrival_time("0.8"))


def expression(p, q=120):
    sizes = {"n": 100, "p": p, "q": q}
    n, inner, q = (fa.space(name, sp.Symbol(name, positive=True)) for name in sizes)
    product = fa.gaussian("A", n, inner, 1 / inner.size) @ fa.gaussian("B", inner, q, 1 / n.size)
    return fa.law(product, sizes=sizes)


@pytest.mark.slow
def test_expressions():
    """By the symbols of an expression, whose rank is p."""
    found = sensitivities(expression(90))
    assert found.parameters == ("n", "p", "q")
    with pytest.raises(InputError, match="gamma_out"):
        found.ridge_error()
    values = [
        found.degrees_of_freedom("0.01", derivative=1)["p"], found.moments(3)["p"][2], *found.edges()["p"][0],
        found.flow_loss("0.5")["p"],
    ]

    def numbers(step):
        law = expression(90 + step)
        return [*predicted(law, output=False), flow_loss(law, "0.5", digits=24)]

    assert values == pytest.approx(central(numbers, Fraction(1, 10**6)), rel=1e-11)


def test_ranks():
    """rank/n = min(p, q, n)/n, with a kink where two of them meet."""
    def change(*widths):
        law = expression(*widths)
        return [ImplicitWords(law._exact, law._engine).rank_change(name) for name in "npq"]

    assert change(90) == [Fraction(-9, 1000), Fraction(1, 100), 0]
    assert change(90, 90) == [Fraction(-9, 1000), None, None]


def test_rates_of_sizes_and_of_ratios():
    """The same layer by sizes and by ratios."""
    for fields in ({}, {"tie": "output-key", "d_value": 100, "d_out": 450}, {"residual": Fraction(1, 3), "d_out": 450}):
        sizes = {"n_tokens": 300, "d_model": 450, "n_heads": 4, "d_key": 100, "d_value": 90, "d_out": 500, **fields}
        spec = fa.Attention(**sizes, inputs="gaussian")
        rest = {name: fields[name] for name in ("tie", "residual") if name in fields}
        ratios = (spec.gamma_key, spec.gamma_value, spec.gamma_out, spec.tokens_per_width, 4)
        assert rates_of(spec) == rates_of(fa.Attention.from_ratios(*ratios, inputs="gaussian", **rest))


def test_many_digits_of_words():
    law = fa.law(layer("correlated"))
    plain, precise = sensitivities(law).degrees_of_freedom("0.01"), sensitivities(law, digits=30)
    finer = sensitivities(law, digits=45).degrees_of_freedom("0.01")
    for name, value in precise.degrees_of_freedom("0.01").items():
        assert abs(value - finer[name]) < 1e-29 * abs(finer[name])
        assert plain[name] == pytest.approx(float(value), rel=1e-15)


def test_what_words_do_not_cover():
    fixed = fa.gaussian("G", fa.space("n", 10), fa.space("p", 15), Fraction(1, 10))
    with pytest.raises(NotCoveredError, match="without symbols to vary"):
        sensitivities(fa.law(fixed))
    n, p = fa.space("n", 100), fa.space("p", sp.Symbol("p", positive=True))
    beside = fa.concatenate(fa.identity(n), fa.gaussian("G", n, p, Fraction(1, 100)))  # 1 and more
    with pytest.raises(NotCoveredError, match="atom between"):
        sensitivities(fa.law(beside, sizes={"p": 20})).flow_loss(1)
    with pytest.raises(NotCoveredError, match="infinitely many heads"):
        sensitivities(fa.law(fa.Attention.from_ratios(2, 2, 2, 1, math.inf), route="pencil"))
