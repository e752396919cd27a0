"""A table of words that the models of `saved_models` know, and options to score it."""

from moses_rnn.score.scoring_options import ScoringOptions

LINES = [b"s%d s%d ||| t%d ||| 0.5 0.25 ||| 0-0\n" % (2 + i // 6, 2 + i % 6, 2 + i % 5) for i in range(30)]


def options_for(here, models, /, **changes):
    """To score the table of a folder by the network of pairs, beside it."""
    given = {
        "phrase_table": str(here / "table"),
        "new_table": str(here / "scored"),
        "models": (models / "rnn",),
        "device": "cpu",
    }
    return ScoringOptions(**given | changes)


def never():
    return False


def names(folder):
    return sorted(path.name for path in folder.iterdir())
