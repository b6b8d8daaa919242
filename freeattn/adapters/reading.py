"""From the fields of a configuration to the record of its attention layer."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from freeattn.adapters.configured import ConfiguredLayer
from freeattn.adapters.families import Family
from freeattn.adapters.fields import Fields, decimal_text
from freeattn.adapters.rope import RotaryScaling, rotary_scaling
from freeattn.model.initialization import Initialization, squared
from freeattn.model.layer_record import LatentAttention

__all__ = ["read_layer"]

_BASIS = "configuration"
_ABSOLUTE_CUT = 2  # trunc_normal_ cuts at ±2 unless told otherwise, whatever the standard deviation


def read_layer(fields: Fields, family: Family, model_type: str, part: str | None, name: str) -> ConfiguredLayer:
    """The record of the layer that a configuration describes.

    Raises:
        InputError: for a field that is missing or has a value that is not allowed.
    """
    d_model, n_heads, layers = (fields.count(*family.names[size]) for size in ("d_model", "n_heads", "layers"))
    widths = _latent_widths(fields) if family.rule == "latent" else _widths(fields, family, d_model, n_heads)
    rotary = rotary_scaling(fields) if family.positional in ("rope", "falcon") else RotaryScaling(1.0, Fraction(1))
    init, init_rule = _initialization(fields, family, d_model, layers, widths["d_key"])
    n_tokens, tokens_from = _tokens(fields, family)
    scale, beyond = _scale(fields, family, widths["d_key"])
    record = ConfiguredLayer(
        name=name, model_type=model_type, part=part, d_model=d_model, n_heads=n_heads, d_out=d_model, layers=layers,
        n_kv_heads=_kv_heads(fields, family, n_heads), n_tokens=n_tokens, tokens_from=tokens_from,
        causal=_switch(fields, family.causal), positional=_positional(fields, family),
        window=_window(fields, family), logit_softcap=_softcap(fields, family),
        qk_norm=_switch(fields, family.qk_norm), score_scale=scale, init=init, init_rule=init_rule,
        beyond=(*beyond, *_beyond(fields, family)), defaulted=(), **widths,
    )
    record = _with_rotary_factor(record, rotary)
    defaulted = tuple((fields.name(field), str(value)) for field, value in fields.defaulted.items())
    return dataclasses.replace(record, defaulted=defaulted)


def _switch(fields: Fields, value: bool | str) -> bool:
    """A constant of the family, or the field that says it."""
    return fields.flag(value) if isinstance(value, str) else value


# Sizes -------------------------------------------------------------------------------------------------------


def _widths(fields: Fields, family: Family, d_model: int, n_heads: int) -> dict[str, Any]:
    d_key = fields.size(*family.names["d_key"], optional=True) if family.names["d_key"] else None
    if d_key is None:
        if d_model % n_heads:
            field = family.names["n_heads"][0]
            raise fields.refuse(field, n_heads, f"a divisor of {family.names['d_model'][0]} = {d_model}")
        d_key = d_model // n_heads
    return {"d_key": d_key, "d_value": d_key}


def _latent_widths(fields: Fields) -> dict[str, Any]:
    """Keys and values from a latent, with position coordinates of their own."""
    names = ("kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim")
    kv_rank, rope, nope, d_value = (fields.count(name) for name in names)
    mla = LatentAttention(
        kv_rank=kv_rank, q_rank=fields.size("q_lora_rank", optional=True, least=0) or 0, rope_width=rope,
        nope_width=nope, latent_norm="rmsnorm",
    )
    return {"d_key": rope + nope, "d_value": d_value, "rotary_width": rope, "mla": mla}


def _kv_heads(fields: Fields, family: Family, n_heads: int) -> int:
    names = family.names["n_kv_heads"]
    if family.rule == "falcon":
        own_count = fields.flag("new_decoder_architecture") or not fields.flag("multi_query")
        number = fields.size(*names, optional=True) if own_count else 1
    else:
        number = fields.size(*names, optional=True) if names else None
    if number is None:
        if names and family.rule != "falcon":
            fields.assume(names[0], n_heads)
        return n_heads
    if n_heads % number:
        raise fields.refuse(names[0], number, f"a divisor of {family.names['n_heads'][0]} = {n_heads}")
    return number


def _tokens(fields: Fields, family: Family) -> tuple[int | None, str]:
    if family.image is not None:
        return _image_tokens(fields, family, family.image)
    names = family.names["n_tokens"]
    length = fields.size(*names, optional=True, least=family.offset + 1)
    if length is None:
        return None, ""
    unused = f" less {family.offset} that no token has" if family.offset else ""
    return length - family.offset, f"{names[0]} = {length}{unused}"


def _image_tokens(fields: Fields, family: Family, others: int) -> tuple[int, str]:
    height, width = fields.pair("image_size")
    patch_height, patch_width = fields.pair("patch_size")
    rows, columns = height // patch_height, width // patch_width
    if not rows or not columns:
        raise fields.refuse("patch_size", max(patch_height, patch_width), f"at most image_size = {min(height, width)}")
    if family.registers:
        others += fields.size(family.registers, optional=True, least=0) or 0
    return rows * columns + others, f"{rows} x {columns} patches of the image and {others} other tokens"


# What sets β -------------------------------------------------------------------------------------------------


def _initialization(
    fields: Fields, family: Family, d_model: int, layers: int, d_key: int
) -> tuple[Initialization, str]:
    if family.init == "xavier":
        return Initialization(scheme="xavier-uniform", basis=_BASIS, std=f"1/sqrt({d_model})"), "Xavier uniform"
    if family.init == "clip":
        std = f"{fields.decimal('initializer_factor')}/sqrt({2 * layers * d_model})"
        rule = "normal, initializer_factor / sqrt(2 layers d_model)"
        return Initialization(scheme="normal", basis=_BASIS, std=std), rule
    if family.init == "t5":
        return _t5_initialization(fields, d_model, d_key)
    std = fields.decimal(family.std)
    if family.init == "normal":
        return Initialization(scheme="normal", basis=_BASIS, std=std), f"normal, {family.std}"
    cutoff, bounds = _ABSOLUTE_CUT / float(std), f"±{_ABSOLUTE_CUT}"
    if family.init == "cut":
        cutoff = float(fields.decimal("initializer_cutoff_factor"))
        bounds = f"±{cutoff:g} standard deviations"
    init = Initialization(scheme="truncated-normal", basis=_BASIS, std=std, cutoff=cutoff)
    return init, f"normal truncated at {bounds}, {family.std}"


def _t5_initialization(fields: Fields, d_model: int, d_key: int) -> tuple[Initialization, str]:
    """The factor stands on the weights and, as the gain of the normalization before them, on the tokens too."""
    factor = Fraction(fields.decimal("initializer_factor"))
    square = decimal_text(factor**2)
    init = Initialization(
        scheme="normal", basis=_BASIS, std=f"{square}/sqrt({d_model})", q_std=f"{square}/sqrt({d_model * d_key})"
    )
    return init, (
        "normal, initializer_factor / sqrt(d_model), of queries also over sqrt(d_key), on tokens whose normalization "
        "has the gain initializer_factor"
    )


def _scale(fields: Fields, family: Family, d_key: int) -> tuple[str, tuple[str, ...]]:
    """The factor on q·k, and what of it the theory does not have."""
    if family.rule == "gpt2":
        by_layer = fields.flag("scale_attn_by_inverse_layer_idx")
        beyond = ("scores of layer l divided by l (the first layer is taken)",) if by_layer else ()
        return "1/sqrt(d_key)" if fields.flag("scale_attn_weights") else "1", beyond
    if not isinstance(family.scale, Mapping):
        return family.scale, ()
    field = family.scale["field"]
    value = fields.number(field)
    if value is None or (value == d_key and family.scale["power"] == "-1/2"):
        return "1/sqrt(d_key)", ()
    if family.scale["power"] == "1":
        return decimal_text(value), ()
    if value.denominator == 1:
        return f"1/sqrt({value.numerator})", ()
    return decimal_text(Fraction(1 / math.sqrt(value))), ()


def _with_rotary_factor(record: ConfiguredLayer, rotary: RotaryScaling) -> ConfiguredLayer:
    """The record with the factor that scaled rotary positions put on the scores, and with the rotated width."""
    if record.mla is not None:
        return record
    width = int(record.d_key * rotary.share)
    record = dataclasses.replace(record, rotary_width=width if width < record.d_key else None)
    if rotary.factor == 1:
        return record
    if width < record.d_key:
        return dataclasses.replace(
            record, beta_unknown=f"its positions multiply {width} of {record.d_key} coordinates of queries and keys by "
            f"{rotary.factor:.6g}, so that no one beta describes its scores",
        )
    scale = math.sqrt(squared("score_scale", record.score_scale, d_key=record.d_key))
    return dataclasses.replace(record, score_scale=decimal_text(Fraction(rotary.factor**2 * scale)))


# What is not modelled ----------------------------------------------------------------------------------------


def _positional(fields: Fields, family: Family) -> str:
    if family.positional == "falcon":
        return "relative" if fields.flag("alibi") else "rope"
    if family.positional == "distilbert":
        return "sinusoidal" if fields.flag("sinusoidal_pos_embds") else "learned"
    if family.positional == "bert":
        kind = fields.text("position_embedding_type") or "absolute"
        kinds = {"absolute": "learned", "relative_key": "relative", "relative_key_query": "relative"}
        if kind not in kinds:
            raise fields.refuse("position_embedding_type", kind, f"one of {', '.join(kinds)}")
        return kinds[kind]
    return family.positional


def _window(fields: Fields, family: Family) -> int | None:
    if family.window is None or (family.window_switch and not fields.flag(family.window_switch)):
        return None
    return fields.size(family.window, optional=True)


def _softcap(fields: Fields, family: Family) -> float | None:
    cap = fields.number(family.softcap) if family.softcap else None
    return None if cap is None else float(cap)


def _beyond(fields: Fields, family: Family) -> tuple[str, ...]:
    """Parts of the layer that no other field of the record states, as short phrases."""
    switches = family.biases if isinstance(family.biases, tuple) else ()
    biases = family.biases is True or any(tuple(fields.flag(name) for name in switches))
    dropout = fields.number(*family.names["dropout"], least=Fraction(0))
    first_layer = "do_layer_norm_before" in family.defaults and not fields.flag("do_layer_norm_before")
    phrases = (
        "biases on queries, keys and values" if biases else "",
        f"dropout {float(dropout):g} of attention weights" if dropout else "",
        "tokens of the first layer that are not normalized" if first_layer else "",
    )
    return tuple(phrase for phrase in phrases if phrase)
