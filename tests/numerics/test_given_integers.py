"""Integers of any type, and what is said of other things."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError
from freeattn.model.quantities import as_integer
from freeattn.numerics.given_numbers import digits_up_to

SPEC = fa.Attention(n_tokens=60, d_model=90, n_heads=3, d_key=20, d_value=25, d_out=70)


@pytest.fixture(scope="module")
def law() -> fa.SpectralLaw:
    return fa.law(SPEC)


CALLS: dict[str, Any] = {
    "density": lambda law, k: law.density(1, digits=k), "cdf": lambda law, k: law.cdf(1, digits=k),
    "stieltjes": lambda law, k: law.stieltjes(1, digits=k), "quantile": lambda law, k: law.quantile("0.3", digits=k),
    "edges": lambda law, k: law.edges_to(k), "moments": lambda law, k: law.moments(k, digits=k),
    "cumulants": lambda law, k: law.free_cumulants(k, digits=k),
    "ridge": lambda law, k: fa.predict.ridge_error(law, "0.1", "0.1", digits=k),
    "loss": lambda law, k: fa.predict.flow_loss(law, "1", digits=k),
    "certificate": lambda law, k: str(law.certify(1, digits=k)),
    "derivatives": lambda law, k: fa.predict.sensitivities(law, digits=k).ridge_error("0.1"),
    "exact moments": lambda law, k: fa.derive(law.spec).moments(k),
}


@pytest.mark.parametrize("name", CALLS)
def test_numpy_integers(name: str, law: fa.SpectralLaw) -> None:
    assert CALLS[name](law, np.int64(20)) == CALLS[name](law, 20)


def test_numpy_integers_elsewhere() -> None:
    small = fa.Attention(n_tokens=np.int64(16), d_model=16, n_heads=np.int8(1), d_key=16, output="attention")
    found = fa.verify(small, draws=np.int64(1), seed=np.int64(3), workers=np.int64(1))  # type: ignore[arg-type]
    assert found.draws == 1
    letter = fa.gaussian("G", fa.space("n", 4), fa.space("n", 4), 1)
    assert letter ** np.int64(2) == letter**2


@pytest.mark.parametrize("value", [True, np.True_, 2.0, "2", None, 0, 11])
def test_what_is_no_integer(value: object) -> None:
    with pytest.raises(InputError, match=r"digits = .* is not allowed; expected an integer from 1 to 10"):
        digits_up_to(10, value)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="order = "):
        as_integer("order", value, "a small one", 1, 10)


def test_a_complex_text_is_refused_by_name(law: fa.SpectralLaw) -> None:
    with pytest.raises(InputError, match="expected a real number where it is a text; complex numbers as complex"):
        law.certify("1+1j")
    assert law.certify(1 + 1j).z == 1 + 1j


@pytest.mark.parametrize(("given", "field"), [((), "gamma_key"), ((1,), "gamma_value"), ((1, 1), "gamma_out")])
def test_ratios_that_are_missing(given: tuple[int, ...], field: str) -> None:
    with pytest.raises(InputError) as caught:
        fa.Attention.from_ratios(*given)
    assert caught.value.field == field
    with pytest.raises(InputError, match="gamma_key"):
        fa.Ratios()
