"""Build a reranker step by step. Each step leaves its results in the folder; only outdated steps are repeated."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from moses_rnn.errors import InputError, Stopped, number_of
from moses_rnn.files.outputs import OutputFile, hold, replace_file
from moses_rnn.files.streams import find_input, read_lines, read_text, regular_file
from moses_rnn.models.pretrained import find_pretrained
from moses_rnn.moses.decoding import Decoder, Moses
from moses_rnn.moses.nbest import NBestLine, parse_nbest, parse_nbest_line
from moses_rnn.nbest.adding import ListFeatures, label_features
from moses_rnn.nbest.bleu import find_p
from moses_rnn.nbest.features import make_features
from moses_rnn.nbest.request import ListRequest, Material
from moses_rnn.nbest.rerank import WeightedSum, choose_hypotheses, compare_bleu, list_translations
from moses_rnn.nbest.reranker import SETTINGS, WEIGHTS, Settings, contents_of, decoder_files, hashes_of, renumber
from moses_rnn.nbest.tune import read_start, tune
from moses_rnn.nbest.weights import format_ini, read_weights
from moses_rnn.options import PRETRAINED, PretrainedOptions, is_pretrained

STEPS, RESULTS = "steps.json", "results.json"
SEEDS = 1, 2, 3
ESTIMATED_LINES = 20  # that are decoded for an estimate

Log = Callable[[str], None]
Json = dict[str, Any]


class Steps:
    """Runs steps in a folder, and remembers the inputs of finished ones in steps.json."""

    def __init__(self, folder: Path, log: Log) -> None:
        self._folder, self._log = folder, log
        self._done: Json = {}
        self._used: list[str] = []
        with suppress(FileNotFoundError, ValueError):
            self._done = json.loads((folder / STEPS).read_bytes())

    def earlier(self, name: str) -> Json:
        """Return the inputs of what an earlier run left; empty if there is none."""
        inputs: Json = self._done.get(name, {}).get("inputs", {})
        return inputs

    def run(self, name: str, inputs: Json, results: Sequence[Path], work: Callable[[], Any]) -> Any:
        """Return what `work` returned, as JSON, from this run or an earlier one with the same inputs and results."""
        inputs = json.loads(json.dumps(inputs))
        self._used.append(name)
        before = self._done.get(name, {})
        if before.get("inputs") == inputs and before.get("results") == contents_of(results):
            self._log(f"{name}: done")
            return before["value"]
        self._log(f"{name} …")
        started = time.monotonic()
        self._write(name, {"inputs": inputs})
        value = work()
        seconds = round(time.monotonic() - started, 1)
        self._write(name, {"inputs": inputs, "results": contents_of(results), "value": value, "seconds": seconds})
        return value

    def _write(self, name: str, record: Json) -> None:
        self._done[name] = record
        replace_file(self._folder / STEPS, json.dumps(self._done, indent=1).encode())

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds of each step, in its last run."""
        return {name: self._done[name]["seconds"] for name in self._used}


class Builder:
    """Builds a reranker; `observer` follows the trainings."""

    def __init__(self, material: Material, log: Log, observer: Any, should_stop: Callable[[], bool]) -> None:
        self._material, self._folder, self._log = material, material.output, log
        self._observer, self._should_stop = observer, should_stop
        self._ini, self._flags = str(Path(find_input(material.ini)).absolute()), material.decoder_flags or ()
        self._decoder_files = decoder_files(self._ini)
        if material.lists:
            regular_file(material.lists)
        added = [model if is_pretrained(model) else model.absolute() for model in material.add]
        _check_names([self._ini, *added, *(path.absolute() for path in self._decoder_files)])
        options = [key.name for key in fields(PretrainedOptions)]
        self._pretrained = {name: value for name in options if (value := getattr(material, name))}

    def build(self) -> Json:
        """Build what is missing or outdated, and return the results."""
        for folder in (self._folder, self._folder / "models", self._folder / "lists"):
            folder.mkdir(parents=True, exist_ok=True)
        with closing(hold(str(self._folder / SETTINGS), "lock")):
            steps = Steps(self._folder, self._log)
            models = [self._train(steps, name, options) for name, options in self._networks]
            models += map(self._place, self._material.add)
            labels = self._add(steps, "dev", models)
            results: Json = {"dev": self._tune(steps)}
            if self._material.test:
                self._add(steps, "test", models, labels)
                results["test"] = self._compare(steps)
            used = [*self._decoder_files, *models, self._folder / WEIGHTS]
            self._settings(labels, models, hashes_of(used, self._folder)).write(self._folder)
            results = {**results, "seeds": SEEDS, "seconds": steps.seconds}
            replace_file(self._folder / RESULTS, (json.dumps(results, indent=1) + "\n").encode())
            return results

    def estimate(self) -> float:
        """Return the seconds that training and decoding will take, after training and decoding for some seconds."""
        from moses_rnn.training.train import estimate_training  # noqa: PLC0415, --help needs no torch

        seconds = 0.0
        for name, further in self._networks:
            found = estimate_training(self.training_options(name, further), self._observer, self._should_stop)
            seconds += min(found.passes * found.pairs / found.pairs_per_second, 60 * self._material.max_minutes)
        for prefix in filter(None, (None if self._material.lists else self._material.dev, self._material.test)):
            lines = list(_lines(self._path(prefix, 0)))
            with self.open_decoder() as decoder:
                started = time.monotonic()
                decoded = sum(map(len, decoder.decode(lines[:ESTIMATED_LINES])))
                seconds += len(lines) * (time.monotonic() - started) / max(decoded, 1)
        return seconds

    @property
    def _networks(self) -> Iterator[tuple[str, Json]]:
        """The networks to train: their names and options."""
        if self._material.add:
            return
        name, cut = self._material.architecture, {"subwords": self._material.subwords or None}
        yield name, cut
        if self._material.both_orders:
            yield f"{name}-reversed", {**cut, "right_to_left": True}

    def _place(self, model: Path) -> Path:
        """Return the folder or file of a finished model; a pretrained one is downloaded if necessary."""
        if is_pretrained(model):
            return Path(f"{PRETRAINED}{find_pretrained(str(model), self._material)[0]}")
        return model if model.is_dir() else Path(regular_file(str(model)))

    def training_options(self, name: str, options: Json) -> Json:
        """Return the options of a training."""
        given = self._material
        return {
            "prefix": given.texts,
            "source": given.source,
            "target": given.target,
            "dev": given.dev,
            "architecture": given.architecture,
            "model": self._folder / "models" / name,
            "max_minutes": given.max_minutes,
            "device": given.device,
            "threads": given.threads,
            **options,
        }

    def _train(self, steps: Steps, name: str, further: Json) -> Path:
        """Train a network, or continue to."""
        from moses_rnn.training.train import train  # noqa: PLC0415, --help needs no torch

        options = self.training_options(name, further)
        model = options["model"]

        def work() -> None:
            self._check_decoder()
            outcome = train(**options, observer=self._observer, should_stop=self._should_stop)
            if not outcome.progress.finished:
                raise Stopped("stopped; run the same command again to continue")

        texts = [self._path(prefix, side) for prefix in (self._material.texts, self._material.dev) for side in (0, 1)]
        inputs = {"texts": contents_of(texts), "options": further, "max_minutes": options["max_minutes"]}
        before = steps.earlier(f"train {name}")
        if any(before.get(key, inputs[key]) != inputs[key] for key in ("texts", "options")):
            self._delete(model)
        steps.run(f"train {name}", inputs, [model / "config.json"], work)
        return Path(model)

    def _path(self, prefix: str | None, side: int) -> str:
        return find_input(f"{prefix}.{(self._material.source, self._material.target)[side]}")

    def _check_decoder(self) -> None:
        """Raise an error before a long training if the decoder does not run or a feature of its lists has no weight."""
        given, weights = self._material, WeightedSum(self._ini, read_weights(self._ini))
        if given.lists:
            lines = itertools.islice(parse_nbest(read_lines(given.lists), given.lists), 1)
            deque(weights.score(lines), maxlen=0)
        if not given.lists or given.test:
            text = next(filter(bytes.strip, _lines(self._path(given.dev, 0))), b"")
            with self.open_decoder() as decoder:
                found = next(decoder.decode([text]))[0]
            deque(weights.score(parse_nbest_line(line, self._ini, 1) for line in found.nbest), maxlen=0)

    def _delete(self, model: Path) -> None:
        """Delete a network that learned from other texts or with other options, if the user wants it."""
        if model.exists() and not self._material.force:
            raise InputError(
                f"{model}: expected a network of these texts and options, found one that learned from others",
                advice="Name another folder with -o. --force deletes this network and trains again.",
            )
        shutil.rmtree(model, ignore_errors=True)

    def _list(self, steps: Steps, name: str, text: str) -> str:
        """Return the file of a text's lists; decode it if needed."""
        if name == "dev" and self._material.lists:
            return regular_file(self._material.lists)
        path = self._folder / "lists" / f"{name}.gz"
        options = {"size": self._material.list_size, "flags": [*self._flags]}
        inputs = {"files": contents_of([*self._decoder_files, text]), **options}
        steps.run(f"decode {name}", inputs, [path], lambda: self._decode(text, path))
        return str(path)

    def _decode(self, text: str, path: Path) -> None:
        sentence, without = 0, 0
        with OutputFile(str(path), force=True) as file, self.open_decoder() as decoder:
            for lists in decoder.decode(_lines(text)):
                if self._should_stop():
                    raise Stopped("stopped; run the same command again to continue")
                for one in lists:
                    file.append(b"".join(renumber(line, sentence) for line in one.nbest))
                    sentence, without = sentence + 1, without + (not one.nbest)
            file.commit()
        if without:
            self._log(f"{text}: {number_of(without, 'line')} without a list")

    def open_decoder(self) -> Decoder:
        """Start the decoder."""
        options = self._settings([], [], {}).decoder(self._material.threads)
        return Decoder(options.command(Moses.required()), Path(self._ini).parent)

    def _add(self, steps: Steps, name: str, models: Sequence[Path], given: Sequence[str] = ()) -> list[str]:
        """Add the features to a text's lists, under the given labels if there are any; return their labels."""
        text = self._path(self._material.dev if name == "dev" else self._material.test, 0)
        lists, path = self._list(steps, name, text), self._folder / "lists" / f"{name}.more.gz"
        inputs = {"models": contents_of(models), "files": contents_of([lists, text]), "labels": given}
        inputs |= self._pretrained
        has_end = name == "dev" and bool(self._material.lists)  # ours lack the end if Moses died of the last line
        work = lambda: self._extend(lists, text, models, path, given, has_end=has_end)  # noqa: E731
        labels: list[str] = steps.run(f"add {name}", inputs, [path], work)
        return labels

    def _extend(
        self, lists: str, text: str, models: Sequence[Path], path: Path, labels: Sequence[str], *, has_end: bool
    ) -> list[str]:
        lines = parse_nbest(read_lines(lists), lists)
        first = next(lines, None)
        given = self._material
        request = ListRequest(
            nbest=lists,
            add=tuple(models),
            device=given.device,
            threads=given.threads,
            allow_misfit=given.allow_misfit,
            **self._pretrained,
        )
        made = list(make_features(first, lists, request))
        features = dict(zip(labels, (one for _, one in made), strict=True)) if labels else label_features(first, made)
        added = ListFeatures(lists, list(_lines(text)), features, has_end=has_end, allow_misfit=given.allow_misfit)
        with OutputFile(str(path), force=True) as file:
            for block in added.add(itertools.chain([first] if first else [], lines)):
                file.append(block)
            file.commit()
        return list(features)

    def _read(self, name: str, prefix: str | None) -> tuple[str, Iterator[NBestLine], list[bytes]]:
        """Return the name of extended lists, their lines and the reference."""
        path = str(self._folder / "lists" / f"{name}.more.gz")
        return path, parse_nbest(read_lines(path), path), list(_lines(self._path(prefix, 1)))

    def _tune(self, steps: Steps) -> Json:
        moses = Moses.of_environment()
        optimiser = "mert"
        if moses is not None:
            with suppress(InputError):
                optimiser = "kbmira" if moses.program("kbmira") else optimiser
        weights = read_weights(self._ini).files
        files: list[str | Path] = [self._folder / "lists" / "dev.more.gz", self._path(self._material.dev, 1), *weights]
        inputs = {"files": contents_of(files), "optimiser": optimiser, "seeds": SEEDS}
        result: Json = steps.run("tune", inputs, [self._folder / WEIGHTS], lambda: self._find_weights(optimiser, moses))
        return result

    def _find_weights(self, optimiser: str, moses: Moses | None) -> Json:
        name, lines, reference = self._read("dev", self._material.dev)
        kept, given = list(lines), read_weights(self._ini)
        start = read_start(kept, [reference], name, given)
        found = []
        for seed in SEEDS:
            found.append(
                tune(start.points, start.weights, optimiser, moses=moses, seed=seed, should_stop=self._should_stop)
            )
            if self._should_stop():
                raise Stopped("stopped; run the same command again to continue")
        ini = format_ini(start.points.names, np.mean(found, axis=0), given.sparse)
        replace_file(self._folder / WEIGHTS, ini)
        return {"optimiser": optimiser, **self._judge(kept, reference, name)}

    def _compare(self, steps: Steps) -> Json:
        reference_path = self._path(self._material.test, 1)
        files = contents_of([self._folder / "lists" / "test.more.gz", reference_path, self._folder / WEIGHTS])
        name, lines, reference = self._read("test", self._material.test)
        work = lambda: self._judge(list(lines), reference, name)  # noqa: E731
        result: Json = steps.run("test", {"files": files}, [], work)
        return result

    def _judge(self, lines: list[NBestLine], reference: list[bytes], name: str) -> Json:
        """Return BLEU before and after reranking and of the oracle, and the p-value of the difference."""
        weights = read_weights(str(self._folder / WEIGHTS))
        weighted = WeightedSum(name, weights)
        best = choose_hypotheses(weighted.score(lines), name)
        weighted.check_used()
        chosen = list_translations(best, len(reference))
        before, after, oracle = compare_bleu(lines, [reference], name, chosen)
        firsts = choose_hypotheses(((0.0, line) for line in lines), name)
        p = find_p(list_translations(firsts, len(reference)), chosen, reference)
        return {"before": before, "after": after, "oracle": oracle, "p": p}

    def _settings(self, labels: Sequence[str], models: Sequence[Path], hashes: Mapping[str, str]) -> Settings:
        given, inner = self._material, self._folder.absolute()
        paths = [model if is_pretrained(model) else model.absolute() for model in models]
        named = [str(path.relative_to(inner) if path.is_relative_to(inner) else path) for path in paths]
        text = b"".join(_lines(self._path(given.dev, 0))).decode("utf-8", "replace")
        return Settings(
            ini=self._ini,
            size=given.list_size,
            flags=[*self._flags],
            source=given.source,
            target=given.target,
            lowercase=text == text.lower(),
            features=dict(zip(labels, named, strict=True)),
            pretrained=self._pretrained,
            hashes=dict(hashes),
        )


def _check_names(paths: Iterable[Path | str]) -> None:
    """Raise InputError for a path that reranker.toml cannot hold."""
    for path in paths:
        try:
            str(path).encode()
        except UnicodeEncodeError as error:
            raise InputError(f"{path}: expected a path in UTF-8") from error


def _lines(path: str) -> Iterator[bytes]:
    return (line.rstrip(b"\r\n") for line in read_text(path))
