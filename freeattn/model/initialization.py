"""The inverse temperature at which a published initialization starts.

Tokens with ‖x‖² = d_model and weights with independent entries of standard deviations σ_Q and σ_K give
queries and keys of entry variances σ_Q² d_model and σ_K² d_model, so a score q·k times the factor s
(`score_scale`) has the standard deviation

    β = σ_Q σ_K · d_model · √d_key · s,

which is the inverse temperature of `Attention` (whose scores have variance one). It does not depend on the
number of tokens. σ is the standard deviation that the entries really have: a normal law truncated at c
standard deviations and not rescaled keeps 1 − 2cφ(c)/(2Φ(c) − 1) of its variance (0.774 at c = 2).

Queries and keys that are normalized (per head or all heads together) have entries of mean square one whatever the
weights are, because the gains of the normalization start at one: β = √d_key · s.

Everything but the truncation is exact: published standard deviations are decimals or inverse square roots.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from freeattn.errors import InputError, NotCoveredError

__all__ = ["InitialBeta", "Initialization", "initial_beta", "squared"]

_DECIMAL = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_OVER_ROOT = re.compile(r"([0-9]+(?:\.[0-9]+)?)/sqrt\(([0-9]+)\)")
_OVER_ROOT_OF_WIDTH = "1/sqrt(d_key)"

_SERIES_TERMS = 16  # of terms below 2⁻ᵏ/k!
_NOT_RANDOM = {
    "from-base-model": "its weights start from those of a smaller model, not at random",
    "mean-pooled-from-mha": "its heads are pooled from those of a trained model, not drawn at random",
    "not-stated": "its source states no initialization",
}


@dataclass(frozen=True, kw_only=True)
class Initialization:
    """The published initialization of the weights of an attention layer.

    Attributes:
        scheme: "normal", "truncated-normal", "xavier-uniform", or why the weights are not drawn from a known
            law: "from-base-model", "mean-pooled-from-mha", "not-stated".
        basis: where it is stated: "paper", "code", "inherited", "library-default" (of a widely used port: how
            a checkpoint is loaded, not how training started), "configuration" (how a library initializes a model
            that it builds from a configuration file) or "not-stated".
        std, q_std, out_proj_std: standard deviation before truncation of the entries of W_Q, W_K and W_V, of
            W_Q where it differs, of W_O; texts such as "0.02" or "1/sqrt(512)", None where not stated.
        cutoff: truncation in units of std, without rescaling afterwards.
        rule: formula behind the numbers.
    """

    scheme: str
    basis: str
    std: str | None = None
    q_std: str | None = None
    out_proj_std: str | None = None
    cutoff: float | None = None
    rule: str | None = None

    @property
    def from_other_model(self) -> bool:
        """True when the weights at the start of training come from another model, not from a random draw."""
        return self.scheme in ("from-base-model", "mean-pooled-from-mha")


@dataclass(frozen=True, kw_only=True)
class InitialBeta:
    """Initial inverse temperature, the basis of the initialization, and what to beware of ("" if nothing).

    The value is an int or Fraction where β is rational (no truncation, no stray square root), else a float; `rule` is
    the product that it is, in numbers.
    """

    value: int | Fraction | float
    basis: str
    rule: str
    note: str = ""


class Initialized(Protocol):
    """The part of a published record that the initial β is computed from."""

    @property
    def name(self) -> str: ...
    @property
    def d_model(self) -> int: ...
    @property
    def d_key(self) -> int: ...
    @property
    def score_scale(self) -> str: ...
    @property
    def qk_norm(self) -> bool: ...
    @property
    def mla(self) -> object | None: ...
    @property
    def init(self) -> Initialization: ...
    @property
    def beta_unknown(self) -> str: ...
    @property
    def unconfirmed(self) -> tuple[str, ...]: ...


def initial_beta(preset: Initialized) -> InitialBeta:
    """β = σ_Q σ_K · d_model · √d_key · score_scale of a published record (see the module).

    A library default gives a number too, because it is what a model built from that library's configuration
    starts from; `basis` and `note` then say that the published training may have started elsewhere.

    Raises:
        NotCoveredError: when the record states no standard deviation, or one that does not set β.
        InputError: when `score_scale` or a standard deviation has a form that is not known.
    """
    reason = _why_unknown(preset)
    if reason:
        raise NotCoveredError(f"the initial beta of {preset.name} is not known: {reason}; give beta a number")
    init, scale = preset.init, squared("score_scale", preset.score_scale, d_key=preset.d_key)
    scores = f"√{preset.d_key} · {preset.score_scale.replace('d_key', str(preset.d_key))}"
    if preset.qk_norm:
        rule = f"queries and keys of mean square 1 (gains 1): {scores}"
        return InitialBeta(value=_root(preset.d_key * scale), basis=init.basis, rule=rule, note=_caution(preset))
    key_variance = squared("init.std", init.std)
    query_variance = squared("init.q_std", init.q_std) if init.q_std is not None else key_variance
    untruncated = _root(query_variance * key_variance * preset.d_model**2 * preset.d_key * scale)
    kept = truncated_variance(init.cutoff)
    value = untruncated if kept == 1 else float(untruncated) * kept  # each deviation shrinks by √kept
    truncation = "" if kept == 1 else f" · {kept:.6g} (truncated at {init.cutoff:g} standard deviations)"
    rule = f"{init.q_std or init.std} · {init.std} · {preset.d_model} · {scores}{truncation}"
    return InitialBeta(value=value, basis=init.basis, rule=rule, note=_caution(preset))


def squared(field: str, text: str | None, d_key: int | None = None) -> Fraction:
    """The exact square of a decimal, "decimal/sqrt(integer)" or (given d_key) "1/sqrt(d_key)".

    Raises:
        InputError: for any other form, and for zero.
    """
    if isinstance(text, str) and _DECIMAL.fullmatch(text) and Fraction(text) > 0:
        return Fraction(text) ** 2
    if text == _OVER_ROOT_OF_WIDTH and d_key:
        return Fraction(1, d_key)
    match = _OVER_ROOT.fullmatch(text) if isinstance(text, str) else None
    if match and Fraction(match[1]) > 0 and int(match[2]):
        return Fraction(match[1]) ** 2 / int(match[2])
    forms = '"decimal/sqrt(integer)"' + ("" if d_key is None else f' or "{_OVER_ROOT_OF_WIDTH}"')
    raise InputError(field, text, f"a positive decimal, {forms}")


def truncated_variance(cutoff: float | None) -> float:
    """Variance 1 − 2cφ(c)/(2Φ(c) − 1) of a standard normal law conditioned on |x| ≤ c (1 if no cutoff).

    Below c = 1, where this cancels, ∫ x² e^{−x²/2} / ∫ e^{−x²/2} over [0, c] by the series of the exponential.
    """
    if cutoff is None:
        return 1.0
    if cutoff < 1:
        terms = [(-(cutoff**2) / 2) ** k / math.factorial(k) for k in range(_SERIES_TERMS)]
        square = sum(term / (2 * k + 3) for k, term in enumerate(terms))
        return cutoff**2 * square / sum(term / (2 * k + 1) for k, term in enumerate(terms))
    density = math.exp(-(cutoff**2) / 2) / math.sqrt(2 * math.pi)
    return 1 - 2 * cutoff * density / math.erf(cutoff / math.sqrt(2))


def _why_unknown(preset: Initialized) -> str:
    if preset.mla is not None:
        return (
            "parts of a key that come from the normalized latent start with variance std²·kv_rank, position parts with "
            "std²·d_model, so that no one beta describes its scores"
        )
    if preset.beta_unknown:
        return preset.beta_unknown
    if preset.init.scheme in _NOT_RANDOM:
        return _NOT_RANDOM[preset.init.scheme]
    if preset.init.std is None and not preset.qk_norm:
        rule = f" (rule: {preset.init.rule})" if preset.init.rule else ""
        return f"its source states no standard deviation{rule}"
    return ""


def _caution(preset: Initialized) -> str:
    cautions = []
    if preset.init.basis == "library-default":
        cautions.append("beta from a library default, not from the published training")
    if preset.init.basis == "configuration":
        cautions.append("beta of a model that the library builds from this configuration, not of a published training")
    if "score_scale" in preset.unconfirmed:
        cautions.append("beta from an assumed score scale")
    return "; ".join(cautions)


def _root(value: Fraction) -> int | Fraction | float:
    """√value, exact where it is rational."""
    root = Fraction(math.isqrt(value.numerator), math.isqrt(value.denominator))
    if root**2 != value:
        return math.sqrt(value)
    return root.numerator if root.denominator == 1 else root
