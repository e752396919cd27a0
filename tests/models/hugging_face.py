"""Tiny models with real tokenizers, as Hugging Face has them: their pieces are learned on the spot."""

import gzip
import json

import pytest
import torch

from tests.commands import ROOT

MISSING = "the extra hf is not installed: pip install 'moses-rnn[hf]'"
sentencepiece = pytest.importorskip("sentencepiece", reason=MISSING)
transformers = pytest.importorskip("transformers", reason=MISSING)
tokenizers = pytest.importorskip("tokenizers", reason=MISSING)

PIECES = 150
SIZES = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 32,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 64,
    "init_std": 0.5,  # scores that differ
}


def texts():
    """Sources and targets of a real table, plain text."""
    with gzip.open(ROOT / "examples" / "phrase-table.gz", "rt", encoding="utf-8") as lines:
        return list(zip(*(line.split(" ||| ")[:2] for line in lines), strict=True))


def learn_pieces(path, sentences, **options):
    """Learn the pieces of sentences, and write SentencePiece's model."""
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences), model_writer=file, vocab_size=PIECES, minloglevel=2, **options
        )
    read = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [(read.id_to_piece(i), read.get_score(i)) for i in range(3, PIECES)]  # the first are <unk>, <s>, </s>


def save(folder, network, seed=1):
    """Save a model with random weights."""
    torch.manual_seed(seed)
    network().save_pretrained(folder)
    return folder


def save_marian(folder, languages=("en", "fr"), codes=()):
    """A Marian model, such as OPUS-MT's; `codes` make it multilingual."""
    folder.mkdir(parents=True)
    sides = [
        learn_pieces(folder / f"{side}.spm", text) for side, text in zip(("source", "target"), texts(), strict=True)
    ]
    words = list(dict.fromkeys(["</s>", "<unk>", *codes, *(piece for side in sides for piece, _ in side), "<pad>"]))
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    files = [str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")]
    transformers.MarianTokenizer(*files, *(None, *languages)).save_pretrained(folder)
    padding = words.index("<pad>")
    special = {"pad_token_id": padding, "decoder_start_token_id": padding, "eos_token_id": 0, "forced_eos_token_id": 0}
    config = transformers.MarianConfig(vocab_size=len(words), **SIZES, **special)
    return save(folder, lambda: transformers.MarianMTModel(config))


def save_m2m(folder):
    """An M2M-100 model."""
    folder.mkdir(parents=True)
    pieces = learn_pieces(folder / "sentencepiece.bpe.model", [line for side in texts() for line in side])
    words = ["<s>", "<pad>", "</s>", "<unk>", *(piece for piece, _ in pieces)]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    files = folder / "vocab.json", folder / "sentencepiece.bpe.model"
    tokenizer = transformers.M2M100Tokenizer(*map(str, files))
    tokenizer.save_pretrained(folder)
    languages = len(tokenizer.lang_code_to_token)
    config = transformers.M2M100Config(vocab_size=len(tokenizer) + languages, **SIZES)
    return save(folder, lambda: transformers.M2M100ForConditionalGeneration(config))


def save_fast(folder, kind, network, **options):
    """A model with a tokenizer of the other kind, which needs no SentencePiece; return its folder."""
    folder.mkdir(parents=True)
    pieces = learn_pieces(folder / "pieces.model", [line for side in texts() for line in side])
    words = [(word, 0.0) for word in ("<s>", "<pad>", "</s>", "<unk>")] + pieces
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(words, unk_id=3))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing("$A </s>", special_tokens=[("</s>", 2)])
    (folder / "pieces.model").unlink()
    made = kind(tokenizer_object=tokenizer, **options)
    made.save_pretrained(folder)
    return save(folder, lambda: network(len(made)))


def save_nllb(folder):
    """An NLLB model: M2M-100's network with the other kind of tokenizer."""
    return save_fast(folder, transformers.NllbTokenizerFast, lambda size: transformers.M2M100ForConditionalGeneration(
        transformers.M2M100Config(vocab_size=size, **SIZES)
    ))  # fmt: skip


def save_mbart(folder):
    """An mBART model, whose decoder begins with the last label, the language."""
    return save_fast(folder, transformers.MBartTokenizerFast, lambda size: transformers.MBartForConditionalGeneration(
        transformers.MBartConfig(vocab_size=size, **SIZES)
    ))  # fmt: skip


def save_t5(folder):
    """A T5 model, whose positions are relative."""
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    special = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    return save_fast(folder, transformers.T5TokenizerFast, lambda size: transformers.T5ForConditionalGeneration(
        transformers.T5Config(vocab_size=size, **sizes, **special)
    ), extra_ids=0)  # fmt: skip
