"""What a loaded network writes: samples, and translations."""

import pytest

import moses_rnn
from moses_rnn.models.open import save_model
from moses_rnn.models.rare_words import RareWords, Shortlists
from tests.models.rare import READ, WRITTEN, deep_lstm, rare_model


def test_samples_are_scored_and_counted(encdec):
    (of_source,) = encdec.sample(["s2 s3"], samples=200, max_words=6)
    assert [s.log_prob for s in of_source] == sorted((s.log_prob for s in of_source), reverse=True)
    assert len({s.text for s in of_source}) == len(of_source) < sum(s.times for s in of_source) <= 200
    assert encdec.score(("s2 s3", s.text) for s in of_source) == pytest.approx([s.log_prob for s in of_source])


def test_a_sources_samples_depend_on_the_seed_alone(encdec):
    sources = [f"s{i % 7 + 2} s{i % 5 + 2}" for i in range(300)]  # more than are written together
    together = encdec.sample(sources, 5)
    assert len(together) == len(sources)
    assert [s.text for s in together[-1]] == [s.text for s in encdec.sample(sources[-1:], 5)[0]]
    assert encdec.sample(sources[:1], 5, seed=2) != encdec.sample(sources[:1], 5)


def test_an_inverse_network_reads_targets(models):
    inverse = moses_rnn.load(models / "inverse", device="cpu")
    (of_target,) = inverse.sample(["s2 s3"], 20, unknown=False)
    assert inverse.score((s.text, "s2 s3") for s in of_target) == pytest.approx([s.log_prob for s in of_target])
    assert "<unk>" not in " ".join(s.text for s in of_target)


def test_translations_come_in_order_with_their_scores(search):
    sentences = ["s2 s3", "", b"s4 s2 s9", "s2 s3"]
    done = search.translate(iter(sentences), n_best=3, beam=4, length_score="sum")
    assert [t.source for t in done] == ["s2 s3", "", "s4 s2 s9", "s2 s3"]
    assert (done[1].text, done[1].log_prob) == ("", 0.0)
    assert done[0] == done[3]
    for translation in done[0], done[2]:
        best = translation.hypotheses[0]
        assert (translation.text, translation.log_prob) == (best.text, best.log_prob)
        scores = search.score((translation.source, h.text) for h in translation.hypotheses)
        assert scores == pytest.approx([h.log_prob for h in translation.hypotheses], rel=1e-5)
        assert [len(h.places) for h in translation.hypotheses] == [len(h.text.split()) for h in translation.hypotheses]


def test_unknown_words_are_copied_or_never_written(search):
    sentences = [f"s{i} s9 s{j}" for i in range(2, 8) for j in range(2, 8)]
    texts = {
        rule: " ".join(t.text for t in search.translate(sentences, unknown=rule)) for rule in ("no", "copy", "never")
    }
    assert "<unk>" not in texts["copy"]
    assert "<unk>" not in texts["never"]


def test_a_network_of_phrases_warns(encdec):
    with pytest.warns(UserWarning, match="rnn: learned from phrases") as warned:
        encdec.translate(["s2"])
    assert warned[0].filename == __file__


@pytest.mark.parametrize("kind", ["copyable", "posall", "posunk"])
@pytest.mark.parametrize("make", [rare_model, deep_lstm])
def test_a_translation_scores_the_same_by_its_places(tmp_path, kind, make):
    save_model(tmp_path / "m", make(kind))
    model = moses_rnn.load(tmp_path / "m", device="cpu", threads=1)
    sources = ["s2 s8 s3", "s8 s9", "s9 s2 s4 s8", "s2 s3"]
    lists = Shortlists(frozenset(READ), frozenset(WRITTEN))
    same = 0
    for text, tokens in zip(
        *(model.translate(sources, n_best=8, length_score="sum", unknown=rule) for rule in ("copy", "no")), strict=True
    ):
        for found, written in zip(text.hypotheses, tokens.hypotheses, strict=True):
            links = [(j, i) for i, j in enumerate(found.places) if j >= 0]
            again = RareWords(kind, 2).annotate(text.source.encode().split(), found.text.encode().split(), links, lists)
            if found.ended and [word.decode() for word in again[1]] == written.text.split():
                same += 1
                alignment = " ".join(f"{j}-{i}" for j, i in links)
                assert model.score([(text.source, found.text, alignment)])[0] == pytest.approx(found.log_prob, rel=1e-4)
    assert same > 3
