"""Predictions: what a law means for a reader of the features. Each takes a `SpectralLaw`, in whatever unit."""

from freeattn.predict.budget import parameter_count
from freeattn.predict.covariance import SampleCovariance, sample_covariance
from freeattn.predict.flow import arrival_time, flow_loss
from freeattn.predict.readouts import best_penalty, degrees_of_freedom, ridge_error
from freeattn.predict.sensitivity import Sensitivities, sensitivities
from freeattn.predict.shape import (
    attention_stable_rank,
    condition_number,
    entropy_rank,
    leading_singular_value,
    participation_ratio,
    rank_fraction,
    spike_gap,
    stable_rank,
)
from freeattn.predict.summary import shape_numbers, summary

__all__ = [
    "SampleCovariance",
    "Sensitivities",
    "arrival_time",
    "attention_stable_rank",
    "best_penalty",
    "condition_number",
    "degrees_of_freedom",
    "entropy_rank",
    "flow_loss",
    "leading_singular_value",
    "parameter_count",
    "participation_ratio",
    "rank_fraction",
    "ridge_error",
    "sample_covariance",
    "sensitivities",
    "shape_numbers",
    "spike_gap",
    "stable_rank",
    "summary",
]
