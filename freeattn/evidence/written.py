"""Results written out: rows of statistics as plain text, the verdict on them, dataclasses as JSON-ready records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["as_text", "record_of", "verdict"]

_VERDICTS = {True: "passed", False: "FAILED", None: "not judged"}


def as_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows of a verification as lines of aligned columns: the statistic, the given columns, allowance and verdict."""
    head = ["statistic", *columns, "allowed", "verdict"]
    lines = [head]
    for row in rows:
        numbers = [row[name] for name in (*columns, "allowance")]
        lines.append([
            row["statistic"], *("" if value is None else f"{value:.3g}" for value in numbers), _VERDICTS[row["passed"]]
        ])
    widths = [max(len(line[k]) for line in lines) for k in range(len(head))]
    written = [
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    ]
    return "\n".join([*written, verdict(rows)])


def verdict(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many of the judged statistics passed."""
    judged = [row["passed"] for row in rows if row["passed"] is not None]
    return f"{sum(judged)} of {len(judged)} checks passed"


def record_of(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, JSON-ready when they are numbers, texts or have a `to_dict`."""
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {name: one.to_dict() if hasattr(one, "to_dict") else one for name, one in fields.items()}
