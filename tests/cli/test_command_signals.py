"""Ctrl-C in every long command, as a terminal sends it: to the command and its workers. A pipe closed early."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import freeattn

# A background job of a shell starts without the handler; a fresh process group takes the part of the terminal's.
START = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from freeattn.cli import main; main()"
)
LAYER = "--n-tokens 300 --d-model 300 --n-heads 4 --d-key 32 --output attention"
MANY = "--over beta=0.5:2:0.002"
WITHOUT_STORE = [
    f"law {LAYER} --inputs gaussian --digits 1000",
    pytest.param(f"report {LAYER} --draws 1000 -o page.html", marks=pytest.mark.slow),
    pytest.param(f"verify {LAYER} --draws 5000", marks=pytest.mark.slow),
]
WITH_STORE = [
    f"sweep {LAYER} {MANY} --workers 2",
    pytest.param(f"verify {LAYER} --draws 5000 --workers 2", marks=pytest.mark.slow),
    pytest.param(f"converge {LAYER} --sizes 150,300 --draws 2000 --workers 2", marks=pytest.mark.slow),
    pytest.param("reproduce fig-2d --scale 8 --draws 5000 --workers 2", marks=pytest.mark.slow),
]

pytestmark = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks at processes as Linux shows them")


def start(command, folder):
    return subprocess.Popen(
        [sys.executable, "-c", START, *command.split()], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )


def wait_for(condition, process=None, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def computes(process):
    """Whether the command has loaded what it computes with."""
    return "numpy" in Path(f"/proc/{process.pid}/maps").read_text()


def members(group):
    """Processes of a group that have not ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, its_group = (folder / "stat").read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == group and state != "Z":
            found.append(folder.name)
    return found


def interrupted(process):
    """Ctrl-C; the one line on stderr."""
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=120)
    wait_for(lambda: not members(process.pid), seconds=30)  # no worker is left behind
    assert (process.returncode, out) == (130, ""), err
    line = err.splitlines()[-1]
    assert line.startswith("freeattn: error: interrupted: ")
    assert [other for other in err.splitlines()[:-1] if not other.startswith("freeattn: note: ")] == []
    return line


@pytest.mark.parametrize("command", WITHOUT_STORE)
def test_without_a_store_it_is_said_that_nothing_is_kept(tmp_path, command):
    with start(command, tmp_path) as process:
        wait_for(lambda: computes(process), process)
        line = interrupted(process)
    assert "nothing is kept" in line or "finished and lost" in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", WITH_STORE)
def test_with_a_store_it_is_said_what_is_kept_and_it_goes_on(tmp_path, command):
    path = tmp_path / "kept.db"
    with start(f"{command} --store {path}", tmp_path) as process:
        wait_for(lambda: path.exists() and len(freeattn.Store(path)) >= 2, process)
        line = interrupted(process)
    kept = len(freeattn.Store(path))
    assert kept >= 2
    assert f"{kept} of " in line
    assert f"kept in {path}; run the same again to go on from there" in line
    with start(f"{command} --store {path}", tmp_path) as process:  # again: it takes what is there and adds to it
        wait_for(lambda: len(freeattn.Store(path)) >= kept + 2, process)
        line = interrupted(process)
    assert f"{len(freeattn.Store(path))} of " in line


def test_before_the_first_result_the_store_is_named(tmp_path):
    path = tmp_path / "kept.db"
    with start(f"verify {LAYER} --inputs gaussian --draws 100 --store {path}", tmp_path) as process:
        wait_for(path.exists, process)
        line = interrupted(process)
    assert str(path) in line


# Ctrl-C at a moment that is known: when click, the first thing that the command line imports, is looked for.
INTERRUPT_THE_IMPORT = """
import signal, sys
class Press:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Press())
"""


@pytest.mark.parametrize(
    "entry", ["from freeattn.__main__ import main", "import runpy; runpy.run_module('freeattn', run_name='__main__')"]
)
def test_while_the_command_line_loads(entry):
    """As the installed script starts it, and as `python -m` does."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT_THE_IMPORT + entry], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "freeattn: error: interrupted\n")


def test_a_report_does_not_speak_of_stores(run, monkeypatch):
    def interrupt(*_, **__):
        raise freeattn.runs.InterruptedRunError("interrupted: 1 of 3 results are finished and lost; with a store …")

    monkeypatch.setitem(vars(freeattn), "html_report", interrupt)
    outcome = run("report", "bert-base", "--n-tokens", "512", "-o", "never-written.html")
    assert outcome.code == 130
    assert outcome.line == "freeattn: error: interrupted: nothing is kept"


def test_an_empty_store_is_refused_without_naming_the_folder(run):
    outcome = run("verify", "bert-base", "--n-tokens", "512", "--store", "")
    assert outcome.code == 2
    assert outcome.line == "freeattn: error: store = (empty) is not allowed; expected the name of a file"


@pytest.mark.parametrize("command", ["architectures", "architectures --json", "law --help"])
def test_a_pipe_closed_early_is_no_error(command):
    """`| head -1`: the exit code is that of SIGPIPE, and nothing is said."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "freeattn", *command.split()], stdout=write, stderr=subprocess.PIPE, text=True,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("command", ["architectures bert", f"law {LAYER}"])
def test_no_color_and_forty_columns(command):
    done = subprocess.run(
        [sys.executable, "-m", "freeattn", *command.split()], capture_output=True, text=True, check=False,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "40", "TERM": "xterm-256color"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
