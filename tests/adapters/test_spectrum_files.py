"""Files of numbers: what is read, and what is refused in one line."""

import io
import zipfile

import numpy as np
import pytest

import freeattn as fa
from freeattn.adapters import spectrum_files

VALUES = np.array([0.0, 1.5, 2.25])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "0\n1.5\n2.25\n"),
        ("a.csv", "0,1.5,2.25"),
        ("a.txt", "# eigenvalues\n\n0.0\n1.5e0\n 2.25 \n"),
        ("a.dat", "0; 1.5; 2.25\n"),
        ("a.TXT", "\ufeff0\r\n1.5\r\n2.25\r\n"),
    ],
)
def test_texts(tmp_path, name, content):
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    assert np.array_equal(fa.read_spectrum(file), VALUES)


@pytest.mark.parametrize("dtype", ["float64", "float32", ">f8", "int64"])
def test_arrays(tmp_path, dtype):
    np.save(tmp_path / "a.npy", VALUES.astype(dtype))
    assert np.array_equal(fa.read_spectrum(str(tmp_path / "a.npy")), VALUES.astype(dtype))


def test_what_numpy_writes_as_text_is_read(tmp_path):
    np.savetxt(tmp_path / "a.txt", VALUES, header="eigenvalues")
    assert np.array_equal(fa.read_spectrum(tmp_path / "a.txt"), VALUES)


def npy(array, pickled=False):
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=pickled)
    return stream.getvalue()


def archive():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr("a.npy", npy(VALUES))
    return stream.getvalue()


HUGE = npy(VALUES).replace(b"(3,), }" + 13 * b" ", b"(99999999999999,), }")  # 800 TB, says the header
BAD = [
    ("underscore.csv", b"1_000\n", "line 1 has '1_000'"), ("arabic.csv", "\u0661\n".encode(), "line 1 has"),
    ("a.npy", b"", "one array"),
    ("a.npy", b"0\n1\n", "one array"),
    ("a.npy", npy(VALUES)[:-4], "one array"),
    ("a.npy", npy(np.array([1, None], dtype=object), pickled=True), "one array"),
    ("a.npy", archive(), "one array"),
    ("a.npy", HUGE, "one array"),
    ("a.npy", npy(VALUES).replace(b"(3,), }", b"(3,),  "), "one array"),
    ("a.npy", npy(VALUES).replace(b"<f8", b"<q8"), "one array"),
    ("a.csv", b"eigenvalue\n1\n", "line 1 has 'eigenvalue'"),
    ("a.csv", b"1\n2\n0x10\n", "line 3 has '0x10'"),
    ("a.csv", b"1,2\n3,4\n", "a table"),
    ("a.csv", b"\xff\xfe1\x00", "UTF-8"),
    ("a.npz", archive(), "ends in .npy"),
    ("a", b"1\n", "ends in .npy"),
]


@pytest.mark.parametrize(("name", "content", "text"), BAD)
def test_bad_files(tmp_path, name, content, text):
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(fa.InputError) as error:
        fa.read_spectrum(file)
    message = str(error.value)
    assert text in message
    assert error.value.field == "spectrum"
    assert len(message.splitlines()) == 1


def test_no_file_and_no_huge_file(tmp_path, monkeypatch):
    with pytest.raises(fa.InputError, match="exists"):
        fa.read_spectrum(tmp_path / "none.npy")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(fa.InputError, match="exists"):
        fa.read_spectrum(tmp_path / "folder.npy")
    np.save(tmp_path / "a.npy", VALUES)
    monkeypatch.setattr(spectrum_files, "_MOST_BYTES", 100)
    with pytest.raises(fa.InputError, match="at most 100 bytes"):
        fa.read_spectrum(tmp_path / "a.npy")
