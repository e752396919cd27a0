"""Score with pretrained encoder-decoders from Hugging Face: OPUS-MT, NLLB, M2M-100, mBART and others.

The score of a pair is the sum of log p of the labels that the model's tokenizer makes of the target: pieces of words,
``</s>`` and, if the model has them, a language code. It equals -loss · labels of ``model(..., labels=...)``.

A model is data: none of its code runs, and pickled weights are refused, or read as tensors only.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from sacremoses import MosesDetokenizer
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from moses_rnn.errors import CheckpointError, InputError, MosesRnnError, ScoreError, number_of, printable, shown
from moses_rnn.models.base import LARGEST_SCORE, ROUNDING, Tally
from moses_rnn.models.ensembles import AnyModel, open_models
from moses_rnn.models.model import Model
from moses_rnn.models.open import open_model
from moses_rnn.models.phrases import within_memory
from moses_rnn.networks.batches import Values
from moses_rnn.networks.compute import HERE, Compute, choose_precision
from moses_rnn.networks.config import SENTENCES, SOURCE_TO_TARGET, Architecture, Config
from moses_rnn.networks.vocabulary import END, UNKNOWN, Vocabulary
from moses_rnn.options import DETOKENISED, PRETRAINED, RAW, PretrainedOptions, is_pretrained
from moses_rnn.table.phrases import words
from moses_rnn.table.table_blocks import Pairs, Phrases

Labels = tuple[int, ...]
LabelPair = tuple[Labels, Labels]  # of a source and its target
Item = TypeVar("Item")

MOST_LOGITS = 1 << 26  # computed together: 256 MiB in float32
MOST_READ = 1 << 12  # labels of sources that are encoded together
MOST_KEPT = 1 << 14  # labels of sources whose encoder states are kept
MOST_SHOWN = 300  # characters of another library's message
SAFE, PICKLED = "model*.safetensors", "pytorch_model*.bin"
OTHER_FILES = "*.json", "*.spm", "*.model", "*.txt"
POSITIONS = "max_position_embeddings", "max_encoder_position_embeddings", "max_decoder_position_embeddings"
# Longer codes of the languages for which sacremoses has rules
SHORT_CODES = {"ces": "cs", "eng": "en", "fin": "fi", "fra": "fr", "gle": "ga", "ita": "it", "kor": "ko"}
_tokenising = threading.Lock()  # a tokenizer is in one mode at a time: for sources or for targets


class UnscorablePair(ScoreError, InputError):
    """A pretrained model cannot score a pair, which is rejected as other input is."""


@dataclass
class Pretrained(Model):
    """A pretrained model. It reads and writes pieces of words, so its vocabularies are empty."""

    reader: LineReader = field(kw_only=True)

    def describe_score(self, _title: str) -> str:
        """Describe the score."""
        title, read = self.architecture.title, self.reader.description
        return f"log p(target | source) of the {title}, {read}, natural, </s> included"

    def choose_compute(
        self, device: str = "cpu", precision: str | None = None, *, floors_long: bool = False
    ) -> Compute:
        """Choose how to compute this model; see `Model`."""
        width = getattr(self.config, "hidden_size", 0)
        return Compute(device, choose_precision(precision or "fp32", device, width), floors_long=floors_long)

    def make_scorer(self, compute: Compute = HERE) -> PretrainedScorer:
        """Make the scorer of this model."""
        return PretrainedScorer(self, compute)


class LineReader:
    """Makes labels of Moses's lines, which it first unescapes and detokenises, unless the options say otherwise."""

    def __init__(self, tokenizer: Any, options: PretrainedOptions, place: str) -> None:
        self.tokenizer, self._text = tokenizer, options.pretrained_text
        known = _languages_of(tokenizer)
        given = {"source": options.source_language, "target": options.target_language}
        languages = {}
        for side, language in given.items():
            languages[side] = language or ("" if side in known else getattr(tokenizer, f"{side}_lang", None) or "")
            is_known = languages[side] in known[side] if side in known else languages[side]
            if not is_known and (side in known or self._text == DETOKENISED):
                codes = " ".join(known.get(side, ["en", "fr", "and so on (sacremoses detokenises by it)"]))
                found = printable(languages[side]) or "none"
                raise CheckpointError(
                    f"{place}: expected --{side}-language to be a language of the model, found {found}",
                    advice=f"Known: {codes}",
                )
        self._prefix = f">>{languages['target']}<< " if "target" in known and "source" not in known else ""
        if "source" in known:
            tokenizer.src_lang, tokenizer.tgt_lang = languages["source"], languages["target"]
        codes_of = {side: code.split("_")[0] for side, code in languages.items()}
        self._detokenizers = {side: MosesDetokenizer(SHORT_CODES.get(code, code)) for side, code in codes_of.items()}
        self.description = f"{languages['source']} to {languages['target']}, {self._text} text"

    def labels(self, side: str, lines: Phrases) -> list[Labels]:
        """Return the labels of lines of a side, "source" or "target"."""
        texts = {line: self._text_of(side, line) for line in dict.fromkeys(lines)}
        argument = "text" if side == "source" else "text_target"
        with _tokenising:
            made = self.tokenizer(**{argument: [*texts.values()]}, truncation=False).input_ids if texts else []
        of_line = dict(zip(texts, map(tuple, made), strict=True))
        return [of_line[line] for line in lines]

    def _text_of(self, side: str, line: bytes) -> str:
        prefix = self._prefix if side == "source" else ""
        if self._text == RAW:
            return prefix + line.decode("utf-8", "replace")
        tokens = [word.decode("utf-8", "replace") for word in words(line)]
        detokenizer = self._detokenizers[side]
        plain = (
            detokenizer.detokenize(tokens) if self._text == DETOKENISED else detokenizer.unescape_xml(" ".join(tokens))
        )
        return prefix + str(plain)


def _languages_of(tokenizer: Any) -> dict[str, list[str]]:
    """Return the language codes of which a tokenizer needs one, by side."""
    if codes := getattr(tokenizer, "supported_language_codes", []):  # Marian's, before the source
        return {"target": sorted(code.strip("<>") for code in codes)}
    if not hasattr(tokenizer, "src_lang"):
        return {}
    codes = getattr(tokenizer, "lang_code_to_id", None) or getattr(tokenizer, "lang_code_to_token", None)
    codes = sorted(codes or tokenizer.additional_special_tokens)  # the latter are NLLB's
    return {"source": codes, "target": codes} if codes else {}


class PretrainedScorer:
    """Scores pairs in batches by length. Each distinct source is encoded once, and each distinct pair scored once."""

    def __init__(self, model: Pretrained, compute: Compute) -> None:
        self.name, self.meaning, self.unbounded = model.name, model.meaning, model.unbounded
        self._reader, self._compute, self._device = model.reader, compute, torch.device(compute.device)
        doubled = compute.precision == "fp64"
        shared = compute.device == "cpu" and not doubled
        network = model.network if shared else copy.deepcopy(model.network)
        self._network = network.to(self._device, torch.float64 if doubled else torch.float32)
        limits = [getattr(model.config, name, None) for name in POSITIONS]
        self._longest = min((size for size in limits if isinstance(size, int)), default=sys.maxsize)
        self._labels = network.get_output_embeddings().weight.shape[0]

    @torch.inference_mode()
    def log_probs(self, pairs: Pairs, tally: Tally | None = None) -> Values:
        """Return one natural log score per pair; raise UnscorablePair for one that is too long or gets no score."""
        tally = tally or Tally()
        sides = self._reader.labels("source", pairs.sources), self._reader.labels("target", pairs.targets)
        rows = list(zip(*sides, strict=True))
        self._check(rows, pairs)
        unknown = self._reader.tokenizer.unk_token_id
        tally.unknown += sum(unknown in source + target for source, target in rows)
        by_source = [list(of_source) for _, of_source in groupby(sorted(set(rows)), lambda pair: pair[0])]
        scores: dict[LabelPair, float] = {}
        for several in _batches(by_source, lambda of_source: len(of_source[0][0]), MOST_KEPT):
            scores.update(self._score(list(chain.from_iterable(several)), tally))
        values = np.array([scores[pair] for pair in rows], np.float64)
        good = (values > -LARGEST_SCORE) & (values < ROUNDING)
        if not good.all():
            row = int(np.argmin(good))
            raise self._unscorable(row, pairs, "a log-probability", str(values[row]))
        return values

    def _check(self, rows: Sequence[LabelPair], pairs: Pairs) -> None:
        for row, (source, target) in enumerate(rows):
            pieces, largest = max(len(source), len(target)), max(source + target, default=0)
            if pieces > self._longest:
                raise self._unscorable(row, pairs, f"at most {self._longest} pieces of words", str(pieces))
            if largest >= self._labels:
                expected = f"a tokenizer for the model's {self._labels:,} labels"
                raise self._unscorable(row, pairs, expected, f"label {largest:,}")

    def _unscorable(self, row: int, pairs: Pairs, expected: str, found: str) -> UnscorablePair:
        pair = shown(b" ||| ".join((pairs.sources[row], pairs.targets[row])))
        return UnscorablePair(f"{self.name}: expected {expected}, found {found} for {pair}", row, advice="")

    def _score(self, pairs: Sequence[LabelPair], tally: Tally) -> Iterator[tuple[LabelPair, float]]:
        """Yield pairs and their scores."""
        states: dict[Labels, Tensor] = {}
        sources = list(dict.fromkeys(source for source, _ in pairs))
        for batch in _batches(sources, len, MOST_READ):
            for encoded in within_memory(self._encode, batch, self._device, tally):
                states.update(encoded)
        for several in _batches(pairs, lambda pair: len(pair[1]), MOST_LOGITS // self._labels):
            for scored in within_memory(partial(self._decode, states), several, self._device, tally):
                yield from scored

    def _products(self) -> torch.autocast:
        return torch.autocast(self._device.type, torch.bfloat16, enabled=self._compute.precision == "bf16")

    def _encode(self, sources: Sequence[Labels]) -> list[tuple[Labels, Tensor]]:
        """Return each source with its encoder states; labels × width."""
        ids, there = self._padded(sources)
        with self._products():
            states = self._network.get_encoder()(input_ids=ids, attention_mask=there)[0]
        return [(source, states[i, : len(source)]) for i, source in enumerate(sources)]

    def _decode(self, states: Mapping[Labels, Tensor], pairs: Sequence[LabelPair]) -> list[tuple[LabelPair, float]]:
        """Return the pairs with the sums of log p of their targets' labels."""
        read = pad_sequence([states[source] for source, _ in pairs], batch_first=True)
        _, there = self._padded([source for source, _ in pairs])
        labels, counted = self._padded([target for _, target in pairs])
        with self._products():
            logits = self._network(
                encoder_outputs=(read,),
                attention_mask=there,
                decoder_input_ids=self._shifted(labels),
                use_cache=False,
            ).logits  # pairs × labels × K
        log_p = logits.gather(2, labels[:, :, None])[:, :, 0].double() - logits.logsumexp(2).double()
        return list(zip(pairs, (log_p * counted).sum(1).tolist(), strict=True))

    def _padded(self, rows: Sequence[Labels]) -> tuple[Tensor, Tensor]:
        """Return labels, padded to the longest row, and 1 for each label, 0 for padding."""
        ids = pad_sequence([torch.tensor(row) for row in rows], True, self._reader.tokenizer.pad_token_id)
        lengths = torch.tensor([len(row) for row in rows])
        return ids.to(self._device), (torch.arange(ids.shape[1]) < lengths[:, None]).long().to(self._device)

    def _shifted(self, labels: Tensor) -> Tensor:
        """Return what the decoder reads when it writes the labels: usually a start symbol and all but the last."""
        if hasattr(self._network, "prepare_decoder_input_ids_from_labels"):
            shifted: Tensor = self._network.prepare_decoder_input_ids_from_labels(labels)
            return shifted
        start = torch.full_like(labels[:, :1], self._network.config.decoder_start_token_id)
        return torch.cat([start, labels[:, :-1]], 1)


def _batches(items: Iterable[Item], length_of: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """Yield batches of items of similar length, which have at most `most` labels when padded."""
    batch: list[Item] = []
    for item in sorted(items, key=length_of):
        if batch and length_of(item) * (len(batch) + 1) > most:
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


# --- files ------------------------------------------------------------------------------------------------------------


def open_pretrained(name: Path | str, options: PretrainedOptions) -> Pretrained:
    """Load a model from ``hf:FOLDER``, or from Hugging Face's cache or site by its name there, ``hf:NAME``."""
    place = str(name)
    transformers = _import_transformers()
    transformers.utils.logging.set_verbosity_error()
    folder, title, place = _find_folder(place, options)
    pickled = _weights_are_pickled(place, folder, options)
    safe = {"trust_remote_code": False, "local_files_only": True}
    with _reading(place, "config.json of a model"):
        config = transformers.AutoConfig.from_pretrained(folder, **safe)
    if not config.is_encoder_decoder or type(config) not in transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
        raise CheckpointError(
            f"{place}: expected an encoder-decoder that reads and writes text, found: {printable(config.model_type)}",
            advice="OPUS-MT, NLLB, M2M-100 and mBART are such models. Models with only a decoder are not.",
        )
    with _reading(place, "tokenizer"):
        reader = LineReader(transformers.AutoTokenizer.from_pretrained(folder, **safe), options, place)
    with _reading(place, "model"):
        network, loading = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            folder,
            config=config,
            use_safetensors=not pickled,
            attn_implementation="eager",  # a config may name one that is downloaded code
            output_loading_info=True,
            **safe,
        )
    _check_weights(place, network, loading["missing_keys"])
    title = f"pretrained {printable(config.model_type)} model {title} in transformers {transformers.__version__}"
    architecture = Architecture("hf", title, "HF", Config, type(network))  # type: ignore[type-abstract]
    files = sorted(chain.from_iterable(map(folder.glob, (*OTHER_FILES, PICKLED if pickled else SAFE))))
    return Pretrained(
        architecture,
        network.float().eval().requires_grad_(False),
        {"target": Vocabulary([UNKNOWN, END])},
        SOURCE_TO_TARGET,
        {"unit": SENTENCES},
        {file.name: _sha256(file) for file in files},
        Path(place),
        reader=reader,
    )


def open_scorable(name: Path, options: PretrainedOptions, direction: str = SOURCE_TO_TARGET) -> Model:
    """Open a pretrained model, or a model folder of a direction."""
    return open_pretrained(name, options) if is_pretrained(name) else open_model(name, direction=direction)


def open_one_or_several(names: Sequence[Path], options: PretrainedOptions, combination: str) -> AnyModel:
    """Open a pretrained model, or the folders of one or several models that write; see `open_models`."""
    if not any(map(is_pretrained, names)):
        return open_models(names, combination)
    if len(names) > 1:
        found = ", ".join(map(str, names))
        raise InputError(f"expected a pretrained model alone, found several models: {found}")
    return open_pretrained(names[0], options)


def _import_transformers() -> Any:
    try:
        return importlib.import_module("transformers")
    except ImportError as error:
        raise MosesRnnError("transformers is not installed: pip install 'moses-rnn[hf]'") from error


def _find_folder(place: str, options: PretrainedOptions) -> tuple[Path, str, str]:
    """Return the folder of a model, its title, and its place for messages and other processes."""
    name = place.removeprefix(PRETRAINED)
    folder = Path(name).expanduser().resolve()
    if folder.is_dir():
        return folder, printable(folder.name), f"{PRETRAINED}{folder}"
    hub = importlib.import_module("huggingface_hub")
    try:
        folder = Path(hub.snapshot_download(name, allow_patterns=[*OTHER_FILES, SAFE]))
        if options.allow_pickle and not any(folder.glob(SAFE)):
            hub.snapshot_download(name, allow_patterns=[PICKLED])
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{place}: expected a folder, or a model in Hugging Face's cache or on its site, found: {_reason(error)}",
            advice="Without a connection, a model must be a folder or in the cache (HF_HOME).",
        ) from error
    return folder, f"{name}, revision {folder.name}", place


def _weights_are_pickled(place: str, folder: Path, options: PretrainedOptions) -> bool:
    """Whether to read pickled weights; raise CheckpointError if there are no weights that may be read."""
    if any(folder.glob(SAFE)):
        return False
    pickled = any(folder.glob(PICKLED))
    if pickled and options.allow_pickle:
        return True
    raise CheckpointError(
        f"{place}: expected weights in model.safetensors, found {'pickled ones' if pickled else 'none'}",
        advice="--allow-pickle also reads pytorch_model.bin, tensors only." if not options.allow_pickle else "",
    )


def _check_weights(place: str, network: torch.nn.Module, missing: Sequence[str]) -> None:
    if missing:
        names = printable(", ".join(sorted(missing)), MOST_SHOWN)
        raise CheckpointError(
            f"{place}: expected all weights, found {number_of(len(missing), 'tensor')} missing: {names}"
        )
    for name, weights in network.named_parameters():
        if not torch.isfinite(weights).all():
            raise CheckpointError(f"{place}: expected finite weights, found NaN or infinity in {name}")


def _sha256(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


@contextlib.contextmanager
def _reading(place: str, what: str) -> Iterator[None]:
    """Turn whatever transformers raises about a part of a model into a CheckpointError."""
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except MosesRnnError:
        raise
    except Exception as error:  # of many classes
        advice = "pip installs the package that it names." if isinstance(error, ImportError) else ""
        raise CheckpointError(
            f"{place}: expected a {what} that transformers reads, found: {_reason(error)}", advice=advice
        ) from error


def _reason(error: Exception) -> str:
    """Return another library's message in one line."""
    return printable(" ".join(str(error).split()) or type(error).__name__, MOST_SHOWN)
