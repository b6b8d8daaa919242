"""Simulated draws for a report, at a size that a report has time for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import InputError
from freeattn.evidence.scaling import scaled
from freeattn.evidence.verify import verify
from freeattn.findings.parts import Progress
from freeattn.model.attention import Attention
from freeattn.numerics.law import SpectralLaw
from freeattn.report.data import Evidence

__all__ = ["MOST_ENTRIES", "Simulation", "sentence", "simulation"]

MOST_ENTRIES = 180_000_000  # of attention matrices in a report: half a minute on one core
_LEAST_TOKENS = 96  # below, finite size says more than the law
_SHARE = "more than the {most:.3g} entries of attention matrices that a report takes for this layer"


class Simulation(NamedTuple):
    """What was drawn: the evidence, and the spectra of softmax, draw by draw."""

    evidence: Evidence
    spectra: tuple[NDArray[np.float64], ...]


def simulation(
    spec: Attention, law: SpectralLaw, draws: int, seed: int, most_entries: float, progress: Progress
) -> Simulation:
    """A verification of the layer, of the same ratios at fewer tokens, or of nothing, with sentences that say which.

    Args:
        most_entries: how many entries of attention matrices may be drawn; fewer tokens are taken to stay below.
        progress: called as progress(draws, draws) when nothing is drawn.
    """
    found = _simulation(spec, law, draws, seed, most_entries, progress)
    if not found.spectra:
        progress(draws, draws)
    return found


def _simulation(
    spec: Attention, law: SpectralLaw, draws: int, seed: int, most_entries: float, progress: Progress
) -> Simulation:
    if not draws:
        return _nothing("Nothing was simulated, as asked.")
    if spec.n_tokens is None:
        return _nothing("Nothing was simulated: a specification by ratios has no sizes.")
    smaller = next((one for one in _sizes(spec) if draws * _entries(one) <= most_entries), None)
    if smaller is None:
        return _nothing(
            f"Nothing was simulated: {draws} draws take {_SHARE.format(most=most_entries)}, "
            "and its widths do not allow one that is small enough. Use freeattn verify."
        )
    found = verify(smaller, draws=draws, seed=seed, law=law, progress=progress)
    sentences = [_size_sentence(spec, smaller, draws, most_entries), *map(sentence, found.warnings)]
    rows: tuple[dict[str, Any], ...] = tuple(found.rows())
    return Simulation(Evidence(rows, tuple(sentences), found.passed), tuple(one.softmax for one in found.samples))


def sentence(line: str) -> str:
    """A line of a warning as a sentence of a page."""
    return f"{line[:1].upper()}{line[1:]}."


def _nothing(sentence: str) -> Simulation:
    return Simulation(Evidence((), (sentence,), None), ())


def _sizes(spec: Attention) -> Iterator[Attention]:
    """The layer, then the same ratios at n_tokens over 2, 3, …, where widths are integers and the law is the same."""
    yield spec
    if spec.finite_size:  # its law is that of its number of tokens
        return
    for divisor in range(2, spec.n_tokens // _LEAST_TOKENS + 1):
        if spec.n_tokens % divisor == 0:
            try:
                yield scaled(spec, spec.n_tokens // divisor)
            except InputError:  # a width that is no integer
                continue


def _entries(spec: Attention) -> int:
    return int(spec.n_heads * spec.n_tokens**2)


def _size_sentence(spec: Attention, drawn: Attention, draws: int, most_entries: float) -> str:
    size = f"{draws} draw{'s' if draws > 1 else ''} at n_tokens = {drawn.n_tokens}"
    if drawn.n_tokens == spec.n_tokens:
        return f"{size}, the size of the layer."
    return (
        f"{size} in place of {spec.n_tokens}, with all ratios of the layer (so the law is the same): at full size "
        f"{draws} draws take {_SHARE.format(most=most_entries)}. Deviations are larger than at full size."
    )
