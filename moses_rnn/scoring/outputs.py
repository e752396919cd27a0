"""What a scoring run writes: table, rejects, signature and ini come into being together, or not at all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from moses_rnn.errors import AlreadyComplete, FormatError, InputError, MisfitError, MosesRnnError, OutputError, Stopped
from moses_rnn.files.journal import BlockOutput, Opening
from moses_rnn.files.outputs import NoOutput, OutputFile, StandardOutput, refuse_equal, stop_if_complete
from moses_rnn.files.streams import STANDARD_STREAM
from moses_rnn.formats.signatures import read_signature, records_of
from moses_rnn.producers.ensembles import recorded_hashes
from moses_rnn.producers.open import model_files
from moses_rnn.scoring.phrase_tables import ScoringReport
from moses_rnn.scoring.rejects import NoRejects, Rejects
from moses_rnn.scoring.request import ScoringRequest, rejects_of


@dataclass
class Outputs:
    """The files of a run; `report` counts what went into them."""

    request: ScoringRequest
    table: BlockOutput | StandardOutput
    rejects: Rejects | NoRejects
    signature: OutputFile | NoOutput
    ini: OutputFile | NoOutput
    report: ScoringReport = field(default_factory=ScoringReport)
    begun: bool = False

    def begin(self, manifest: dict[str, Any]) -> None:
        """Begin, or resume what an interrupted run of the same manifest left."""
        self.report.take_over(self.table.begin(manifest))
        self.rejects.begin(manifest, None if self.table.published else self.table.blocks)
        self.begun = True

    def write(self, block: bytes) -> None:
        """Write a packed block of the table, and the rejected lines before its end."""
        self.rejects.write(self.report.read)
        self.table.append(block, self.report.as_note())

    def commit(self, signature: bytes, ini: bytes) -> None:
        """Give everything its name: the table first, since with it --resume can make the others again."""
        self.table.commit()
        self.signature.commit(signature)
        self.ini.commit(ini)
        self.rejects.commit()

    def stop(self) -> NoReturn:
        """Raise Stopped, saying what next."""
        what_next = (
            "the same command with --resume goes on"
            if self._is_resumable
            else "what goes through a pipe cannot be resumed: the same command starts over"
        )
        raise Stopped(f"stopped after {self.report.lines:,} lines; {what_next}")

    @contextlib.contextmanager
    def kept_if_resumable(self) -> Iterator[None]:
        """Leave what was finished only where a run on the same input can be resumed.

        That is so after a bad line too: --on-bad-line and the like are no part of what decides the bytes before it.
        """
        try:
            yield
        except MosesRnnError as error:
            if self.table.blocks:
                if self.begun:
                    error.add_advice(self._keep_or_discard(error))
            elif not self.table.has_leftover:
                self.rejects.discard()  # perhaps a block was written for them and none for the table
            raise

    @property
    def _is_resumable(self) -> bool:
        return self.request.output != STANDARD_STREAM and Path(self.request.table).is_file()

    def _keep_or_discard(self, error: MosesRnnError) -> str:
        """What to advise after an error."""
        of_a_line = isinstance(error, FormatError) and error.line is not None
        misfit = isinstance(error, MisfitError)
        if not self._is_resumable or (isinstance(error, InputError) and not of_a_line and not misfit):
            self.table.discard()
            self.rejects.discard()
            return ""
        kept = f"{self.report.lines:,} lines are scored and kept"
        if misfit:
            return f"{kept}: --resume --allow-misfit goes on, --force with another --model starts over."
        if of_a_line:
            return f"{kept}: while the file stays as it is, --resume --on-bad-line skip goes on."
        return "" if isinstance(error, Stopped) else f"{kept}: mend the cause and go on with --resume."


@contextlib.contextmanager
def open_outputs(request: ScoringRequest) -> Iterator[Outputs]:
    """The files of a run, held against other runs.

    Raises:
        OutputError: one cannot be written, exists, or is an input or another output.
    """
    refuse_equal(_names(request))
    with (
        _table_output(request) as table,
        _rejects_output(request) as rejects,
        _signature_output(request, resumed=table.has_leftover) as signature,
        _ini_output(request, resumed=table.has_leftover) as ini,
    ):
        yield Outputs(request, table, rejects, signature, ini)


def _table_output(request: ScoringRequest) -> BlockOutput | StandardOutput:
    if request.output == STANDARD_STREAM:
        return StandardOutput()
    if request.resume and not request.force:
        _stop_if_complete(request)
    return _block_output(request, request.output)


def _stop_if_complete(request: ScoringRequest) -> None:
    always = [name for name in _names(request) if name != request.rejects]  # which are there if a line was rejected
    try:
        stop_if_complete(always, _inputs(request))
    except AlreadyComplete:
        _check_signature(request)
        raise


def _check_signature(request: ScoringRequest) -> None:
    """Refuse to take a table for complete whose signature is of another run, or is missing."""
    signature = read_signature(request.output) or {}
    # The models of an earlier run come first
    models = [record.get("sha256") for record in records_of(signature, "models")][-len(request.folders) :]
    floors = [record.get("floor") for record in records_of(signature, "added_columns")]
    floor = None if request.columns.logarithms else request.columns.floor
    if (signature.get("input"), models, floors) != (
        Path(request.table).name,
        list(map(recorded_hashes, request.folders)),
        [floor] * request.added_columns,
    ):
        raise OutputError(
            f"{request.output}: exists already, and its signature names another table, model, floor or number of "
            "columns; use --force to replace it"
        )


def _rejects_output(request: ScoringRequest) -> Rejects | NoRejects:
    if request.rejects:
        return Rejects(_block_output(request, request.rejects))
    return NoRejects(None if request.output == STANDARD_STREAM else rejects_of(request.output))


def _block_output(request: ScoringRequest, path: str) -> BlockOutput:
    return BlockOutput(path, opening=_opening(request), inputs=_inputs(request))


def _opening(request: ScoringRequest) -> Opening:
    return Opening(force=request.force, resume=request.resume)


def _signature_output(request: ScoringRequest, *, resumed: bool) -> OutputFile | NoOutput:
    if request.output == STANDARD_STREAM:
        return NoOutput()
    return _small_output(request, request.output + ".json", resumed=resumed)


def _ini_output(request: ScoringRequest, *, resumed: bool) -> OutputFile | NoOutput:
    return _small_output(request, request.ini.output, resumed=resumed) if request.ini else NoOutput()


def _small_output(request: ScoringRequest, path: str, *, resumed: bool) -> OutputFile:
    """What may be there is of the run that is resumed, or that run was allowed to replace it."""
    return OutputFile(path, force=request.force or (request.resume and resumed), inputs=_inputs(request))


def _names(request: ScoringRequest) -> Iterator[str]:
    if request.output != STANDARD_STREAM:
        yield from (request.output, request.output + ".json")
    yield from filter(None, (request.rejects, request.ini.output if request.ini else None))


def _inputs(request: ScoringRequest) -> tuple[str, ...]:
    """All files that no output may replace."""
    models = [file for folder in request.folders for file in model_files(folder)]
    return (request.table, *([request.ini.ini] if request.ini else []), *models)
