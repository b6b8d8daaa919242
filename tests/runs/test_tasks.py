"""Tasks have one name, and results are plain values and arrays."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
import sample_tasks

from freeattn.errors import InputError
from freeattn.runs import Task
from freeattn.runs.values import decoded, encoded


def test_the_order_of_names_does_not_matter_and_the_function_does():
    first = Task({"a": 1, "b": [1, 2]}, sample_tasks.returns)
    again = Task({"b": (1, np.int64(2)), "a": 1}, sample_tasks.returns)
    assert first.identity == again.identity
    others = [
        Task({"a": 1, "b": [2, 1]}, sample_tasks.returns), Task({"a": 1.0, "b": [1, 2]}, sample_tasks.returns),
        Task({"a": 1, "b": [1, 2]}, sample_tasks.fails_on), Task({"a": True, "b": [1, 2]}, sample_tasks.returns),
    ]
    assert len({first.identity, *(other.identity for other in others)}) == 5


@pytest.mark.parametrize("number", [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, 2**80])
def test_numbers_in_keys_keep_every_digit(number):
    near = math.nextafter(number, 0) if isinstance(number, float) else number + 1
    assert Task({"x": number}, sample_tasks.returns).identity != Task({"x": near}, sample_tasks.returns).identity


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ({"a": object()}, "key.a"), ({"a": [1, {2}]}, r"key.a\[1\]"), ({"a": {1: 2}}, "key.a"), ([1], "key"),
        ({"a": math.nan}, "key"), ({"a": {"b": math.inf}}, "key"), ({"a": np.ones(2)}, "key.a"),
    ],
)
def test_keys_are_plain_and_finite(key, field):
    with pytest.raises(InputError, match=field):
        Task(key, sample_tasks.returns)


@pytest.mark.parametrize(
    "function", [lambda seed: {"seed": seed}, functools.partial(sample_tasks.returns, 1), "returns", None, [].append]
)
def test_functions_must_be_importable(function):
    with pytest.raises(InputError, match="function"):
        Task({}, function)


def test_a_closure_is_refused():
    def inside():
        return {}

    with pytest.raises(InputError, match="not a lambda or a closure"):
        Task({}, inside)


def test_results_come_back_bit_by_bit():
    array = np.array([[0.1, -0.0], [math.nan, 5e-324]])
    result = {"x": 0.1, "n": 2**70, "t": "ρ", "none": None, "flag": True, "list": [1, [2.5]], "nan": math.nan,
              "inf": -math.inf, "array": array, "empty": np.zeros((0, 3)), "scalar": np.float64(1 / 3)}
    back = decoded(encoded(result))
    assert back["array"].tobytes() == array.tobytes()
    assert back["array"].shape == (2, 2)
    assert not back["array"].flags.writeable
    assert back["empty"].shape == (0, 3)
    assert math.isnan(back["nan"])
    others = {name: value for name, value in result.items() if name not in ("array", "empty", "nan")}
    assert {name: back[name] for name in others} == others


@pytest.mark.parametrize(
    "result",
    [None, 1.0, [1], {1: 2}, {"a": object()}, {"a": np.arange(3)}, {"a": np.array([None])}, {"a": [np.ones(2)]},
     {"a": 1j}, {"a": np.ones(2, dtype=complex)}],
)
def test_other_results_are_refused(result):
    with pytest.raises(InputError, match="result"):
        encoded(result)
