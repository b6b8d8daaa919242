"""Reports: everything that the package says of one layer or several, collected and written as a page."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version

from freeattn import __version__
from freeattn.errors import InputError
from freeattn.evidence.weights import named_seed
from freeattn.findings.derivations import derived
from freeattn.findings.laws import density_data, law_facts, spike_of
from freeattn.findings.layers import architecture_facts
from freeattn.findings.parts import Parts, Progress
from freeattn.findings.predictions import predictions
from freeattn.findings.simulations import MOST_ENTRIES, sentence, simulation
from freeattn.model.attention import Attention
from freeattn.model.quantities import as_integer
from freeattn.numerics.limiting import law as limiting_law
from freeattn.predict.inputs import exact_number
from freeattn.report.data import LayerData, ReportData
from freeattn.report.html import HtmlReport, html_of

__all__ = ["collect", "html_report"]

MOST_LAYERS = 6  # colours that stay apart
_PARTS = 4  # of the work for one layer, besides draws: law, densities, predictions, derivation
_PACKAGES = ("numpy", "scipy", "sympy", "mpmath", "python-flint", "plotly", "latex2mathml", "jinja2")


def html_report(
    *specs: Attention, names: Sequence[str] | None = None, draws: int = 3, seed: int = 0, noise: float = 0.1,
    command: str | None = None, notes: Mapping[str, Sequence[str]] | None = None, progress: Progress | None = None,
) -> HtmlReport:
    """One self-contained HTML page about a layer, or about several side by side; needs the extra "report".

    It has the architecture, the law, predictions, simulated draws against the law, the derivation, and how to make it
    again. It loads nothing from a network. The same arguments give the same page; a date is in it only where the
    environment sets SOURCE_DATE_EPOCH.

    Args:
        specs: one to six layers with numbers.
        names: what they are called, each another name (default: their presets).
        draws: simulated draws of each layer; 0 leaves simulation out. Large layers are drawn with the same ratios at
            fewer tokens, and the page says so.
        seed: of the draws.
        noise: variance of the noise in ridge regression.
        command: how the page says that it is made again (default: a line of Python).
        notes: sentences on where a layer comes from, by its name.
        progress: called as progress(done, total) after each part of the work.

    Raises:
        InputError: for values that are not allowed.
        MissingExtraError: without the extra "report".
    """
    data = collect(
        *specs, names=names, draws=draws, seed=seed, noise=noise, command=command, notes=notes, progress=progress
    )
    return HtmlReport(data, html_of(data))


def collect(
    *specs: Attention, names: Sequence[str] | None = None, draws: int = 3, seed: int = 0, noise: float = 0.1,
    command: str | None = None, notes: Mapping[str, Sequence[str]] | None = None, progress: Progress | None = None,
) -> ReportData:
    """The values of a report; arguments and errors are those of `html_report`, and no extra is needed."""
    called = _names(specs, names)
    draws, seed = as_integer("draws", draws, "an integer ≥ 0", 0), named_seed(seed)
    variance = float(exact_number("noise", noise))
    sentences, parts = notes or {}, Parts(progress, len(specs) * (draws + _PARTS))
    layers = tuple(
        _layer(spec, name, draws, seed, variance, tuple(sentences.get(name, ())), MOST_ENTRIES / len(specs), parts)
        for spec, name in zip(specs, called, strict=True)
    )
    return ReportData(
        layers, __version__, command or _python_line(called, draws, seed, variance), draws, seed, variance,
        _versions(), _date(),
    )


def _names(specs: Sequence[object], names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of the layers, once these are of the right kind."""
    if not 1 <= len(specs) <= MOST_LAYERS:
        raise InputError("specs", f"{len(specs)} layers", f"1 to {MOST_LAYERS} layers")
    for spec in specs:
        if not isinstance(spec, Attention):
            raise InputError("specs", spec, "an Attention")
    if names is None:
        return _distinct([getattr(spec, "name", None) or "layer" for spec in specs])
    if len(names) != len(specs) or len(set(names)) != len(specs) or not all(names):
        raise InputError("names", list(names), f"{len(specs)} different names, one for each layer")
    return tuple(names)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Names that occur more than once get a number."""
    return tuple(
        name if names.count(name) == 1 else f"{name} ({names[:place].count(name) + 1})"
        for place, name in enumerate(names)
    )


def _layer(
    spec: Attention, name: str, draws: int, seed: int, noise: float, notes: tuple[str, ...], most_entries: float,
    parts: Parts,
) -> LayerData:
    law = limiting_law(spec)
    parts.done()
    drawn = simulation(spec, law, draws, seed, most_entries, parts.of_draws())
    spike = None if spec.n_tokens is None else spike_of(law, spec)
    densities = density_data(law, drawn.spectra)
    parts.done()
    found = predictions(law, spec, noise)
    parts.done()
    derivation = derived(spec)
    parts.done()
    unit = law.normalized()
    dominated = spec.dominated_rows
    return LayerData(
        name=name, architecture=architecture_facts(spec), not_modelled=tuple(spec.not_modelled), notes=notes,
        warnings=() if dominated is None else (sentence(dominated.warning),), law=law_facts(law, spike), spike=spike,
        atoms=tuple((float(atom.location), float(atom.weight)) for atom in unit.atoms),
        densities=densities, predictions=found.facts, ridge=found.ridge, freedom=found.freedom,
        loss=found.loss, evidence=drawn.evidence, derivation=derivation, record=spec.to_dict(),
    )


def _python_line(names: Sequence[str], draws: int, seed: int, noise: float) -> str:
    return f"fa.html_report(…, names={list(names)!r}, draws={draws}, seed={seed}, noise={noise:g})"


def _versions() -> tuple[tuple[str, str], ...]:
    """Of Python and of the packages that are installed."""
    found = [("Python", platform.python_version())]
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found.append((name, version(name)))
    return tuple(found)


def _date() -> str | None:
    """The date that SOURCE_DATE_EPOCH gives, if it is set."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%d") if seconds.isdigit() else None
