"""Archives of arrays: what is sound is read, and what is not is refused before its numbers take memory."""

import io
import pickle
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from moses_rnn.errors import InputError
from moses_rnn.formats import npz
from moses_rnn.formats.npz import Member, open_npz

W, B = np.arange(12, dtype=np.float32).reshape(3, 4) + 0.5, np.arange(5.0)


def npy(array, **options):
    """An array as a member's bytes."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


def described(description, data=b""):
    """A member with a header of any text."""
    text = description.encode("latin-1")
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def write(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_saves_is_read(tmp_path, save):
    save(tmp_path / "a.npz", W=W, b=B, turned=np.asfortranarray(W), nothing_but_zeros=np.zeros((40, 50)))
    with open_npz(tmp_path / "a.npz") as archive:
        assert archive.members["W"] == Member((3, 4), "<f4")
        assert archive.members["b"] == Member((5,), "<f8")
        assert list(archive.members) == ["W", "b", "turned", "nothing_but_zeros"]
        for name, array in (("W", W), ("b", B), ("turned", W)):
            assert np.array_equal(archive.read(name), array)


def test_what_an_old_python_saved_is_read(tmp_path, recwarn):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3L, 4L), }"
    with open_npz(write(tmp_path / "a", [("W.npy", described(header, W.tobytes()))])) as archive:
        assert archive.members["W"].shape == (3, 4)
        assert np.array_equal(archive.read("W"), W)
    assert not recwarn.list


def test_larger_ones_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "MAX_AT_ONCE", 1 << 20)
    array = np.random.default_rng(1).random((1000, 600))
    np.savez(tmp_path / "a.npz", array)
    with open_npz(tmp_path / "a.npz") as archive:
        assert np.array_equal(archive.read("arr_0"), array)


class Evil:
    def __reduce__(self):
        return print, ("unpickled",)


def objects():
    return npy(np.array([Evil()], dtype=object), allow_pickle=True)


HUGE = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }"
REFUSED = {
    "objects": ([("a.npy", objects())], "found: numbers of type |O"),
    "a pickle": ([("a.npy", pickle.dumps(Evil()))], "'a.npy': expected float32 or float64 .*, found: the magic string"),
    "a pickle that is no array": (
        [("a.pkl", pickle.dumps(Evil()))],
        "expected a plain .npy member, found another member",
    ),
    "in a folder": ([("../a.npy", npy(W))], "expected a plain .npy member, found another member"),
    "integers": ([("a.npy", npy(np.arange(3)))], "found: numbers of type <i8"),
    "halves": ([("a.npy", npy(W.astype(np.float16)))], "found: numbers of type <f2"),
    "other order": ([("a.npy", npy(W.astype(">f4")))], "found: numbers of type >f4"),
    "complex": ([("a.npy", npy(W.astype(complex)))], "found: numbers of type <c16"),
    "records": ([("a.npy", npy(np.zeros(2, [("x", "<f4")])))], "found: numbers of type"),
    "three dimensions": ([("a.npy", npy(np.zeros((2, 2, 2))))], r"found: the shape \(2, 2, 2\)"),
    "empty": ([("a.npy", npy(np.zeros((0, 3))))], r"found: the shape \(0, 3\)"),
    "negative": ([("a.npy", described(HUGE % (-1, -12), W.tobytes()))], "found: the shape"),
    "larger than there is": ([("a.npy", described(HUGE % (1 << 30, 4), W.tobytes()))], "where its shape .* needs"),
    "overflowing": ([("a.npy", described(HUGE % (1 << 33, 1 << 33), W.tobytes()))], "where its shape .* needs"),
    "overflowing to little": ([("a.npy", described(HUGE % (1 << 32, 1 << 32), W.tobytes()))], "where its shape"),
    "smaller than there is": ([("a.npy", npy(W) + b"more")], "180 bytes, where its shape .* needs 176"),
    "cut short": ([("a.npy", npy(W)[:-1])], "175 bytes, where its shape .* needs 176"),
    "no header": ([("a.npy", npy(W)[:20])], "found: "),
    "a long header": ([("a.npy", described(HUGE % (3, 4) + " " * 20000, W.tobytes()))], "found: "),
    "code for a header": ([("a.npy", described("__import__('os').getpid()", W.tobytes()))], "found: "),
    "a deep header": ([("a.npy", described("(" * 3000))], "found: "),
    "a later version": ([("a.npy", npy(W).replace(b"Y\x01", b"Y\x03", 1))], r"found: version \(3, 0\) of .npy"),
    "nothing": ([("a.npy", b"")], "found: "),
}


@pytest.mark.parametrize(("members", "message"), REFUSED.values(), ids=REFUSED)
def test_refuses(tmp_path, members, message, capsys):
    path = write(tmp_path / "a.npz", members)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=message), open_npz(path):
            pass
        assert tracemalloc.get_traced_memory()[1] < 8e6
    finally:
        tracemalloc.stop()
    assert "unpickled" not in "".join(capsys.readouterr())


def test_refuses_what_becomes_much(tmp_path):
    bomb = write(tmp_path / "a", [("a.npy", npy(np.zeros((1000, 2000))))], zipfile.ZIP_DEFLATED)
    with (
        pytest.raises(InputError, match=r"plain .npy member, found 16,000,128 bytes compressed into [\d,]+$"),
        open_npz(bomb),
    ):
        pass


def test_refuses_more_than_fits(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "MAX_BYTES", 300)
    path = write(tmp_path / "a", [("a.npy", npy(W)), ("b.npy", npy(B))])
    with pytest.raises(InputError, match="expected arrays of at most 300 bytes, found 344"), open_npz(path):
        pass


def test_refuses_too_many(tmp_path):
    path = write(tmp_path / "a", [(f"a{i}.npy", npy(B)) for i in range(1001)])
    with pytest.raises(InputError, match="expected at most 1,000 arrays, found 1,001"), open_npz(path):
        pass


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_refuses_doubled_members(tmp_path):
    path = write(tmp_path / "a", [("a.npy", npy(W)), ("b.npy", npy(W)), ("a.npy", npy(B))])
    with pytest.raises(InputError, match="expected each array once, found 'a.npy' again"), open_npz(path):
        pass


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_refuses_other_compressions(tmp_path, method):
    path = write(tmp_path / "a", [("a.npy", npy(W))], method)
    with pytest.raises(InputError, match=f"found compression method {method}"), open_npz(path):
        pass


def test_refuses_encrypted_members(tmp_path):
    path = write(tmp_path / "a", [("a.npy", npy(W))])
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="found an encrypted one"), open_npz(path):
        pass


def sizes_changed(data, to):
    """The archive's list says that its first member is of another size, compressed and not."""
    place = data.index(b"PK\x01\x02") + 20
    return data[:place] + struct.pack("<LL", to, to) + data[place + 8 :]


def test_sizes_that_are_lies_are_refused(tmp_path):
    """zipfile gives no more than the list says: a header's shape is held to it, and the data to its checksum."""
    path = write(tmp_path / "a", [("a.npy", npy(W)), ("b.npy", npy(B))])
    data = path.read_bytes()
    for size in (10, 170, 1 << 20, 0xFFFFFFF0):
        path.write_bytes(sizes_changed(data, size))
        with pytest.raises(InputError), open_npz(path):
            pass
    damaged = bytearray(data)
    damaged[200] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=r"'a.npy': .*, found: Bad CRC-32"), open_npz(path) as archive:
        archive.read("a")


def test_a_list_of_members_without_end_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(npz, "MAX_AT_ONCE", 100_000)
    path = write(tmp_path / "a", [(f"a{i}.npy", b"") for i in range(2500)])
    with pytest.raises(InputError, match=r"expected a .npz archive, found: a piece of [\d,]+ bytes"), open_npz(path):
        pass


@pytest.mark.parametrize("data", [b"", b"PK", b"\x93NUMPY", bytes(5000)])
def test_what_is_no_archive_is_refused(tmp_path, data):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(InputError, match=r"a: expected a .npz archive, found: "), open_npz(tmp_path / "a"):
        pass


def test_an_archive_cut_anywhere_is_refused(tmp_path):
    path = write(tmp_path / "a", [("a.npy", npy(W)), ("b.npy", npy(B))], zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    for size in range(0, len(data), 7):
        path.write_bytes(data[:size])
        with pytest.raises(InputError), open_npz(path) as archive:
            archive.read("a")


def test_what_is_no_file_is_refused(tmp_path):
    for path, finding in ((tmp_path, "found: Is a directory"), (tmp_path / "none", "found: No such file")):
        with pytest.raises(InputError, match=finding), open_npz(path):
            pass
    (tmp_path / "zero").symlink_to("/dev/zero")
    with pytest.raises(InputError, match="found no regular file"), open_npz(tmp_path / "zero"):
        pass
