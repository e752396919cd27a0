"""Blocks of lines translated by workers that open the models themselves, and shards of a text."""

import pickle

import pytest

from moses_rnn.errors import InputError
from moses_rnn.files.metered import show_nothing
from moses_rnn.files.shards import Shard
from moses_rnn.formats.phrase_forms import words
from moses_rnn.pools.request import PoolRequest
from moses_rnn.producers.base import HERE
from moses_rnn.producers.ensembles import GEOMETRIC, open_writer
from moses_rnn.producers.open import open_model
from moses_rnn.translation import translate
from moses_rnn.translation.beam_search import BeamConfig
from moses_rnn.translation.jobs import TranslationJob
from moses_rnn.translation.request import TranslationRequest
from moses_rnn.translation.run import translate_text
from moses_rnn.translation.translate import Translator
from tests.producers.rare import save_rare_model
from tests.translation.sentences import save_model, sentences, text

LINES = sentences(30)
BEAM = BeamConfig(width=4, best=2, words_per_source_word=3)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(translate, "LINES", 8)
    (tmp_path / "in").write_bytes(text(LINES))
    for name in ("one", "other"):
        save_model(tmp_path / name)
    return tmp_path


def run(model, output, **options):
    asked = TranslationRequest(input="in", output=output, beam=BEAM, compute=HERE, n_best=f"{output}.list", **options)
    return translate_text(asked, model, show_nothing, lambda: False)


@pytest.mark.parametrize("folders", [["one"], ["one", "other"]])
def test_a_job_translates_as_the_open_model_does(here, folders):
    model = open_writer([here / name for name in folders], GEOMETRIC)
    job = TranslationJob.of(TranslationRequest(input="in", output="o", beam=BEAM, compute=HERE), model, 1)
    again = pickle.loads(pickle.dumps(job))
    assert (again, hash(again)) == (job, hash(job))
    block = [words(line) for line in LINES[:8]]
    translator = Translator(model.source_vocabulary, model.target_vocabulary, model.make_stepper(HERE), BEAM)
    expected = translator.translate(block)
    translations, counts = job.begin("cpu")(block)
    assert ([t.candidates for t in translations], counts) == ([t.candidates for t in expected], translator.counts)


def test_rare_words_are_restored_by_processes_too(here):
    model = open_model(save_rare_model(here / "rare", "posunk"))
    (here / "in").write_bytes(b"s2 what s3\nnever seen s4 s2\n")
    counts = run(model, "alone")
    assert counts.unknown or counts.replaced or counts.words
    assert run(model, "processes", pool=PoolRequest(processes=1)) == counts
    assert (here / "processes").read_bytes() == (here / "alone").read_bytes()


def test_processes_write_what_this_process_writes(here):
    model = open_model(here / "one")
    counts = run(model, "alone")
    assert run(model, "processes", pool=PoolRequest(processes=1)) == counts
    for suffix in ("", ".list"):
        assert (here / f"processes{suffix}").read_bytes() == (here / f"alone{suffix}").read_bytes()


@pytest.mark.parametrize("count", [1, 4, 40])
def test_shards_laid_end_to_end_are_the_whole(here, count):
    model = open_model(here / "one")
    whole = run(model, "whole")
    counts = [run(model, f"part{k}", shard=Shard(k, count)) for k in range(1, count + 1)]
    assert sum(part.lines for part in counts) == whole.lines
    for suffix in ("", ".list"):
        parts = b"".join((here / f"part{k}{suffix}").read_bytes() for k in range(1, count + 1))
        assert parts == (here / f"whole{suffix}").read_bytes()


def test_a_shard_of_a_pipe_is_refused(here):
    asked = TranslationRequest(input="-", output="o", beam=BEAM, compute=HERE, shard=Shard(1, 2))
    with pytest.raises(InputError, match="expected a file, whose lines can be counted, found a pipe"):
        translate_text(asked, open_model(here / "one"), show_nothing, lambda: False)
