"""What tasks are named by and what they return, as text and bytes: JSON for plain values, npy for arrays."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from freeattn.errors import InputError

__all__ = ["Encoded", "Result", "canonical", "decoded", "encoded", "plain"]

Result: TypeAlias = dict[str, Any]  # plain values, and float64 arrays by name

_PLAIN = "a plain value: None, bool, int, float, str, or lists and mappings (with names) of these"


class Encoded(NamedTuple):
    """A result as it is kept: the plain values as one JSON object, each array as the bytes of an npy file."""

    record: str
    arrays: dict[str, bytes]


def plain(field: str, value: object) -> Any:
    """The same value in the types that JSON has: tuples as lists, numbers of numpy as numbers of Python.

    Raises:
        InputError: for any other type, naming the field.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [plain(f"{field}[{i}]", item) for i, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return {name: plain(f"{field}.{name}", item) for name, item in value.items()}
    raise InputError(field, value, _PLAIN)


def canonical(value: object) -> str:
    """One text for equal values: JSON with sorted names; numbers as their shortest exact digits (1 is not 1.0)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def encoded(result: object) -> Encoded:
    """A result as text and bytes.

    Raises:
        InputError: when it is not a mapping of plain values and float64 arrays with names.
    """
    if not isinstance(result, Mapping) or not all(isinstance(name, str) for name in result):
        raise InputError("result", type(result).__name__, "a dict with names: plain values and float64 arrays")
    values, arrays = {}, {}
    for name, value in result.items():
        if not isinstance(value, np.ndarray):
            values[name] = plain(f"result.{name}", value)
        elif value.dtype != np.float64:
            raise InputError(f"result.{name}", f"an array of {value.dtype}", "an array of float64")
        else:
            buffer = io.BytesIO()
            np.save(buffer, value, allow_pickle=False)
            arrays[name] = buffer.getvalue()
    return Encoded(json.dumps(values), arrays)  # results may hold NaN and infinities, which json writes and reads


def decoded(form: Encoded) -> Result:
    """The result that `encoded` was given, in plain types; arrays are read-only."""
    result: Result = json.loads(form.record)
    for name, data in form.arrays.items():
        array = np.load(io.BytesIO(data), allow_pickle=False)
        array.setflags(write=False)
        result[name] = array
    return result
