"""Layers, laws and results as tables for notebooks: what is at hand already, nothing is computed for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from freeattn.report.convergence import convergence_tables
from freeattn.report.notebook import Part, html_of_parts
from freeattn.report.numbers import DOUBLE_DIGITS, number_text, value_text
from freeattn.report.tables import (
    measured_tables,
    not_modelled_lines,
    reproduction_tables,
    rows_table,
    spec_table,
    spectrum_tables,
    verification_tables,
)

__all__ = ["KINDS", "html_of"]

_MOST_ROWS = 60  # of a table in a notebook
_LONGEST_NAME = 60  # characters of an expression in a title
_LAYER = "Of a layer: fa.law(spec), fa.derive(spec), fa.sample(spec), fa.verify(spec)"
_LAW = (
    "Of a law: density(x), cdf(x), quantile(p), stieltjes(z), moments(k), edges_to(digits), certify(z), normalized(); "
    "digits=… gives any number of digits"
)


def html_of(value: Any) -> str:
    """The tables of a value as HTML."""
    return html_of_parts(KINDS[value.shown_as](value))


def _layer(spec: Any) -> tuple[Part, ...]:
    return (spec_table(spec, spec.name), *not_modelled_lines(spec), _LAYER)


def _ratios(ratios: Any) -> tuple[Part, ...]:
    given = {field.name: getattr(ratios, field.name) for field in dataclasses.fields(ratios)}
    rows = [(name, value_text(value)) for name, value in given.items() if value is not None]
    return (rows_table("A layer without sizes", ("ratio", "value"), rows),)


def _law(law: Any) -> tuple[Part, ...]:
    rows = [(f"atom at {number_text(atom.location, DOUBLE_DIGITS)}", "", "", value_text(atom.weight))
            for atom in law.atoms]
    for number, ((left, right), mass) in enumerate(zip(law.edges, law.band_masses, strict=True), start=1):
        low, high = (number_text(end, DOUBLE_DIGITS) for end in (left, right))
        rows.append((f"band {number}", low, high, f"{mass:.10g}"))
    title = f"Spectral law of {_name_of(law.spec)}: mean {number_text(law.mean, DOUBLE_DIGITS)}"
    return (rows_table(title, ("part", "left edge", "right edge", "mass"), rows), _LAW)


def _name_of(source: Any) -> str:
    """What a law was made from, in few words."""
    if hasattr(source, "output"):
        return f"{source.name or 'a layer'}, output {source.output}"
    if hasattr(source, "operation"):
        return f"a {source.operation}"
    text = str(source.rule.name if hasattr(source, "rule") else source)
    return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"


def _verification(found: Any) -> tuple[Part, ...]:
    return (*verification_tables(found, found.spec.name), *_warnings(found))


def _word_verification(found: Any) -> tuple[Part, ...]:
    title = f"{found.expression}: {found.draws} draws, seed {found.seed}"
    return measured_tables(found, title, "simulated")


def _spectrum(found: Any) -> tuple[Part, ...]:
    return (*spectrum_tables(found, "Spectrum"), *_warnings(found))


def _module(found: Any) -> tuple[Part, ...]:
    title = f"{found.spec.name}: {found.draws} draws against the law, seed {found.seed}"
    return (*measured_tables(found, title), *not_modelled_lines(found.spec), *_warnings(found))


def _warnings(found: Any) -> Iterator[str]:
    return (f"Warning: {sentence}" for sentence in found.warnings)


def _convergence(found: Any) -> tuple[Part, ...]:
    return convergence_tables(found, found.spec.name)


def _sweep(found: Any) -> tuple[Part, ...]:
    names = [name for name in found.columns if name != "error" or found.errors]
    rows = [["" if row[name] is None else value_text(row[name]) for name in names] for row in found.rows[:_MOST_ROWS]]
    left = len(found.rows) - len(rows)
    note = (f"and {left} more rows",) if left else ()
    return (rows_table(f"Sweep of {len(found.rows)} layers", names, rows, left=0), *note)


def _summary(numbers: Any) -> tuple[Part, ...]:
    rows = [(name, value_text(value)) for name, value in numbers.items()]
    return (rows_table("Key numbers; edges and predictions of the law of mean one", ("number", "value"), rows),)


def _certificate(found: Any) -> tuple[Part, ...]:
    rows = [("m(z)", str(found.stieltjes))]
    if found.density is not None:
        rows.append(("density", str(found.density)))
    rows.append(("contraction", f"{found.contraction:.2g} < 1"))
    table = rows_table(f"Certificate at z = {found.z}: {found.place}", ("value", "x ± r"), rows)
    return (table, *_statements(found.proved, (), found.assumptions))


def _edge_certificate(found: Any) -> tuple[Part, ...]:
    rows = [(f"{edge.side} end of a band", str(edge.x)) for edge in found.edges]
    rows += [("an end that is no fold", f"{x:g}, nothing is proved about it") for x in found.not_certified]
    table = rows_table("Certificate of edges", ("edge", "x ± r"), rows)
    return (table, *_statements(found.proved, found.not_proved, found.assumptions))


def _statements(proved: Sequence[str], not_proved: Sequence[str], assumptions: Sequence[Any]) -> Iterator[Part]:
    """What is proved and what is not, and what both rest on."""
    yield "x ± r is the set of all numbers within r of x."
    lists = {"Proved": proved, "Not proved": not_proved, "Assumed": [f"{a.name}: {a.statement}" for a in assumptions]}
    for name, statements in lists.items():
        if statements:
            yield f"{name}: {'; '.join(statements)}"


KINDS: dict[str, Callable[[Any], tuple[Part, ...]]] = {
    "layer": _layer, "ratios": _ratios, "law": _law, "verification": _verification,
    "word-verification": _word_verification, "spectrum-verification": _spectrum, "module-verification": _module,
    "convergence": _convergence, "reproduction": reproduction_tables, "sweep": _sweep, "summary": _summary,
    "certificate": _certificate, "edge-certificate": _edge_certificate,
}
