"""What the scaling of rotary positions does to the size of the scores.

Scaled rotary positions turn queries and keys by other angles, which leaves their size alone; YaRN and LongRoPE also
multiply both by a factor a, and so the scores by a². Source: arXiv 2309.00071, section 3.4, arXiv 2402.13753, and
src/transformers/modeling_rope_utils.py.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from freeattn.adapters.fields import Fields

__all__ = ["RotaryScaling", "rotary_scaling"]

_NO_FACTOR = ("default", "linear", "dynamic", "llama3", "mrope", "proportional")
_LONG = ("longrope", "su")
_KNOWN = (*_NO_FACTOR, *_LONG, "yarn")
_YARN_SLOPE = 0.1


class RotaryScaling(NamedTuple):
    """Factor a on queries and keys (1 if none), and the share of each head's coordinates that is rotated."""

    factor: float
    share: Fraction


def rotary_scaling(fields: Fields) -> RotaryScaling:
    """What `rope_scaling` (since version 5 `rope_parameters`) and the rotated share say.

    Raises:
        InputError: for a type of scaling that is not known, and for odd numbers in it.
    """
    scaling = fields.inner("rope_scaling", "rope_parameters")
    by_layer = scaling.inner("full_attention") if scaling else None
    scaling = by_layer or scaling
    share = fields.number("partial_rotary_factor", "rotary_pct")
    if share is None and scaling is not None:
        share = scaling.number("partial_rotary_factor")
    share = Fraction(1) if share is None else share
    if share > 1:
        raise fields.refuse("partial_rotary_factor", share, "a number up to 1")
    return RotaryScaling(1.0 if scaling is None else _factor(fields, scaling), share)


def _factor(fields: Fields, scaling: Fields) -> float:
    kind = scaling.text("rope_type", "type") or "default"
    if kind not in _KNOWN:
        raise scaling.refuse("rope_type", kind, f"one of {', '.join(_KNOWN)}")
    if kind in _NO_FACTOR:
        return 1.0
    given = scaling.number("attention_factor")
    if given is not None:
        return float(given)
    return _long_factor(fields, scaling) if kind in _LONG else _yarn_factor(scaling)


def _yarn_factor(scaling: Fields) -> float:
    factor = scaling.number("factor")
    if factor is None:
        raise scaling.refuse("factor", None, "a positive number next to yarn")
    above, below = scaling.number("mscale", least=Fraction(0)), scaling.number("mscale_all_dim", least=Fraction(0))
    if above and below:
        return _yarn_growth(factor, above) / _yarn_growth(factor, below)
    return _yarn_growth(factor, Fraction(1))


def _yarn_growth(factor: Fraction, slope: Fraction) -> float:
    return 1.0 if factor <= 1 else _YARN_SLOPE * float(slope) * math.log(factor) + 1


def _long_factor(fields: Fields, scaling: Fields) -> float:
    longest = fields.size("max_position_embeddings", optional=True, least=2)
    original = fields.size("original_max_position_embeddings", optional=True, least=2)
    original = original or scaling.size("original_max_position_embeddings", optional=True, least=2)
    factor = Fraction(longest, original) if longest and original else scaling.number("factor")
    base = original or longest
    if factor is None or base is None:
        raise scaling.refuse("factor", None, "a positive number next to longrope, with max_position_embeddings")
    return 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(base))
