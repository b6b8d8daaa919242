"""Presets: attention layers of published models.

The records live in data/architectures.json, which states the meaning of every key under "_about".
`architecture` turns one into a specification and can override any field of `Attention`:

>>> spec = architecture("bert-base", n_heads=24, d_key=32, d_value=32)
>>> spec.gamma_key, spec.n_kv_heads
(Fraction(3, 2), 24)

What a model has and the theory has not is listed in `Attention.not_modelled`, never silently dropped.
Rotary positions rotate each query and key, which leaves independent Gaussian rows what they are: with orthogonal
input and values independent of keys the law is the same. They are listed where rows are not independent: tied keys,
queries from a latent, keys that come from a latent altogether, tokens that are not orthogonal.
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

from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.initialization import Initialization, initial_beta
from freeattn.model.inputs import OrthogonalInput, as_inputs
from freeattn.model.latent import Latent
from freeattn.model.ties import Ties, as_ties

__all__ = ["LatentAttention", "Preset", "architecture", "architectures"]

_SIZES = ("n_tokens", "d_model", "n_heads", "n_kv_heads", "d_key", "d_value", "d_out")
_SETS_INITIAL_BETA = ("d_model", "n_heads", "d_key", "latent", "query_latent")
_FROM_HEADS = ("n_heads", "n_kv_heads", "d_key", "d_value")
_MOST_NAMES = 8


@dataclass(frozen=True, kw_only=True)
class LatentAttention:
    """Widths of latent attention: keys and values of head r are D U_r with one latent D (rank kv_rank).

    Each key has nope_width coordinates of this kind and rope_width rotary ones that come straight from the tokens and
    are the same for all heads. Queries come from a latent of their own, of rank q_rank, unless q_rank is 0.
    """

    kv_rank: int
    q_rank: int
    rope_width: int
    nope_width: int
    latent_norm: str

    def fields(self) -> dict[str, Any]:
        """The fields of `Attention` that say this."""
        normalized = self.latent_norm == "rmsnorm"
        return {
            "latent": Latent(self.kv_rank, normalized=normalized),
            "query_latent": Latent(self.q_rank, normalized=normalized) if self.q_rank else None,
            "position_width": self.rope_width,
        }


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
        if self.n_tokens > self.d_model:
            return (
                f"orthogonal input needs n_tokens ≤ d_model, and {self.n_tokens} exceeds {self.d_model}: "
                f"{_token_advice(self, self.d_model)}"
            )
        return ""

    @property
    def not_modelled(self) -> tuple[str, ...]:
        """What the layer has and the theory has not, as short phrases."""
        return _not_modelled(self, {"tie": as_ties(self.tie), "inputs": OrthogonalInput(), **_latents(self)})


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
    preset = _find(name)
    fields = {size: getattr(preset, size) for size in _SIZES} | _latents(preset)
    if changes.get("heads") is not None:
        fields.update(dict.fromkeys(_FROM_HEADS))
    fields.update(name=preset.name, tie=preset.tie, inputs="orthogonal", beta=1, **_followers(preset, changes))
    fields.update(changes)
    fields["tie"], fields["inputs"] = as_ties(fields["tie"]), as_inputs(fields["inputs"])
    phrases = _not_modelled(preset, fields)
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


def _latents(preset: Preset) -> dict[str, Any]:
    return {} if preset.mla is None else preset.mla.fields()


def _initial_beta(preset: Preset, fields: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """The number that beta="init" stands for, and what to beware of."""
    if fields["beta"] != "init":
        raise InputError("beta", fields["beta"], 'a positive number, a symbol, or "init"')
    initial = initial_beta(preset)
    changed = [name for name in _SETS_INITIAL_BETA if fields.get(name) != getattr(preset, name, None)]
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
        return f'try n_tokens={pretrain}, its pre-training length, or inputs="gaussian"'
    return f'choose n_tokens up to {d_model}, or inputs="gaussian"'


def _why_rotary_counts(fields: dict[str, Any]) -> str:
    """Why rotating the rows of queries and keys changes the law; "" when it does not."""
    tie: Ties = fields["tie"]
    from_latent = fields.get("latent") is not None and fields.get("position_width", 0) == 0
    reasons = {
        "keys and values are tied": tie.value != "none",
        "the output map is tied to the keys": tie.output != "none",
        "tokens are not orthogonal": not isinstance(fields["inputs"], OrthogonalInput),
        "queries come from a latent": fields.get("query_latent") is not None,
        "keys come from a latent": from_latent,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def _not_modelled(preset: Preset, fields: dict[str, Any]) -> tuple[str, ...]:
    reason = _why_rotary_counts(fields)
    rotary = f"rotary positions ({reason})" if reason else ""
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
