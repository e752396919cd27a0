"""Score with pretrained encoder-decoders from Hugging Face: OPUS-MT, NLLB, M2M-100, mBART and others.

The score of a pair is the sum of log p of the labels that the model's tokenizer makes of the target: pieces of words,
``</s>`` and, if the model has them, a language code. It equals -loss · labels of ``model(..., labels=...)``.

A model is data: none of its code runs, and pickled weights are refused, or read as tensors only.
"""

from __future__ import annotations

import copy
import importlib
import math
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, takewhile
from operator import eq
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sacremoses import MosesDetokenizer
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from moses_rnn.errors import CheckpointError, MosesRnnError, PairError, number_of, printable
from moses_rnn.models.base import LARGEST_SCORE, ROUNDING, Tally
from moses_rnn.models.model import Model
from moses_rnn.models.phrases import within_memory
from moses_rnn.networks.batches import Values
from moses_rnn.networks.compute import HERE, Compute
from moses_rnn.networks.config import SENTENCES, SOURCE_TO_TARGET, Architecture, Config
from moses_rnn.networks.vocabulary import END, UNKNOWN, Vocabulary
from moses_rnn.options import DETOKENISED, PRETRAINED, RAW, PretrainedOptions
from moses_rnn.table.phrases import words
from moses_rnn.table.signatures import digest_of
from moses_rnn.table.table_blocks import Pairs, Phrases

Labels = tuple[int, ...]
LabelPair = tuple[Labels, Labels]  # of a source and its target

MOST_LOGITS = 1 << 25  # computed together: 128 MiB in float32
MOST_READ = 1 << 12  # labels of sources that are encoded together
MOST_NODES = 1 << 8  # of a tree: attention costs their square
SHARING = "marian", "m2m_100", "mbart"  # whose decoders take the attention mask of a tree
SAFE, PICKLED = "model*.safetensors", "pytorch_model*.bin"
OTHER_FILES = "*.json", "*.spm", "*.model", "*.txt"
POSITIONS = "max_position_embeddings", "max_encoder_position_embeddings", "max_decoder_position_embeddings"
# Longer codes of the languages for which sacremoses has rules
SHORT_CODES = {"ces": "cs", "eng": "en", "fin": "fi", "fra": "fr", "gle": "ga", "ita": "it", "kor": "ko"}
_tokenising = threading.Lock()  # a tokenizer is in one mode at a time: for sources or for targets
_depths: ContextVar[Tensor | None] = ContextVar("depths", default=None)  # of the nodes that a decoder reads next


@dataclass
class Pretrained(Model):
    """A pretrained model. It reads and writes pieces of words, so its vocabularies are empty."""

    reader: LineReader = field(kw_only=True)

    def describe_score(self, _title: str) -> str:
        """Describe the score."""
        title, read = self.architecture.title, self.reader.description
        return f"log p(target | source) of the {title}, {read}, natural, </s> included"

    def make_scorer(self, compute: Compute = HERE) -> PretrainedScorer:
        """Make the scorer of this model."""
        return PretrainedScorer(self, compute)


class LineReader:
    """Makes labels of Moses's lines, which it first unescapes and detokenises, unless the options say otherwise."""

    def __init__(self, tokenizer: Any, options: PretrainedOptions, place: str) -> None:
        self.tokenizer, self._text = tokenizer, options.pretrained_text
        known = _languages_of(tokenizer)
        self._languages = {}
        for side, given in (("source", options.source_language), ("target", options.target_language)):
            recorded = "" if side in known else getattr(tokenizer, f"{side}_lang", "")
            self._languages[side] = language = given or recorded or ""
            codes = known.get(side, [language] if language or self._text != DETOKENISED else ["en", "fr", "…"])
            if language not in codes:
                raise CheckpointError(
                    f"{place}: expected --{side}-language to be a language of the model, "
                    f"found {printable(language) or 'none'}",
                    advice=f"Known: {' '.join(codes)}",
                )
        source, target = self._languages.values()
        self._prefix = f">>{target}<< " if "target" in known and "source" not in known else ""
        if "source" in known:
            tokenizer.src_lang, tokenizer.tgt_lang = source, target
        self.description = f"{source} to {target}, {self._text} text"

    def labels(self, side: str, lines: Phrases) -> list[Labels]:
        """Return the labels of lines of a side, "source" or "target"."""
        code = self._languages[side].split("_")[0]
        detokenizer = MosesDetokenizer(SHORT_CODES.get(code, code))
        prefix, argument = (self._prefix, "text") if side == "source" else ("", "text_target")
        texts = {line: prefix + self._plain(line, detokenizer) for line in dict.fromkeys(lines)}
        with _tokenising:
            made = self.tokenizer(**{argument: [*texts.values()]}, truncation=False).input_ids if texts else []
        of_line = dict(zip(texts, map(tuple, made), strict=True))
        return [of_line[line] for line in lines]

    def _plain(self, line: bytes, detokenizer: MosesDetokenizer) -> str:
        if self._text == RAW:
            return line.decode("utf-8", "replace")
        text = b" ".join(words(line)).decode("utf-8", "replace")
        return str(
            detokenizer.detokenize(text.split(" ")) if self._text == DETOKENISED else detokenizer.unescape_xml(text)
        )


def _languages_of(tokenizer: Any) -> dict[str, list[str]]:
    """Return the language codes of which a tokenizer needs one, by side."""
    if codes := getattr(tokenizer, "supported_language_codes", []):  # Marian's, before the source
        return {"target": sorted(code.strip("<>") for code in codes)}
    if not hasattr(tokenizer, "src_lang"):
        return {}
    codes = sorted(getattr(tokenizer, "lang_code_to_token", None) or tokenizer.additional_special_tokens)
    return {"source": codes, "target": codes} if codes else {}


@dataclass
class Tree:
    """Targets of a source as the decoder reads them: what begins alike is read once."""

    source: Labels
    alone: bool = False  # whether it has one target, which the decoder must read as usual
    branches: list[tuple[Labels, Labels, list[int]]] = field(default_factory=list)  # labels read and written, nodes
    size: int = 0  # nodes

    def add(self, read: Labels, written: Labels) -> None:
        """Add a target; targets come in the order of what is read."""
        before, _, path = self.branches[-1] if self.branches else ((), (), [])
        shared = path[: sum(takewhile(bool, map(eq, before, read)))]
        size = self.size + len(read) - len(shared)
        self.branches.append((read, written, [*shared, *range(self.size, size)]))
        self.size = size


def _place(_module: object, _given: object, positions: Tensor) -> Tensor:
    """Replace the positions of nodes in a tree, … × nodes × width, by those of their depths."""
    depths = _depths.get()
    _depths.set(None)
    return positions if depths is None else positions.reshape(-1, *positions.shape[-2:])[0][depths]


class PretrainedScorer:
    """Scores pairs: each distinct source is encoded once, and what its targets begin with alike is decoded once."""

    def __init__(self, model: Pretrained, compute: Compute) -> None:
        self.name, self.meaning, self.unbounded = model.name, model.meaning, model.unbounded
        self._reader, self._compute, self._device = model.reader, compute, torch.device(compute.device)
        self._dtype = torch.float64 if compute.precision == "fp64" else torch.float32
        shared = compute.device == "cpu" and self._dtype == torch.float32
        network = model.network if shared else copy.deepcopy(model.network)
        self._network = network.to(self._device, self._dtype)
        limits = [getattr(model.config, name, None) for name in POSITIONS]
        self._longest = min((size for size in limits if isinstance(size, int)), default=sys.maxsize)
        self._most_nodes = min(MOST_NODES, self._longest) if model.config.model_type in SHARING else 0
        self._labels = network.get_output_embeddings().weight.shape[0]

    @torch.inference_mode()
    def log_probs(self, pairs: Pairs, tally: Tally | None = None) -> Values:
        """Return one natural log score per pair; raise PairError for one that is too long or gets no score."""
        tally = tally or Tally()
        sides = self._reader.labels("source", pairs.sources), self._reader.labels("target", pairs.targets)
        rows = list(zip(*sides, strict=True))
        for labels in chain(*sides):
            self._check(labels)
        unknown = self._reader.tokenizer.unk_token_id
        tally.unknown += sum(unknown in source + target for source, target in rows)
        scores = dict.fromkeys(rows, math.nan)
        for sources in _batches(set(sides[0]), len, MOST_READ):
            states = dict(chain(*within_memory(self._encode, sources, self._device, tally)))
            trees = self._grow(pair for pair in scores if pair[0] in states)
            for group in ([tree for tree in trees if tree.alone is alone] for alone in (False, True)):
                for several in _batches(group, lambda tree: tree.size, MOST_LOGITS // self._labels):
                    scores.update(chain(*within_memory(partial(self._decode, states), several, self._device, tally)))
        values = np.array([scores[pair] for pair in rows], np.float64)
        good = (values > -LARGEST_SCORE) & (values < ROUNDING)
        if not good.all():
            raise PairError(f"{self.name}: expected a log-probability, found {values[np.argmin(good)]}")
        return values

    def _check(self, labels: Labels) -> None:
        if not 1 <= len(labels) <= self._longest:
            raise PairError(f"{self.name}: expected 1 to {self._longest} pieces of words, found {len(labels)}")
        if max(labels) >= self._labels:
            expected = f"a tokenizer for the model's {self._labels:,} labels"
            raise PairError(f"{self.name}: expected {expected}, found label {max(labels):,}")

    def _products(self) -> torch.autocast:
        return torch.autocast(self._device.type, torch.bfloat16, enabled=self._compute.precision == "bf16")

    def _encode(self, sources: Sequence[Labels]) -> list[tuple[Labels, Tensor]]:
        """Return each source with its encoder states; labels × width."""
        ids = pad_sequence([torch.tensor(source) for source in sources], True, self._reader.tokenizer.pad_token_id)
        with self._products():
            states = self._network.get_encoder()(ids.to(self._device), attention_mask=self._there(sources))[0]
        return [(source, states[i, : len(source)]) for i, source in enumerate(sources)]

    def _there(self, rows: Sequence[Labels] | Sequence[Tensor]) -> Tensor:
        """Return 1 for each label of padded rows, 0 for padding."""
        return pad_sequence([torch.ones(len(row), dtype=torch.long) for row in rows], True).to(self._device)

    def _grow(self, pairs: Iterable[LabelPair]) -> list[Tree]:
        """Return trees of pairs; a model that takes no trees gets a tree for each pair.

        So does a target with the label for padding, which some decoders leave out when they count positions.
        """
        trees: list[Tree] = []
        for source, read, written in sorted((source, self._read(target), target) for source, target in pairs):
            alone = not self._most_nodes or self._reader.tokenizer.pad_token_id in read[1:]
            last = trees[-1] if trees else None
            if alone or last is None or last.alone or last.source != source or last.size + len(read) > self._most_nodes:
                trees.append(Tree(source, alone))
            trees[-1].add(read, written)
        return trees

    def _read(self, target: Labels) -> Labels:
        """Return what the decoder reads when it writes a target: usually a start symbol and all but the last label."""
        if shift := getattr(self._network, "prepare_decoder_input_ids_from_labels", None):
            return tuple(shift(torch.tensor([target]))[0].tolist())
        return (self._network.config.decoder_start_token_id, *target[:-1])

    def _decode(self, states: Mapping[Labels, Tensor], trees: Sequence[Tree]) -> list[tuple[LabelPair, float]]:
        """Return the pairs of trees with the sums of log p of their targets' labels."""
        shape = len(trees), max(tree.size for tree in trees)
        ids = np.full(shape, self._reader.tokenizer.eos_token_id)
        sees = np.zeros((*shape, shape[1]), np.bool_)  # whether a node is another or below it
        pairs: list[LabelPair] = []
        nodes: list[int] = []
        for i, tree in enumerate(trees):
            for read, written, path in tree.branches:
                ids[i, path] = read
                sees[np.ix_([i], path, path)] = np.tri(len(path))
                nodes += [i * shape[1] + node for node in path]
                pairs.append((tree.source, written))
        given = [states[tree.source] for tree in trees], torch.from_numpy(ids)
        logits = self._logits(*given, None if trees[0].alone else torch.from_numpy(sees))
        # Not logsumexp, which is five times as slow on a CPU
        log_p = logits.log_softmax(2).flatten(0, 1)[nodes, [*chain(*(written for _, written in pairs))]]
        of_pairs = torch.split(log_p.double().cpu(), [len(written) for _, written in pairs])
        return [(pair, part.sum().item()) for pair, part in zip(pairs, of_pairs, strict=True)]

    def _logits(self, states: Sequence[Tensor], ids: Tensor, sees: Tensor | None) -> Tensor:
        """Return the logits of the labels after each node; trees × nodes × K. Without `sees`, a tree is a row."""
        mask = None
        if sees is not None:
            mask = (~sees[:, None]).to(self._device, self._dtype) * torch.finfo(self._dtype).min
            _depths.set((sees.sum(2) - 1).to(self._device))
        with self._products():
            logits: Tensor = self._network(
                encoder_outputs=(pad_sequence([*states], batch_first=True),),
                attention_mask=self._there(states),
                decoder_input_ids=ids.to(self._device),
                decoder_attention_mask=mask,
                use_cache=False,
            ).logits
        return logits.to(self._dtype)


def _batches(items: Iterable[Any], size_of: Callable[[Any], int], most: int) -> Iterator[list[Any]]:
    """Yield batches of items of similar size, which have at most `most` labels when padded."""
    batch: list[Any] = []
    for item in sorted(items, key=size_of):
        if batch and size_of(item) * (len(batch) + 1) > most:
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def open_pretrained(name: Path | str, options: PretrainedOptions) -> Pretrained:
    """Load a model from ``hf:FOLDER``, or from Hugging Face's cache or site by its name there, ``hf:NAME``."""
    place, transformers = str(name), _import("transformers")
    transformers.utils.logging.set_verbosity_error()
    folder, title = find_pretrained(place, options)
    weights = _find_weights(place, folder, options)
    try:
        with warnings.catch_warnings(action="ignore"):
            network, tokenizer = _read_folder(transformers, place, folder, weights)
    except MosesRnnError:
        raise
    except Exception as error:  # of many classes
        raise CheckpointError(
            f"{place}: expected a model that transformers reads, found: {_reason(error)}",
            advice="pip installs the package that it names." if isinstance(error, ImportError) else "",
        ) from error
    kind = network.config.model_type
    if kind in SHARING:
        network.get_decoder().embed_positions.register_forward_hook(_place)
    network.config.width = getattr(network.config, "hidden_size", 0)
    title = f"pretrained {printable(kind)} model {title} in transformers {transformers.__version__}"
    return Pretrained(
        Architecture("hf", title, "HF", Config, type(network)),  # type: ignore[type-abstract]
        network.float().eval().requires_grad_(False),
        {"target": Vocabulary([UNKNOWN, END])},
        SOURCE_TO_TARGET,
        {"unit": SENTENCES},
        {file.name: digest_of(file)["sha256"] for file in sorted(chain(weights, *map(folder.glob, OTHER_FILES)))},
        Path(f"{PRETRAINED}{folder}"),
        reader=LineReader(tokenizer, options, place),
    )


def find_pretrained(place: str, options: PretrainedOptions) -> tuple[Path, str]:
    """Return the folder of a model, downloaded if necessary, and its title."""
    name = place.removeprefix(PRETRAINED)
    folder = Path(name).expanduser().resolve()
    if folder.is_dir():
        return folder, printable(folder.name)
    wanted = [*OTHER_FILES, SAFE, *[PICKLED] * options.allow_pickle]
    try:
        folder = Path(_import("huggingface_hub").snapshot_download(name, allow_patterns=wanted))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{place}: expected a folder, or a model in Hugging Face's cache or on its site, found: {_reason(error)}",
            advice="Without a connection, a model must be a folder or in the cache (HF_HOME).",
        ) from error
    return folder, f"{name}, revision {folder.name}"


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MosesRnnError(f"{name} is not installed: pip install 'moses-rnn[hf]'") from error


def _find_weights(place: str, folder: Path, options: PretrainedOptions) -> list[Path]:
    safe, pickled = list(folder.glob(SAFE)), list(folder.glob(PICKLED))
    if not safe and not (pickled and options.allow_pickle):
        raise CheckpointError(
            f"{place}: expected weights in model.safetensors, found {'pickled ones' if pickled else 'none'}",
            advice="--allow-pickle also reads pytorch_model.bin, tensors only." if pickled else "",
        )
    return safe or pickled


def _read_folder(transformers: Any, place: str, folder: Path, weights: Sequence[Path]) -> tuple[Any, Any]:
    """Return the network and the tokenizer of a folder, and run no code of it."""
    safe = {"trust_remote_code": False, "local_files_only": True}
    config = transformers.AutoConfig.from_pretrained(folder, **safe)
    if not config.is_encoder_decoder or type(config) not in transformers.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING:
        raise CheckpointError(
            f"{place}: expected an encoder-decoder that reads and writes text, found: {printable(config.model_type)}",
            advice="OPUS-MT, NLLB, M2M-100 and mBART are such models. Models with only a decoder are not.",
        )
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **safe)
    network, loading = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        folder,
        config=config,
        use_safetensors=weights[0].suffix == ".safetensors",
        attn_implementation="eager",  # a config may name one that is downloaded code
        output_loading_info=True,
        **safe,
    )
    if missing := loading["missing_keys"]:
        found = f"{number_of(len(missing), 'tensor')} missing: {printable(', '.join(sorted(missing)), 300)}"
        raise CheckpointError(f"{place}: expected all weights, found {found}")
    return network, tokenizer


def _reason(error: Exception) -> str:
    """Return another library's message in one line."""
    return printable(" ".join(str(error).split()) or type(error).__name__, 300)
