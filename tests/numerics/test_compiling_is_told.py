"""Whoever waits for compiled loops is told why."""

from __future__ import annotations

import logging
import time
from types import SimpleNamespace

import pytest

pytest.importorskip("numba")

from freeattn.cli.logs import say_logs
from freeattn.numerics.compiled.waiting import CompilingListener, tell_of_compiling

WORD = 'compiling loops of the extra "fast": once for each installation, a minute or two in all'


def compiles(module):
    return SimpleNamespace(data={"dispatcher": SimpleNamespace(py_func=SimpleNamespace(__module__=module))})


OURS, THEIRS = compiles("freeattn.numerics.compiled.kernels"), compiles("somebody.else")


def take(listener, seconds, *events):
    for event in events:
        listener.on_start(event)
    time.sleep(seconds)
    for event in reversed(events):
        listener.on_end(event)


def test_what_takes_longer_is_told_once(caplog):
    listener = CompilingListener(patience=0.05)
    take(listener, 0.3, OURS, OURS)
    take(listener, 0.3, OURS)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("freeattn", logging.WARNING)
    assert record.getMessage().startswith(WORD)


def test_short_ones_are_told_when_they_add_up(caplog):
    listener = CompilingListener(patience=0.5)
    take(listener, 0.01, OURS)
    assert caplog.records == []
    for _ in range(5):
        take(listener, 0.2, OURS)
    assert len(caplog.records) == 1


def test_loops_of_others_are_theirs(caplog):
    take(CompilingListener(patience=0.0), 0.1, THEIRS)
    assert caplog.records == []


def test_a_loop_that_is_compiled_reaches_the_listener(monkeypatch, caplog):
    from numba import njit
    from numba.core import event

    def loop(x):
        return x + 1

    loop.__module__ = "freeattn.numerics.compiled.of_a_test"
    listener = CompilingListener(patience=0.0)
    monkeypatch.setattr(listener, "on_end", lambda _: time.sleep(0.1))  # compiling takes no time here
    event.register("numba:compile", listener)
    try:
        assert njit(loop)(1) == 2
    finally:
        event.unregister("numba:compile", listener)
    assert [record.getMessage()[: len(WORD)] for record in caplog.records] == [WORD]
    tell_of_compiling()
    tell_of_compiling()  # once for each process


def test_on_the_command_line_it_is_a_line_like_others(capsys):
    log = logging.getLogger("freeattn")
    before = list(log.handlers)
    say_logs()
    try:
        log.warning("%s loops", "compiling")
    finally:
        log.handlers = before
    assert capsys.readouterr().err == "freeattn: note: compiling loops\n"
