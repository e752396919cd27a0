import zlib

import pytest

from moses_rnn.files.records import compare_manifests, format_record, read_records

RECORDS = [{"input": "t"}, {"pid": 7, "host": "h"}, {"block": 1, "end": 3, "note": {"lines": 2}}]


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "journal"
    path.write_bytes(b"".join(map(format_record, RECORDS)))
    return path


def test_a_record_is_a_checksum_and_json():
    assert format_record({"end": 3}) == b'%08x {"end": 3}\n' % zlib.crc32(b'{"end": 3}')


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
