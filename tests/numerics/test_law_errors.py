"""What a law refuses: one line that names field, value and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from specimens import SPECS, built, ratios

import freeattn as fa
from freeattn.errors import FreeattnError, InputError, NotCoveredError
from freeattn.theory.transforms import Discrete, FreeSum, Image, MarchenkoPastur, PointMass

R = sp.Rational
G = sp.Symbol("g", positive=True)


def refused(call: Callable[[], Any], field: str) -> InputError:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.field == field
    message = str(caught.value)
    assert message.startswith(f"{field} = ")
    assert "expected" in message
    assert "\n" not in message
    return caught.value


@pytest.mark.parametrize(
    "bad", [math.nan, math.inf, -math.inf, [1.0, math.nan], np.array([[math.inf]]), "one", None]
)
def test_density(bad: Any) -> None:
    refused(lambda: built("mha").density(bad), "x")


@pytest.mark.parametrize("bad", [math.nan, [0.0, math.nan], "one", 1j])
def test_cdf(bad: Any) -> None:
    refused(lambda: built("mha").cdf(bad), "x")


@pytest.mark.parametrize(
    ("bad", "value"), [(-0.1, -0.1), (1.1, 1.1), ([0.5, 2.0], 2.0), (-1e-300, -1e-300), (math.inf, math.inf)]
)
def test_quantile(bad: Any, value: float) -> None:
    assert refused(lambda: built("mha").quantile(bad), "p").value == value


def test_quantile_nan() -> None:
    refused(lambda: built("mha").quantile(math.nan), "p")


@pytest.mark.parametrize("bad", [math.nan, math.inf, complex(0, math.inf), [1j, math.nan]])
def test_stieltjes(bad: Any) -> None:
    refused(lambda: built("mha").stieltjes(bad), "z")


def test_stieltjes_at_an_atom() -> None:
    law = built("values, atom")
    for z in (0, 0.0, [1.0, 0.0], 0j):
        assert "atoms" in str(refused(lambda z=z: law.stieltjes(z), "z"))
    refused(lambda: law.stieltjes(0, digits=30), "z")
    shifted = fa.law(Image(MarchenkoPastur(2), (R(1, 2), 1)))
    refused(lambda: shifted.stieltjes(0.5), "z")
    assert math.isfinite(abs(shifted.stieltjes(0.25)))


def test_stieltjes_at_a_hard_edge() -> None:
    law = built("mha, hard edge")
    assert "hard edge" in str(refused(lambda: law.stieltjes(0.0), "z"))
    assert "hard edge" in str(refused(lambda: law.stieltjes([1.0, 0.0]), "z"))
    refused(lambda: law.stieltjes(0, digits=30), "z")
    assert law.density(0.0) == math.inf


@pytest.mark.parametrize("bad", [20.5, 10**6, "30x"])
def test_digits(bad: Any) -> None:
    law = built("mha")
    refused(lambda: law.edges_to(bad), "digits")
    refused(lambda: law.moments(2, digits=bad), "digits")


@pytest.mark.parametrize("bad", [[1.0, 2.0], math.nan, math.inf, "one", 1j, None])
def test_one_point_at_a_time_with_many_digits(bad: Any) -> None:
    refused(lambda: built("mha").density(bad, digits=30), "x")


@pytest.mark.parametrize("bad", [-0.1, "1.1", math.nan])
def test_quantile_with_many_digits(bad: Any) -> None:
    refused(lambda: built("mha").quantile(bad, digits=30), "p")


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2"])
def test_order_of_moments(bad: Any) -> None:
    refused(lambda: built("mha").moments(bad), "order")


def test_symbols_are_refused_where_numbers_are_needed() -> None:
    assert "gamma_K" in str(
        refused(lambda: fa.law(MarchenkoPastur(sp.Symbol("gamma_K", positive=True))), "law")
    )
    for spec in (
        ratios(G, 1, 1),
        ratios(1, G, 1),
        ratios(1, 1, G),
        ratios(1, 1, 1, n_heads=sp.Symbol("h", integer=True, positive=True)),
        ratios(1, 1, 1, beta=G),
        ratios(1, 1, 1, value_scale=G),
    ):
        refused(lambda spec=spec: fa.law(spec), "specification")


@pytest.mark.parametrize("bad", ["bert-base", None, 3, {"n_heads": 1}, MarchenkoPastur])
def test_source(bad: Any) -> None:
    refused(lambda: fa.law(bad), "source")


@pytest.mark.parametrize("output", ["mha", "values"])
def test_infinitely_many_tied_heads(output: str) -> None:
    with pytest.raises(NotCoveredError, match="n_heads = inf"):
        fa.law(ratios(1, None, 1, n_heads=math.inf, tie="key-value", output=output))


def test_laws_without_a_parameter() -> None:
    coin = Discrete((-1, 1), (R(1, 2), R(1, 2)))
    with pytest.raises(NotCoveredError, match="numbers are available for at most one such law"):
        fa.law(FreeSum((coin, coin)))


@pytest.mark.parametrize("law", [PointMass(-2), Discrete((-1, 1), (R(1, 2), R(1, 2)))])
def test_a_mean_that_is_not_positive_cannot_be_normalized(law: Any) -> None:
    refused(lambda: fa.law(law).normalized(), "mean")


def test_rough_functions_are_not_integrated_silently() -> None:
    with pytest.raises(FreeattnError):
        built("mha").integrate(lambda x: np.where(x > 1, np.nan, 1.0))


def test_a_law_describes_itself() -> None:
    law = built("values, atom")
    assert law.spec is SPECS["values, atom"]
    assert repr(law).startswith("<SpectralLaw mean ")
    assert "atoms 0.6 at 0" in repr(law)


@pytest.mark.parametrize("name", ["density", "cdf", "quantile", "stieltjes"])
@pytest.mark.parametrize("digits", [15, 30])
@pytest.mark.parametrize("bad", [
    None, "half", object(), True, [1, None], ["1"], {}, b"1", np.array([True]), np.datetime64("2026"), [[1, 2], [3]],
])
def test_what_is_no_number_is_refused_by_type(name: str, digits: int, bad: Any) -> None:
    with pytest.raises(InputError) as caught:
        getattr(built("mha"), name)(bad, digits=digits)
    assert caught.value.field == {"quantile": "p", "stieltjes": "z"}.get(name, "x")
    assert caught.value.value is bad
    kind = "complex" if name == "stieltjes" else "real"
    many = "one number when digits > 15"
    assert caught.value.allowed == (many if digits > 15 else f"{kind} numbers in the range of doubles")


def test_a_text_is_no_number_in_doubles_and_a_decimal_with_many_digits() -> None:
    for name in ("density", "cdf", "quantile", "stieltjes"):
        with pytest.raises(InputError, match=r" = '0\.5' is not allowed"):
            getattr(built("mha"), name)("0.5")
        assert getattr(built("mha"), name)("0.5", digits=30) == getattr(built("mha"), name)(0.5, digits=30)


def test_numbers_of_other_libraries_are_numbers() -> None:
    law = built("mha")
    half = law.density(0.5)
    for number in (Fraction(1, 2), Decimal("0.5"), R(1, 2), mpmath.mpf("0.5"), np.float32(0.5)):
        assert law.density(number) == half
        assert law.density([number]).tolist() == [half]
