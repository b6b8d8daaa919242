"""Derivatives of predictions against central differences of numbers with many digits."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError, NotCoveredError
from freeattn.predict import arrival_time, degrees_of_freedom, flow_loss, ridge_error, sensitivities
from freeattn.theory.transforms import FreePoisson

STEP = Fraction(1, 10**9)
CASES = {
    "mha": ({"gamma_key": Fraction(3, 2), "gamma_value": Fraction(5, 4), "gamma_out": Fraction(7, 4)}, {}),
    "keys are values": (
        {"gamma_key": Fraction(3, 2), "gamma_out": Fraction(5, 4)}, {"n_heads": 4, "tie": "key-value"},
    ),
    "attention": ({"gamma_key": Fraction(1, 4)}, {"n_heads": 16, "output": "attention"}),
}
CASES["mha"][1]["n_heads"] = 6
LONG_MHA = pytest.param("mha", marks=pytest.mark.slow)  # laws of more parameters, each built twice


def law_of(name, beta=1, **changes):
    ratios, fields = CASES[name]
    ratios = {**ratios, **changes}
    if fields.get("tie") == "key-value":
        ratios["gamma_value"] = ratios["gamma_key"]
    return fa.law(fa.Attention.from_ratios(**ratios, beta=beta, **fields))


def differences(name, number, only=()):
    """Central difference of a number with at least 28 digits, for each ratio and β: exact to about 1e-16."""
    for parameter, value in {**CASES[name][0], "beta": Fraction(1)}.items():
        if only and parameter not in only:
            continue
        above, below = (number(law_of(name, **{parameter: value + sign * STEP})) for sign in (1, -1))
        context = above.context
        yield parameter, float((context.convert(above) - context.convert(below)) / (2 * context.mpf(10) ** -9))


@pytest.fixture(scope="module")
def found():
    return {name: sensitivities(law_of(name)) for name in CASES}


def agree(changes, expected, rel=1e-12):
    for parameter, difference in expected:
        assert changes[parameter] == pytest.approx(difference, rel=rel, abs=1e-13), parameter


@pytest.mark.parametrize("name", [LONG_MHA, "attention"])  # the ridge error holds w and w' of the third
def test_degrees_of_freedom(found, name):
    for derivative in (0, 1):
        agree(
            found[name].degrees_of_freedom(0.01, derivative=derivative),
            differences(name, lambda law, k=derivative: degrees_of_freedom(law, "0.01", derivative=k, digits=30)),
            rel=1e-11,
        )


@pytest.mark.parametrize("name", ["mha", pytest.param("keys are values", marks=pytest.mark.slow)])
def test_ridge_error(found, name):
    agree(
        found[name].ridge_error("0.01", "0.1"),
        differences(name, lambda law: ridge_error(law, "0.01", "0.1", digits=30)), rel=1e-11,
    )


@pytest.mark.parametrize("name", [LONG_MHA, "attention"])
def test_moments(found, name):
    changes = found[name].moments(3)
    for k in range(3):
        agree(
            {parameter: values[k] for parameter, values in changes.items()},
            differences(name, lambda law, k=k: law.normalized().moments(3, digits=30)[k]),
        )


@pytest.mark.parametrize("name", [LONG_MHA, pytest.param("keys are values", marks=pytest.mark.slow), "attention"])
def test_edges(found, name):
    changes = found[name].edges()
    bands = len(found[name].law.edges)
    assert bands == (2 if name == "attention" else 1)
    for band in range(bands):
        for side in (0, 1):
            agree(
                {parameter: values[band][side] for parameter, values in changes.items()},
                differences(name, lambda law, b=band, s=side: law.normalized().edges_to(30)[b][s]), rel=1e-11,
            )


@pytest.mark.slow
def test_flow_loss_and_arrival(found):
    agree(
        found["mha"].flow_loss(2),
        differences("mha", lambda law: flow_loss(law, 2, digits=24), only=("gamma_key", "beta")), rel=1e-10,
    )
    agree(
        found["mha"].arrival_time("0.2"),
        differences("mha", lambda law: arrival_time(law, "0.2", digits=24), only=("gamma_out",)), rel=1e-10,
    )


@pytest.mark.slow
@pytest.mark.parametrize(("tie", "binding"), [("none", "gamma_value"), ("key-value", "gamma_key")])
def test_moving_plateau(tie, binding):
    """A rank below n: the plateau moves with the ratio that sets it, one for one; with others the loss falls away."""
    law = fa.law(fa.Attention.from_ratios(Fraction(1, 3), Fraction(1, 3), 2, n_heads=8, tie=tie))
    late = sensitivities(law).flow_loss(10**5)
    assert {name: value for name, value in late.items() if abs(value) > 1e-100} == {binding: -1}


@pytest.mark.slow
def test_loss_with_a_plateau():
    """At a time when both the plateau and the rest count."""
    def loss(gamma):
        law = fa.law(fa.Attention.from_ratios(2, 2, gamma, n_heads=8))
        return law, flow_loss(law, "1.5", digits=18)

    (law, _), (_, above), (_, below) = (loss(Fraction(1, 3) + sign * Fraction(1, 10**6)) for sign in (0, 1, -1))
    context = above.context
    difference = (context.convert(above) - context.convert(below)) / (2 * context.mpf(10) ** -6)
    assert sensitivities(law).flow_loss("1.5")["gamma_out"] == pytest.approx(float(difference), rel=1e-11)


def test_many_digits(found):
    plain = found["mha"].degrees_of_freedom("0.01")
    precise = sensitivities(found["mha"].law, digits=30).degrees_of_freedom("0.01")
    finer = sensitivities(found["mha"].law, digits=40).degrees_of_freedom("0.01")
    for name, value in precise.items():
        assert isinstance(value, mpmath.ctx_mp_python._mpf)
        assert abs(value - finer[name]) < 1e-28 * abs(finer[name])
        assert plain[name] == pytest.approx(float(value), rel=1e-14)


def test_heads_at_fixed_ratios():
    """∂/∂h between neighbouring numbers of heads: a smooth function of 1/h."""
    errors = [ridge_error(fa.law(fa.Attention.from_ratios(2, 2, 2, n_heads=h)), 0.01) for h in (39, 40, 41)]
    slope = sensitivities(fa.law(fa.Attention.from_ratios(2, 2, 2, n_heads=40))).ridge_error("0.01")["n_heads"]
    assert slope == pytest.approx((errors[2] - errors[0]) / 2, rel=2e-3)


def test_hard_edges_stay():
    changes = sensitivities(fa.law(fa.Attention.from_ratios(1, 1, 2, n_heads=4))).edges()
    assert all(band[0][0] == 0 for band in changes.values())
    assert all(np.isfinite(band[0][1]) for band in changes.values())


def test_what_is_not_covered(found):
    sigmoid = sensitivities(fa.law(fa.Attention.from_ratios(2, 2, 2, n_heads=4, scores="sigmoid")))
    assert sigmoid.parameters == ("gamma_key", "gamma_value", "gamma_out", "n_heads", "beta")
    with pytest.raises(NotCoveredError, match="available for layers of attention"):
        sensitivities(fa.law(FreePoisson(2)))
    with pytest.raises(InputError, match="penalty = 0"):
        found["mha"].ridge_error(0)
    with pytest.raises(InputError, match="order = 0"):
        found["mha"].moments(0)
    with pytest.raises(InputError, match="gamma_out = None"):
        found["attention"].ridge_error()


@pytest.mark.parametrize("parameter", ["gamma_out", pytest.param("beta", marks=pytest.mark.slow)])
def test_scores_without_closed_thetas(parameter):
    """θ's of a sigmoid are numbers, by quadrature."""
    def error(step):
        changed = {"gamma_out": Fraction(2), "beta": Fraction(1)}
        changed[parameter] += step
        return ridge_error(
            fa.law(fa.Attention.from_ratios(2, 2, n_heads=4, scores="sigmoid", **changed)), "0.01", "0.1", digits=30
        )

    above, below = error(STEP), error(-STEP)
    context = above.context
    difference = (context.convert(above) - context.convert(below)) / (2 * context.mpf(10) ** -9)
    law = fa.law(fa.Attention.from_ratios(2, 2, 2, n_heads=4, scores="sigmoid"))
    assert sensitivities(law).ridge_error("0.01", "0.1")[parameter] == pytest.approx(float(difference), rel=1e-11)


def test_arrival_at_the_start(found):
    """L(0) = 1 for every law."""
    assert set(found["mha"].arrival_time(1).values()) == {0}
