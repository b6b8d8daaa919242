"""Many tasks on many cores or machines, each finished result kept: `Task`, `Store`, `run`. Knows no attention."""

from __future__ import annotations

from freeattn.runs.execution import InterruptedRunError, Progress, run
from freeattn.runs.store import Store
from freeattn.runs.task import Task
from freeattn.runs.values import Result
from freeattn.runs.workers import available_cores

__all__ = ["InterruptedRunError", "Progress", "Result", "Store", "Task", "available_cores", "run"]
