"""Exchangeable copies against the same model with every copy written out as letters of its own."""

from __future__ import annotations

import pytest
from copied import double_sum, even, even_chain, families, gram, latent, written_out
from hypothesis import given, settings
from random_models import polynomials

from freeattn.theory.dyson import dyson_of
from freeattn.theory.moments import moments


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("model", [even, even_chain, gram, double_sum, latent])
def test_moments_with_copies_are_those_of_the_sum_written_out(model, count):
    expression = model(families(count))
    assert moments(dyson_of(expression), 3) == moments(dyson_of(written_out(expression)), 3)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(polynomials(summed=True))
def test_moments_of_random_models_with_nested_copies(expression):
    if expression.terms:
        assert moments(dyson_of(expression), 2) == moments(dyson_of(written_out(expression)), 2)


@pytest.mark.parametrize(("model", "survives"), [(even, False), (gram, True), (double_sum, True), (latent, False)])
def test_traces_between_copies_are_kept_when_no_sign_separates_them(model, survives):
    names = [str(unknown) for unknown in dyson_of(model(families(5))).unknowns]
    assert any("_across_heads" in name for name in names) == survives


@pytest.mark.parametrize("model", [even, even_chain, gram, double_sum, latent])
def test_the_number_of_traces_does_not_depend_on_the_count(model):
    assert len({len(dyson_of(model(families(count))).traces) for count in (2, 7, 10**6)}) == 1
