"""Presets: attention layers of published models.

The records live in data/architectures.json, which states the meaning of every key under "_about".
`architecture` turns one into a specification and can override any field of `Attention`:

>>> spec = architecture("bert-base", n_heads=24, d_key=32, d_value=32)
>>> spec.gamma_key, spec.n_kv_heads
(Fraction(3, 2), 24)
"""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any, ClassVar

from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.initialization import Initialization
from freeattn.model.layer_record import LatentAttention, LayerRecord, specification, token_advice

__all__ = ["Preset", "architecture", "architectures", "near_presets"]

_MOST_NAMES = 8


@dataclass(frozen=True, kw_only=True)
class Preset(LayerRecord):
    """The published record of an attention layer.

    Attributes are the keys of data/architectures.json, whose "_about" says what each means. Ratios,
    `covered` and `why_not` are those at the record's own n_tokens.
    """

    stated: ClassVar[str] = "is published with"
    origin: ClassVar[str] = "published"

    n_tokens: int
    family: str
    year: int
    source: str
    confirmed: bool
    note: str = ""

    @property
    def gamma_key(self) -> Fraction:
        """γ_K = n_heads·d_key / n_tokens, exact."""
        return Fraction(self.n_heads * self.d_key, self.n_tokens)

    @property
    def gamma_value(self) -> Fraction:
        """γ_V = n_heads·d_value / n_tokens, exact."""
        return Fraction(self.n_heads * self.d_value, self.n_tokens)

    @property
    def gamma_out(self) -> Fraction:
        """γ_O = d_out / n_tokens, exact."""
        return Fraction(self.d_out, self.n_tokens)

    @property
    def covered(self) -> bool:
        """True when the law for orthogonal input exists at the record's own n_tokens."""
        return not self.why_not

    @property
    def why_not(self) -> str:
        """Why `covered` is False and what to do; "" when it is True."""
        if self.n_tokens > self.d_model:
            return (
                f"orthogonal input needs n_tokens ≤ d_model, and {self.n_tokens} exceeds {self.d_model}: "
                f"{token_advice(self, self.d_model)}"
            )
        return ""


def architecture(name: str, **changes: Any) -> Attention:
    """The specification of a published layer, with any field of `Attention` overridden.

    beta is 1 unless given; beta="init" computes it from the published initialization at the published
    widths (see `initialization`). n_kv_heads follows an overridden n_heads, and d_out an overridden d_model,
    where they are equal in the record.

    Args:
        name: name of a preset; `architectures()` lists them.
        changes: fields of `Attention`, such as n_tokens=512, beta=0.5, output="attention", tie="key-value".

    Raises:
        InputError: for an unknown name (with the nearest ones) and for any field value that is not allowed;
            for more tokens than d_model it says how many to choose.
        NotCoveredError: for queries tied to keys, and for beta="init" when the initial β is not known.
    """
    return specification(_find(name), changes)


def architectures(search: str | None = None) -> tuple[Preset, ...]:
    """All presets, or those whose name, family or source contains the text `search` in any case."""
    presets = tuple(_presets().values())
    if search is None:
        return presets
    if not isinstance(search, str):
        raise InputError("search", search, "a text, or None for all presets")
    text = search.lower()
    return tuple(p for p in presets if any(text in field.lower() for field in (p.name, p.family, p.source)))


# The records ----------------------------------------------------------------------------------------------


@cache
def _presets() -> dict[str, Preset]:
    path = resources.files("freeattn.model") / "data" / "architectures.json"
    records = json.loads(path.read_text(encoding="utf-8"))["architectures"]
    return {record["name"]: _from_record(record) for record in records}


def _from_record(record: dict[str, Any]) -> Preset:
    values = dict(record)
    values["init"] = Initialization(**values["init"])
    if "mla" in values:
        values["mla"] = LatentAttention(**values["mla"])
    for key in ("beyond", "unconfirmed"):
        values[key] = tuple(values.get(key, ()))
    return Preset(**values)


def _find(name: object) -> Preset:
    presets = _presets()
    if isinstance(name, str) and name in presets:
        return presets[name]
    near = near_presets(name) if isinstance(name, str) else ""
    raise InputError("architecture", name, f"the name of a preset ({near}architectures() lists all {len(presets)})")


def near_presets(name: str) -> str:
    """ "nearest: bert-base; ": close spellings of names of presets, then names that contain the text; "" for none."""
    near = _nearest(name, list(_presets()))
    return f"nearest: {', '.join(near)}; " if near else ""


def _nearest(name: str, names: list[str]) -> list[str]:
    text = name.strip().lower().replace("_", "-").replace(" ", "-")
    close = difflib.get_close_matches(text, names, n=3, cutoff=0.7)
    containing = [other for other in names if text and text in other]
    return list(dict.fromkeys(close + containing))[:_MOST_NAMES]
