"""What the first rank makes of a corpus, as files that the others map instead of making it again.

The first rank maps them too, so that a machine holds them once. The model's folder removes them at the end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from moses_rnn.errors import InputError, writing
from moses_rnn.networks.folders import replace_file
from moses_rnn.networks.vocabulary import Ids, Vocabulary
from moses_rnn.training.corpus import Corpus, CorpusStatistics, Phrases, Positions
from moses_rnn.training.model_folder import MAPPED
from moses_rnn.training.ranks import Ranks

Made = TypeVar("Made")
RECORD, *_ = MAPPED
ANNOUNCEMENT = "corpus"


@dataclass(frozen=True)
class Filing(Generic[Made]):
    """How something is written into a folder, and how it is mapped from there."""

    save: Callable[[Made, Path], None]
    load: Callable[[Path], Made]


def made_by_first(
    ranks: Ranks, folder: Path, filing: Filing[Made], make: Callable[[], Made], should_stop: Callable[[], bool]
) -> Made:
    """What the first rank makes, on all of them; without others, just that.

    Args:
        ranks: all of them.
        folder: for the files, which are replaced.
        filing: how they are written and read.
        make: called on the first rank alone; the others wait however long it takes.
        should_stop: asked while waiting.

    Raises:
        InputError: this rank does not see the files of the first one.
        PeerFailed, Stopped: see `Ranks.wait_for`.
    """
    if ranks.size == 1:
        return make()
    if ranks.leads:
        filing.save(make(), folder)
        ranks.announce(ANNOUNCEMENT, str(folder))
    else:
        ranks.wait_for(ANNOUNCEMENT, should_stop)
    try:
        made = filing.load(folder)
    except OSError as error:
        raise InputError(
            f"{error.filename or folder}: expected what the first process has written there, found: {error.strerror}",
            advice="Machines that train together must share the model's folder.",
        ) from error
    ranks.meet()  # the first removes the files if it fails from now on
    return made


def save_corpus(corpus: Corpus, folder: Path) -> None:
    """Write all of a corpus but its words' ids, which are in files already."""
    save_record(folder, {"statistics": asdict(corpus.statistics), "digest": corpus.digest})
    save_vocabulary(folder, "source", corpus.source_vocabulary)
    save_vocabulary(folder, "target", corpus.target_vocabulary)
    for name, positions in (
        ("source.ends", corpus.source.ends),
        ("target.ends", corpus.target.ends),
        ("training", corpus.training),
        ("held-out", corpus.held_out),
    ):
        _save_positions(folder / f"{name}.npy", positions)


def load_corpus(folder: Path) -> Corpus:
    """Map a corpus that `save_corpus` has written."""
    record = load_record(folder)
    source, target = (
        Phrases(map_ids(folder / f"{side}.tokens"), _map_positions(folder / f"{side}.ends.npy"))
        for side in ("source", "target")
    )
    return Corpus(
        source,
        target,
        _map_positions(folder / "training.npy"),
        _map_positions(folder / "held-out.npy"),
        load_vocabulary(folder, "source"),
        load_vocabulary(folder, "target"),
        CorpusStatistics(**record["statistics"]),
        record["digest"],
    )


PAIRS = Filing(save_corpus, load_corpus)


def save_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write what is no array, of values that JSON knows."""
    replace_file(folder / RECORD, json.dumps(record).encode())


def load_record(folder: Path) -> dict[str, Any]:
    """Read what `save_record` wrote."""
    record: dict[str, Any] = json.loads((folder / RECORD).read_bytes())
    return record


def save_vocabulary(folder: Path, side: str, vocabulary: Vocabulary) -> None:
    """Write the shortlist of a side."""
    replace_file(folder / f"{side}.words", vocabulary.to_bytes())


def load_vocabulary(folder: Path, side: str) -> Vocabulary:
    """Read what `save_vocabulary` wrote."""
    return Vocabulary.from_bytes((folder / f"{side}.words").read_bytes())


def map_ids(path: Path) -> Ids:
    """Ids of words, to be read alone."""
    return np.memmap(path, dtype=np.int32, mode="r")


def _save_positions(path: Path, positions: Positions) -> None:
    path.unlink(missing_ok=True)  # perhaps a link to something else
    with writing(path, positions.nbytes), path.open("xb") as file:
        np.lib.format.write_array(file, np.ascontiguousarray(positions), allow_pickle=False)
        file.flush()


def _map_positions(path: Path) -> Positions:
    return np.asarray(np.lib.format.open_memmap(path, mode="r"))
