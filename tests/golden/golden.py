"""Runs the commands of commands.toml, and writes down what they leave in a form that people and machines can compare."""

import difflib
import gzip
import hashlib
import html
import itertools
import json
import math
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np

from tests.commands import ROOT, zygote
from tests.conftest import EXAMPLES

HERE = Path(__file__).parent
CHAINS = tomllib.loads((HERE / "commands.toml").read_text(encoding="utf-8"))
ENVIRONMENT = {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    "EXAMPLES": str(EXAMPLES),
    "LC_ALL": "C.UTF-8",
    "SOURCE_DATE_EPOCH": "0",
}

# What a machine, a version, a clock or chance changes: in every text
SUBSTITUTIONS = [
    (re.escape(str(Path(sys.executable).parent)), "BIN"),
    (re.escape(str(ROOT)), "ROOT"),
    (r"python3[.\d]*", "python"),
    (r"\b\d+\.\d+\.\d+(\+\w+)?", "VERSION"),
    (r"(?<=without gain); by .*|^native\nnative core, \w+\n", ""),
    (r"native core, \w+|without the native core|(?<=computed by: )torch|(?<=computed_by\": \")torch", "CORE"),
    (r"\b[0-9a-f]{64}\b|\b[0-9a-f]{12,16}…", "SHA256"),
    (r'"bytes": \d+|\d+ bytes, SHA-256|^ +bytes .*|(?<=^file bytes\n)\d+', "BYTES"),
    (r"([a-z]\.)[0-9a-f]{10}\b", r"\1HASH"),
    (r'("(seconds|tokens_per_second|native|modified)": )("[^"]*"|[^,}\n]*)', r"\1…"),
    (r"\d:\d\d:\d\d(.*?) +[\d,]+(  best)?$", r"TIME\1  RATE\2"),
    (r"left \d+ blocks", "left … blocks"),
    (r"(pipeline\.mk:)\d+", r"\1…"),
]
# A decimal number may differ by this share, or, if it has three digits or more, by one in the last of them. All other
# text is compared exactly, but for the number of blanks (two at least) before a number, which align it.
TOLERANCE = 1e-4
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
MESSAGES = 25  # the last lines of stderr
CHARACTERS = 2400  # of a longer text the first lines are kept, and a digest of the others


# --- running ------------------------------------------------------------------------------------------------------------


def run_chain(chain, folder):
    """Yield the name of each command and what came of it; ENVIRONMENT is to be that of this process."""
    given = run_line((HERE / "given.sh").read_text(encoding="utf-8"), folder)
    assert given.returncode == 0, given.stderr
    shutil.copytree(HERE / "models", folder, dirs_exist_ok=True)
    before = digests(folder)
    for name, line in CHAINS[chain].items():
        done = run_line(line, folder)
        after = digests(folder)
        yield name, "\n".join(written_down(line, done, folder, before, after)) + "\n"
        before = after


def run_line(line, folder):
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    if not line.startswith("moses-rnn") or any(set(word) <= set("|&;<>") for word in words):
        done = subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, check=False)
        done.stderr = done.stderr.decode()
        return done
    command, *arguments = shlex.split(line)
    return zygote(command.removeprefix("moses-rnn").removeprefix("-"), *arguments, cwd=folder)


def digests(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).digest() for path in files}


# --- writing down -------------------------------------------------------------------------------------------------------


def written_down(line, done, folder, before, after):
    def normalised(text):
        text = text.replace(str(folder), "HERE").replace(str(folder.parent), "HERE/..")
        for pattern, replacement in SUBSTITUTIONS:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        return text

    yield f"$ {line.strip()}\nexit code {done.returncode}"
    messages = "\n".join(done.stderr.splitlines()[-MESSAGES:])
    for name, text in (("stdout", done.stdout.decode()), ("stderr", messages)):
        if text:
            yield f"=== {name}\n{shortened(normalised(text))}"
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            yield f"=== {path}: gone"
        elif before.get(path) != after[path]:
            yield f"=== {path}\n{show(folder / path, normalised)}"


def show(path, normalised):
    """A file's content: text as it is, if it is short; of arrays and pictures what does not depend on a machine."""
    if path.parent.name == "training" and path.suffix != ".jsonl":
        return "(for training to go on)"
    data = unpacked(path)
    if path.suffix in SHOWN:
        return normalised(SHOWN[path.suffix](data))
    try:
        return shortened(normalised(data.decode()))
    except UnicodeDecodeError:
        return f"{len(data)} bytes, digest {digest(data)}"


def unpacked(path):
    data = path.read_bytes()
    try:
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except EOFError:
        return data


def show_tensors(data):
    """Type, shape and norm of each, and the norm of its sum with a ramp, which order and signs change."""
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    for name, about in sorted(header.items()):
        if name != "__metadata__":
            values = np.frombuffer(
                data[8 + size :][slice(*about["data_offsets"])], {"F32": "f4", "F64": "f8"}[about["dtype"]]
            )
            header[name] = f"{about['dtype']} {about['shape']} {norms(values)}"
    return "\n".join(f"{name} {about}" for name, about in sorted(header.items()))


def norms(values):
    values = np.asarray(values, dtype=float)
    return f"{np.linalg.norm(values):.4e} {np.linalg.norm(values + np.linspace(0, 1, values.size)):.4e}"


def show_size(data):
    return "picture of {} by {}".format(*struct.unpack(">II", data[16:24]))


def show_words(data):
    """Those of a page or picture; matplotlib draws words as paths and writes them as comments."""
    text = re.sub(r"(?s)<(style|script|metadata)\b.*?</\1>", "", data.decode())
    text = re.sub(r"<!--(.*?)-->", r"\1", text)
    text = re.sub(r"</?(td|th|b|i|em|code|a|span|sub|sup)\b[^>]*>", " ", text)
    lines = (" ".join(html.unescape(line).split()) for line in re.sub(r"(?s)<.*?>", "\n", text).splitlines())
    return "\n".join(filter(None, lines))


SHOWN = {".safetensors": show_tensors, ".png": show_size, ".html": show_words, ".svg": show_words}


def shortened(text):
    """The first lines, and of the others a digest of all but the decimals, how many these are, and their norms."""
    lines = text.splitlines(keepends=True)
    lengths = itertools.accumulate(len(NUMBER.sub("a number", line)) for line in lines)
    count = sum(length <= CHARACTERS for length in lengths)
    rest = "".join(lines[count:])
    if not rest:
        return text.removesuffix("\n")
    decimals = [float(number) for number in NUMBER.findall(rest) if is_decimal(number)]
    others = NUMBER.sub(lambda number: "#" if is_decimal(number[0]) else number[0], rest).encode()
    about = f"{len(lines) - count} more lines, digest {digest(others)}, {len(decimals)} decimals {norms(decimals)}"
    return "".join([*lines[:count], f"… {about}"])


def digest(data):
    return hashlib.sha256(data).hexdigest()[:16]


# --- comparing ----------------------------------------------------------------------------------------------------------


def settled(new, old):
    """What is new, with each old line of which it differs by no more than the tolerance."""
    new, old = new.splitlines(keepends=True), old.splitlines(keepends=True)
    masked = [[NUMBER.sub("#", re.sub(r" {2,}(?=-?\d)", "  ", line)) for line in lines] for lines in (old, new)]
    for i, j, size in difflib.SequenceMatcher(None, *masked, autojunk=False).get_matching_blocks():
        for k in range(size):
            if all(map(are_close, NUMBER.findall(new[j + k]), NUMBER.findall(old[i + k]))):
                new[j + k] = old[i + k]
    return "".join(new)


def are_close(one, other):
    if not (is_decimal(one) or is_decimal(other)) or math.inf in (float(one), float(other)):  # 12e4567 in a digest
        return one == other
    return math.isclose(float(one), float(other), rel_tol=TOLERANCE, abs_tol=last_digit(one, other))


def last_digit(*numbers):
    """One in the last place of the number that has fewer, if each has three digits or more."""
    places = []
    for number in numbers:
        digits, _, exponent = number.partition("e")
        if len(digits.replace(".", "").lstrip("-0")) < 3:
            return 0
        places.append(int(exponent or 0) - len(digits.partition(".")[2]))
    return 1.01 * 10.0 ** max(places)


def is_decimal(number):
    return not number.lstrip("-").isdigit()
