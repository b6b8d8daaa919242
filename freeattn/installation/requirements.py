"""What the package declares to need, read off its own metadata: libraries, lowest versions, extras."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable
from importlib import metadata
from typing import NamedTuple

__all__ = ["Requirement", "declared_requirements", "extra_names", "parsed_requirements"]

DISTRIBUTION = "freeattn"
_LINE = re.compile(
    r"^(?P<name>[\w.-]+)\s*(?:\[(?P<parts>[^]]*)\])?\s*\(?(?P<versions>[^;)]*)\)?\s*(?:;(?P<marker>.*))?$"
)
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w.-]+)['\"]")
_CLAUSE = re.compile(r"^\s*(>=|<=|==|!=|>|<)\s*(\S+?)\s*$")
_ORDER = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "==": operator.eq, "!=": operator.ne,
}


class Requirement(NamedTuple):
    """One library that is needed.

    Attributes:
        name: of the distribution, as package indexes have it.
        versions: what is allowed, such as ">=1.3,<1.5"; empty for any.
        extra: the extra that needs it, None for the package itself.
    """

    name: str
    versions: str
    extra: str | None

    def allows(self, version: str) -> bool:
        """Whether a version is allowed; only the numbers of releases are compared, not marks such as rc1 or dev0."""
        clauses = [found for found in map(_CLAUSE.match, self.versions.split(",")) if found]
        return all(_ORDER[sign](*_same_length(_release(version), _release(bound))) for sign, bound in
                   (found.groups() for found in clauses))


def declared_requirements(extra: str | None = None) -> list[Requirement]:
    """What the installed package needs, or one of its extras; extras that name other extras are followed.

    Raises:
        importlib.metadata.PackageNotFoundError: where freeattn runs from a folder without being installed.
    """
    return parsed_requirements(metadata.distribution(DISTRIBUTION).requires or (), extra)


def extra_names() -> list[str]:
    """The extras of the installed package, in the order in which it declares them.

    Raises:
        importlib.metadata.PackageNotFoundError: as `declared_requirements`.
    """
    return metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []


def parsed_requirements(lines: Iterable[str], extra: str | None = None) -> list[Requirement]:
    """`declared_requirements` of lines of metadata such as 'matplotlib>=3.10; extra == "plot"'."""
    every = list(lines)
    found: dict[str, Requirement] = {}
    for line in every:
        parsed = _LINE.match(line)
        if parsed is None:
            continue
        condition = _EXTRA.search(parsed["marker"] or "")
        if (None if condition is None else condition[1]) != extra:
            continue
        if parsed["name"] == DISTRIBUTION:
            for other in (parsed["parts"] or "").split(","):
                found |= {one.name: one._replace(extra=extra) for one in parsed_requirements(every, other.strip())}
        else:
            found[parsed["name"]] = Requirement(parsed["name"], parsed["versions"].strip(), extra)
    return list(found.values())


def _release(version: str) -> tuple[int, ...]:
    """The numbers at the start: (2, 13, 0) for 2.13.0+cpu."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


def _same_length(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    length = max(len(one), len(other))
    return one + (0,) * (length - len(one)), other + (0,) * (length - len(other))
