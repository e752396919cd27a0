"""Pretrained models: their scores, what they read, what is refused."""

import itertools
import json
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from moses_rnn.errors import CheckpointError, MosesRnnError, PairError
from moses_rnn.models import pretrained
from moses_rnn.models.base import Tally
from moses_rnn.models.pretrained import open_pretrained
from moses_rnn.networks.compute import Compute
from moses_rnn.options import PretrainedOptions
from moses_rnn.table.table_blocks import Pairs
from tests.models.hugging_face import save_m2m, save_marian, save_mbart, save_nllb, save_t5, transformers

SHORT, LONG, WITH_COUNTRY = (
    PretrainedOptions(source_language=source, target_language=target, pretrained_text="raw")
    for source, target in (("en", "fr"), ("eng_Latn", "fra_Latn"), ("en_XX", "fr_XX"))
)
KINDS = {
    "marian": (save_marian, SHORT),
    "m2m": (save_m2m, SHORT),
    "nllb": (save_nllb, LONG),
    "mbart": (save_mbart, WITH_COUNTRY),
    "t5": (save_t5, SHORT),
}
TARGETS = "the man", "", "le petit homme", "la femme a vu le petit homme", "☃ ça", "le"
PAIRS = [
    (source.encode(), target.encode())
    for source, target in itertools.product(("the small man", "", "in front of the woman", "☃ x"), TARGETS)
]
PADDED = [(source, target) for source, _ in PAIRS[:7:6] for target in (b"le <pad> petit", b"<pad>", b"<pad> le")]


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return {name: save(tmp_path_factory.mktemp("hf") / name) for name, (save, _) in KINDS.items()}


@pytest.fixture(scope="module")
def folder(folders, kind):
    return folders[kind]


@pytest.fixture(scope="module")
def marian(folders):
    return folders["marian"]


@pytest.fixture
def copied(marian, tmp_path):
    """A copy of the Marian model that a test may damage."""
    return shutil.copytree(marian, tmp_path / "copy")


def opened(folder, options=SHORT, **others):
    return open_pretrained(f"hf:{folder}", replace(options, **others))


def reference(folder, pairs, **languages):
    """-loss · labels, one pair at a time."""
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **languages)
    scores = []
    for source, target in pairs:
        made = tokenizer(source.decode(), text_target=target.decode(), return_tensors="pt")
        with torch.no_grad():
            scores.append(-model(**made).loss.double().item() * made["labels"].numel())
    return scores


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def edit_weights(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def refusal(folder, options=SHORT, error=CheckpointError, **others):
    with pytest.raises(error) as caught:
        opened(folder, options, **others)
    assert str(caught.value).startswith(f"hf:{folder}: expected ")
    return str(caught.value)


def test_scores_are_those_of_the_models_own_loss(folder, kind, monkeypatch):
    options = KINDS[kind][1]
    languages = {"src_lang": options.source_language, "tgt_lang": options.target_language}
    languages = {} if kind in ("marian", "t5") else languages
    pairs = PAIRS + PADDED
    expected = reference(folder, pairs, **languages)
    assert np.ptp(expected) > 10
    scorer = opened(folder, options).make_scorer()
    assert scorer.log_probs(Pairs.of(pairs)) == pytest.approx(expected, abs=1e-4)
    assert scorer.log_probs(Pairs.of(pairs[::-1] * 2)) == pytest.approx(expected[::-1] * 2, abs=1e-4)
    assert scorer.log_probs(Pairs.of([])).shape == (0,)
    monkeypatch.setattr(pretrained, "MOST_LOGITS", 2000)  # batches of a tree or two
    monkeypatch.setattr(pretrained, "MOST_NODES", 12)  # trees of a target or two
    monkeypatch.setattr(pretrained, "MOST_READ", 10)
    assert opened(folder, options).make_scorer().log_probs(Pairs.of(pairs)) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("name", ["marian", "m2m", "mbart"])
def test_sources_and_equal_beginnings_of_their_targets_are_read_once(folders, name):
    model, read, written = opened(folders[name], KINDS[name][1]), [], []
    model.network.get_encoder().register_forward_hook(lambda *seen: read.append(len(seen[2][0])))
    model.network.register_forward_hook(lambda *seen: written.append(seen[2].logits[:, :, 0].numel()))
    model.make_scorer().log_probs(Pairs.of(PAIRS * 2))
    targets = model.reader.labels("target", [target.encode() for target in TARGETS])
    last = {target[-1:] if name == "mbart" else () for target in targets}
    beginnings = {target[:i] for target in targets for i in range(len(target))}
    assert len(last) == 1
    assert (sum(read), sum(written)) == (4, 4 * len(beginnings))


@pytest.mark.parametrize(("precision", "tolerance"), [("fp64", 1e-4), ("bf16", 1.0)])
def test_another_precision_gives_nearly_the_same(marian, precision, tolerance):
    model = opened(marian)
    expected = model.make_scorer().log_probs(Pairs.of(PAIRS))
    found = opened(marian).make_scorer(Compute("cpu", precision)).log_probs(Pairs.of(PAIRS))
    assert found == pytest.approx(expected, abs=tolerance)
    assert (found != expected).any()


def test_lines_are_detokenised_by_default(marian):
    lines = Pairs.of([(b"the man &apos;s , house", b"l&apos; homme &amp; la femme ."), (b"a\tman", b"&#124; un")])
    plain = Pairs.of([(b"the man's, house", b"l'homme & la femme."), (b"a man", b"| un")])
    tokenised = Pairs.of([(b"the man 's , house", b"l' homme & la femme ."), (b"a man", b"| un")])
    raw = opened(marian).make_scorer()
    for text, read in (("detokenised", plain), ("tokenised", tokenised), ("raw", lines)):
        model = opened(marian, pretrained_text=text)
        assert model.make_scorer().log_probs(lines).tolist() == raw.log_probs(read).tolist()
        assert f"en to fr, {text} text" in model.meaning
    assert len({tuple(raw.log_probs(read)) for read in (plain, tokenised, lines)}) == 3


def test_languages_that_a_model_records_are_known(copied):
    unsaid = PretrainedOptions()
    assert "en to fr, detokenised text" in opened(copied, unsaid).meaning
    edit(copied / "tokenizer_config.json", source_lang=None)
    assert "--source-language" in refusal(copied, unsaid)
    assert opened(copied, unsaid, source_language="eng").meaning != opened(copied, SHORT).meaning
    assert opened(copied, unsaid, pretrained_text="tokenised")


@pytest.mark.parametrize(("name", "given", "found", "known"), [
    ("m2m", {"source_language": None}, "--source-language to be a language of the model, found none", " fr "),
    ("m2m", {"target_language": "fra"}, "--target-language to be a language of the model, found fra", " fr "),
    ("nllb", {}, "--source-language to be a language of the model, found en", " eng_Latn "),
])  # fmt: skip
def test_a_language_that_a_model_lacks_is_refused_with_those_that_it_has(folders, name, given, found, known):
    message = refusal(folders[name], **given)
    assert found in message
    assert known in message.split("\n")[1]


def test_a_multilingual_marian_model_needs_the_target_language(tmp_path):
    folder = save_marian(tmp_path / "roa", ("en", "roa"), (">>fra<<", ">>ita<<"))
    assert "Known: fra ita" in refusal(folder, target_language=None)
    pairs = [(b"the man", b"le petit homme")]
    french, italian = (opened(folder, target_language=code).make_scorer() for code in ("fra", "ita"))
    assert french.log_probs(Pairs.of(pairs)) == pytest.approx(
        reference(folder, [(b">>fra<< the man", b"le petit homme")]), abs=1e-4
    )
    assert french.log_probs(Pairs.of(pairs)) != italian.log_probs(Pairs.of(pairs))


def test_pairs_with_unknown_pieces_are_counted(marian):
    tally = Tally()
    opened(marian).make_scorer().log_probs(Pairs.of(PAIRS), tally)
    assert (tally.unknown, tally.oom_splits) == (9, 0)


def test_work_is_split_when_memory_is_short(marian, monkeypatch):
    model, tally = opened(marian), Tally()
    expected = model.make_scorer().log_probs(Pairs.of(PAIRS))

    def refuse_many(most):
        def refuse(_module, args, given):
            (ids,) = args or (given["decoder_input_ids"],)
            if len(ids) > most:
                raise torch.OutOfMemoryError(f"{len(ids)} rows")

        return refuse  # fmt: skip

    for module in (model.network, model.network.get_encoder()):
        module.register_forward_pre_hook(refuse_many(1), with_kwargs=True)
    assert model.make_scorer().log_probs(Pairs.of(PAIRS), tally) == pytest.approx(expected, abs=1e-4)
    assert tally.oom_splits == 6  # four sources and their four trees
    model.network.register_forward_pre_hook(refuse_many(0), with_kwargs=True)
    with pytest.raises(MosesRnnError, match="too small for a single phrase"):
        model.make_scorer().log_probs(Pairs.of(PAIRS))


@pytest.mark.parametrize("pair", [(b"the man", b"le " * 65), (b"the man " * 33, b"le")])
def test_a_pair_that_is_too_long_is_refused(marian, pair):
    with pytest.raises(PairError, match="HF: expected 1 to 64 pieces of words, found ") as caught:
        opened(marian).make_scorer().log_probs(Pairs.of([*PAIRS, pair]))
    assert caught.value.exit_code == 3
    fitting = b"le " * 63  # and </s>
    assert opened(marian).make_scorer().log_probs(Pairs.of([(b"the man", fitting)])) == pytest.approx(
        reference(marian, [(b"the man", fitting)]), abs=1e-3
    )


@pytest.mark.parametrize("change", [
    lambda tensors: tensors["model.shared.weight"].mul_(1e30),
    lambda tensors: tensors["model.encoder.layers.0.fc1.bias"].fill_(float("nan")),
])  # fmt: skip
def test_a_score_that_is_no_number_is_refused(copied, change):
    edit_weights(copied, change)
    with pytest.raises(PairError, match="HF: expected a log-probability, found nan") as caught:
        opened(copied).make_scorer().log_probs(Pairs.of(PAIRS[:1]))
    assert caught.value.exit_code == 3


@pytest.mark.parametrize(("change", "found"), [
    (lambda tensors: tensors.pop("model.decoder.layers.1.fc2.weight"), "1 tensor missing: model.decoder.layers.1.fc2"),
    (lambda tensors: tensors.update({"model.shared.weight": torch.zeros(3, 3)}), "size mismatch"),
])  # fmt: skip
def test_damaged_weights_are_refused(copied, change, found):
    edit_weights(copied, change)
    assert found in refusal(copied)


def test_a_tokenizer_of_another_model_is_refused(copied):
    vocabulary = json.loads((copied / "vocab.json").read_text())
    edit(copied / "vocab.json", **{piece: i + 1000 for piece, i in vocabulary.items() if piece.startswith("▁")})
    with pytest.raises(PairError, match="expected a tokenizer for the model's [0-9]+ labels, found label 1,"):
        opened(copied).make_scorer().log_probs(Pairs.of(PAIRS))


class Evil:
    def __reduce__(self):
        return exec, ("import pathlib; pathlib.Path('ran').touch()",)


def test_pickled_weights_are_read_on_request_and_run_no_code(copied, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = opened(copied).make_scorer().log_probs(Pairs.of(PAIRS))
    tensors = load_file(copied / "model.safetensors")
    (copied / "model.safetensors").unlink()
    assert "found none" in refusal(copied, allow_pickle=True)
    torch.save(tensors, copied / "pytorch_model.bin")
    message = refusal(copied)
    assert "found pickled ones" in message
    assert "--allow-pickle" in message
    model = opened(copied, allow_pickle=True)
    assert model.make_scorer().log_probs(Pairs.of(PAIRS)) == pytest.approx(expected, abs=1e-4)
    assert "pytorch_model.bin" in model.hashes
    torch.save({"model.shared.weight": Evil()}, copied / "pytorch_model.bin")
    refusal(copied, allow_pickle=True)
    assert not (tmp_path / "ran").exists()


def test_code_in_a_model_does_not_run(copied, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (copied / "code.py").write_text("import pathlib\npathlib.Path('ran').touch()\n")
    own = {"auto_map": {"AutoConfig": "code.Config", "AutoModelForSeq2SeqLM": "code.Model"}}
    edit(copied / "config.json", **own, _attn_implementation="someone/kernel")
    opened(copied)
    edit(copied / "config.json", **own, model_type="unheard-of")
    assert "custom code" in refusal(copied)
    assert not (tmp_path / "ran").exists()


def test_the_hashes_tell_models_apart(marian, copied):
    before = opened(marian).hashes
    assert before == opened(copied).hashes
    assert {"model.safetensors", "config.json", "source.spm", "vocab.json"} <= before.keys()
    edit_weights(copied, lambda tensors: tensors["final_logits_bias"].add_(1))
    after = opened(copied).hashes
    assert {name for name in before if before[name] != after[name]} == {"model.safetensors"}


def test_a_model_of_another_kind_is_refused(tmp_path):
    sizes = {"n_embd": 4, "n_layer": 1, "n_head": 1, "vocab_size": 5, "bos_token_id": 0, "eos_token_id": 0}
    transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes)).save_pretrained(tmp_path)
    assert "an encoder-decoder that reads and writes text, found: gpt2" in refusal(tmp_path)
    (tmp_path / "config.json").write_text('{"format": 1}')
    assert "a model that transformers reads, found: Unrecognized model" in refusal(tmp_path)
    (tmp_path / "config.json").write_text("{")
    refusal(tmp_path)
    (tmp_path / "config.json").unlink()
    refusal(tmp_path)


def test_a_tokenizer_that_needs_another_package_is_refused(copied):
    (copied / "vocab.txt").write_text("[UNK]\n")
    edit(copied / "tokenizer_config.json", tokenizer_class="BertJapaneseTokenizer", word_tokenizer_type="mecab")
    message = refusal(copied)
    assert "a model that transformers reads, found: You need to install fugashi" in message
    assert "pip install" in message


@pytest.mark.parametrize("name", ["nobody/none", "none", "/nowhere", "a/b/c", "nothing\nhere"])
def test_a_model_that_is_nowhere_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    message = refusal(name)
    assert "a folder, or a model in Hugging Face's cache or on its site, found: " in message


def test_a_model_in_the_cache_is_opened_by_its_name(marian, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    cached, revision = tmp_path / "models--someone--marian", "0123456789" * 4
    shutil.copytree(marian, cached / "snapshots" / revision)
    (cached / "refs").mkdir()
    (cached / "refs" / "main").write_text(revision)
    model = opened("someone/marian")
    assert f"someone/marian, revision {revision}" in model.meaning
    assert str(model.folder) == f"hf:{cached / 'snapshots' / revision}"


def test_without_transformers_a_message_says_what_to_install(marian, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MosesRnnError, match=r"pip install 'moses-rnn\[hf\]'"):
        opened(marian)
