"""Arrays of NumPy's .npz archives, read without trust: nothing is unpickled, no size is believed unchecked.

An archive is a zip file of .npy members. Names, types, shapes and sizes of all members are known, and what they come to
is refused or not, before the numbers of any are read.
"""

from __future__ import annotations

import io
import os
import stat
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from moses_rnn.errors import InputError, shown_value

MAX_BYTES = 8 << 30  # of all members, uncompressed
MAX_AT_ONCE = 1 << 24  # bytes that are read in one piece: of a member, and of the archive's list of members
MAX_MEMBERS = 1000
MAX_DIMENSIONS = 2
DENSE = 1 << 20  # bytes from which on a member must not come from next to nothing
MAX_RATIO = 64  # of such a member's bytes to its compressed ones: weights are noise
TYPES = {"<f4", "<f8"}
HEADER = 1 << 12  # bytes of a member that its description needs at most
VERSIONS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
Array = npt.NDArray[np.floating[Any]]


class Member(NamedTuple):
    """What an array is, by its header."""

    shape: tuple[int, ...]
    type: str  # as NumPy writes it: "<f4" or "<f8"


class Archive:
    """An open archive; see `open_npz`."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        self.members: Mapping[str, Member] = self._checked()

    def read(self, name: str) -> Array:
        """The numbers of a member.

        Raises:
            InputError: they are damaged or cut short.
        """
        with self._refusing(name), self._archive.open(f"{name}.npy") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that an old Python wrote
            array: Array = np.lib.format.read_array(file, allow_pickle=False)
            if file.read(1):
                raise ValueError("more bytes than its shape has")
        return array

    def _checked(self) -> Mapping[str, Member]:
        """All members by name, without .npy."""
        infos = self._archive.infolist()
        if len(infos) > MAX_MEMBERS:
            raise InputError(f"{self._path}: expected at most {MAX_MEMBERS:,} arrays, found {len(infos):,}")
        for info in infos:
            self._check_info(info)
        if (total := sum(info.file_size for info in infos)) > MAX_BYTES:
            raise InputError(f"{self._path}: expected arrays of at most {MAX_BYTES:,} bytes, found {total:,}")
        names = [info.filename for info in infos]
        if doubled := [name for name in names if names.count(name) > 1]:
            raise InputError(f"{self._path}: expected each array once, found {shown_value(doubled[0])} again")
        return {info.filename.removesuffix(".npy"): self._header(info) for info in infos}

    def _check_info(self, info: zipfile.ZipInfo) -> None:
        """Refuse what is no plain array by the archive's own list."""
        name, finding = info.filename, ""
        if not name.endswith(".npy") or "/" in name or not name.isprintable():
            finding = "another member"
        elif info.flag_bits & 1:
            finding = "an encrypted one"
        elif info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            finding = f"compression method {info.compress_type}"
        elif info.file_size > max(DENSE, MAX_RATIO * info.compress_size):
            finding = f"{info.file_size:,} bytes compressed into {info.compress_size:,}"
        if finding:
            raise InputError(f"{self._path}: {shown_value(name)}: expected a plain .npy member, found {finding}")

    def _header(self, info: zipfile.ZipInfo) -> Member:
        """What a member says of itself; refused unless its numbers fill it exactly."""
        with self._refusing(info.filename), self._archive.open(info) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begin = io.BytesIO(file.read(HEADER))
            version = np.lib.format.read_magic(begin)
            if version not in VERSIONS:
                raise ValueError(f"version {version} of .npy")
            shape, _, dtype = VERSIONS[version](begin)
            if dtype.str not in TYPES:
                raise ValueError(f"numbers of type {dtype.str[:20]}")
            if len(shape) > MAX_DIMENSIONS or not all(0 < size <= MAX_BYTES for size in shape):
                raise ValueError(f"the shape {shape}")
            needed = begin.tell() + int(np.prod(shape, dtype=object)) * dtype.itemsize
            if needed != info.file_size:
                raise ValueError(f"{info.file_size:,} bytes, where its shape {shape} needs {needed:,}")
        return Member(tuple(map(int, shape)), dtype.str)

    @contextmanager
    def _refusing(self, name: str) -> Iterator[None]:
        expected = f"{self._path}: {shown_value(name)}: expected float32 or float64 numbers of at most two dimensions"
        try:
            yield
        except Exception as error:  # on nonsense, zipfile, zlib and numpy raise whatever comes
            raise InputError(f"{expected}, found: {str(error)[:200]}") from error


@contextmanager
def open_npz(path: Path) -> Iterator[Archive]:
    """Open an archive, and check its members before any numbers are read.

    Raises:
        InputError: it is no such archive, is damaged, or holds what is not read: pickles, other types than float32 and
            float64 in little-endian order, more than two dimensions, members that are doubled, encrypted or no arrays,
            more than 8 GiB, next to nothing that would become much.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: expected a .npz archive, found: {error.strerror}") from error
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InputError(f"{path}: expected a .npz archive, found no regular file")
        try:
            archive = zipfile.ZipFile(_Careful(file))
        except Exception as error:  # the same
            raise InputError(f"{path}: expected a .npz archive, found: {str(error)[:200]}") from error
        with archive:
            yield Archive(path, archive)


class _Careful(io.RawIOBase):
    """A file that gives no more than `MAX_AT_ONCE` bytes in one piece, whatever lengths a damaged archive has."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if size < 0:  # the rest
            size = max(os.fstat(self._file.fileno()).st_size - self._file.tell(), 0)
        if size > MAX_AT_ONCE:
            raise ValueError(f"a piece of {size:,} bytes")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True
