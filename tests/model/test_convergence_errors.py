"""The text of a ConvergenceError: numbers that were measured, and no others."""

from __future__ import annotations

import pickle

import pytest

from freeattn.errors import ConvergenceError


@pytest.mark.parametrize(("residual", "tolerance", "text"), [
    (2e-3, 1e-12, "the solver did not converge: relative residual 0.002, tolerance 1e-12; wait"),
    (None, 1e-12, "the solver did not converge: tolerance 1e-12; wait"),
    (2e-3, None, "the solver did not converge: relative residual 0.002; wait"),
    (None, None, "the solver did not converge; wait"),
    (0.0, 0.0, "the solver did not converge: relative residual 0, tolerance 0; wait"),
])
def test_only_what_was_measured_is_said(residual, tolerance, text):
    error = ConvergenceError("the solver", residual, tolerance, "wait")
    copy = pickle.loads(pickle.dumps(error))
    for one in (error, copy):
        assert str(one) == text
        assert (one.residual, one.tolerance) == (residual, tolerance)
