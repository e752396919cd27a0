import hashlib
import zlib

import pytest

from moses_rnn.files.records import compare_manifests, find_sound, format_record, read_records

RECORDS = [{"input": "t"}, {"pid": 7, "host": "h"}, {"block": 1, "end": 3, "note": {"lines": 2}}]


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b"".join(map(format_record, RECORDS)))
    return path


def test_a_record_is_a_checksum_and_json():
    assert format_record({"end": 3}) == b'%08x {"end": 3}\n' % zlib.crc32(b'{"end": 3}')


def test_records_are_read_back_with_their_ends(journal):
    records = read_records(journal)
    assert [record for record, _ in records] == RECORDS
    assert records[-1][1] == journal.stat().st_size
    assert read_records(journal.with_name("none")) == []


@pytest.mark.parametrize("cut", [1, 5, 30])
def test_a_torn_record_does_not_count(journal, cut):
    journal.write_bytes(journal.read_bytes()[:-cut])
    assert [record for record, _ in read_records(journal)] == RECORDS[:-1]


@pytest.mark.parametrize("damage", [b"[1]", b"7"])
def test_a_changed_record_and_all_after_it_do_not_count(journal, damage):
    first, second, third = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(first + second.replace(b"7", b"8") + third)
    assert [record for record, _ in read_records(journal)] == RECORDS[:1]
    journal.write_bytes(first + b"%08x %s\n" % (zlib.crc32(damage), damage) + third)  # sound, and of something else
    assert [record for record, _ in read_records(journal)] == RECORDS[:1]


def test_manifests_differ_by_value_after_json():
    saved = {"input": "t", "floor": -87.0, "devices": [1, 2]}
    assert compare_manifests(saved, {**saved, "devices": (1, 2)}) == []
    assert compare_manifests(saved, {"input": "u", "floor": -87.0, "again": True}) == [
        "again None, now True",
        "devices [1, 2], now None",
        "input 't', now 'u'",
    ]


BLOCKS = [b"one", b"two!", b"three"]


def records_of(blocks):
    ends = [sum(map(len, blocks[: i + 1])) for i in range(len(blocks))]
    return [({"input": "t"}, 0)] + [
        ({"end": end, "crc32": zlib.crc32(block)}, 0) for block, end in zip(blocks, ends, strict=True)
    ]


@pytest.mark.parametrize(
    ("content", "most", "kept", "blocks"),
    [
        (b"onetwo!three", 9, 4, 3),
        (b"onetwo!threemore", 9, 4, 3),
        (b"onetwo!thr", 9, 3, 2),
        (b"onetwo?three", 9, 2, 1),
        (b"onetwo!three", 1, 2, 1),
        (b"", 9, 1, 0),
    ],
)
def test_blocks_count_as_far_as_their_bytes_are_sound(tmp_path, content, most, kept, blocks):
    (tmp_path / "part").write_bytes(content)
    count, written = find_sound(tmp_path / "part", records_of(BLOCKS), most)
    assert (count, written.blocks) == (kept, blocks)
    sound = b"".join(BLOCKS[:blocks])
    assert (written.end, written.hash.hexdigest()) == (len(sound), hashlib.sha256(sound).hexdigest())
