"""The best β, crossings and allocations, on criteria with known answers and on the published ones."""

import functools
import math
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import pytest

import freeattn as fa
from freeattn.errors import InputError
from freeattn.predict import design
from freeattn.predict.design import criterion_at

NARROW = fa.Attention(n_tokens=8192, d_model=12288, n_heads=96, d_key=64, d_value=192, d_out=12288)
WIDE = NARROW.replace(d_key=128, d_value=128)
SQUARE = fa.Attention(n_tokens=256, d_model=256, n_heads=4, d_key=64, output="attention")


def mean(law, digits=15):
    """e^{β²} − 1, times γ_V γ_O where they are."""
    return law.moments(1, digits=digits)[0]


@pytest.fixture
def specs_for_laws(monkeypatch):
    """A law is its specification alone: criteria then are functions of β or of widths, and searches take no time."""
    monkeypatch.setattr(design, "limiting_law", lambda spec: SimpleNamespace(spec=spec))


def beta_of(law):
    return float(law.spec.beta)


# The best β -------------------------------------------------------------------------------------------------------


def test_best_beta_inside():
    """(mean − 1)² is smallest at e^{β²} = 2."""
    found = fa.predict.best_beta(SQUARE, lambda law: (law.mean - 1) ** 2, 0.2, 2, points=5)
    assert found.boundary is None
    assert found.beta == pytest.approx(math.sqrt(math.log(2)), rel=1e-7)
    assert found.value == pytest.approx(0, abs=1e-13)
    assert [beta for beta, _ in found.scanned] == pytest.approx([0.2 * 10 ** (k / 4) for k in range(5)])


@pytest.mark.usefixtures("specs_for_laws")
@pytest.mark.parametrize(("sign", "boundary", "beta"), [(1, "low", 0.5), (-1, "high", 1.5)])
def test_best_beta_at_a_boundary(sign, boundary, beta):
    found = fa.predict.best_beta(SQUARE, lambda law: sign * beta_of(law), 0.5, 1.5)
    assert (found.boundary, found.beta, found.value) == (boundary, beta, sign * beta)


@pytest.mark.usefixtures("specs_for_laws")
@pytest.mark.parametrize("place", [0.51, 1.49])
def test_a_minimum_beside_an_end(place):
    """Between the end and the next point of the scan."""
    found = fa.predict.best_beta(SQUARE, lambda law: (beta_of(law) - place) ** 2, 0.5, 1.5, points=5)
    assert found.boundary is None
    assert found.beta == pytest.approx(place, rel=1e-6)


@pytest.mark.usefixtures("specs_for_laws")
def test_the_lower_of_two_minima():
    """The deeper one lies in the narrower dip."""
    def criterion(law):
        return min((beta_of(law) - 0.5) ** 2, 4 * (beta_of(law) - 1.5) ** 2 - 0.01)

    found = fa.predict.best_beta(SQUARE, criterion, 0.2, 2, points=17)
    assert found.beta == pytest.approx(1.5, rel=1e-7)
    assert found.value == pytest.approx(-0.01)


def test_a_criterion_that_does_not_depend_on_beta():
    with pytest.raises(InputError, match="one that depends on beta"):
        fa.predict.best_beta(SQUARE, lambda law: law.normalized().mean, 0.5, 1.5, points=5)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [((0, 1), "low"), ((1, 1), "high"), ((1, math.inf), "high"), ((0.5, 1, 4), "points"), ((0.5, 1, True), "points")],
)
def test_bad_intervals(arguments, field):
    with pytest.raises(InputError) as caught:
        fa.predict.best_beta(SQUARE, mean, *arguments)
    assert caught.value.field == field


@pytest.mark.parametrize("value", [math.nan, "no", None, [1.0, 2.0]])
def test_criteria_that_give_no_number(value):
    with pytest.raises(InputError, match="finite real number"):
        criterion_at(SQUARE, lambda _: value)


# Crossings --------------------------------------------------------------------------------------------------------


def test_published_crossing():
    """Figure 2(d): β ≈ 0.559."""
    (crossing,) = fa.predict.crossover(NARROW, WIDE, fa.predict.ridge_error, low=0.4, high=0.8, points=5)
    assert crossing.value == pytest.approx(0.5587208387, abs=1e-10)
    assert (crossing.better_below, crossing.better_above) == ("b", "a")


@pytest.mark.slow
def test_published_crossing_to_many_digits():
    precise = functools.partial(fa.predict.ridge_error, penalty=Fraction(1, 10_000), noise=Fraction(1, 10))
    (again,) = fa.predict.crossover(NARROW, WIDE, precise, low=0.5, high=0.6, digits=25, points=5)
    assert float(again.value) == pytest.approx(0.5587208387, abs=1e-10)
    assert again.digits == 25


def test_crossing_with_a_known_answer_to_many_digits():
    """e^{β²} − 1 = 2 (e^{1/4} − 1) at β² = log(2 e^{1/4} − 1)."""
    first, second = (fa.Attention.from_ratios(1, 1, 1, n_heads=heads) for heads in (4, 2))
    fixed = fa.law(second.replace(beta=Fraction(1, 2)))

    def criterion(law, digits=15):
        return mean(law, digits) if law.spec.n_heads == 4 else 2 * mean(fixed, digits)

    (crossing,) = fa.predict.crossover(first, second, criterion, low=0.6, high=0.75, digits=30, points=5)
    context = mpmath.MPContext()
    context.dps = 40
    exact = context.sqrt(context.log(2 * context.exp(context.mpf(1) / 4) - 1))
    assert abs(context.convert(crossing.value) - exact) < 1e-30


@pytest.mark.usefixtures("specs_for_laws")
def test_two_crossings_between_points_of_the_scan():
    """The difference (β − 1)² − 10⁻⁴ changes sign twice between two points; its dip is found and searched."""
    def criterion(law):
        return (beta_of(law) - 1) ** 2 - 1e-4 if law.spec.n_heads == 4 else 0.0

    found = fa.predict.crossover(SQUARE, SQUARE.replace(n_heads=8), criterion, low=0.5, high=1.7, points=7)
    assert [crossing.value for crossing in found] == pytest.approx([0.99, 1.01], rel=1e-9)
    assert [crossing.better_below for crossing in found] == ["b", "a"]


@pytest.mark.usefixtures("specs_for_laws")
def test_a_ratio_as_variable():
    def criterion(law):
        return float(law.spec.gamma_out) if law.spec.n_heads == 4 else 1.5

    first, second = (fa.Attention.from_ratios(1, 1, 1, n_heads=heads) for heads in (4, 2))
    (crossing,) = fa.predict.crossover(first, second, criterion, variable="gamma_out", low=1, high=2, points=5)
    assert crossing.value == pytest.approx(1.5, rel=1e-12)


@pytest.mark.usefixtures("specs_for_laws")
def test_a_jump_of_the_criterion_is_no_crossing_of_values_but_is_enclosed():
    """A change of sign is what is found, whatever the criterion does between."""
    def criterion(law):
        return math.copysign(1, beta_of(law) - 0.7) if law.spec.n_heads == 4 else 0.0

    (crossing,) = fa.predict.crossover(SQUARE, SQUARE.replace(n_heads=8), criterion, low=0.5, high=1, points=5)
    assert crossing.value == pytest.approx(0.7, rel=1e-10)


@pytest.mark.usefixtures("specs_for_laws")
def test_no_crossing():
    def criterion(law):
        return beta_of(law) + law.spec.n_heads

    assert fa.predict.crossover(SQUARE, SQUARE.replace(n_heads=8), criterion) == ()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"second": SQUARE}, "tells the two layers apart"),
        ({"variable": "betta"}, "betta"),
        ({"digits": 0}, "digits = 0"),
        ({"criterion": lambda law: law.mean, "digits": 20}, "takes digits"),
    ],
)
def test_bad_questions(changes, message):
    arguments = {"first": SQUARE, "second": SQUARE.replace(n_heads=8), "criterion": mean, "points": 5}
    with pytest.raises(InputError, match=message):
        fa.predict.crossover(**{**arguments, **changes})


# Allocation -------------------------------------------------------------------------------------------------------

SMALL = fa.Attention(n_tokens=64, d_model=64, n_heads=4, d_key=16, d_value=16, d_out=64)


def exhaustive(budget, criterion):
    """Every d_key with the largest d_value that the budget allows: 2·4·64 weights a key column, 4·(64 + 64) a value."""
    found = []
    for d_key in range(1, budget // 512):
        d_value = (budget - 512 * d_key) // 512
        if d_value > 0:
            found.append((criterion(fa.law(SMALL.replace(d_key=d_key, d_value=d_value))), d_key, d_value))
    return min(found)


def test_allocation_finds_what_all_widths_give():
    budget = 2 * 64 * 64
    found = fa.predict.allocate(SMALL, budget, fa.predict.ridge_error)
    value, d_key, d_value = exhaustive(budget, fa.predict.ridge_error)
    assert (found.widths, found.value) == ({"d_key": d_key, "d_value": d_value}, value)
    assert (found.parameters, found.unused) == (budget, 0)
    assert found.evaluated < 15


@pytest.mark.usefixtures("specs_for_laws")
def test_what_integers_leave_of_the_budget():
    found = fa.predict.allocate(SMALL, 4 * 64 * 64 + 300, lambda law: (law.spec.d_key - 9) ** 2)
    assert found.widths == {"d_key": 9, "d_value": 23}
    assert (found.parameters, found.unused) == (4 * 64 * 64, 300)


@pytest.mark.usefixtures("specs_for_laws")
def test_allocation_over_three_widths():
    """The spread c²/γ_K + 1/γ_V + 1/γ_O of the law of mean one, at 2γ_K + γ_V + γ_V γ_O = 4 weights over n²."""
    c = 1 / math.expm1(1)

    def spread(law):
        return c**2 / float(law.spec.gamma_key) + 1 / float(law.spec.gamma_value) + 1 / float(law.spec.gamma_out)

    spec = fa.Attention.from_ratios(1, 1, 1, n_heads=4)
    found = fa.predict.allocate(spec, 4, spread, over=("gamma_key", "gamma_value", "gamma_out"))
    assert (found.unused, found.boundary) == (0, ())
    k, v, o = (float(width) for width in found.widths.values())
    mu = c**2 / (2 * k**2)  # Lagrange's multiplier
    assert 1 / v**2 == pytest.approx(mu * (1 + o), rel=2e-3)
    assert 1 / o**2 == pytest.approx(mu * v, rel=2e-3)
    assert 2 * k + v + v * o == pytest.approx(4, rel=1e-12)


@pytest.mark.usefixtures("specs_for_laws")
def test_allocation_at_a_boundary():
    found = fa.predict.allocate(SMALL, 4 * 64 * 64, lambda law: -float(law.spec.d_value))
    assert found.widths == {"d_key": 1, "d_value": 31}
    assert found.boundary == ("d_key",)


@pytest.mark.usefixtures("specs_for_laws")
def test_allocation_of_tied_layers():
    """Values follow keys: 2·4·64 weights a column of both, 4 d_out for the rows of W^O."""
    def criterion(law):
        return abs(law.spec.d_out - 100)

    found = fa.predict.allocate(SMALL.replace(tie="key-value"), 3 * 64 * 64, criterion, over=("d_out", "d_key"))
    assert found.widths == {"d_out": 100, "d_key": 13}
    assert found.spec.d_value == 13
    assert found.parameters == 13 * 4 * (2 * 64 + 100)


@pytest.mark.usefixtures("specs_for_laws")
def test_keys_stay_wider_than_their_positions():
    spec = SMALL.replace(latent=fa.Latent(8), position_width=6)
    found = fa.predict.allocate(spec, fa.predict.parameter_count(spec), lambda law: float(law.spec.d_key))
    assert found.widths["d_key"] == 7
    assert found.boundary == ("d_key",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"over": ("d_key",)}, "two or three different widths"),
        ({"over": ("d_key", "d_key")}, "two or three different widths"),
        ({"over": ("d_key", "rank")}, "widths among"),
        ({"budget": 900}, "enough weights for some d_key"),
        ({"budget": -1}, "budget = -1"),
        ({"points": 2}, "points = 2"),
    ],
)
def test_bad_allocations(changes, message):
    arguments = {"spec": SMALL, "budget": 4 * 64 * 64, "criterion": fa.predict.ridge_error}
    with pytest.raises(InputError, match=message):
        fa.predict.allocate(**{**arguments, **changes})
