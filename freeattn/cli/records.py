"""What the commands print as data: JSON-ready records of a law, and the rows of its CSV file."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import freeattn
from freeattn.report.numbers import DOUBLE_DIGITS, number_text

__all__ = ["dump_json", "law_record", "preset_record", "table_rows", "write_csv"]

_N_MOMENTS = 4
_RATIOS = {"key": "gamma_key", "value": "gamma_value", "out": "gamma_out"}


def _number(value: Any, digits: int) -> float | str:
    return float(value) if digits <= DOUBLE_DIGITS else number_text(value, digits)


def _ratios(spec: Any) -> dict[str, Any]:
    values = {key: getattr(spec, name) for key, name in _RATIOS.items()}
    record: dict[str, Any] = {key: None if value is None else float(value) for key, value in values.items()}
    record["exact"] = {key: None if value is None else str(value) for key, value in values.items()}
    return record


def _bands(law: Any, digits: int) -> list[list[float | str]]:
    edges = law.edges if digits <= DOUBLE_DIGITS else law.edges_to(digits)
    return [[_number(end, digits) for end in band] for band in edges]


def _moments(law: Any, digits: int) -> list[float | str]:
    values = law.moments(_N_MOMENTS, digits=max(digits, DOUBLE_DIGITS))
    return [_number(value, digits) for value in values]


def _atom(atom: Any, digits: int) -> dict[str, Any]:
    record = {"location": _number(atom.location, digits), "weight": _number(atom.weight, digits)}
    if isinstance(atom.weight, (int, Fraction)):
        record["weight_exact"] = str(atom.weight)
    return record


def _numbers(law: Any, digits: int) -> dict[str, Any]:
    """Mean, atoms, edges and moments."""
    moments = _moments(law, digits)
    return {
        "mean": law.mean if digits <= DOUBLE_DIGITS else moments[0],
        "atoms": [_atom(atom, digits) for atom in law.atoms],
        "edges": _bands(law, digits),
        "edge_exponents": [[float(end) for end in band] for band in law.edge_exponents],
        "band_masses": [float(mass) for mass in law.band_masses],
        "moments": moments,
    }


def law_record(
    law: Any, preset: str | None, digits: int = DOUBLE_DIGITS, config: dict[str, Any] | None = None, limit: Any = None
) -> dict[str, Any]:
    """Everything about a law in one JSON-ready object.

    Numbers are doubles up to 15 digits and strings of `digits` digits beyond. `edges` and `moments` are those
    of the unnormalized law, `normalized` holds them for the law divided by its mean. `config` says what the layer
    of a configuration file rests on. For a law at finite size, `limit` is the law of the limit, and the record has its
    numbers under the same name.
    """
    normalized = law.normalized()
    beside = {} if limit is None else {"finite_size": True, "limit": _numbers(limit, digits)}
    return {
        "version": freeattn.__version__,
        "preset": preset,
        "config": config,
        "spec": law.spec.to_dict(),
        "gamma": _ratios(law.spec),
        **_numbers(law, digits),
        **beside,
        "normalized": {
            "mean": 1, "edges": _bands(normalized, digits), "moments": _moments(normalized, digits),
        },
        "digits": digits,
        "not_modelled": list(law.spec.not_modelled),
    }


_PRESET_FIELDS = (
    "name", "family", "year", "d_model", "n_heads", "n_kv_heads", "d_key", "d_value", "d_out", "layers",
    "n_tokens", "n_tokens_pretrain", "tie", "covered", "why_not", "not_modelled", "source", "confirmed",
    "unconfirmed", "note",
)


def preset_record(preset: Any) -> dict[str, Any]:
    """One preset as a JSON-ready object; its ratios are those at its own token count."""
    record = {name: getattr(preset, name) for name in _PRESET_FIELDS}
    if preset.mla is not None:
        record["mla"] = dataclasses.asdict(preset.mla)
    record["gamma"] = _ratios(preset)
    return record


def table_rows(records: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    """Names of the columns and the rows of flat records with the same keys."""
    names = list(records[0])
    return names, [[record[name] for name in names] for record in records]


def _plain(value: Any) -> Any:
    """The same data in types that JSON has: arrays as lists, fractions as texts, NaN and infinity as null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Fraction):
        return str(value)
    if hasattr(value, "tolist"):  # numpy arrays and scalars
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def dump_json(record: dict[str, Any]) -> str:
    """One JSON object as text."""
    return json.dumps(_plain(record), indent=2, allow_nan=False)


def write_csv(path: Path, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A comma-separated file with one line of names; doubles are written so that they read back the same."""
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)
