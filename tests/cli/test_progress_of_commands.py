"""Commands that may take long tell how far they are."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import freeattn as fa
from freeattn.cli import progress, report, steps

LAYER = ("--n-tokens", 32, "--d-model", 48, "--n-heads", 2, "--d-key", 16, "--d-value", 16, "--beta", "0.5")


@pytest.fixture
def told(monkeypatch):
    """Every (done, total) that a bar would have shown."""
    found = []

    @contextmanager
    def bar(what, total=None):
        del what, total
        yield lambda done, of: found.append((done, of))

    for module in (steps, report):
        monkeypatch.setattr(module, "progress_of", bar)
    return found


@pytest.mark.parametrize(("command", "total"), [
    (("predict", "shape", *LAYER), 2), (("predict", "flow", *LAYER, "--t", "1,10"), 4),
    (("predict", "flow", *LAYER, "--level", "0.9,0.8"), 7),
    (("predict", "ridge", *LAYER, "--penalty", "0.1,1", "--noise", "0.1,0.2,0.3"), 10),
    (("compare", "bert-base", "bert-large", "--n-tokens", 64), 4),
])
def test_steps_are_counted_to_the_end(run, told, command, total):
    assert run(*command).code == 0
    assert told == [(done, total) for done in range(1, total + 1)]


def test_a_report_counts_draws_and_parts(run, told, tmp_path):
    assert run("report", *LAYER, "--draws", 2, "-o", tmp_path / "a.html").code == 0
    assert told == [(done, 6) for done in range(1, 7)]


def test_a_report_without_draws_comes_to_its_end_too():
    told = []
    by_ratios = fa.Attention.from_ratios(1, 1, 1, n_heads=2)
    fa.html_report(by_ratios, by_ratios, draws=3, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (14, 14)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_nothing_is_shown_off_a_terminal(run):
    assert steps.progress_of is progress.progress_of
    assert run("predict", "shape", *LAYER).err == ""
