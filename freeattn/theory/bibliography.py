"""References of derivations: which key of references.bib a source names, and the entries as a list.

A source is written for readers ("Nica-Speicher, lecture 18"); here it becomes a citation with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files

from freeattn.theory.latex_words import latex_words

__all__ = ["bibliography", "cited", "keys_in"]

# How sources name a reference, longest first; what follows up to the next semicolon is the place.
_NAMES = (
    ("arXiv 2610.10033", "arXiv:2610.10033"),
    ("arXiv 2510.06685", "arXiv:2510.06685"),
    ("arXiv 1511.05330", "HeltonMaiSpeicher"),
    ("arXiv 1905.08187", "MaiSpeicherYin"),
    ("Nica-Speicher, Lectures on the Combinatorics of Free Probability", "NicaSpeicher"),
    ("Nica-Speicher", "NicaSpeicher"),
    ("Mingo-Speicher, Free Probability and Random Matrices", "MingoSpeicher"),
    ("Mingo-Speicher", "MingoSpeicher"),
    ("Helton-Rashidi Far-Speicher, IMRN 2007, rnm086", "HeltonRashidiFarSpeicher"),
    ("Helton-McCullough-Vinnikov", "HeltonMcCulloughVinnikov"),
    ("Belinschi-Bercovici, J. Anal. Math. 101 (2007)", "BelinschiBercovici"),
    ("Belinschi, atoms of free multiplicative convolution", "Belinschi"),
    ("Bercovici-Voiculescu (1998)", "BercoviciVoiculescu"),
)
_PLACE = re.compile(r"(?:, |\s)?((?:[Tt]heorem|sections?|lecture|chapters?|Table)[^;]*)?(.*)", re.DOTALL)
_ENTRY = re.compile(r"@\w+\{([^,]+),\n(.*?)\n\}", re.DOTALL)
_FIELD = re.compile(r"(\w+) = \{(.*)\},?$", re.MULTILINE)
_CITED = re.compile(r"\\cite(?:\[[^\]]*\])?\{([^}]*)\}")


def cited(source: str) -> str:
    """A source as LaTeX, \\cite[place]{key} for every reference that it names."""
    return "; ".join(_cited(part) for part in source.split("; "))


def _cited(part: str) -> str:
    for name, key in _NAMES:
        if part.startswith(name):
            match = _PLACE.match(part[len(name):])
            place, rest = match.groups() if match else (None, "")
            where = f"[{{{latex_words(place)}}}]" if place else ""
            return rf"\cite{where}{{{key}}}" + latex_words(rest)
    return latex_words(part)


def keys_in(latex: str) -> tuple[str, ...]:
    """The keys that a text cites, in order, each once."""
    return tuple(dict.fromkeys(_CITED.findall(latex)))


def bibliography(keys: Iterable[str]) -> str:
    """The list of references as LaTeX that needs no other program."""
    entries = _entries()
    items = [rf"\bibitem{{{key}}} {_item(entries[key])}" for key in keys]
    return "\n".join([r"\begin{thebibliography}{99}", *items, r"\end{thebibliography}"]) if items else ""


@lru_cache(maxsize=1)
def _entries() -> dict[str, dict[str, str]]:
    text = (files("freeattn.theory") / "data" / "references.bib").read_text(encoding="utf-8")
    return {key: dict(_FIELD.findall(fields)) for key, fields in _ENTRY.findall(text)}


def _item(fields: dict[str, str]) -> str:
    """Authors, title, where it appeared, year."""
    names = [" ".join(reversed(name.split(", "))) for name in fields["author"].split(" and ")]
    authors = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    place = [fields[name] for name in ("booktitle", "journal", "publisher") if name in fields]
    volume = [f"{place.pop()} {fields['volume']}"] if "volume" in fields else []
    return ", ".join([authors, rf"\emph{{{fields['title']}}}", *place, *volume, *(
        fields[name] for name in ("note", "year") if name in fields
    )]) + "."
