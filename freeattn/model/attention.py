"""The specification of an attention layer: frozen, validated, exact."""

from __future__ import annotations

import dataclasses
import difflib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from freeattn.errors import InputError
from freeattn.model.inputs import OrthogonalInput, as_inputs
from freeattn.model.quantities import (
    Quantity,
    as_positive,
    as_size,
    decode,
    encode,
    is_infinite,
    is_known,
    is_symbolic,
    ratio,
)
from freeattn.model.scores import ScoreFunction, Softmax, as_scores
from freeattn.model.ties import Ties, as_ties

__all__ = ["OUTPUTS", "Attention", "Ratios"]

OUTPUTS = ("mha", "values", "attention", "head-sum")
_NEEDS_VALUES = ("mha", "values")
_UNTIED = Ties()
_ORTHOGONAL = OrthogonalInput()
_SOFTMAX = Softmax()


@dataclass(frozen=True, kw_only=True)
class Ratios:
    """A layer without sizes: total widths over tokens, and tokens over d_model."""

    gamma_key: Quantity
    gamma_value: Quantity = None
    gamma_out: Quantity = None
    tokens_per_width: Quantity = 1

    def __post_init__(self) -> None:
        for name in ("gamma_key", "gamma_value", "gamma_out", "tokens_per_width"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, as_positive(name, value))


@dataclass(frozen=True, kw_only=True)
class Attention:
    """An attention layer at random initialization, and which of its matrices is asked about.

    With queries, keys and values Q_r, K_r, V_r of head r and scores S_r = Q_r K_rᵀ/√d_key, A_r = scores.apply(S_r, β),
    A_r^⊥ is A_r minus its rank-one mean (11ᵀ/n for softmax). `output` names the matrix M whose squared singular values
    (the n_tokens eigenvalues of M Mᵀ) the law describes:

    - "mha": [A_r^⊥ V_r] W^O, with W^O entries N(0, 1/(n_heads d_value));
    - "values": [A_r^⊥ V_r];
    - "attention": √(n/h)·[A_1^⊥ … A_h^⊥];
    - "head-sum": √(n h)·(mean over r of A_r^⊥).

    Args:
        n_tokens, d_model, n_heads: sizes; positive integers or symbols (n_heads may be infinite in `from_ratios`).
        d_key, d_value: widths **per head**; d_value is not needed for "attention" and "head-sum".
        d_out: width of the output, only for "mha" (default d_model).
        n_kv_heads: number of distinct key/value heads; divides n_heads (default n_heads).
        beta: inverse temperature β > 0 of the scores.
        tie: "none" or "key-value" (W^V = W^K within each head), or a `Ties` value.
        output: one of the four above.
        inputs: "orthogonal" (X Xᵀ/d_model = I; needs n_tokens ≤ d_model).
        scores: "softmax", "linear", "relu", "sigmoid" or a `ScoreFunction`.
        value_scale, output_scale: factors on W^V and W^O (default 1); the law is dilated by their squares.

    Raises:
        InputError: for any value that is not allowed, naming field, value and what is.

    Source: arXiv 2610.10033, section 2.
    """

    n_tokens: Quantity = None
    d_model: Quantity = None
    n_heads: Quantity = None
    d_key: Quantity = None
    d_value: Quantity = None
    d_out: Quantity = None
    n_kv_heads: Quantity = None
    beta: Quantity = 1
    tie: Ties = _UNTIED
    output: str = "mha"
    inputs: OrthogonalInput = _ORTHOGONAL
    scores: ScoreFunction = _SOFTMAX
    value_scale: Quantity = 1
    output_scale: Quantity = 1
    ratios: Ratios | None = None
    name: str | None = field(default=None, compare=False)
    not_modelled: tuple[str, ...] = field(default=(), compare=False)

    if TYPE_CHECKING:  # shorthand strings are resolved at the border: wider types in than out

        def __init__(
            self, *, n_tokens: Quantity = None, d_model: Quantity = None, n_heads: Quantity = None,
            d_key: Quantity = None, d_value: Quantity = None, d_out: Quantity = None, n_kv_heads: Quantity = None,
            beta: Quantity = 1, tie: Ties | str = "none", output: str = "mha",
            inputs: OrthogonalInput | str = "orthogonal", scores: ScoreFunction | str = "softmax",
            value_scale: Quantity = 1, output_scale: Quantity = 1, ratios: Ratios | None = None,
            name: str | None = None, not_modelled: tuple[str, ...] = (),
        ) -> None: ...

    def __new__(cls, *args: object, **changes: object) -> Attention:
        if args:
            raise InputError("Attention", args, "fields given by name, such as n_tokens=512")
        check_fields(changes)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        self._put("tie", as_ties(self.tie))
        self._put("inputs", as_inputs(self.inputs))
        self._put("scores", as_scores(self.scores))
        if self.output not in OUTPUTS:
            raise InputError("output", self.output, ", ".join(f'"{name}"' for name in OUTPUTS))
        self._check_beta()
        for name in ("value_scale", "output_scale"):
            self._put(name, as_positive(name, getattr(self, name)))
        self._check_scales()
        if self.ratios is None:
            self._check_sizes()
        elif isinstance(self.ratios, Ratios):
            self._check_ratios(self.ratios)
        else:
            raise InputError("ratios", self.ratios, "a Ratios value; use Attention.from_ratios")
        self._check_sharing()

    def _put(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _check_beta(self) -> None:
        limit = self.scores.max_beta
        allowed = "a positive number or a symbol"
        if math.isfinite(limit):
            allowed = f"a number above 0 and at most {limit:g} (beyond it e^(beta^2) is not finite), or a symbol"
        value = as_positive("beta", self.beta, allowed)
        if is_known(value) and value > limit:
            raise InputError("beta", self.beta, allowed)
        self._put("beta", value)

    def _check_scales(self) -> None:
        if self.output not in _NEEDS_VALUES and self.value_scale != 1:
            raise InputError("value_scale", self.value_scale, f'1, because output="{self.output}" has no values')
        if self.output != "mha" and self.output_scale != 1:
            raise InputError("output_scale", self.output_scale, f'1, because output="{self.output}" has no W^O')

    def _check_sizes(self) -> None:
        defaults = {"n_kv_heads": self.n_heads}
        if self.output == "mha":
            defaults["d_out"] = self.d_model
        if self.tie.value == "key":
            defaults["d_value"] = self.d_key
        needed = {"n_tokens", "d_model", "n_heads", "d_key", "n_kv_heads"}
        needed |= {"d_value"} if self.output in _NEEDS_VALUES else set()
        needed |= {"d_out"} if self.output == "mha" else set()
        order = ("n_tokens", "d_model", "n_heads", "d_key", "d_value", "d_out", "n_kv_heads")
        missing = [name for name in order if name in needed - set(defaults) and getattr(self, name) is None]
        if missing:
            raise InputError(missing[0], None, f"a positive integer or a symbol; missing: {', '.join(missing)}")
        for name in order:
            value = getattr(self, name)
            value = defaults.get(name) if value is None else value
            if value is not None or name in needed:
                self._put(name, as_size(name, value))
        if self.tie.value == "key" and is_known(ratio(self.d_key, self.d_value)) and self.d_key != self.d_value:
            raise InputError("d_value", self.d_value, f'equal to d_key = {self.d_key} when tie="key-value"')
        tokens_per_width = ratio(self.n_tokens, self.d_model)
        if is_known(tokens_per_width) and tokens_per_width > 1:
            raise InputError(
                "n_tokens", self.n_tokens,
                f"at most d_model = {self.d_model} for orthogonal input: choose n_tokens up to "
                f"{self.d_model}",
            )

    def _check_ratios(self, ratios: Ratios) -> None:
        for name in ("n_tokens", "d_model", "d_key", "d_value", "d_out"):
            if getattr(self, name) is not None:
                raise InputError(name, getattr(self, name), "nothing in a specification by ratios; use spec.with_sizes")
        heads = self.n_heads
        if heads == math.inf:
            self._put("n_heads", math.inf)
        else:
            self._put("n_heads", as_size("n_heads", heads))
        if self.n_kv_heads is None or self.n_kv_heads == math.inf:
            self._put("n_kv_heads", self.n_heads)
        else:
            self._put("n_kv_heads", as_size("n_kv_heads", self.n_kv_heads))
        if self.tie.value == "key":
            if ratios.gamma_value is None:
                self._put("ratios", dataclasses.replace(ratios, gamma_value=ratios.gamma_key))
            elif is_known(ratio(ratios.gamma_key, ratios.gamma_value)) and ratios.gamma_key != ratios.gamma_value:
                raise InputError("gamma_value", ratios.gamma_value, 'equal to gamma_key when tie="key-value"')
        ratios = self.ratios or ratios
        if self.output in _NEEDS_VALUES and ratios.gamma_value is None:
            raise InputError("gamma_value", None, f'a positive number or a symbol for output="{self.output}"')
        if self.output == "mha" and ratios.gamma_out is None:
            raise InputError("gamma_out", None, 'a positive number or a symbol for output="mha"')
        if is_known(ratios.tokens_per_width) and ratios.tokens_per_width > 1:
            raise InputError("tokens_per_width", ratios.tokens_per_width, "at most 1 for orthogonal input")

    def _check_sharing(self) -> None:
        heads, kv_heads = self.n_heads, self.n_kv_heads
        allowed = f"a divisor of n_heads = {heads}"
        if is_infinite(heads):
            if not is_infinite(kv_heads):
                raise InputError("n_kv_heads", kv_heads, "nothing when n_heads is infinite")
        elif is_known(heads) and is_known(kv_heads) and heads % kv_heads:
            raise InputError("n_kv_heads", kv_heads, allowed)

    # Ratios ------------------------------------------------------------------------------------------------------

    def _total_over_tokens(self, width: Quantity, heads: Quantity) -> Quantity:
        return None if width is None else ratio(heads * width, self.n_tokens)

    @property
    def gamma_key(self) -> Quantity:
        """γ_K = n_heads·d_key / n_tokens, exact."""
        return self.ratios.gamma_key if self.ratios else self._total_over_tokens(self.d_key, self.n_heads)

    @property
    def gamma_value(self) -> Quantity:
        """γ_V = n_heads·d_value / n_tokens, exact; None when the output has no values."""
        if self.output not in _NEEDS_VALUES:
            return None
        return self.ratios.gamma_value if self.ratios else self._total_over_tokens(self.d_value, self.n_heads)

    @property
    def gamma_out(self) -> Quantity:
        """γ_O = d_out / n_tokens, exact; None when there is no output map."""
        if self.output != "mha":
            return None
        return self.ratios.gamma_out if self.ratios else self._total_over_tokens(self.d_out, 1)

    @property
    def gamma_kv(self) -> Quantity:
        """γ_kv = n_kv_heads·d_key / n_tokens: the width of the distinct key matrices over tokens."""
        if self.n_kv_heads == self.n_heads:
            return self.gamma_key
        return ratio(self.gamma_key * self.n_kv_heads, self.n_heads)

    @property
    def tokens_per_width(self) -> Quantity:
        """n_tokens / d_model, exact."""
        return self.ratios.tokens_per_width if self.ratios else ratio(self.n_tokens, self.d_model)

    @property
    def symbolic(self) -> bool:
        """True when the law has a free symbol left (a size, a ratio, β or a scale)."""
        values = [self.gamma_key, self.n_heads, self.n_kv_heads, self.beta, self.value_scale, self.output_scale]
        if self.output in _NEEDS_VALUES:
            values.append(self.gamma_value)
        if self.output == "mha":
            values.append(self.gamma_out)
        return any(is_symbolic(value) for value in values)

    @property
    def open_conditions(self) -> tuple[str, ...]:
        """Conditions that the theory needs and that symbols leave undecided."""
        conditions = []
        if is_symbolic(self.tokens_per_width):
            conditions.append("n_tokens ≤ d_model (orthogonal input)")
        if self.tie.value == "key" and not self.ratios and self.d_key != self.d_value:
            conditions.append("d_key = d_value (keys and values are tied)")
        if is_symbolic(self.n_heads) or is_symbolic(self.n_kv_heads):
            conditions.append("n_heads and n_kv_heads are positive integers and n_kv_heads divides n_heads")
        if is_symbolic(self.beta):
            conditions.append("beta > 0")
        return tuple(conditions)

    # Other specifications from this one --------------------------------------------------------------------------

    @classmethod
    def from_ratios(
        cls, gamma_key: Any, gamma_value: Any = None, gamma_out: Any = None, tokens_per_width: Any = 1,
        n_heads: Any = 1, **fields: Any,
    ) -> Attention:
        """A layer given by its ratios alone; n_heads may be infinite (`math.inf` or sympy's oo)."""
        ratios = Ratios(
            gamma_key=gamma_key, gamma_value=gamma_value, gamma_out=gamma_out, tokens_per_width=tokens_per_width
        )
        return cls(n_heads=n_heads, ratios=ratios, **fields)

    def with_sizes(self, n_tokens: int) -> Attention:
        """The same ratios at n_tokens tokens; every width must come out a positive integer."""
        if self.ratios is None:
            raise InputError("n_tokens", n_tokens, "nothing: this specification already has sizes; use replace")
        if is_infinite(self.n_heads):
            raise InputError("n_heads", self.n_heads, "finite to get sizes")
        tokens = as_size("n_tokens", n_tokens)
        sizes = {
            "d_model": ratio(tokens, self.tokens_per_width),
            "d_key": ratio(self.gamma_key * tokens, self.n_heads),
            "d_value": None if self.gamma_value is None else ratio(self.gamma_value * tokens, self.n_heads),
            "d_out": None if self.gamma_out is None else self.gamma_out * tokens,
        }
        for name, value in sizes.items():
            if value is not None and is_known(value) and ratio(value, 1) != int(value):
                raise InputError("n_tokens", n_tokens, f"a number of tokens that makes {name} = {value} an integer")
        return self.replace(ratios=None, n_tokens=tokens, **sizes)

    def replace(self, **changes: Any) -> Attention:
        """A copy with some fields changed; n_kv_heads follows n_heads when it was equal to it."""
        check_fields(changes)
        if "n_heads" in changes and "n_kv_heads" not in changes and self.n_kv_heads == self.n_heads:
            changes["n_kv_heads"] = None
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Canonical form for files and caches; numbers are exact (fractions as "p/q").

        A user's own score function is identified by its values at a few points; such a form cannot be read back.
        """
        form: dict[str, Any] = {}
        for name in _QUANTITIES:
            form[name] = encode(getattr(self, name))
        if self.ratios is not None:
            form["ratios"] = {f.name: encode(getattr(self.ratios, f.name)) for f in dataclasses.fields(Ratios)}
        form.update(tie=self.tie.shorthand, output=self.output, inputs=self.inputs.name, scores=self.scores.to_form())
        return form

    @classmethod
    def from_dict(cls, form: dict[str, Any], symbols: dict[str, Any] | None = None) -> Attention:
        """Inverse of `to_dict`; `symbols` maps the names of symbols to the objects that stand for them."""
        known = symbols or {}
        fields = {key: decode(key, value, known) if key in _QUANTITIES else value for key, value in form.items()}
        if fields.get("ratios") is not None:
            names = [f.name for f in dataclasses.fields(Ratios)]
            for key in fields["ratios"]:
                if key not in names:
                    raise InputError("ratios", key, f"one of {', '.join(names)}")
            fields["ratios"] = Ratios(**{k: decode(k, v, known) for k, v in fields["ratios"].items()})
        return cls(**fields)


_QUANTITIES = (
    "n_tokens", "d_model", "n_heads", "n_kv_heads", "d_key", "d_value", "d_out", "beta", "value_scale", "output_scale",
)


def check_fields(changes: dict[str, object]) -> None:
    """Refuse a field that `Attention` does not have, with the nearest name."""
    names = [f.name for f in dataclasses.fields(Attention)]
    for name, value in changes.items():
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            listed = ", ".join(n for n in names if n not in ("ratios", "name", "not_modelled"))
            raise InputError(name, value, f"a field of Attention{hint}: {listed}")
