"""Draws of verify on several cores and from a store: the same numbers, bit by bit."""

from __future__ import annotations

import json
from concurrent.futures import Executor, ThreadPoolExecutor

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError, TaskError
from freeattn.evidence.sampling import sample

SMALL = fa.Attention(n_tokens=96, d_model=128, n_heads=2, d_key=32, d_value=32, d_out=64)
WORD = fa.gaussian("X", fa.space("rows", 80), fa.space("columns", 100), 1 / 100)


@pytest.fixture(scope="module")
def law():
    return fa.law(SMALL)


@pytest.fixture(scope="module")
def serial(law):
    return fa.verify(SMALL, draws=4, seed=3, law=law)


class Refusing(Executor):
    """Fails the test when anything is computed."""

    def submit(self, fn, /, *args, **kwargs):
        raise AssertionError(f"computed {fn}{args}{kwargs}")


def bits(verification):
    spectra = b"".join(one.softmax.tobytes() + one.equivalent.tobytes() for one in verification.samples)
    return json.dumps(verification.to_dict()), spectra


def test_draws_are_those_of_sample_with_spawned_seeds(serial):
    for child, one in zip(np.random.SeedSequence(3).spawn(4), serial.samples, strict=True):
        again = sample(SMALL, child)
        assert np.array_equal(one.softmax, again.softmax)
        assert np.array_equal(one.equivalent, again.equivalent)
        assert (one.seed.entropy, one.seed.spawn_key) == (child.entropy, child.spawn_key)
        assert one.spec is SMALL


def test_workers_and_executors_do_not_change_a_bit(serial, law):
    assert bits(fa.verify(SMALL, draws=4, seed=3, law=law, workers=2)) == bits(serial)
    with ThreadPoolExecutor(3) as threads:
        assert bits(fa.verify(SMALL, draws=4, seed=3, law=law, executor=threads)) == bits(serial)


def test_a_store_continues_with_more_draws(serial, law, tmp_path):
    store = tmp_path / "draws.db"
    fa.verify(SMALL, draws=2, seed=3, law=law, store=store)
    calls = []
    more = fa.verify(SMALL, draws=4, seed=3, law=law, store=store, progress=lambda *call: calls.append(call))
    assert bits(more) == bits(serial)
    assert calls == [(2, 4), (3, 4), (4, 4)]
    assert bits(fa.verify(SMALL, draws=4, seed=3, law=law, store=store, executor=Refusing())) == bits(serial)
    assert len(fa.Store(store)) == 4


@pytest.mark.parametrize("change", [{"spec": SMALL.replace(beta=2)}, {"seed": 4}])
def test_another_layer_or_seed_has_draws_of_its_own(change, law, tmp_path):
    store = tmp_path / "draws.db"
    fa.verify(SMALL, draws=1, seed=3, law=law, store=store)
    given = {"spec": SMALL, "seed": 3, **change}
    found = fa.verify(given["spec"], draws=1, seed=given["seed"], law=law, store=store)
    again = sample(given["spec"], np.random.SeedSequence(given["seed"]).spawn(1)[0])
    assert np.array_equal(found.samples[0].softmax, again.softmax)
    assert len(fa.Store(store)) == 2


def test_expressions_are_drawn_in_the_same_way(tmp_path):
    serial = fa.verify(WORD, draws=3, seed=1)
    with ThreadPoolExecutor(2) as threads:
        other = fa.verify(WORD, draws=3, seed=1, executor=threads, store=tmp_path / "s.db")
    stored = fa.verify(WORD, draws=3, seed=1, executor=Refusing(), store=tmp_path / "s.db")
    for verification in (other, stored):
        assert verification.to_dict() == serial.to_dict()
        assert all(np.array_equal(a, b) for a, b in zip(verification.samples, serial.samples, strict=True))
    wider = fa.gaussian("X", fa.space("rows", 80), fa.space("columns", 100), 1 / 50)  # the same text, another variance
    assert str(wider) == str(WORD)
    assert not np.array_equal(fa.verify(wider, draws=3, seed=1, store=tmp_path / "s.db").samples[0], serial.samples[0])
    assert len(fa.Store(tmp_path / "s.db")) == 6


def overflowing(x, functions):
    return functions.exp(400 * x)


def test_errors_of_a_draw_are_those_of_sample(law):
    bad = SMALL.replace(scores=fa.Entrywise(overflowing, name="overflowing"), beta=20)
    with pytest.raises(InputError, match="scores"):
        fa.verify(bad, draws=2, law=law)


def test_scores_that_do_not_pickle_fail_with_the_key_named(law):
    mine = SMALL.replace(scores=fa.Entrywise(lambda x, functions: functions.tanh(x), name="mine"))
    assert fa.verify(mine, draws=1, law=law).draws == 1
    with pytest.raises(TaskError, match=r"draw of a layer.*[Pp]ickl"):
        fa.verify(mine, draws=2, law=law, workers=2)


def test_a_bad_store_is_refused_before_any_draw(law, tmp_path):
    path = tmp_path / "s.db"
    path.write_text("not a database, but a text that is long enough to be read as one")
    with pytest.raises(InputError, match="store"):
        fa.verify(SMALL, draws=2, law=law, store=path, executor=Refusing())
