"""The specification of an attention layer: frozen, validated, exact."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from freeattn.display import ShownAsTables
from freeattn.errors import InputError, did_you_mean
from freeattn.model.checks import OUTPUTS, resolved
from freeattn.model.conditions import law_quantities, open_conditions
from freeattn.model.dominated_rows import DominatedRows, dominated_rows
from freeattn.model.forms import fields_from_form, form_of
from freeattn.model.heads import Heads
from freeattn.model.inputs import InputLaw, OrthogonalInput
from freeattn.model.latent import Latent
from freeattn.model.quantities import Quantity, as_size, is_infinite, is_known, is_symbolic, ratio
from freeattn.model.ratios import Ratios
from freeattn.model.scores import FiniteRows, ScoreFunction, Softmax
from freeattn.model.ties import KeyValueCorrelation, Ties

__all__ = ["OUTPUTS", "Attention", "Ratios"]

_UNTIED = Ties()
_ORTHOGONAL = OrthogonalInput()
_SOFTMAX = Softmax()


@dataclass(frozen=True, kw_only=True, repr=False)
class Attention(ShownAsTables):
    """An attention layer at random initialization, and which of its matrices is asked about.

    With queries, keys and values Q_r, K_r, V_r of head r and scores S_r = Q_r K_rᵀ/√d_key, A_r = scores.apply(S_r, β),
    A_r^⊥ is A_r minus its rank-one mean (11ᵀ/n for softmax). `output` names the matrix M whose squared singular values
    (the n_tokens eigenvalues of M Mᵀ) the law describes:

    - "mha": [A_r^⊥ V_r] W^O, with W^O entries N(0, 1/(n_heads d_value)), one over the total width of the values;
    - "values": [A_r^⊥ V_r];
    - "attention": √(n/h)·[A_1^⊥ … A_h^⊥];
    - "head-sum": √(n h)·(mean over r of A_r^⊥).

    Args:
        n_tokens, d_model, n_heads: sizes; positive integers or symbols (n_heads may be infinite in `from_ratios`).
        d_key, d_value: widths **per head**; d_value is not needed for "attention" and "head-sum".
        d_out: width of the output, only for "mha" (default d_model).
        n_kv_heads: number of distinct key/value heads; divides n_heads (default n_heads).
        beta: inverse temperature β > 0 of the scores.
        tie: "none", "key-value" (W^V = W^K within each head), "output-key" (W^O is W^Kᵀ, scaled; d_out = d_model),
            "key-value-output" (both), a `KeyValueCorrelation`, or a `Ties` value; see there.
        output: one of the four above.
        inputs: "orthogonal" (X Xᵀ/d_model = I; needs n_tokens ≤ d_model), "gaussian" (iid entries, any sizes), or a
            `FeatureCovariance`.
        scores: "softmax", "linear", "relu", "sigmoid" or a `ScoreFunction`.
        value_scale, output_scale: factors on W^V and W^O (default 1); the law is dilated by their squares.
        latent: the `Latent` that keys and values are projected up from, or None: straight from the tokens.
        query_latent: the same for queries.
        position_width: that many of the d_key coordinates of each key come straight from the tokens and are the same
            for all heads; the matching coordinates of the queries belong to each head. Needs a latent (default 0).
        heads: a list of `Heads` when heads are not all alike; n_heads is then the sum of their counts, and d_key,
            d_value and n_kv_heads are not given.
        residual: α in M = X/√d_model + α·(MHA^⊥), only for "mha" with d_out = d_model; None: no residual connection.

    Raises:
        InputError: for any value that is not allowed, naming field, value and what is.
        NotCoveredError: for queries tied to keys.

    Source: arXiv 2610.10033, section 2.
    """

    shown_as: ClassVar[str] = "layer"

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
    inputs: InputLaw = _ORTHOGONAL
    scores: ScoreFunction = _SOFTMAX
    value_scale: Quantity = 1
    output_scale: Quantity = 1
    latent: Latent | None = None
    query_latent: Latent | None = None
    position_width: Quantity = 0
    heads: tuple[Heads, ...] | None = None
    residual: Quantity = None
    ratios: Ratios | None = None
    name: str | None = field(default=None, compare=False)
    not_modelled: tuple[str, ...] = field(default=(), compare=False)

    if TYPE_CHECKING:  # shorthand strings are resolved at the border: wider types in than out

        def __init__(
            self, *, n_tokens: Quantity = None, d_model: Quantity = None, n_heads: Quantity = None,
            d_key: Quantity = None, d_value: Quantity = None, d_out: Quantity = None, n_kv_heads: Quantity = None,
            beta: Quantity = 1, tie: Ties | KeyValueCorrelation | str = "none", output: str = "mha",
            inputs: InputLaw | str = "orthogonal", scores: ScoreFunction | str = "softmax",
            value_scale: Quantity = 1, output_scale: Quantity = 1, latent: Latent | None = None,
            query_latent: Latent | None = None, position_width: Quantity = 0, heads: Sequence[Heads] | None = None,
            residual: Quantity = None, ratios: Ratios | None = None, name: str | None = None,
            not_modelled: tuple[str, ...] = (),
        ) -> None: ...

    def __new__(cls, *args: object, **changes: object) -> Attention:
        if args:
            raise InputError("Attention", args, "fields given by name, such as n_tokens=512")
        check_fields(changes)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        given = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name, value in resolved(given).items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """The fields that were given, or are not as by default."""
        shown = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "not_modelled"}
        own = {f.name: f.default for f in dataclasses.fields(self)} | {"n_kv_heads": self.n_heads}
        if self.has_output_map:
            own["d_out"] = self.d_model
        return f"Attention({', '.join(f'{name}={value!r}' for name, value in shown.items() if value != own[name])})"

    # What the layer has ------------------------------------------------------------------------------------------

    @property
    def has_values(self) -> bool:
        """True when the output contains the values."""
        return self.output in ("mha", "values")

    @property
    def has_output_map(self) -> bool:
        """True when the output contains W^O."""
        return self.output == "mha"

    @property
    def families(self) -> tuple[Heads, ...]:
        """The heads by families with every β filled in; one family when all heads are alike. Needs sizes."""
        if self.heads is not None:
            return tuple(dataclasses.replace(f, beta=self.beta if f.beta is None else f.beta) for f in self.heads)
        d_value = self.d_value if self.has_values else None
        return (Heads(count=self.n_heads, d_key=self.d_key, d_value=d_value, beta=self.beta),)

    @property
    def betas(self) -> tuple[Quantity, ...]:
        """The different β of the heads: one, but for heads that do not have the same."""
        return (self.beta,) if self.heads is None else tuple(dict.fromkeys(one.beta for one in self.families))

    @property
    def beyond_transforms(self) -> tuple[str, ...]:
        """Names of the fields with which the layer leaves the closed laws (orthogonal input, values free or keys)."""
        ties = self.tie.output == "none" and self.tie.value in ("none", "key")
        beyond = {
            "inputs": not isinstance(self.inputs, OrthogonalInput),
            "tie": not ties,
            "latent": self.latent is not None,
            "query_latent": self.query_latent is not None,
            "position_width": self.position_width != 0,
            "heads": self.heads is not None,
            "residual": self.residual is not None,
        }
        return tuple(name for name, applies in beyond.items() if applies)

    @property
    def covered_by_transforms(self) -> bool:
        """True when the law is one of the closed laws of the transform calculus."""
        return not self.beyond_transforms

    @property
    def finite_size(self) -> bool:
        """True when θ₁ and θ₂ are those of rows of n_tokens tokens (`FiniteRows` scores)."""
        return self.scores.n_tokens is not None

    @property
    def dominated_rows(self) -> DominatedRows | None:
        """What is off where few tokens dominate each row of softmax (β above √(log n)/2 in some head), else None."""
        scales_mean = self.covered_by_transforms and self.tie == _UNTIED
        return dominated_rows(self.scores, self.betas, self.n_tokens, scales_mean)

    # Ratios ------------------------------------------------------------------------------------------------------

    def _total_over_tokens(self, width: str) -> Quantity:
        """The width of all heads together over tokens; None when it is not there."""
        families = self.heads or (self,)
        counts = [self.n_heads] if self.heads is None else [family.count for family in self.heads]
        widths = [getattr(family, width) for family in families]
        if None in widths:
            return None
        return ratio(sum(n * w for n, w in zip(counts, widths, strict=True)), self.n_tokens)

    @property
    def gamma_key(self) -> Quantity:
        """γ_K = n_heads·d_key / n_tokens, exact; for unequal heads the sum over heads."""
        return self.ratios.gamma_key if self.ratios else self._total_over_tokens("d_key")

    @property
    def gamma_value(self) -> Quantity:
        """γ_V = n_heads·d_value / n_tokens, exact; None when the output has no values."""
        if not self.has_values:
            return None
        return self.ratios.gamma_value if self.ratios else self._total_over_tokens("d_value")

    @property
    def gamma_out(self) -> Quantity:
        """γ_O = d_out / n_tokens, exact; None when there is no output map."""
        if not self.has_output_map:
            return None
        return self.ratios.gamma_out if self.ratios else ratio(self.d_out, self.n_tokens)

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
        """True when the law has a free symbol left (a size, a ratio, β, a scale, a correlation)."""
        return any(is_symbolic(value) for value in law_quantities(self))

    @property
    def open_conditions(self) -> tuple[str, ...]:
        """Conditions that the theory needs and that symbols leave undecided."""
        return open_conditions(self)

    # Other specifications from this one --------------------------------------------------------------------------

    @classmethod
    def from_ratios(
        cls, gamma_key: Any = None, gamma_value: Any = None, gamma_out: Any = None, tokens_per_width: Any = 1,
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
            "position_width": self.position_width * tokens,
        }
        latents = {name: getattr(self, name) for name in ("latent", "query_latent") if getattr(self, name) is not None}
        ranks = {f"{name}.rank": latent.rank * tokens for name, latent in latents.items()}
        for name, value in {**sizes, **ranks}.items():
            if value is not None and is_known(value) and ratio(value, 1) != int(value):
                raise InputError("n_tokens", n_tokens, f"a number of tokens that makes {name} = {value} an integer")
        sized = {name: dataclasses.replace(v, rank=ranks[f"{name}.rank"]) for name, v in latents.items()}
        return self.replace(ratios=None, n_tokens=tokens, **sizes, **sized)

    def with_finite_size(self, finite: bool = True) -> Attention:
        """The layer with the θ's of rows of n_tokens tokens, or (finite=False) with those of the limit.

        Raises:
            InputError: when n_tokens is not a number of at least 2.
            NotCoveredError: for score functions that are not row-normalized.
        """
        limiting = self.scores.limiting
        return self.replace(scores=FiniteRows(limiting) if finite else limiting)

    def replace(self, **changes: Any) -> Attention:
        """A copy with some fields changed; n_kv_heads follows n_heads when it was equal to it.

        New `heads` take the place of n_heads, d_key, d_value and n_kv_heads.
        """
        check_fields(changes)
        if changes.get("heads") is not None:
            changes = {"n_heads": None, "d_key": None, "d_value": None, "n_kv_heads": None, **changes}
        if "n_heads" in changes and "n_kv_heads" not in changes and self.n_kv_heads == self.n_heads:
            changes["n_kv_heads"] = None
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Canonical form for files and caches; numbers are exact (fractions as "p/q").

        A user's own score function is identified by its values at a few points; such a form cannot be read back.
        """
        return form_of(self)

    @classmethod
    def from_dict(cls, form: dict[str, Any], symbols: dict[str, Any] | None = None) -> Attention:
        """Inverse of `to_dict`; `symbols` maps the names of symbols to the objects that stand for them."""
        return cls(**fields_from_form(form, symbols or {}))


def check_fields(changes: dict[str, object]) -> None:
    """Refuse a field that `Attention` does not have, with the nearest name."""
    names = [f.name for f in dataclasses.fields(Attention)]
    for name, value in changes.items():
        if name not in names:
            listed = ", ".join(n for n in names if n not in ("ratios", "name", "not_modelled"))
            raise InputError(name, value, f"a field of Attention{did_you_mean(name, names)}: {listed}")
