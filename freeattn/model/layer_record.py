"""The record of an attention layer, and the specification that it gives: what presets and configuration files share.

What a layer has and the theory has not is listed in `Attention.not_modelled`, never silently dropped.
Rotary positions rotate each query and key, which leaves independent Gaussian rows what they are: with orthogonal
input and values independent of keys the law is the same. They are listed where rows are not independent: tied keys,
queries from a latent, keys that come from a latent altogether, tokens that are not orthogonal.
"""

from __future__ import annotations

import numbers
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, ClassVar

from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.initialization import Initialization, initial_beta
from freeattn.model.inputs import OrthogonalInput, as_inputs
from freeattn.model.latent import Latent
from freeattn.model.ties import Ties, as_ties

__all__ = ["LatentAttention", "LayerRecord", "specification", "token_advice"]

_SIZES = ("n_tokens", "d_model", "n_heads", "n_kv_heads", "d_key", "d_value", "d_out")
_SETS_INITIAL_BETA = ("d_model", "n_heads", "d_key", "latent", "query_latent")
_FROM_HEADS = ("n_heads", "n_kv_heads", "d_key", "d_value")


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
class LayerRecord:
    """An attention layer as its source states it; data/architectures.json says under "_about" what each field means.

    beta_unknown: why no initial β describes the scores, where no other field says it.
    """

    stated: ClassVar[str]  # how the source gives n_tokens and d_model, in messages
    origin: ClassVar[str]  # the same as an adjective

    name: str
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_key: int
    d_value: int
    d_out: int
    layers: int
    n_tokens: int | None
    n_tokens_pretrain: int | None = None
    tie: str = "none"
    causal: bool
    positional: str
    rotary_width: int | None = None
    window: int | None = None
    logit_softcap: float | None = None
    qk_norm: bool
    beyond: tuple[str, ...] = ()
    score_scale: str
    init: Initialization
    beta_unknown: str = ""
    mla: LatentAttention | None = None
    unconfirmed: tuple[str, ...] = ()

    @property
    def latents(self) -> dict[str, Any]:
        """The fields of `Attention` that the latents give; none without latents."""
        return {} if self.mla is None else self.mla.fields()

    @property
    def not_modelled(self) -> tuple[str, ...]:
        """What the layer has and the theory has not, as short phrases."""
        return _not_modelled(self, {"tie": as_ties(self.tie), "inputs": OrthogonalInput(), **self.latents})

    def kept_widths(self, spec: Attention, changed: Collection[str]) -> str:
        """Widths of heads that are d_model/n_heads here, stay what they are, and no longer are: in words, or "".

        Nothing is wrong with such a layer; who changes n_heads or d_model may have expected that the widths follow.

        Args:
            spec: what `specification` made of this record.
            changed: the fields that were given to it.
        """
        if "heads" in changed or not {"n_heads", "d_model"} & set(changed):
            return ""
        widths = {"d_key": self.d_key} | ({} if spec.output == "attention" else {"d_value": self.d_value})
        kept = [
            name for name, width in widths.items()
            if name not in changed and self.n_heads * width == self.d_model and spec.n_heads * width != spec.d_model
        ]
        if not kept:
            return ""
        width = widths[kept[0]]  # of both: d_model/n_heads
        stay = f"{' and '.join(kept)} {'stay' if len(kept) > 1 else 'stays'} {width}"
        return f"{stay}: n_heads*{kept[0]} = {spec.n_heads * width}, d_model = {spec.d_model}"


def specification(record: LayerRecord, changes: dict[str, Any]) -> Attention:
    """The specification of a layer, with any field of `Attention` overridden.

    beta is 1 unless given; beta="init" computes it from the initialization at the widths of the record.
    n_kv_heads follows an overridden n_heads, and d_out an overridden d_model, where they are equal in the record.

    Raises:
        InputError: for any field value that is not allowed; for more tokens than d_model it says how many to choose.
        NotCoveredError: for queries tied to keys, and for beta="init" when the initial β is not known.
    """
    fields = {size: getattr(record, size) for size in _SIZES} | record.latents
    if changes.get("heads") is not None:
        fields.update(dict.fromkeys(_FROM_HEADS))
    fields.update(name=record.name, tie=record.tie, inputs="orthogonal", beta=1, **_followers(record, changes))
    fields.update(changes)
    fields["tie"], fields["inputs"] = as_ties(fields["tie"]), as_inputs(fields["inputs"])
    phrases = _not_modelled(record, fields)
    if isinstance(fields["beta"], str):
        fields["beta"], cautions = _initial_beta(record, fields)
        phrases += cautions
    fields.setdefault("not_modelled", phrases)
    return _build(record, fields)


def _followers(record: LayerRecord, changes: dict[str, Any]) -> dict[str, Any]:
    """The sizes that were equal to an overridden one in the record, and stay equal to it."""
    followers = {}
    if "n_heads" in changes and record.n_kv_heads == record.n_heads:
        followers["n_kv_heads"] = changes["n_heads"]
    if "d_model" in changes and record.d_out == record.d_model:
        followers["d_out"] = changes["d_model"]
    return followers


def _initial_beta(record: LayerRecord, fields: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """The number that beta="init" stands for, and what to beware of."""
    if fields["beta"] != "init":
        raise InputError("beta", fields["beta"], 'a positive number, a symbol, or "init"')
    initial = initial_beta(record)
    changed = [name for name in _SETS_INITIAL_BETA if fields.get(name) != getattr(record, name, None)]
    if changed:
        listed = " and ".join(filter(None, (", ".join(changed[:-1]), changed[-1])))
        differ = f"{listed} is not the {record.origin} one"
        if len(changed) > 1:
            differ = f"{listed} are not the {record.origin} ones"
        raise InputError(
            "beta", "init", f"a number, such as beta=1, when {differ}: the initialization of {record.name} is for its "
            f"own widths, where beta = {float(initial.value):.6g}",
        )
    return initial.value, (initial.note,) if initial.note else ()


def _build(record: LayerRecord, fields: dict[str, Any]) -> Attention:
    try:
        return Attention(**fields)
    except InputError as error:
        n_tokens, d_model = fields["n_tokens"], fields["d_model"]
        known = isinstance(n_tokens, numbers.Real) and isinstance(d_model, numbers.Real)
        if error.field != "n_tokens" or not known or n_tokens <= d_model:
            raise
        sizes = f"n_tokens = {record.n_tokens} and d_model = {record.d_model}"
        raise InputError(
            "n_tokens", n_tokens, f"at most d_model = {d_model} for orthogonal input; {record.name} "
            f"{record.stated} {sizes}: {token_advice(record, d_model)}",
        ) from None


def token_advice(record: LayerRecord, d_model: Any) -> str:
    """What to do when orthogonal input has more tokens than d_model."""
    pretrain = record.n_tokens_pretrain
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


def _not_modelled(record: LayerRecord, fields: dict[str, Any]) -> tuple[str, ...]:
    reason = _why_rotary_counts(fields)
    rotary = f"rotary positions ({reason})" if reason else ""
    positions = {
        "learned": "learned positions added to the tokens",
        "sinusoidal": "sinusoidal positions added to the tokens",
        "relative": "relative position bias on the scores",
        "rope": rotary,
    }
    phrases = (
        "causal mask" if record.causal else "",
        positions[record.positional],
        f"sliding window of {record.window} tokens" if record.window else "",
        f"logit softcap {record.logit_softcap:g}" if record.logit_softcap else "",
        "query and key normalization" if record.qk_norm else "",
        *record.beyond,
        "initial weights taken from another model" if record.init.from_other_model else "",
    )
    return tuple(phrase for phrase in phrases if phrase)
