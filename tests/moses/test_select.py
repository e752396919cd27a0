"""The part of a corpus that is most like a domain, selected by the pipeline with Moses's lmplz."""

import pytest

from tests.pipeline import make

NEWS = {"en": "the minister of state {} met the press today", "fr": "le ministre d' etat {} a vu la presse"}
TALES = {"en": "once upon a time {} kissed a frog", "fr": "il etait une fois {} qui aimait une grenouille"}
NAMES = ["Ada", "Bea", "Cid", "Dan", "Eve", "Fay", "Guy", "Hal", "Ina", "Joe"]


def write(folder, name, *texts):
    for language in ("en", "fr"):
        lines = [text[language].format(who) for who in NAMES for text in texts]
        (folder / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines * 3))


@pytest.mark.moses
def test_the_share_most_like_the_domain_is_kept_in_order(moses_root, tmp_path):
    write(tmp_path, "train", NEWS, TALES)
    write(tmp_path, "dev", NEWS)
    more = tmp_path / "more.fr"
    more.write_text("".join(text["fr"].format(who) + "\n" for who in NAMES for text in (TALES, NEWS)))
    texts = [f"{name}={tmp_path / stem}" for name, stem in (("TRAIN", "train"), ("DEV", "dev"), ("TEST", "dev"))]
    given = [f"WORK={tmp_path / 'work'}", f"MOSES_ROOT={moses_root}", "TOKENISED=yes", *texts]
    make("select", "lm", *given, "SELECT=0.5", f"LM_TEXT={more}", "ORDER=2", "LM_FLAGS=--discount_fallback")
    for language in ("en", "fr"):
        kept = (tmp_path / "work" / "corpus" / f"train.{language}").read_text().splitlines()
        assert kept == [NEWS[language].format(who) for who in NAMES] * 3
    selected = (tmp_path / "work" / "lm" / "selected.fr").read_text().splitlines()
    assert selected == [NEWS["fr"].format(who) for who in NAMES]
