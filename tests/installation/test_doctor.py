"""`freeattn doctor` on made-up installations: other metadata, and libraries that break, come first on the path."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
METADATA = """\
Metadata-Version: 2.1
Name: freeattn
Version: 0.1.0
Requires-Dist: click>=8.2
Requires-Dist: {core}
Provides-Extra: fine
Provides-Extra: absent
Provides-Extra: half
Provides-Extra: old
Requires-Dist: threadpoolctl>=3.1; extra == "fine"
Requires-Dist: no-such-library>=1; extra == "absent"
Requires-Dist: rich; extra == "half"
Requires-Dist: no-such-library>=1; extra == "half"
Requires-Dist: rich>=999; extra == "old"
"""


@pytest.fixture
def doctor(tmp_path):
    """Runs the command; `files` are modules that come before the installed ones."""

    def run_doctor(*arguments, core="rich>=13.7", files=None, **environment):
        site = tmp_path / "site"
        (site / "freeattn-0.1.0.dist-info").mkdir(parents=True)
        (site / "freeattn-0.1.0.dist-info" / "METADATA").write_text(METADATA.format(core=core))
        for name, text in (files or {}).items():
            (site / name).write_text(text)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]), **environment}
        return subprocess.run(
            [sys.executable, "-m", "freeattn", "doctor", *arguments], capture_output=True, text=True, timeout=300,
            cwd=tmp_path, env=environment, check=False,
        )

    return run_doctor


def test_what_works_and_what_is_not_installed(doctor):
    done = doctor(OPENBLAS_NUM_THREADS="1", FREEATTN_BACKEND="numpy")
    assert (done.returncode, done.stderr) == (0, "")
    for text in (
        "All works.", "pip install 'freeattn[absent]'", "not installed (no-such-library missing)", "ok: threadpoolctl",
        "backend      numpy", "OPENBLAS_NUM_THREADS=1", "Fuss-Catalan", "freeattn-reproduce.sqlite", ">=999 is needed",
    ):
        assert text in done.stdout, text


def test_json_says_the_same(doctor):
    done = doctor("--json", FREEATTN_BACKEND="numpy")
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads(done.stdout)
    assert record["problems"] == []
    assert record["check"]["problem"] is None
    assert [one["name"] for one in record["dependencies"]] == ["click", "rich"]
    assert record["extras"]["absent"][0]["problem"] == "not installed"
    assert record["backend"]["name"] == "numpy"


@pytest.mark.parametrize(
    ("core", "files", "problem"),
    [
        ("no-such-library>=1", {}, "no-such-library: not installed"),
        pytest.param("rich>=999", {}, ">=999 is needed", marks=pytest.mark.slow),
        ("numpy>=2", {"numpy.py": "raise RuntimeError('built for another machine')"}, "built for another machine"),
        ("numpy>=2", {"numpy.py": "import os, signal; os.kill(os.getpid(), signal.SIGILL)"}, "ended by SIGILL"),
        pytest.param("rich", {"rich.py": "raise SystemExit(3)"}, "ended with exit code 3", marks=pytest.mark.slow),
        pytest.param(
            "scipy", {"scipy.py": "import sys; sys.exit(0)"}, "scipy: cannot be imported: it ends the process",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_is_broken_is_named_without_a_traceback(doctor, core, files, problem):
    done = doctor(core=core, files=files, FREEATTN_BACKEND="numpy")
    assert done.returncode == 1
    assert problem in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stderr == ""


@pytest.mark.slow
def test_a_backend_that_does_not_exist_is_a_problem(doctor):
    done = doctor(FREEATTN_BACKEND="gpu")
    assert done.returncode == 1
    assert "FREEATTN_BACKEND = 'gpu' is not allowed" in done.stdout


def test_a_wrong_number_fails_the_check():
    """The check can fail: here the exact edge is another one."""
    patch = (
        "import freeattn.installation.probe as probe\nprobe._EDGE = 6.7500001\n"
        "import json\nprint(json.dumps(probe.facts()['check']))"
    )
    done = subprocess.run([sys.executable, "-c", patch], capture_output=True, text=True, check=True, cwd=ROOT)
    assert json.loads(done.stdout)["problem"].startswith("ArithmeticError: edge of the Fuss-Catalan law is 6.75")


@pytest.mark.slow
def test_this_installation():
    done = subprocess.run(
        [sys.executable, "-m", "freeattn", "doctor", "--json"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    record = json.loads(done.stdout)
    assert record["problems"] == []
    assert done.returncode == 0
    assert {"numpy", "scipy", "sympy", "click"} <= {one["name"] for one in record["dependencies"]}
    assert {"plot", "fast", "report"} <= set(record["extras"])
