"""The text of a ConvergenceError: numbers that were measured, and no others."""

from __future__ import annotations

import ast
import pickle
from pathlib import Path

import numpy as np
import pytest

import freeattn
from freeattn.errors import ConvergenceError
from freeattn.numerics import precise_traces


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


def raised() -> list[tuple[str, ast.expr, ast.expr]]:
    """(place, residual, tolerance) of every ConvergenceError that the package makes."""
    found = []
    for path in sorted(Path(freeattn.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ConvergenceError":
                found.append((f"{path.name}:{node.lineno}", node.args[1], node.args[2]))
    return found


def test_no_residual_is_made_up():
    """A residual is computed or None: never a number in the source; no tolerance is 0."""
    calls = raised()
    assert len(calls) > 20
    for place, residual, tolerance in calls:
        assert not isinstance(residual, ast.Constant) or residual.value is None, place
        assert ast.unparse(residual) not in ("np.inf", "math.inf"), place
        assert not isinstance(tolerance, ast.Constant) or tolerance.value != 0, place


def test_a_singular_jacobian_has_no_residual():
    with pytest.raises(ConvergenceError, match="many digits did not converge; ") as caught:
        precise_traces._inverse(np.zeros((2, 2)))
    assert (caught.value.residual, caught.value.tolerance) == (None, None)
