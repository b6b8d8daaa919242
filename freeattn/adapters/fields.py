"""Fields of a configuration: read by name, checked, with the defaults of the library that wrote it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from difflib import get_close_matches
from fractions import Fraction
from numbers import Integral, Rational
from typing import Any

from freeattn.adapters.strict_json import shown
from freeattn.errors import InputError

__all__ = ["Fields", "decimal_text"]

_GREATEST_SIZE = 10**9
_LEAST, _GREATEST = Fraction(1, 10**12), Fraction(10**12)
_CONTEXT = Context(prec=60)  # more digits than a number in a file may have
_ALIKE = 0.85  # of difflib: names that differ by a letter or two


class Fields:
    """The fields of one configuration, or of one part of it.

    A field may have several names, which must then agree. One that is missing has the default of its family, and one
    that is null has none; `defaulted` collects the defaults that were taken, by name.

    Args:
        values: the fields by name.
        defaults: the library's own values of fields that a file may leave out.
        part: name of the part that the fields stand in, for messages; None at the top.
    """

    def __init__(self, values: Mapping[str, Any], defaults: Mapping[str, Any], part: str | None = None) -> None:
        self._values = values
        self._defaults = defaults
        self._part = part
        self.defaulted: dict[str, Any] = {}

    def name(self, field: str) -> str:
        """The field as messages name it: "text_config.hidden_size"."""
        return f"{self._part}.{field}" if self._part else field

    def refuse(self, field: str, value: object, allowed: str) -> InputError:
        """The error for a field whose value is not allowed."""
        default = " (the library's default)" if field in self.defaulted else ""
        return InputError(self.name(field), shown(value) + default, allowed)

    def assume(self, field: str, value: object) -> None:
        """A field that the file leaves out has this value; `defaulted` says so."""
        if field not in self._values:
            self.defaulted[field] = f"{value}{self._alike(field)}"

    def _nothing(self, field: str) -> str:
        """What stands in place of a value that must be there."""
        return "null" if field in self._values else "(missing)"

    def _alike(self, field: str) -> str:
        """A field of the file that may be this one misspelled."""
        if field in self._values:
            return ""
        close = get_close_matches(field, [str(name) for name in self._values], n=1, cutoff=_ALIKE)
        return f" (the file has {shown(close[0])})" if close else ""

    def size(self, *names: str, optional: bool = False, least: int = 1) -> int | None:
        """A number of things, from `least` to 10⁹; None where the field is optional and not there.

        12.0 is the number 12. Texts, booleans and other numbers are refused.
        """
        field, value = self._find(names)
        allowed = f"an integer from {least} to {_GREATEST_SIZE}"
        if value is None:
            if optional:
                return None
            raise InputError(self.name(field), self._nothing(field), allowed + self._alike(field))
        number = _exact(value)
        if number is None or number.denominator != 1 or not least <= number <= _GREATEST_SIZE:
            raise self.refuse(field, value, allowed + _quoted(value))
        return number.numerator

    def count(self, *names: str) -> int:
        """A number of things that must be there."""
        number = self.size(*names)
        assert number is not None  # else `size` has raised
        return number

    def number(self, *names: str, least: Fraction = _LEAST) -> Fraction | None:
        """A number from `least` (positive unless said) to 10¹²; None where the field is not there."""
        field, value = self._find(names)
        if value is None:
            return None
        number = _exact(value)
        if number is None or not (number == least or max(least, _LEAST) <= number <= _GREATEST):
            allowed = f"a number from {float(least):g} to {float(_GREATEST):g}"
            raise self.refuse(field, value, allowed + _quoted(value))
        return number

    def decimal(self, *names: str) -> str:
        """A positive number as an exact decimal text.

        Raises:
            InputError: for anything else, also when it is not there.
        """
        number = self.number(*names)
        if number is None:
            raise InputError(self.name(names[0]), self._nothing(names[0]), "a positive number")
        return decimal_text(number)

    def flag(self, *names: str) -> bool:
        """True or false; false where the field is not there."""
        field, value = self._find(names)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(field, value, "true or false")
        return bool(value)

    def text(self, *names: str) -> str | None:
        """A text; None where the field is not there."""
        field, value = self._find(names)
        if value is not None and not isinstance(value, str):
            raise self.refuse(field, value, "a text")
        return value

    def inner(self, *names: str) -> Fields | None:
        """The fields of an object inside; None where it is not there."""
        field, value = self._find(names)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.refuse(field, value, "an object, or null")
        return Fields(value, {}, self.name(field))

    def pair(self, *names: str) -> tuple[int, int]:
        """Two sizes, given as one number for both or as a list of two."""
        field, value = self._find(names)
        both = value if isinstance(value, (list, tuple)) and len(value) == 2 else (value, value)
        numbers = [Fields({field: item}, {}, self._part).count(field) for item in both]
        return numbers[0], numbers[1]

    def _find(self, names: Sequence[str]) -> tuple[str, Any]:
        given = [(name, self._values[name]) for name in names if self._values.get(name) is not None]
        if given:
            field, value = given[0]
            for other, second in given[1:]:
                if _differ(value, second):
                    raise self.refuse(other, second, f"equal to {field} = {shown(value)}")
            return field, value
        present = [name for name in names if name in self._values]
        defaults = [name for name in names if name in self._defaults]
        if present or not defaults:  # null in a file is no default
            return (present or list(names))[0], None
        self.assume(defaults[0], self._defaults[defaults[0]])
        return defaults[0], self._defaults[defaults[0]]


def decimal_text(number: Fraction) -> str:
    """A positive number as a decimal text: exact where it ends, else to 17 digits."""
    digits = _CONTEXT.divide(Decimal(number.numerator), Decimal(number.denominator))
    return format(digits if Fraction(digits) == number else Decimal(repr(float(number))), "f")


def _quoted(value: object) -> str:
    """What to add for a number that stands in quotes."""
    return ", not a text in quotes" if isinstance(value, str) else ""


def _differ(first: object, second: object) -> bool:
    """Whether two values of one field contradict each other; of two objects the first counts."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return False
    numbers = _exact(first), _exact(second)
    return numbers[0] != numbers[1] if None not in numbers else shown(first) != shown(second)


def _exact(value: object) -> Fraction | None:
    """The exact value of a number that is not a boolean, and None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, Decimal):
        if not value.is_finite() or not (value == 0 or abs(value.adjusted()) < 40):  # no huge power of ten
            return None
        return Fraction(value)
    if isinstance(value, (Integral, Rational)):
        return Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float):  # of a mapping made in Python: the decimal that it is written as
        return Fraction(repr(value)) if math.isfinite(value) else None
    return None
