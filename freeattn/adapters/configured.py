"""`ConfiguredLayer`: the attention layer of a configuration, and the specification that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.initialization import initial_beta
from freeattn.model.layer_record import LayerRecord, specification

__all__ = ["ConfiguredLayer"]


@dataclass(frozen=True, kw_only=True)
class ConfiguredLayer(LayerRecord):
    """The attention layer of a configuration.

    Attributes: those of `LayerRecord`, and

        model_type: the family that it was read as.
        part: the part of the file that it stands in; None at the top.
        tokens_from: how n_tokens follows from the file; "" where the file does not say it.
        init_rule: how the library initializes the weights.
        defaulted: fields that the file leaves out, with the library's values.
    """

    stated: ClassVar[str] = "states"
    origin: ClassVar[str] = "configured"

    model_type: str
    part: str | None
    tokens_from: str
    init_rule: str
    defaulted: tuple[tuple[str, str], ...]

    def attention(self, **changes: Any) -> Attention:
        """The specification, with any field of `Attention` overridden; beta is the initial one unless given.

        Raises:
            InputError: for a value that is not allowed (`source` names the configuration where it is from there), and
                when nothing says n_tokens.
            NotCoveredError: when beta is not given and the initial one is not known.
        """
        if self.n_tokens is None and changes.get("n_tokens") is None:
            raise InputError("n_tokens", "(not given)", f"a number of tokens: {self.name} states no longest sequence")
        try:
            return specification(self, {"beta": "init", **changes})
        except InputError as error:
            if error.field in changes or self.name in error.allowed:
                raise
            why = f"; it is {initial_beta(self).rule} ({self.init_rule})" if error.field == "beta" else ""
            raise InputError(error.field, error.value, error.allowed + why, self.name) from None

    def statement(self, spec: Attention, given: Mapping[str, Any]) -> dict[str, Any]:
        """What a specification rests on, as data: file, family, how n_tokens and β were obtained, defaults taken.

        Args:
            spec: what `attention` made of this layer.
            given: the changes that it was given.
        """
        beta = {"value": str(spec.beta), "rule": "given"}
        if given.get("beta", "init") == "init":
            beta = {"value": str(spec.beta), "rule": initial_beta(self).rule, "initialization": self.init_rule}
        return {
            "file": self.name,
            "model_type": self.model_type,
            "part": self.part,
            "n_tokens": "given" if given.get("n_tokens") is not None else self.tokens_from,
            "beta": beta,
            "defaults": dict(self.defaulted),
        }
