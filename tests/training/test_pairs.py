"""The minibatches of an epoch, and partitions of few distinct target words: what they hold, what is learned of them."""

import dataclasses

import numpy as np
import pytest
import torch

from moses_rnn.errors import InputError
from moses_rnn.training.corpus import CorpusConfig, build_corpus
from moses_rnn.training.ranks import Threads
from moses_rnn.training.tasks import PhrasePairs, describe_partitions, epoch_batches, partitions_of, target_words
from tests.training.small import FAST, network


def test_sorting_makes_batches_of_like_lengths(corpus):
    def spread(sort_batches):
        config = dataclasses.replace(FAST, sort_batches=sort_batches)
        lengths = np.diff(corpus.target.ends)
        return np.mean([np.ptp(lengths[batch]) for batch in epoch_batches(corpus, config, 0)])

    assert spread(10) < spread(1) / 2


@pytest.mark.parametrize(("batch_words", "sort_batches"), [(40, 10), (40, 1), (7, 10), (1, 10), (10**6, 10)])
def test_minibatches_of_words_have_about_as_many(corpus, batch_words, sort_batches):
    config = dataclasses.replace(FAST, batch_words=batch_words, sort_batches=sort_batches)
    words = np.diff(corpus.target.ends) + 1
    batches = list(epoch_batches(corpus, config, 0))
    assert sorted(np.concatenate(batches)) == sorted(corpus.training)
    assert [batch.tolist() for batch in epoch_batches(corpus, config, 0, 3)] == [
        batch.tolist() for batch in batches[3:]
    ]
    sizes, longest = [words[batch].sum() for batch in batches], words.max()
    assert max(sizes) <= 1.5 * batch_words + longest
    if batch_words == 40:
        assert np.mean(sizes) == pytest.approx(40, rel=0.15)
        assert np.std(sizes) < 8
    if sort_batches == 10 and batch_words == 40:
        assert np.ptp([len(batch) for batch in batches]) > 2  # short sentences, and long ones


MOST = 30
CONFIG = dataclasses.replace(FAST, partition_words=MOST, sort_batches=1, batch_size=8, optimiser="sgd")


@pytest.fixture(scope="module")
def many_words(tmp_path_factory):
    """Pairs with some of 60 words, of which a minibatch has about 20."""
    random = np.random.default_rng(0)
    pairs = [
        (b"s%d" % random.integers(60), b" ".join(b"t%d" % i for i in random.integers(60, size=random.integers(1, 5))))
        for _ in range(400)
    ]
    return build_corpus(pairs, tmp_path_factory.mktemp("corpus"), CorpusConfig(held_out_pairs=30))


def by_definition(corpus, batches, most):
    """The page's walk: closed before the minibatch with which there would be too many."""
    partitions, words, held = [], {0, 1}, []
    for batch in batches:
        own = {int(i) for row in batch for i in corpus.target.take(np.array([row]))[0]}
        if len(words | own) > most:
            partitions.append((sorted(words), held))
            words, held = {0, 1}, []
        words |= own
        held = [*held, batch.tolist()]
    return [*partitions, (sorted(words), held)]


@pytest.mark.parametrize("most", [28, MOST, 45])
def test_partitions_close_before_they_have_too_many_words(many_words, most):
    batches = list(epoch_batches(many_words, CONFIG, 0))
    partitions = list(partitions_of(many_words, batches, most))
    assert [(words.tolist(), [b.tolist() for b in held]) for words, held in partitions] == by_definition(
        many_words, batches, most
    )
    assert len(partitions) > 3
    for words, of_partition in partitions:
        assert len(words) <= most
        assert {0, 1} <= {*words.tolist()}
        for batch in of_partition:
            assert {*target_words(many_words, batch).tolist()} <= {*words.tolist()}


def task_of(corpus, **changes):
    return PhrasePairs(network(corpus), corpus, dataclasses.replace(CONFIG, **changes))


def epoch(task, number, first=0):
    """The minibatches, each with the words that it is normalised over."""
    return [(batch.tolist(), task._partition.tolist()) for batch in task.batches(number, first)]


def test_without_reshuffling_all_epochs_are_the_first_one(many_words):
    task = task_of(many_words)
    assert epoch(task, 0) == epoch(task, 1) == epoch(task, 5)
    task = task_of(many_words, reshuffle=True)
    assert len({str(epoch(task, number)) for number in range(3)}) == 3
    assert epoch(task, 0) == epoch(task_of(many_words), 0)


def test_rows_outside_a_partition_are_left_alone(many_words):
    task = task_of(many_words)
    batch = next(task.batches(0, 0))
    inside = task._partition
    task.cost(batch, 0).objective.backward()
    outside = torch.ones(len(many_words.target_vocabulary), dtype=torch.bool)
    outside[inside] = False
    decoder = task.model.decoder
    assert outside.any()
    assert not decoder.b_G.grad[outside].any()
    assert decoder.b_G.grad[inside].all()


def test_held_out_pairs_cost_what_they_cost_over_all_words(many_words):
    task, exact = task_of(many_words), task_of(many_words, partition_words=0)
    next(task.batches(0, 0))
    assert task.held_out(Threads()) == exact.held_out(Threads())


def test_a_minibatch_of_too_many_words_is_refused_before_training(many_words):
    batches = list(epoch_batches(many_words, CONFIG, 0))
    widest = max(len(target_words(many_words, batch)) for batch in batches)
    partitions = len(list(partitions_of(many_words, batches, widest + 2)))
    config = dataclasses.replace(CONFIG, partition_words=widest + 2)
    (line,) = describe_partitions(many_words, config)
    assert line.startswith(f"partitions of the first epoch: {partitions}, of ")
    assert line.endswith(f" the widest minibatch has {widest}")
    with pytest.raises(InputError, match=f"partition_words {widest + 1}: expected at least {widest + 2}, .*, found"):
        describe_partitions(many_words, dataclasses.replace(CONFIG, partition_words=widest + 1))


def test_of_a_later_epoch_such_a_minibatch_is_learned_in_parts(many_words):
    batches = list(epoch_batches(many_words, dataclasses.replace(CONFIG, batch_size=32), 0))
    assert max(len(target_words(many_words, batch)) for batch in batches) > MOST - 2
    partitions = list(partitions_of(many_words, batches, MOST))
    assert max(len(words) for words, _ in partitions) <= MOST
    learned = [row for _, held in partitions for batch in held for row in batch.tolist()]
    assert learned == [row for batch in batches for row in batch.tolist()]
