"""Verifications as text."""

from __future__ import annotations

import pytest

import freeattn as fa
from freeattn.errors import InputError


def test_a_verification_prints_as_a_table():
    n = fa.space("n", 120)
    report = fa.verify(fa.gaussian("X", n, n, 1) / 11, draws=2, seed=1)
    lines = str(report).splitlines()
    assert lines[0].split() == ["statistic", "simulated", "allowed", "verdict"]
    assert len({len(line) for line in lines[:-1]}) == 1
    assert lines[-1] == f"{len(report.statistics)} of {len(report.statistics)} checks passed"
    assert repr(report).startswith("<WordVerification of ")
    assert "2 draws" in repr(report)
    spec = fa.Attention(n_tokens=64, d_model=64, n_heads=2, d_key=32, d_value=32)
    layer = fa.verify(spec, draws=2, seed=0)
    assert str(layer).splitlines()[0].split() == ["statistic", "softmax", "equivalent", "allowed", "verdict"]


def test_sizes_too_small_to_tell_anything_are_refused():
    x = fa.gaussian("X", fa.space("n"), fa.space("p"), 1)
    with pytest.raises(InputError, match="at least 64"):
        fa.verify(x, sizes={"n": 1, "p": 4}, draws=2)
