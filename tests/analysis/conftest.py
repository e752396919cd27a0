"""What the pipeline leaves behind, as a folder."""

import pytest

REFERENCES = ["the old man sleeps here .", "a dog runs over the green hill .", "two women walk home together ."] * 20
WORSE = [line.replace("sleeps", "sleeping").replace("runs over", "runs on") for line in REFERENCES]
INI = "[feature]\nKENLM name=LM0\n[weight]\nTranslationModel0= {}\nLM0= 0.5\n"


def segments(lines):
    return [f"{line} |0-{len(line.split()) - 1}| " for line in lines]


@pytest.fixture
def work(tmp_path):
    """A baseline that errs, and a system that does not."""
    for folder in ("corpus", "decode"):
        (tmp_path / folder).mkdir()
    for name in ("dev", "test"):
        (tmp_path / "corpus" / f"{name}.fr").write_text("".join(line + "\n" for line in REFERENCES))
        for seed in "12":
            for system, lines in (("baseline", WORSE), ("rnn", REFERENCES)):
                stem = f"{system}.{seed}.{name}"
                (tmp_path / "decode" / f"{stem}.fr").write_text("".join(line + "\n" for line in lines))
                (tmp_path / "decode" / f"{stem}.segments").write_text("".join(line + "\n" for line in segments(lines)))
    for system, weights in (("baseline", "0.1 0.2"), ("rnn", "0.1 0.2 0.00001")):
        for seed in "12":
            (tmp_path / "tune" / f"{system}.{seed}").mkdir(parents=True)
            (tmp_path / "tune" / f"{system}.{seed}" / "moses.ini").write_text(INI.format(weights))
    return tmp_path
