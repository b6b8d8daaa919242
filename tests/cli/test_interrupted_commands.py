"""Ctrl-C and SIGTERM: exit codes 130 and 143, what is kept, and going on from there. Progress shows the time left."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

import freeattn
from freeattn.cli.progress import progress_of
from freeattn.report.progress import TimeLeft, progress_on_stderr

START = (  # a background job of a shell starts without the handler
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from freeattn.cli import main; main()"
)
VERIFY = ["verify", "--n-tokens", "300", "--d-model", "300", "--n-heads", "4", "--d-key", "32", "--output", "attention",
          "--json"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)]
)
def test_an_interrupted_verify_says_what_is_kept_and_goes_on(run, tmp_path, number, code):
    store = tmp_path / "draws.db"
    command = [sys.executable, "-c", START, *VERIFY, "--draws", "2000", "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        end = time.monotonic() + 120
        while not (store.exists() and len(freeattn.Store(store)) >= 2):
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    kept = len(freeattn.Store(store))
    assert (process.returncode, out) == (code, "")
    (line,) = err.splitlines()
    assert line == (f"freeattn: error: interrupted: {kept} of 2000 results are finished and kept in {store}; "
                    "run the same again to go on from there")
    assert json.loads(run(*VERIFY, "--draws", kept, "--store", store).out) == run(*VERIFY, "--draws", kept).json


def test_the_time_left_counts_what_was_computed_only():
    now = [100.0]
    left = TimeLeft(lambda: now[0])
    assert left.text(50, 100) == ""  # a store had them
    now[0] += 10
    assert left.text(51, 100) == "0:08:10 left"
    now[0] += 20
    assert left.text(52, 100) == "0:12:00 left"
    assert left.text(100, 100) == "0:00:00 left"


def shown(monkeypatch, seconds, total=3, **environment):
    """What a terminal receives of a computation that takes that long."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    master, slave = pty.openpty()
    with os.fdopen(slave, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress_on_stderr(total, "drawing", after=0.2) as progress:
            if total:
                progress(1, total)
            time.sleep(seconds)
            if total:
                progress(2, total)
        terminal.flush()
        os.set_blocking(master, False)
        try:
            return os.read(master, 100_000).decode()
        except BlockingIOError:
            return ""
        finally:
            os.close(master)


def test_progress_appears_after_a_while_with_the_time_left(monkeypatch):
    text = shown(monkeypatch, 0.6, TERM="xterm-256color")
    assert "drawing" in text
    assert "left" in text
    assert "\x1b[3" in text  # colours


def test_progress_has_no_colours_with_no_color(monkeypatch):
    text = shown(monkeypatch, 0.6, TERM="xterm-256color", NO_COLOR="1")
    assert "drawing" in text
    assert "\x1b[3" not in text


def test_without_a_total_progress_tells_the_time_that_has_passed(monkeypatch):
    text = shown(monkeypatch, 0.6, total=None, TERM="xterm-256color")
    assert "drawing" in text
    assert "0:00:00" in text
    assert "left" not in text


def test_what_is_quick_shows_nothing(monkeypatch):
    assert shown(monkeypatch, 0.0, TERM="xterm-256color") == ""


def test_there_is_no_progress_without_a_terminal(capsys):
    with progress_of("drawing", 3) as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")
