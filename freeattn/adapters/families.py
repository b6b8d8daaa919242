"""Families of configuration files: what data/families.json says of a model_type, as a value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any

__all__ = ["Family", "families"]

_USUAL = {
    "d_model": ("hidden_size",),
    "n_heads": ("num_attention_heads",),
    "n_kv_heads": ("num_key_value_heads",),
    "d_key": ("head_dim",),
    "layers": ("num_hidden_layers",),
    "n_tokens": ("max_position_embeddings",),
    "dropout": ("attention_dropout",),
}
_OF_PARTS_ONLY = ("d_model", "n_heads", "n_tokens")
_OF_IMAGES = ("image_size", "patch_size")


@dataclass(frozen=True, kw_only=True)
class Family:
    """How the layers of one model_type are read; data/families.json says under "_about" what each field means."""

    source: str
    names: Mapping[str, tuple[str, ...]]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    causal: bool | str = False
    positional: str = ""
    rule: str | None = None
    init: str = ""
    std: str = "initializer_range"
    scale: str | Mapping[str, str] = "1/sqrt(d_key)"
    qk_norm: bool | str = False
    window: str | None = None
    window_switch: str | None = None
    softcap: str | None = None
    biases: bool | tuple[str, ...] = False
    image: int | None = None
    registers: str | None = None
    offset: int = 0
    parts: Mapping[str, str] = field(default_factory=dict)

    def defaults_at(self, part: str | None) -> dict[str, Any]:
        """The defaults that count in a part of a file, or (None) at its top, where sizes must be stated."""
        if part is not None:
            return dict(self.defaults)
        sizes = {*_OF_IMAGES, *(name for size in _OF_PARTS_ONLY for name in self.names[size])}
        return {name: value for name, value in self.defaults.items() if name not in sizes}


@cache
def families() -> dict[str, Family]:
    """All families by model_type."""
    path = resources.files("freeattn.adapters") / "data" / "families.json"
    records = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)["families"]
    return {model_type: _family(record) for model_type, record in records.items()}


def _family(record: dict[str, Any]) -> Family:
    own = record.get("names", {})
    names = {concept: tuple(own.get(concept, usual) or ()) for concept, usual in _USUAL.items()}
    biases = record.get("biases", False)
    return Family(**{**record, "names": names, "biases": tuple(biases) if isinstance(biases, list) else biases})
