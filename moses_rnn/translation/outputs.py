"""What a translation writes: a text and, beside it, an n-best list and alignments; all are resumable together."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from moses_rnn.errors import FormatError, MosesRnnError, OutputError
from moses_rnn.files.journal import BlockOutput, Opening
from moses_rnn.files.outputs import OutputFile, StandardOutput, refuse_equal, stop_if_complete
from moses_rnn.files.records import Note
from moses_rnn.files.streams import STANDARD_STREAM


class Outputs:
    """The text and what goes along with it.

    A block of those that go along is durable before the text's own, and they have their names before it has: so what
    the text's journal knows, theirs know too.

    Args:
        text: a line each.
        others: as many blocks as the text; on standard output nothing can be resumed, and they are whole or not there.
    """

    def __init__(self, text: BlockOutput | StandardOutput, others: Sequence[BlockOutput | OutputFile]) -> None:
        self._text = text
        self._others = others
        self._begun: list[BlockOutput] = []  # of the others
        self._finished: list[BlockOutput] = []  # of the others, by a run that died right before its end

    @property
    def blocks(self) -> int:
        """How many are durable."""
        return self._text.blocks

    @property
    def published(self) -> bool:
        """Whether the text has its name already: a run died after that."""
        return self._text.published

    @property
    def is_resumable(self) -> bool:
        """Whether what is written survives."""
        return isinstance(self._text, BlockOutput)

    def begin(self, manifest: Note) -> Note | None:
        """Begin, or go on where an interrupted run of the same manifest ended; returns the note of its last block.

        Raises:
            OutputError: a leftover is there and neither to be resumed nor replaced, it is of something else, or what
                goes along with the text is not as far as the text is.
        """
        note = self._text.begin(manifest)
        for other in self._others:
            if isinstance(other, BlockOutput):
                self._begin(other, manifest)
        return note

    def _begin(self, other: BlockOutput, manifest: Note) -> None:
        if self._text.published and other.is_finished():
            self._finished.append(other)
            return
        other.begin(manifest, most=self._text.blocks)
        self._begun.append(other)
        if other.blocks != self._text.blocks:
            raise OutputError(
                f"{other.path}: expected the {self._text.blocks:,} blocks that {self._text.path} has, "
                f"found {other.blocks:,}",
                advice="--force starts over.",
            )

    def append(self, text: bytes, others: Sequence[bytes], note: Note) -> None:
        """Write a block of each."""
        for output, data in zip(self._others, others, strict=True):
            output.append(output.pack(data) if isinstance(output, BlockOutput) else data)
        self._text.append(self._text.pack(text), note)

    def commit(self) -> None:
        """Give each its name, the text last."""
        for output in self._others:
            if output in self._finished:
                output.discard()
            else:
                output.commit()
        self._text.commit()

    @contextlib.contextmanager
    def kept_if_resumable(self) -> Iterator[None]:
        """Leave what was finished after an error, and say what to do about a line that was refused."""
        try:
            yield
        except MosesRnnError as error:
            if not self.blocks:  # perhaps one was written of the others and none of the text
                for output in self._begun:
                    output.discard()
            elif self.is_resumable and isinstance(error, FormatError) and error.line is not None:
                error.add_advice("What was translated before is kept: mend the line and go on with --resume.")
            raise


@contextlib.contextmanager
def open_outputs(text: str, others: Sequence[str], opening: Opening, inputs: tuple[str, ...]) -> Iterator[Outputs]:
    """The files of a translation, held against other runs.

    Args:
        text: its path, or that of standard output.
        others: paths.
        opening: how they may be begun; on standard output nothing is resumed.
        inputs: files that none of them may replace.

    Raises:
        OutputError: one cannot be written, exists, or is an input or another output.
    """
    resumable = text != STANDARD_STREAM
    refuse_equal([text, *others] if resumable else others)

    def open_one(path: str) -> BlockOutput | OutputFile:
        if resumable:
            return BlockOutput(path, opening=opening, inputs=inputs)
        return OutputFile(path, force=opening.force, inputs=inputs)

    if resumable and opening.resume and not opening.force:
        stop_if_complete([text, *others], inputs)
    first = BlockOutput(text, opening=opening, inputs=inputs) if resumable else StandardOutput()
    with first, contextlib.ExitStack() as stack:
        further = []
        for path in others:
            further.append(open_one(path))
            stack.enter_context(further[-1])
        yield Outputs(first, further)
