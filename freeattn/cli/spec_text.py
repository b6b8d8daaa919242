"""A SPEC as it is typed: NAME, or NAME:FIELD=VALUE,FIELD=VALUE,… with fields of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import freeattn
from freeattn.errors import InputError, did_you_mean

__all__ = [
    "LISTS", "distinct_names", "field_of", "is_path", "is_preset", "own_fields", "parted_spec", "preset_name",
    "short_names",
]

LISTS = ("heads", "feature_eigenvalues", "feature_weights")  # fields whose values hold commas
_SWITCHED = {"on": True, "off": False}


def is_preset(name: str) -> bool:
    """True for the name of a preset."""
    return any(record.name == name for record in freeattn.architectures())


def is_path(name: str) -> bool:
    """True for a file that describes a layer, whether it exists or not; a name of a preset is none."""
    return not is_preset(name) and (name.endswith(".json") or os.sep in name or os.path.exists(name))


def field_of(text: str) -> str:
    """The field that a text names as it may be written: n_heads, n-heads or --n-heads."""
    return text.strip().removeprefix("--").replace("-", "_")


def parted_spec(text: str) -> tuple[str, str]:
    """A SPEC as typed in its two parts: NAME:FIELD=VALUE,… is a preset or a file, and fields of its own."""
    if os.path.exists(text):
        return text, ""
    parts = [(text[:at], text[at + 1:]) for at, character in enumerate(text) if character == ":"]
    known = (pair for pair in parts if is_preset(pair[0]) or os.path.exists(pair[0]))
    likely = (pair for pair in parts if "=" in pair[1] and field_of(pair[1].partition("=")[0]).isidentifier())
    return next(known, None) or next(likely, (text, ""))


def preset_name(text: str | None) -> str | None:
    """The name of the preset in a SPEC; None for a configuration file, or without a SPEC."""
    name = "" if text is None else parted_spec(text)[0]
    return name if is_preset(name) else None


def own_fields(text: str | None, options: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
    """The name in a SPEC, and the options with its own fields in their place.

    Raises:
        InputError: for parts that are no FIELD=VALUE with a field of the layer, a field given twice, and a colon with
            nothing behind it.
    """
    if text is None:
        return None, options
    name, fields = parted_spec(text)
    if name == text:
        return text, options
    example = f"{name}:n_heads=6,d_key=128"
    own: dict[str, Any] = {}
    last = ""
    for part in filter(None, fields.split(",")):
        field, equals, value = part.partition("=")
        field = field_of(field)
        if not equals and last in LISTS:  # the next value of a list
            own[last] += f",{part}"
            continue
        if field not in options or not equals or not value:
            hint = "" if field in options else did_you_mean(field, options)
            raise InputError("spec", part, f"FIELD=VALUE with a field of the layer{hint}, such as {example}")
        if isinstance(options[field], bool) and value not in _SWITCHED:
            raise InputError("spec", part, f"{field}=on or {field}=off")
        if field in own:
            raise InputError("spec", part, f"each field once; {field} is given twice")
        own[field], last = _SWITCHED.get(value, value), field
    if not own:
        raise InputError("spec", text, f"fields of the layer behind the colon, such as {example}, or {name} alone")
    return name, {**options, **own}


def distinct_names(texts: Sequence[str], with_fields: bool = False) -> list[str]:
    """`short_names` of layers that are shown side by side.

    Raises:
        InputError: where two have the same name, and so are the same layer.
    """
    names = short_names(texts, with_fields)
    if len(set(names)) < len(names):
        raise InputError("layers", " ".join(texts), "different layers")
    return names


def short_names(texts: Sequence[str], with_fields: bool = False) -> list[str]:
    """What layers are called in headings: of the paths of files, as many of the last parts as tell files apart.

    Their own fields follow if they are asked for, or where names do not tell layers apart.
    """
    parted = [parted_spec(text) for text in texts]
    paths = {name: Path(os.path.normpath(name)).parts for name, _ in parted if is_path(name)}
    short = {name: name for name, _ in parted}
    for name, parts in paths.items():
        others = [other for other in paths.values() if other != parts]
        counts = range(1, len(parts))
        count = next((k for k in counts if all(one[-k:] != parts[-k:] for one in others)), len(parts))
        short[name] = str(Path(*parts[-count:]))
    names = [short[name] for name, _ in parted]
    if len(set(names)) == len(names) and not with_fields:
        return names
    return [f"{short[name]}:{fields}" if fields else short[name] for name, fields in parted]
