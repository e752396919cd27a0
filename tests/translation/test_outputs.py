"""Files of a translation that die at any moment, together."""

import itertools

import pytest

from moses_rnn.errors import OutputError
from moses_rnn.files.journal import BlockOutput, Opening
from moses_rnn.translation.outputs import open_outputs

NAMES = ("out", "list", "alpha")


class Death(BaseException):
    """Nothing is tidied up after it, as after a kill: see `dying`."""


@pytest.fixture
def dying(monkeypatch):
    """Has a run end at its n-th step towards the disk."""

    def arrange(number):
        steps = itertools.count()

        def until(original):
            def step(self, *given, **options):
                if next(steps) == number:
                    raise Death
                return original(self, *given, **options)

            return step

        for name in ("append", "commit"):
            monkeypatch.setattr(BlockOutput, name, until(ORIGINALS[name]))
        monkeypatch.setattr(BlockOutput, "__exit__", forget_everything if number < 1000 else ORIGINALS["__exit__"])

    return arrange


ORIGINALS = {name: vars(BlockOutput)[name] for name in ("append", "commit", "__exit__")}


def forget_everything(output, *_):
    """A dead process closes its files and does nothing else."""
    output._stream.close()
    output._journal.close()


def write(blocks, **opening):
    """A run: how many blocks were there before it."""
    with open_outputs("out", NAMES[1:], Opening(**opening), ()) as outputs:
        outputs.begin({"what": 1})
        before = outputs.blocks
        for number in range(before, blocks):
            outputs.append(b"text %d\n" % number, [b"list %d\n" % number, b"alpha %d\n" % number], {"done": number})
        outputs.commit()
    return before


@pytest.mark.parametrize("number", range(12))
def test_dead_at_any_step_all_come_to_the_same_end(tmp_path, monkeypatch, dying, number):
    monkeypatch.chdir(tmp_path)
    dying(number)
    with pytest.raises(Death):
        write(3)
    dying(1000)
    assert write(3, resume=True) == min(number // 3, 3)
    assert {path.name for path in tmp_path.iterdir()} == set(NAMES)
    for name, word in zip(NAMES, ("text", "list", "alpha"), strict=True):
        assert (tmp_path / name).read_text() == f"{word} 0\n{word} 1\n{word} 2\n"


def test_dead_while_it_tidies_up_it_is_finished(tmp_path, monkeypatch, dying):
    """The text's journal is the last to go."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        BlockOutput, "__exit__", lambda o, *a: (forget_everything if o.path == "out" else ORIGINALS["__exit__"])(o, *a)
    )
    write(3)
    assert {path.name for path in tmp_path.iterdir()} == {*NAMES, ".out.journal"}
    dying(1000)
    assert write(3, resume=True) == 3
    assert {path.name for path in tmp_path.iterdir()} == set(NAMES)


def test_what_lacks_blocks_is_refused(tmp_path, monkeypatch, dying):
    monkeypatch.chdir(tmp_path)
    dying(7)
    with pytest.raises(Death):
        write(3)
    dying(1000)
    (tmp_path / ".list.part").write_bytes(b"list 0\n")
    with pytest.raises(OutputError, match="list: expected the 2 blocks that out has, found 1\n"):
        write(3, resume=True)


def test_beside_standard_output_files_are_whole_or_not_there(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    with open_outputs("-", ["list"], Opening(), ()) as outputs:
        assert not outputs.is_resumable
        outputs.begin({})
        outputs.append(b"a\n", [b"b\n"], {})
        assert not (tmp_path / "list").exists()
        outputs.commit()
    assert capfdbinary.readouterr().out == b"a\n"
    assert (tmp_path / "list").read_bytes() == b"b\n"
