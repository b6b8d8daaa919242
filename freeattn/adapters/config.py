"""`from_config`: the attention layer that a Hugging Face configuration file describes.

What is read of each family, and how β follows from the initialization, is in data/families.json and docs/configs.md.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from typing import Any

from freeattn.adapters.configured import ConfiguredLayer
from freeattn.adapters.families import Family, families
from freeattn.adapters.fields import Fields
from freeattn.adapters.reading import read_layer
from freeattn.adapters.strict_json import printable, read_object, shown
from freeattn.errors import InputError
from freeattn.model.attention import Attention

__all__ = ["from_config", "read_config"]

_BY_HAND = "or give the sizes by hand: n_tokens, d_model, n_heads, d_key, d_value"
_SUFFIX = "_config"

Source = str | os.PathLike[str] | Mapping[str, Any]


def from_config(
    source: Source, *, n_tokens: Any = None, part: str | None = None, model_type: str | None = None, **changes: Any
) -> Attention:
    """The specification of the layer that a configuration describes, with any field of `Attention` overridden.

    beta is that of the library's initialization (see `freeattn.model.initialization`) unless given.

    Args:
        source: path of a config.json, or its contents as a mapping.
        n_tokens: tokens in the sequence; the longest that the configuration states unless given.
        part: which part of a configuration of several models, such as "text" or "vision_config".
        model_type: the family to read it as, in place of the one that it states.
        changes: fields of `Attention`, such as beta=1, inputs="gaussian", output="attention".

    Raises:
        InputError: for a file that is not a configuration, for a field that is missing or has a value that is not
            allowed, for a family that is not known (its `source` is the file then), and for changes that are not
            allowed.
        NotCoveredError: when beta is not given and the initial one is not known.
    """
    given = changes if n_tokens is None else {"n_tokens": n_tokens, **changes}
    return read_config(source, part=part, model_type=model_type).attention(**given)


def read_config(source: Source, *, part: str | None = None, model_type: str | None = None) -> ConfiguredLayer:
    """The record of the attention layer that a configuration describes; arguments and errors as `from_config`."""
    if isinstance(source, Mapping):
        return _read(source, "configuration", part, model_type)
    if not isinstance(source, (str, os.PathLike)):
        raise InputError("config", shown(source), "a path, or the contents of a configuration as a mapping")
    values, name = read_object(source), printable(os.fspath(source))
    try:
        return _read(values, name, part, model_type)
    except InputError as error:
        raise InputError(error.field, error.value, error.allowed, name) from None


def _read(values: Mapping[str, Any], name: str, part: str | None, model_type: str | None) -> ConfiguredLayer:
    family, kind, inside, where = _located(values, part, model_type)
    label = f"{name}:{where}" if where else name
    return read_layer(Fields(inside, family.defaults_at(where), where), family, kind, where, label)


# Which part, which family ------------------------------------------------------------------------------------


def _located(
    values: Mapping[str, Any], part: str | None, model_type: str | None
) -> tuple[Family, str, Mapping[str, Any], str | None]:
    """The family, its name, the fields to read, and the name of the part that they stand in."""
    for field, value in (("part", part), ("model_type", model_type)):
        if value is not None and not isinstance(value, str):
            raise InputError(field, shown(value), "a text, or None")
    top = Fields(values, {}).text("model_type")
    known = families().get(top) if top else None
    parts = _parts(values, known)
    if part is None:
        if model_type is None and parts and (known is None or known.parts):
            raise InputError("part", "(not given)", f"one of {', '.join(parts)}: the file describes several models")
        family, kind = _family(model_type or top, "model_type")
        return family, kind, values, None
    where = part if part in parts else f"{part}{_SUFFIX}"
    if where not in parts:
        listed = f"one of {', '.join(parts)}" if parts else "nothing: the file describes one model"
        raise InputError("part", shown(part), listed)
    family, kind = _family(model_type or parts[where], f"{where}.model_type")
    return family, kind, values[where], where


def _parts(values: Mapping[str, Any], family: Family | None) -> dict[str, str]:
    """The parts that describe a model, with the model_type of each."""
    implied = family.parts if family else {}
    found = {}
    for name, inside in values.items():
        if isinstance(name, str) and name.endswith(_SUFFIX) and isinstance(inside, Mapping):
            kind = inside.get("model_type") or implied.get(name)
            if isinstance(kind, str):
                found[name] = kind
    return found


def _family(model_type: str | None, field: str) -> tuple[Family, str]:
    known = {name: family for name, family in families().items() if not family.parts}
    if model_type in known:
        return known[model_type], model_type
    near = difflib.get_close_matches(model_type or "", known, n=3)
    hint = f"nearest: {', '.join(near)}; " if near else ""
    value = "(missing)" if model_type is None else shown(model_type)
    raise InputError(field, value, f"one of {', '.join(sorted(known))} ({hint}{_BY_HAND})")
