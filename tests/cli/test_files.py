"""Files appear whole or not at all."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from freeattn.cli.files import output_files
from freeattn.errors import InputError
from freeattn.report.writing import OutputFile, write_file


def test_a_failing_block_leaves_nothing(tmp_path):
    file = OutputFile("csv", str(tmp_path / "x.csv"))

    def fail():
        with file.writing() as path:
            path.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_force_replaces_and_a_failing_block_keeps_the_old_file(tmp_path):
    target = tmp_path / "x.csv"
    target.write_text("old")
    file = OutputFile("csv", str(target), force=True)
    file.check()

    def fail():
        with file.writing() as path:
            path.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert target.read_text() == "old"
    with file.writing() as path:
        assert path.suffix == ".csv"
        path.write_text("new")
    assert target.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.csv"]


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    target = tmp_path / "x.csv"
    file = OutputFile("csv", str(target))
    file.check()

    def collide():
        with file.writing() as path:
            path.write_text("ours")
            target.write_text("theirs")

    with pytest.raises(InputError, match="does not exist yet"):
        collide()
    assert target.read_text() == "theirs"


def full(path):
    path.write_text("half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def write_full(file):
    with file.writing() as path:
        full(path)


def test_what_the_system_refuses_names_the_option_and_its_file(tmp_path):
    target = tmp_path / "x.csv"
    target.write_text("old")
    with pytest.raises(InputError, match=r"csv = .*x\.csv' is not allowed; .*\(No space left") as caught:
        write_full(OutputFile("csv", str(target), force=True))
    assert isinstance(caught.value.__cause__, OSError)
    assert [entry.read_text() for entry in tmp_path.iterdir()] == ["old"]


def test_a_writer_that_has_a_temporary_name_of_its_own_names_the_option_too(tmp_path, monkeypatch):
    target = tmp_path / "x.svg"
    monkeypatch.setattr(Path, "write_bytes", lambda path, _: full(path))

    def save():
        with OutputFile("plot", str(target)).writing() as path:
            write_file(path, b"<svg/>")

    with pytest.raises(InputError) as caught:
        save()
    assert (caught.value.field, caught.value.value) == ("plot", str(target))
    assert "No space left" in caught.value.allowed
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    with OutputFile("csv", str(link), force=True).writing() as path:
        path.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_mode_follows_the_umask(tmp_path):
    (tmp_path / "other").write_text("")
    with OutputFile("csv", str(tmp_path / "x.csv")).writing() as path:
        path.write_text("")
    assert (tmp_path / "x.csv").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_closed_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="open to writing"):
            OutputFile("csv", str(tmp_path / "x.csv")).check()
    finally:
        tmp_path.chmod(0o700)


def test_what_is_no_name_is_refused_and_force_is_named_as_on_the_command_line(tmp_path):
    for name in ("", "-"):
        with pytest.raises(InputError, match="the name of a file"):
            output_files(False, {"csv": name})
    (tmp_path / "x.csv").write_text("old")
    with pytest.raises(InputError, match=r"\(or --force\)"):
        output_files(False, {"csv": str(tmp_path / "x.csv")})


def test_files_that_were_not_asked_are_left_out(tmp_path):
    assert list(output_files(False, {"csv": None, "plot": str(tmp_path / "x.png")})) == ["plot"]


def started(command, **given):
    return subprocess.run(["sh", "-c", f"{sys.executable} -m freeattn {command}"], text=True, check=False, **given)


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="no such names of streams here")
class TestStreams:
    """Pipes, devices and open descriptors: nothing there can be overwritten, and no --force is asked."""

    LAW = "law --n-tokens 32 --d-model 32 --n-heads 1 --d-key 32 --output attention --scores linear --points 10"

    def test_stdout_in_a_pipe_has_the_file_and_the_table(self, tmp_path):
        done = started(f"{self.LAW} --csv /dev/stdout", capture_output=True, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("x,density,cdf\n")
        assert "Squared singular values of the centered output" in done.stdout
        assert list(tmp_path.iterdir()) == []

    def test_stdout_in_a_file_keeps_what_is_there(self, tmp_path):
        done = started(f"{self.LAW} --csv /dev/stdout >> out.txt", capture_output=True, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        started(f"derive {self.LAW[4:-12]} -o /dev/fd/1 >> out.txt", capture_output=True, cwd=tmp_path)
        written = (tmp_path / "out.txt").read_text()
        order = [written.index(text) for text in ("x,density,cdf", "Squared singular values", "1. The layer.")]
        assert order == sorted(order)
        assert [entry.name for entry in tmp_path.iterdir()] == ["out.txt"]

    def test_a_pipe_with_a_name_and_a_device(self, run, tmp_path):
        os.mkfifo(tmp_path / "pipe.csv")
        reader = subprocess.Popen(["cat", tmp_path / "pipe.csv"], stdout=subprocess.PIPE, text=True)
        assert run(*self.LAW.split(), "--csv", tmp_path / "pipe.csv").code == 0
        assert len(reader.communicate()[0].splitlines()) >= 11
        assert run(*self.LAW.split(), "--csv", os.devnull).code == 0
        assert run("sweep", *self.LAW.split()[1:-2], "--over", "beta=1", "--csv", os.devnull).code == 0

    def test_a_link_to_a_descriptor_is_one(self, tmp_path):
        (tmp_path / "link").symlink_to("/dev/stdout")
        done = started(f"{self.LAW} --csv link > out.txt", capture_output=True, cwd=tmp_path)
        assert done.returncode == 0
        assert (tmp_path / "out.txt").read_text().startswith("x,density,cdf")

    def test_a_failing_block_sends_nothing(self, tmp_path):
        target = tmp_path / "seen"
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT)
        with pytest.raises(InputError, match=r"No space left"):
            write_full(OutputFile("csv", f"/dev/fd/{descriptor}"))
        os.close(descriptor)
        assert target.read_text() == ""

    def test_a_descriptor_that_is_closed_is_refused(self):
        with pytest.raises(InputError, match="csv = '/dev/fd/987' is not allowed; expected a stream that is open"):
            OutputFile("csv", "/dev/fd/987").check()
