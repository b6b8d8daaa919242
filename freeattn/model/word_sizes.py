"""Numbers for the symbols of an expression: sizes of spaces, counts of copies, variances and coefficients.

One rule of naming for laws and for drawn matrices: a space without a size is the symbol of its name; a number is given
for a symbol, by the symbol or its name, or for the space or family of copies whose size it is. What has a number
already keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from freeattn.errors import InputError
from freeattn.model.expression import Expression
from freeattn.model.letters import Copies, Diagonal, Letter, Space
from freeattn.model.quantities import Quantity, as_nonnegative, as_positive, as_quantity, is_symbolic

__all__ = ["Sized", "checked_sizes", "families_of", "quantities_of", "spaces_of", "symbols_of"]

Sized = dict[str, Quantity]


def checked_sizes(expression: Expression, sizes: Mapping[Any, Any] | None) -> Sized:
    """Numbers by the names of symbols: sizes and counts positive, variances not negative, all exact.

    Raises:
        InputError: for a key that the expression does not have, a thing that has a number already, a value that is not
            allowed, or two different numbers for one symbol.
    """
    if sizes is not None and not isinstance(sizes, Mapping):
        raise InputError("sizes", sizes, "a mapping from spaces, copies and symbols, or their names, to numbers")
    kinds = symbols_of(expression)
    named: dict[str, Space | Copies] = {place.name: place for place in spaces_of(expression)}
    named |= {family.name: family for family in families_of(expression)}
    found: Sized = {}
    for key, value in (sizes or {}).items():
        name = _symbol_name(key, named, kinds)
        number = _checked(f"sizes[{key}]", value, kinds[name])
        if found.setdefault(name, number) != number:
            raise InputError(f"sizes[{key}]", value, f"one number for {name}; {found[name]} is given too")
    return found


def symbols_of(expression: Expression) -> dict[str, str]:
    """The names of the symbols of an expression, and whether each is a "size", a "variance" or another "number"."""
    found: dict[str, str] = {}
    for quantity, kind in quantities_of(expression):
        _note(found, quantity, kind)
    for place in spaces_of(expression):
        if place.size is None and not place.parts:
            found[place.name] = "size"
        _note(found, place.size, "size")
    for family in families_of(expression):
        _note(found, family.count, "size")
    return found


def quantities_of(expression: Expression) -> Iterator[tuple[Quantity, str]]:
    """Coefficients, eigenvalues and weights ("number"), and variances ("variance")."""
    for term in expression.terms:
        yield term.coefficient, "number"
    for letter in expression.letters:
        if isinstance(letter, Diagonal):
            for value in (*letter.eigenvalues, *letter.weights):
                yield value, "number"
        if isinstance(letter, Letter):
            yield letter.variance, "variance"


def _note(found: dict[str, str], quantity: Quantity, kind: str) -> None:
    """The symbols of a quantity; a symbol alone is of that kind, one inside a formula may be any number."""
    if is_symbolic(quantity):
        for symbol in quantity.free_symbols:
            found[str(symbol)] = kind if symbol == quantity else found.get(str(symbol), "number")


def _symbol_name(key: Any, named: Mapping[str, Space | Copies], kinds: Mapping[str, str]) -> str:
    name = key.name if isinstance(key, (Space, Copies)) else str(key)
    if name in kinds:
        return name
    if name in named:
        thing = named[name]
        own = thing.count if isinstance(thing, Copies) else thing.size
        if str(own) in kinds:
            return str(own)
        raise InputError("sizes", name, f"nothing for {name}, which has the size {own} already")
    allowed = f"one of {', '.join(sorted(kinds))}" if kinds else "nothing: the expression has no symbols"
    raise InputError("sizes", name, allowed)


def _checked(field: str, value: Any, kind: str) -> Quantity:
    if is_symbolic(value):
        raise InputError(field, value, "a number")
    if kind == "size":
        number = as_positive(field, value, "a positive number")
        if not isinstance(number, (int, Fraction)):
            raise InputError(field, value, "a rational number")
        return number
    if kind == "variance":
        return as_nonnegative(field, value, "a number of at least 0")
    return as_quantity(field, value, "a finite real number")


def spaces_of(expression: Expression) -> Iterator[Space]:
    """All spaces, parts of direct sums included."""
    pending = [expression.rows, expression.columns, *(s for a in expression.letters for s in (a.rows, a.columns))]
    while pending:
        place = pending.pop()
        pending += [part.space for part in place.parts]
        yield place


def families_of(expression: Expression) -> Iterator[Copies]:
    """All families of copies."""
    for term in expression.terms:
        yield from (stretch.family for stretch in term.sums)
    for letter in expression.letters:
        yield from letter.chain
    for place in spaces_of(expression):
        for part in place.parts:
            yield from () if part.per is None else part.per.chain
