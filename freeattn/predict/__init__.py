"""Predictions: what a law means for a reader of the features. Each takes a `SpectralLaw`, in whatever unit."""

from freeattn.predict.allocation import Allocation, allocate
from freeattn.predict.covariance import SampleCovariance, sample_covariance
from freeattn.predict.design import BestBeta, Crossing, best_beta, crossover
from freeattn.predict.flow import arrival_time, flow_loss
from freeattn.predict.parameters import parameter_count, width_at
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
    "Allocation",
    "BestBeta",
    "Crossing",
    "SampleCovariance",
    "Sensitivities",
    "allocate",
    "arrival_time",
    "attention_stable_rank",
    "best_beta",
    "best_penalty",
    "condition_number",
    "crossover",
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
    "width_at",
]
