"""What a sweep goes over, from the texts of the command line: FIELD=VALUES, or the lines of a CSV file."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import freeattn
from freeattn.cli.group import describe, say
from freeattn.cli.options import LAYER_FIELDS, SWITCHES
from freeattn.cli.spec import CHOICES, flag, spec_builder
from freeattn.cli.spec_text import LISTS, field_of, is_path, is_preset, own_fields
from freeattn.errors import FreeattnError, InputError, did_you_mean
from freeattn.model.written_numbers import exact_number

__all__ = ["layers", "read_grid", "read_records"]

_WORDS = ("init", "none")  # in place of numbers, where the option takes them
_MOST = 1_000_000
_FORM = "FIELD=VALUES, such as beta=0.5:2:0.25 or d_key=32,64,128"

Texts = dict[str, str]


def read_grid(given: Sequence[str]) -> list[Texts]:
    """All combinations of the values of several fields, the last one fastest.

    A range FIRST:LAST:STEP is computed exactly and includes its end when it is hit.

    Raises:
        InputError: for a field that a layer does not have or that is given twice, and values that cannot be read.
    """
    values: dict[str, list[str]] = {}
    for text in given:
        name, sign, rest = text.partition("=")
        field = _field(text, name)
        if not sign or not rest.strip():
            raise InputError("over", text, _FORM)
        if field in values:
            raise InputError("over", text, f"each field once; {field} is given twice")
        parts = rest.split(";" if field in LISTS else ",")  # lists hold commas
        values[field] = [value for part in parts for value in _values(text, field, part.strip())]
    if math.prod(map(len, values.values())) > _MOST:
        raise InputError("over", " ".join(given), f"at most {_MOST} combinations")
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def read_records(path: str) -> list[Texts]:
    """One combination for each line of a CSV file whose first line names the fields.

    Raises:
        InputError: for a file that cannot be read so.
    """
    try:
        with Path(path).open(newline="", encoding="utf-8-sig") as handle:
            first, *lines = list(csv.reader(handle, strict=True)) or [[]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError("records", path, f"a CSV file that can be read ({error})") from None
    fields = [_field(f"{path}: {name}", name, "records") for name in first]
    lines = [line for line in lines if any(text.strip() for text in line)]
    if not fields or not lines or len(set(fields)) < len(fields) or any(len(line) != len(fields) for line in lines):
        raise InputError("records", path, "a CSV file: a line of fields, each once, then lines of as many values")
    checked = ([_one(path, field, text.strip(), "records") for field, text in zip(fields, line, strict=True)]
               for line in lines)
    return [dict(zip(fields, line, strict=True)) for line in checked]


def layers(preset: str | None, options: Mapping[str, Any], combinations: Sequence[Texts]) -> list[Any]:
    """A `SweepPoint` for each combination: the layer of preset and options with these values put in.

    One line on stderr, for all of them, tells widths that a changed n_heads or d_model leaves as they are.

    Raises:
        InputError: for a field that is an option too, or a preset that does not exist.
    """
    preset, options = own_fields(preset, options)
    for field in combinations[0]:
        if options.get(field) not in (None, False):
            raise InputError("over", field, f"a field without an option of its own; {flag(field)} is given too")
    build = spec_builder(preset, options)
    if preset is not None and not is_preset(preset) and not is_path(preset):
        build(options)  # refuses it, with the nearest names
    points = [_point(build, options, texts) for texts in combinations]
    told = [kept for _, kept in points if kept]
    if told:
        say("note", f"{preset}: {len(told)} of {len(points)} layers, the first: {told[0]}")
    return [point for point, _ in points]


def _point(
    build: Callable[[Mapping[str, Any]], tuple[Any, str]], options: Mapping[str, Any], texts: Texts
) -> tuple[Any, str]:
    """The point, and what there is to say of its layer."""
    changed = {**options, **{field: _switched(field, text) for field, text in texts.items() if text}}
    shown = {field: _shown(text) for field, text in texts.items()}
    try:
        spec, kept = build(changed)
        return freeattn.SweepPoint(shown, spec), kept
    except FreeattnError as error:
        return freeattn.SweepPoint(shown, None, describe(error)), ""


def _field(text: str, name: str, option: str = "over") -> str:
    field = field_of(name)
    if field not in LAYER_FIELDS:
        form = f"{_FORM}; FIELD is" if option == "over" else "fields of a layer:"
        raise InputError(option, text, f"{form} one of {', '.join(LAYER_FIELDS)}{did_you_mean(field, LAYER_FIELDS)}")
    return field


def _values(text: str, field: str, part: str) -> Iterator[str]:
    ends = part.split(":")
    if field in LISTS or len(ends) == 1:
        yield _one(text, field, part)
        return
    if len(ends) != 3:
        raise InputError("over", text, "a range as FIRST:LAST:STEP")
    first, last, step = (Fraction(_checked_number(text, field, end, "over")) for end in ends)
    count = int((last - first) / step) + 1 if step else 0
    if not 0 < count <= _MOST or (last - first) * step < 0:
        raise InputError("over", text, f"a range from FIRST to LAST by a STEP towards it, at most {_MOST} values")
    yield from (str(first + number * step) for number in range(count))


def _one(text: str, field: str, value: str, option: str = "over") -> str:
    """One value, checked as far as it can be without the rest of the layer; an empty one in records is not given."""
    if not value and option == "records":
        return value
    names = CHOICES.get(field) or (("on", "off") if field in SWITCHES else None)
    if names is not None and value not in names:
        raise InputError(option, text, f"values of {field} among {', '.join(names)}")
    if names is None and field not in LISTS and value not in _WORDS:
        _checked_number(text, field, value, option)
    return value


def _checked_number(text: str, field: str, value: str, option: str) -> int | Fraction:
    """A number of a grid or of records; the error names them and the field."""
    try:
        return exact_number(option, value)
    except InputError as error:
        place = text if option == "over" else f"{text}: {field} = {value}"
        raise InputError(option, place, f"{field} as {error.allowed}") from None


def _switched(field: str, text: str) -> str | bool:
    return text == "on" if field in SWITCHES else text


def _shown(text: str) -> int | float | str | None:
    """A value as it stands in the table: numbers as numbers."""
    try:
        number = exact_number("over", text)
    except InputError:
        return text or None
    return number if isinstance(number, int) else float(number)
