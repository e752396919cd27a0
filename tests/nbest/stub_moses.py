"""Stands for Moses's decoder: writes a list for each line, as `moses -n-best-list - 200 distinct` does.

sN becomes tN. Each list has a hypothesis with x for the second word, which Moses likes best, the right one, and one that
lacks its last word. "[X]" kills it, as it kills Moses; a line that begins with "none" gets no list.
"""

import sys
from pathlib import Path


def put_stub(folder):
    """Put it where Moses's decoder would be, if MOSES_ROOT were folder/moses."""
    stub = folder / "moses" / "bin" / "moses"
    stub.parent.mkdir(parents=True)
    stub.write_text(f'#!/bin/sh\nexec {sys.executable} {Path(__file__).absolute()} "$@"\n')
    stub.chmod(0o755)


def hypotheses(read):
    right = [b"t" + word[1:] if word[:1] == b"s" else word for word in read]
    yield -1.0, [*right[:1], *[b"x"] * (len(right) > 1), *right[2:]]
    if len(right) > 1:
        yield -2.0, right
        yield -3.0, [*right[:-1], b"y"]


def main():
    size = int(sys.argv[sys.argv.index("-n-best-list") + 2])
    for number, line in enumerate(sys.stdin.buffer):
        read = line.replace(b"\t", b" ").split()
        if b"[X]" in read:
            sys.exit("Incorrect formatting of non-terminal")
        listed = [] if read[:1] == [b"none"] else list(hypotheses(read))[:size]
        spans = b" ".join(b"%d=%d" % (i, i) for i in range(len(read)))
        links = b" ".join(b"%d-%d" % (i, i) for i in range(len(read)))
        for score, words in listed:
            fields = number, b" ".join(words), score, score, spans, links
            sys.stdout.buffer.write(b"%d ||| %b  ||| LM0= %g ||| %g ||| %b ||| %b\n" % fields)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
