"""Rules of theory and what they assume, as data, so that a derivation can list what it rests on."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BEYOND_THEOREM",
    "CONDITIONAL_INDEPENDENCE",
    "COVARIANT_INPUT",
    "FINITE_ROWS",
    "FIXED_HEADS",
    "FREENESS",
    "GAUSSIAN_INPUT",
    "GAUSSIAN_LETTERS",
    "GROWING_SPACES",
    "GROWING_WIDTHS",
    "NORMALIZED_LATENT",
    "ORTHOGONAL_INPUT",
    "POSITIVE_SUPPORT",
    "QUERY_INDEPENDENCE",
    "Assumption",
    "Rule",
]


@dataclass(frozen=True)
class Assumption:
    """Something that is taken for granted: a short name, the statement, and where it is made."""

    name: str
    statement: str
    source: str


@dataclass(frozen=True)
class Rule:
    """One rule of theory: what it says, where it is proved, and what it assumes."""

    name: str
    statement: str
    source: str
    assumptions: tuple[Assumption, ...] = ()


_EQUIVALENCE = "arXiv 2610.10033, section 2"

ORTHOGONAL_INPUT = Assumption(
    "orthogonal input", "X Xᵀ/d_model = I with n_tokens ≤ d_model, so that Q, K and V have iid N(0, 1) entries",
    _EQUIVALENCE,
)
QUERY_INDEPENDENCE = Assumption(
    "independent queries", "queries are independent of keys, values and the output map", _EQUIVALENCE
)
GROWING_WIDTHS = Assumption(
    "proportional growth",
    "n_tokens, d_model, d_key, d_value and d_out grow with fixed ratios; the law is the limit, almost surely",
    "arXiv 2610.10033, Theorem 3.1",
)
FIXED_HEADS = Assumption(
    "fixed heads and temperature", "the number of heads and β stay fixed while the widths grow",
    "arXiv 2610.10033, Theorem 3.1",
)
CONDITIONAL_INDEPENDENCE = Assumption(
    "independent noise", "the noise W_r of the equivalent is iid N(0, 1), one matrix a head, independent of all else",
    "arXiv 2610.10033, section 3",
)
FINITE_ROWS = Assumption(
    "finite rows", "θ₁ and θ₂ are those of rows of n_tokens tokens with iid scores, put into the law of the limit; "
    "finite key widths and unequal variances of rows are left out",
    "Stein's identity for one row; no theorem about the law",
)
FREENESS = Assumption(
    "asymptotic freeness", "independent Gaussian matrices are asymptotically free from each other and from "
    "independent matrices whose law converges", "Mingo-Speicher, Free Probability and Random Matrices, chapter 4",
)
POSITIVE_SUPPORT = Assumption(
    "positive support", "the law lives on [0, ∞) and is not the point mass at 0",
    "Nica-Speicher, Lectures on the Combinatorics of Free Probability, lecture 18",
)
GAUSSIAN_LETTERS = Assumption(
    "Gaussian letters", "different letters, and different copies of one letter, are independent matrices of "
    "independent real Gaussian entries (a symmetric letter: up to symmetry)",
    "Mingo-Speicher, Free Probability and Random Matrices, chapters 4 and 9",
)
GROWING_SPACES = Assumption(
    "spaces grow together", "the sizes of all spaces grow with fixed ratios, while the counts of copies, coefficients "
    "and the products variance × size stay fixed; the law is the limit, almost surely",
    "Helton-Rashidi Far-Speicher, IMRN 2007, rnm086",
)
GAUSSIAN_INPUT = Assumption(
    "Gaussian input", "tokens have iid N(0, 1) entries, independent of all weights", "the specification"
)
COVARIANT_INPUT = Assumption(
    "feature covariance", "rows of X are iid N(0, C), independent of all weights; the spectrum of C has finitely many "
    "values, each with a fixed share of the features, and mean one", "the specification",
)
NORMALIZED_LATENT = Assumption(
    "normalized latent", "scaling each row of a latent to ‖D_i‖² = rank does not change the limit: row norms "
    "concentrate, ‖D_i‖²/rank → 1", "no difference seen in simulation; no proof is claimed",
)
BEYOND_THEOREM = Assumption(
    "equivalence beyond the theorem", "the Gaussian equivalent holds for this layer too: given tokens, keys, values "
    "and output map, attention acts as its linear part and independent noise",
    "agreement with simulated attention (docs/laws); the theorem is for orthogonal tokens, queries straight from them",
)
