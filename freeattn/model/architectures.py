"""Presets: attention layers of published models.

The records live in data/architectures.json, which states the meaning of every key under "_about".
`architecture` turns one into a specification and can override any field of `Attention`:

>>> spec = architecture("bert-base", n_heads=24, d_key=32, d_value=32)
>>> spec.gamma_key, spec.n_kv_heads
(Fraction(3, 2), 24)

What a model has and the theory has not is listed in `Attention.not_modelled`, never silently dropped.
Rotary positions are listed only when keys and values are tied: they rotate each query and key, which leaves
Gaussian rows Gaussian, so with values independent of keys the law for orthogonal input is the same.
"""

from __future__ import annotations

import difflib
import json
import numbers
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources
from typing import Any

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.initialization import Initialization, initial_beta
from freeattn.model.ties import as_ties

__all__ = ["LatentAttention", "Preset", "architecture", "architectures"]

_SIZES = ("n_tokens", "d_model", "n_heads", "n_kv_heads", "d_key", "d_value", "d_out")
_SETS_INITIAL_BETA = ("d_model", "n_heads", "d_key")
_MOST_NAMES = 8


@dataclass(frozen=True, kw_only=True)
class LatentAttention:
    """Widths of latent attention: keys and values of head r are D U_r with one latent D (rank kv_rank).

    Each key has nope_width coordinates of this kind and rope_width rotary ones that all heads share.
    """

    kv_rank: int
    q_rank: int
    rope_width: int
    nope_width: int
    latent_norm: str


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The published record of an attention layer.

    Attributes are the keys of data/architectures.json, whose "_about" says what each means. Ratios,
    `covered` and `why_not` are those at the record's own n_tokens.
    """

    name: str
    family: str
    year: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_key: int
    d_value: int
    d_out: int
    layers: int
    n_tokens: int
    n_tokens_pretrain: int | None = None
    tie: str
    causal: bool
    positional: str
    rotary_width: int | None = None
    window: int | None = None
    logit_softcap: float | None = None
    qk_norm: bool
    beyond: tuple[str, ...] = ()
    score_scale: str
    init: Initialization
    mla: LatentAttention | None = None
    source: str
    confirmed: bool
    unconfirmed: tuple[str, ...] = ()
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
        if self.mla is not None:
            return _latent_refusal(self.mla)
        if self.n_tokens > self.d_model:
            return (
                f"orthogonal input needs n_tokens ≤ d_model, and {self.n_tokens} exceeds {self.d_model}: "
                f"{_token_advice(self, self.d_model)}"
            )
        return ""

    @property
    def not_modelled(self) -> tuple[str, ...]:
        """What the layer has and the theory has not, as short phrases."""
        return _not_modelled(self, tied=self.tie != "none")


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
        NotCoveredError: for latent attention, and for beta="init" when the initial β is not known.
    """
    preset = _find(name)
    if preset.mla is not None:
        raise NotCoveredError(f"{preset.name}: {_latent_refusal(preset.mla)}")
    fields = {size: getattr(preset, size) for size in _SIZES}
    fields.update(name=preset.name, tie=preset.tie, beta=1, **_followers(preset, changes))
    fields.update(changes)
    fields["tie"] = as_ties(fields["tie"])
    phrases = _not_modelled(preset, tied=fields["tie"].value == "key")
    if isinstance(fields["beta"], str):
        fields["beta"], cautions = _initial_beta(preset, fields)
        phrases += cautions
    fields.setdefault("not_modelled", phrases)
    return _build(preset, fields)


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
    path = resources.files("freeattn.model").joinpath("data", "architectures.json")
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
    near = _nearest(name, list(presets)) if isinstance(name, str) else []
    hint = f"nearest: {', '.join(near)}; " if near else ""
    raise InputError(
        "architecture", name, f"the name of a preset ({hint}architectures() lists all {len(presets)})"
    )


def _nearest(name: str, names: list[str]) -> list[str]:
    """Close spellings first, then the names that contain the text."""
    text = name.strip().lower().replace("_", "-").replace(" ", "-")
    close = difflib.get_close_matches(text, names, n=3, cutoff=0.7)
    containing = [other for other in names if text and text in other]
    return list(dict.fromkeys(close + containing))[:_MOST_NAMES]


# From record to specification -----------------------------------------------------------------------------


def _followers(preset: Preset, changes: dict[str, Any]) -> dict[str, Any]:
    """The sizes that were equal to an overridden one in the record, and stay equal to it."""
    followers = {}
    if "n_heads" in changes and preset.n_kv_heads == preset.n_heads:
        followers["n_kv_heads"] = changes["n_heads"]
    if "d_model" in changes and preset.d_out == preset.d_model:
        followers["d_out"] = changes["d_model"]
    return followers


def _initial_beta(preset: Preset, fields: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """The number that beta="init" stands for, and what to beware of."""
    if fields["beta"] != "init":
        raise InputError("beta", fields["beta"], 'a positive number, a symbol, or "init"')
    initial = initial_beta(preset)
    changed = [size for size in _SETS_INITIAL_BETA if fields[size] != getattr(preset, size)]
    if changed:
        raise InputError(
            "beta", "init", f"a number when {' and '.join(changed)} is not the published one: the "
            f"initialization of {preset.name} is for its own widths, where beta = {float(initial.value):.6g}",
        )
    return initial.value, (initial.note,) if initial.note else ()


def _build(preset: Preset, fields: dict[str, Any]) -> Attention:
    try:
        return Attention(**fields)
    except InputError as error:
        n_tokens, d_model = fields["n_tokens"], fields["d_model"]
        known = isinstance(n_tokens, numbers.Real) and isinstance(d_model, numbers.Real)
        if error.field != "n_tokens" or not known or n_tokens <= d_model:
            raise
        published = f"n_tokens = {preset.n_tokens} and d_model = {preset.d_model}"
        raise InputError(
            "n_tokens", n_tokens, f"at most d_model = {d_model} for orthogonal input; {preset.name} is "
            f"published with {published}: {_token_advice(preset, d_model)}",
        ) from None


def _token_advice(preset: Preset, d_model: Any) -> str:
    pretrain = preset.n_tokens_pretrain
    if pretrain is not None and pretrain <= d_model:
        return f"try n_tokens={pretrain}, its pre-training length"
    return f"choose n_tokens up to {d_model}"


def _latent_refusal(mla: LatentAttention) -> str:
    return (
        "no law is available for its latent attention (low-rank keys and values from a shared latent of "
        f"rank {mla.kv_rank}, plus a shared positional key of width {mla.rope_width}); the law of plain "
        "heads would be wrong"
    )


def _not_modelled(preset: Preset, tied: bool) -> tuple[str, ...]:
    rotary = "rotary positions (keys and values are tied)" if tied else ""
    positions = {
        "learned": "learned positions added to the tokens",
        "sinusoidal": "sinusoidal positions added to the tokens",
        "relative": "relative position bias on the scores",
        "rope": rotary,
    }
    phrases = (
        "causal mask" if preset.causal else "",
        positions[preset.positional],
        f"sliding window of {preset.window} tokens" if preset.window else "",
        f"logit softcap {preset.logit_softcap:g}" if preset.logit_softcap else "",
        "query and key normalization" if preset.qk_norm else "",
        *preset.beyond,
        "initial weights taken from another model" if preset.init.from_other_model else "",
    )
    return tuple(phrase for phrase in phrases if phrase)
