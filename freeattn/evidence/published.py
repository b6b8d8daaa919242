"""What arXiv 2610.10033 prints: Table D.2 of softmax attention against its Gaussian equivalent, and numbers of figures.

Table D.2 has ten draws each at β = 1, orthogonal input and d_out = d_model. Half-widths are 95 % Student-t intervals of
the mean over the draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import final

from freeattn.model.attention import Attention
from freeattn.model.scores import Softmax
from freeattn.model.ties import as_ties

__all__ = [
    "FIGURE_2A_LOSS", "FIGURE_2A_MEASURED", "FIGURE_2A_PLATEAU", "FIGURE_2C_PEAKS", "FIGURE_2D_BETA",
    "FIGURE_3A_MEASURED", "FIGURE_3A_TIMES", "FIGURE_3B_SIGNS", "TABLE_D2", "Printed", "PublishedAgreement",
    "published_agreement", "upper_limit",
]

_DRAWS = 10
_MEAN_DIGITS = 10  # significant digits to which the means of limits are printed


@final
@dataclass(frozen=True)
class Printed:
    """A number or a sign as it is printed, with the half-width of its interval where there is one.

    Attributes:
        text: such as "7.55e-5" or "+".
        half_width: of a measured value.
    """

    text: str
    half_width: float | None = None

    @property
    def value(self) -> float | None:
        """The number; None for a sign."""
        return None if self.text in ("+", "-") else float(self.text)

    def agrees(self, number: float) -> bool:
        """Whether a number is printed like this: the same sign, or the same after rounding to the digits shown."""
        if self.value is None:
            return number != 0 and (number > 0) == (self.text == "+")
        exponent = Decimal(self.text).as_tuple().exponent
        assert isinstance(exponent, int)
        return bool(abs(Decimal(float(number)) - Decimal(self.text)) <= Decimal(10) ** exponent / 2)


@final
@dataclass(frozen=True, kw_only=True)
class PublishedAgreement:
    """One row of Table D.2: distances of softmax from its equivalent as fractions, and the mean of the limit."""

    architecture: str
    n_tokens: int
    d_model: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    tie: str = "none"
    relative_w1: float
    relative_w1_half_width: float
    ks: float
    ks_half_width: float
    limit_mean: float

    def spec(self) -> Attention:
        """The layer that was measured."""
        return Attention(
            n_tokens=self.n_tokens, d_model=self.d_model, n_heads=self.n_heads, n_kv_heads=self.n_kv_heads,
            d_key=self.d_head, d_value=self.d_head, d_out=self.d_model, tie=as_ties(self.tie),
        )

    @property
    def printed_mean(self) -> Printed:
        """The mean of the limit with the digits of the table."""
        return Printed(f"{self.limit_mean:.{_MEAN_DIGITS}g}")

    def covers(self, spec: Attention) -> bool:
        """Whether a specification is that layer."""
        sizes = (self.n_tokens, self.d_model, self.n_heads, self.n_kv_heads, self.d_head, self.d_head, self.d_model)
        asked = (spec.n_tokens, spec.d_model, spec.n_heads, spec.n_kv_heads, spec.d_key, spec.d_value, spec.d_out)
        scales = (spec.beta, spec.value_scale, spec.output_scale)
        plain = spec.output == "mha" and spec.scores == Softmax() and scales == (1, 1, 1)
        return plain and asked == sizes and spec.tie.shorthand == self.tie and not spec.beyond_transforms


def _row(architecture: str, sizes: tuple[int, int, int, int, int], w1: tuple[float, float], ks: tuple[float, float],
         mean: float, tie: str = "none") -> PublishedAgreement:
    n_tokens, d_model, n_heads, n_kv_heads, d_head = sizes
    return PublishedAgreement(
        architecture=architecture, n_tokens=n_tokens, d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads,
        d_head=d_head, tie=tie, relative_w1=w1[0] / 100, relative_w1_half_width=w1[1] / 100, ks=ks[0],
        ks_half_width=ks[1], limit_mean=mean,
    )


# sizes: n_tokens, d_model, n_heads, n_kv_heads, d_key = d_value; then relative W1 in percent, KS, mean of the limit.
TABLE_D2 = (
    _row("bert-base", (512, 768, 12, 12, 64), (1.66, 0.23), (0.0109, 0.001), 2.577422743),
    _row("modernbert-large", (1024, 1024, 16, 16, 64), (1.37, 0.21), (0.0052, 0.0005), 1.718281828),
    _row("dinov3-l16", (261, 1024, 16, 16, 64), (2.82, 0.4), (0.028, 0.0018), 6.741458208),
    _row("llada-8b", (4096, 4096, 32, 32, 128), (0.92, 0.06), (0.0022, 0.0001), 1.718281828),
    _row("gpt3-175b", (2048, 12288, 96, 96, 128), (0.62, 0.07), (0.004, 0.0004), 10.30969097),
    _row("falcon-7b", (2048, 4544, 71, 1, 64), (1.92, 0.46), (0.0061, 0.0012), 3.812437807),
    _row("kayyam-1.2b-kv", (2048, 2048, 32, 32, 64), (0.24, 0.01), (0.002, 0.0001), 33.71828183, "key-value"),
)

# Values of the figures: what the theory gives, and what was measured there. Settings are in `evidence.reproduce_*`.
FIGURE_2A_PLATEAU = Printed("0.5")  # h = 32
FIGURE_2A_LOSS = Printed("7.55e-5")  # h = 128, t = 100
FIGURE_2A_MEASURED = Printed("7.39e-5", 0.58e-5)
FIGURE_2C_PEAKS = {"output": (32,), "budget": (64, 96)}  # h, "near": where h·d_value is d_out, or n, and d_out is n
FIGURE_2D_BETA = Printed("0.559")
FIGURE_3A_TIMES = {"fixed widths": Printed("41.22"), "fixed parameters": Printed("7.80"), "rounded": Printed("7.76")}
FIGURE_3A_MEASURED = {"fixed widths": Printed("39.11"), "rounded": Printed("7.57")}
FIGURE_3B_SIGNS = {2: Printed("+"), 4: Printed("+"), 8: Printed("-"), 16: Printed("-"), 32: Printed("-")}  # by h


def published_agreement(spec: Attention) -> PublishedAgreement | None:
    """The row of Table D.2 measured on this very layer, if there is one."""
    return next((row for row in TABLE_D2 if row.covers(spec)), None)


def upper_limit(mean: float, half_width: float, draws: int) -> float:
    """What a repetition may reach: the published mean and twice the half-width of the difference of the two means."""
    return mean + 2 * half_width * math.sqrt(1 + _DRAWS / draws)
