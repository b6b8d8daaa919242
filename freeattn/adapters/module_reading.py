"""What is read off a module: its sizes, the sizes of its weights, what it does that a law does not know; and the
specification that this makes.

A *gain* is the standard deviation of the entries of Q, K or V for tokens with entries of mean square one: σ_W·√(rows of
W). For tokens of mean square t, scores s·q·k with the factor s (`score_scale`) have the standard deviation

    β = g_Q g_K · t · s·√d_key = σ_Q σ_K · E‖x‖² · s·√d_key,

values g_V √t, and the output map g_O = σ_O √(total width of the values): the fields `beta`, `value_scale` and
`output_scale` of `Attention`. What is normalized inside the module (queries and keys, latents) does not grow with t.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, field
from typing import Any, final

from freeattn.adapters.weight_matrices import Array, departures
from freeattn.errors import InputError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.inputs import InputLaw, OrthogonalInput, as_inputs
from freeattn.model.quantities import as_positive, as_size

__all__ = ["Gains", "ModuleReading", "specification"]


_NO_OUTPUT_MAP, _NO_VALUES = ("d_out", "output_scale"), ("d_value", "value_scale")
# Fields that go when another output than the module's own is asked about.
_LACKING = {
    "values": _NO_OUTPUT_MAP, "attention": _NO_OUTPUT_MAP + _NO_VALUES, "head-sum": _NO_OUTPUT_MAP + _NO_VALUES,
}
_UNIT = 0.05  # as close to 1 as the mean square of the given tokens must be where only 1 has a law


@final
@dataclass(frozen=True, kw_only=True)
class Gains:
    """Standard deviations for tokens of mean square one.

    Attributes:
        score: of the scores: g_Q g_K · s·√d_key.
        value, output: g_V and g_O; output is None where there is no output map.
        score_degree, value_degree: 2 or 1 powers of √t that they grow with, 0 where they do not.
    """

    score: float
    value: float
    output: float | None
    score_degree: int = 2
    value_degree: int = 1


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ModuleReading:
    """An attention module as read.

    Attributes:
        kind: name of its class.
        sizes: fields of `Attention` that are sizes, d_model among them.
        gains: see there.
        fields: other fields of `Attention` that the module fixes (latents, the output).
        matrices: name, (features × columns) and number of head blocks of each weight matrix.
        not_modelled: what it has and the law has not, apart from the weights.
        causal: it masks later tokens in its model.
        rotary: it rotates queries and keys by position.
        token_widths: widths of the tokens that queries, keys and values are made from.
        mean_token: the mean token alone gives the mean of the values (they are linear in the tokens, and nothing is
            added to the sequence).
    """

    kind: str
    sizes: dict[str, int]
    gains: Gains
    matrices: tuple[tuple[str, Array, int], ...]
    fields: dict[str, Any] = field(default_factory=dict)
    not_modelled: tuple[str, ...] = ()
    causal: bool = False
    rotary: bool = False
    token_widths: tuple[int, int, int] = (0, 0, 0)
    mean_token: bool = True

    @property
    def cross(self) -> bool:
        """True when keys and values come from tokens of another width than queries."""
        return len(set(self.token_widths)) > 1


def specification(
    reading: ModuleReading, n_tokens: Any, inputs: Any, token_square: Any, changes: dict[str, Any]
) -> Attention:
    """The layer with Gaussian weights of the same variances; warns where the weights do not look like that.

    Raises:
        InputError: for fields that are not allowed.
        NotCoveredError: for cross-attention between tokens of unequal widths with tokens that are not orthogonal.
    """
    tokens, square = as_size("n_tokens", n_tokens), float(as_positive("token_square", token_square))
    law_of_tokens = as_inputs(inputs)
    if reading.cross and not isinstance(law_of_tokens, OrthogonalInput):
        raise NotCoveredError(
            f"queries, keys and values from tokens of widths {reading.token_widths} have a law for orthogonal tokens "
            'only (inputs="orthogonal")'
        )
    gains = reading.gains
    if gains.value_degree == 0 and not math.isclose(square, 1, rel_tol=_UNIT):
        allowed = "1 for latent attention: normalized latents do not grow with the tokens, position keys do"
        raise InputError("token_square", square, allowed)
    if not (gains.score > 0 and gains.value > 0 and (gains.output is None or gains.output > 0)):
        raise InputError("module", reading.kind, "weights of queries, keys, values and output that are not all zero")
    fields = {
        **reading.sizes, "n_tokens": tokens, "inputs": law_of_tokens, "name": reading.kind,
        "beta": gains.score * square ** (gains.score_degree / 2),
        "value_scale": gains.value * math.sqrt(square) ** gains.value_degree,
        "output": "mha" if gains.output is not None else "values", **reading.fields,
        "not_modelled": (*reading.not_modelled, *_rotary(reading, law_of_tokens), *_taken_as_gaussian(reading)),
    }
    if gains.output is not None:
        fields["output_scale"] = gains.output
    lacking = _LACKING.get(str(changes.get("output")), ())
    return Attention(**{**{name: value for name, value in fields.items() if name not in lacking}, **changes})


def _rotary(reading: ModuleReading, inputs: InputLaw) -> tuple[str, ...]:
    """Rotating independent Gaussian rows leaves them what they are; other rows it does not."""
    same = isinstance(inputs, OrthogonalInput) and reading.fields.get("query_latent") is None
    return ("rotary positions",) if reading.rotary and not same else ()


def _taken_as_gaussian(reading: ModuleReading) -> tuple[str, ...]:
    """A phrase, and a warning, where weights are not like independent entries of one variance."""
    found = [text for name, weights, heads in reading.matrices for text in departures(name, weights, heads)]
    if not found:
        return ()
    phrase = f"weights as given: Gaussian matrices of the same variances stand for them, but {', '.join(found)}"
    warnings.warn(f"{reading.kind}: {phrase}", UserWarning, stacklevel=4)
    return (phrase,)
