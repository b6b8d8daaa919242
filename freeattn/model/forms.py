"""The canonical form of a specification: JSON-ready data, exact, and back.

Fields that were added to the language later are written only when they are not at their defaults, so that the form of
a plain layer stays what it was.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from freeattn.errors import InputError
from freeattn.model.heads import Heads
from freeattn.model.inputs import FeatureCovariance
from freeattn.model.latent import Latent
from freeattn.model.quantities import decode, encode
from freeattn.model.ratios import Ratios
from freeattn.model.ties import KeyValueCorrelation, Ties

__all__ = ["fields_from_form", "form_of"]

_QUANTITIES = (
    "n_tokens", "d_model", "n_heads", "n_kv_heads", "d_key", "d_value", "d_out", "beta", "value_scale", "output_scale",
)
_LATER = ("position_width", "residual")
_CORRELATION = "key-value-correlation"


def form_of(spec: Any) -> dict[str, Any]:
    """Canonical form of an `Attention`; numbers are exact (fractions as "p/q")."""
    form: dict[str, Any] = {name: encode(getattr(spec, name)) for name in _QUANTITIES}
    if spec.ratios is not None:
        form["ratios"] = _encoded(spec.ratios)
    form.update(
        tie=spec.tie.to_form(), output=spec.output, inputs=spec.inputs.to_form(), scores=spec.scores.to_form()
    )
    for name in ("latent", "query_latent"):
        if getattr(spec, name) is not None:
            form[name] = _encoded(getattr(spec, name))
    if spec.position_width != 0:
        form["position_width"] = encode(spec.position_width)
    if spec.heads is not None:
        form["heads"] = [_encoded(family) for family in spec.heads]
    if spec.residual is not None:
        form["residual"] = encode(spec.residual)
    return form


def fields_from_form(form: Mapping[str, Any], symbols: dict[str, Any]) -> dict[str, Any]:
    """The fields of an `Attention` from its form; `symbols` maps the text of each symbol to the object it stands for.

    Raises:
        InputError: for parts that are not of the form.
    """
    fields = dict(form)
    for name in (*_QUANTITIES, *_LATER):
        if name in fields:
            fields[name] = decode(name, fields[name], symbols)
    for name, kind in (("ratios", Ratios), ("latent", Latent), ("query_latent", Latent)):
        if fields.get(name) is not None:
            fields[name] = _decoded(name, kind, fields[name], symbols)
    if isinstance(fields.get("heads"), list):
        fields["heads"] = [_decoded("heads", Heads, family, symbols) for family in fields["heads"]]
    if isinstance(fields.get("tie"), dict):
        fields["tie"] = _ties(fields["tie"], symbols)
    if isinstance(fields.get("inputs"), dict):
        fields["inputs"] = _feature_covariance(fields["inputs"])
    return fields


def _encoded(value: Any) -> dict[str, Any]:
    return {f.name: encode(getattr(value, f.name)) for f in dataclasses.fields(value)}


def _decoded(field: str, kind: Any, form: object, symbols: dict[str, Any]) -> Any:
    """A value of `kind`, a dataclass of quantities, from the form of its fields."""
    names = [f.name for f in dataclasses.fields(kind)]
    needed = [f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING]
    _check_keys(field, form, names, needed)
    assert isinstance(form, Mapping)
    return kind(**{key: decode(f"{field}.{key}", value, symbols) for key, value in form.items()})


def _check_keys(field: str, form: object, names: list[str], needed: list[str]) -> None:
    allowed = f"an object with {', '.join(names)}"
    if not isinstance(form, Mapping):
        raise InputError(field, form, allowed)
    for key in form:
        if key not in names:
            raise InputError(field, key, f"one of {', '.join(names)}")
    for key in needed:
        if key not in form:
            raise InputError(f"{field}.{key}", None, allowed)


def _ties(form: Mapping[str, Any], symbols: dict[str, Any]) -> Ties:
    _check_keys("tie", form, ["value", "output"], [])
    fields = dict(form)
    value = fields.get("value")
    if isinstance(value, dict):
        _check_keys("tie.value", value, [_CORRELATION], [_CORRELATION])
        fields["value"] = KeyValueCorrelation(decode(f"tie.value.{_CORRELATION}", value[_CORRELATION], symbols))
    return Ties(**fields)


def _feature_covariance(form: Mapping[str, Any]) -> FeatureCovariance:
    parts = ["eigenvalues", "weights"]
    _check_keys("inputs", form, ["name", *parts], ["name", "eigenvalues"])
    if form["name"] != FeatureCovariance.name:
        raise InputError("inputs.name", form["name"], f'"{FeatureCovariance.name}"')
    lists = {key: form[key] for key in parts if key in form}
    for key, values in lists.items():
        if not isinstance(values, list):
            raise InputError(f"inputs.{key}", values, "a list of numbers")
    return FeatureCovariance(**{
        key: tuple(decode(f"inputs.{key}", value, {}) for value in values) for key, values in lists.items()
    })
