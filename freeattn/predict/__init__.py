"""Predictions: what a law means for a reader of the features."""

from freeattn.predict.flow import arrival_time, flow_loss
from freeattn.predict.readouts import best_penalty, degrees_of_freedom, ridge_error

__all__ = ["arrival_time", "best_penalty", "degrees_of_freedom", "flow_loss", "ridge_error"]
