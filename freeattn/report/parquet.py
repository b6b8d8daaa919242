"""Tables as Parquet files; the only place of pyarrow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from freeattn.errors import MissingExtraError

__all__ = ["check_parquet", "write_parquet"]


def check_parquet() -> None:
    """Refuse early what could not be written.

    Raises:
        MissingExtraError: when pyarrow is not installed.
    """
    _pyarrow()


def write_parquet(path: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """One column for each name: integers, doubles or truth values where all values are; texts otherwise.

    Raises:
        MissingExtraError: when pyarrow is not installed.
    """
    arrow, parquet = _pyarrow()
    table = {name: arrow.array(*_typed([row[name] for row in rows], arrow)) for name in columns}
    parquet.write_table(arrow.table(table), path)


def _typed(values: Sequence[Any], arrow: Any) -> tuple[list[Any], Any]:
    """Values of one type, and that type."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return list(values), arrow.bool_()
    if kinds == {int}:
        return list(values), arrow.int64()
    if kinds and kinds <= {int, float}:
        return [None if value is None else float(value) for value in values], arrow.float64()
    return [v if v is None or isinstance(v, str) else json.dumps(v) for v in values], arrow.string()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("writing Parquet files", "parquet") from None
    return pyarrow, parquet
