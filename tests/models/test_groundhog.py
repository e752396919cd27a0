"""Weights of the released code: every tensor has its place, and scores are those of a transcription of that code."""

import itertools

import numpy as np
import pytest
import torch

from moses_rnn.models.batches import Batch
from moses_rnn.models.encdec import ENCDEC
from moses_rnn.models.groundhog import network_of, plan_of, words_of
from moses_rnn.models.rnnsearch import RNNSEARCH
from tests.models import reference_groundhog as reference
from tests.models.groundhog_weights import SHAPES, SOURCE_LINES, TARGET_LINES, A, E, H, K, M, R, S, weights

NETWORKS = {"phrases": (ENCDEC, reference.phrase_log_prob), "search": (RNNSEARCH, reference.search_log_prob)}
IDS = {"source": SOURCE_LINES, "target": TARGET_LINES}


def shapes_of(tensors):
    return {name: array.shape for name, array in tensors.items()}


def imported(network, tensors=None, end_row=None):
    """The network, and the words of each side."""
    tensors = tensors or weights(network)
    plan = plan_of(shapes_of(tensors))
    rows = {"source": plan.sizes["S"], "target": plan.sizes["K"]}
    lines = {side: [*given, b"last"] if end_row is not None else given for side, given in IDS.items()}
    words = {side: words_of(lines[side], count, end_row) for side, count in rows.items()}
    return network_of(plan, tensors.__getitem__, words), words


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("end_row", [None, 3, 0])
@pytest.mark.parametrize("network", NETWORKS)
def test_scores_are_those_of_the_released_code(network, end_row, dtype):
    tensors = weights(network, dtype)
    model, words = imported(network, tensors, end_row)
    ours = {side: {int(row): i for i, row in enumerate(of.rows)} for side, of in words.items()}
    theirs = {name: array.tolist() for name, array in tensors.items()}
    ends = {"source": S - 1 if end_row is None else end_row, "target": K - 1 if end_row is None else end_row}
    random = np.random.default_rng(1)
    for lengths in itertools.product((0, 1, 2, 5), (0, 1, 4)):
        rows = [
            [int(row) for row in random.integers(0, size, n) if row != end]
            for size, n, end in zip((S, K), lengths, ends.values(), strict=True)
        ]
        source, target = ([ours[side][row] for row in given] for side, given in zip(ends, rows, strict=True))
        found = model.word_log_probs(Batch.from_lists([source]), Batch.from_lists([target]), torch.tensor([0]))
        with_ends = [[*given, end] for given, end in zip(rows, ends.values(), strict=True)]
        assert found.sum().item() == pytest.approx(NETWORKS[network][1](theirs, *with_ends), rel=1e-5)


@pytest.mark.parametrize("network", NETWORKS)
def test_every_tensor_has_its_place(network):
    """Whatever number is changed, a number of the network changes, and all of that network's are theirs but zeros."""
    before, _ = imported(network)
    changed_by_any = {name: torch.zeros_like(tensor, dtype=torch.bool) for name, tensor in before.state_dict().items()}
    for name, _ in SHAPES[network]:
        tensors = weights(network)
        tensors[name] = tensors[name] + 1
        after, _ = imported(network, tensors)
        changed = {key: after.state_dict()[key] != tensor for key, tensor in before.state_dict().items()}
        assert sum(tensor.any().item() for tensor in changed.values()) == 1, name
        for key, tensor in changed.items():
            changed_by_any[key] |= tensor
    untouched = {key for key, tensor in changed_by_any.items() if not tensor.all()}
    parts = ("encoder", "decoder") if network == "phrases" else ("encoder.forward", "encoder.backward", "decoder")
    assert untouched == {f"{part}.{bias}" for part in parts for bias in ("b_z", "b_r")}
    assert not any(before.state_dict()[key].any() for key in untouched)


def test_the_shapes_say_which_network_it_is():
    kinds = {network: plan_of(dict(SHAPES[network])) for network in NETWORKS}
    assert kinds["phrases"].kind is ENCDEC
    assert kinds["search"].kind is RNNSEARCH
    sizes = {"hidden_size": H, "embedding_size": E, "maxout_size": M, "output_rank": R}
    of_phrases = kinds["phrases"].config()
    assert of_phrases == sizes | {
        "variant": "groundhog",
        "summary": "last",
        "first_step": "initial-state",
        "decoder_reset": "before",
    }
    searching = sizes | {"alignment_size": A, "phases": "groundhog", "unit": "sentences"}
    assert kinds["search"].config() == searching
    assert kinds["search"].config("phrases")["unit"] == "phrases"


def test_names_without_a_place_are_listed():
    unused = {f"{letter}_back_enc_transition_0": (H, H) for letter in "WGR"}
    assert plan_of({**dict(SHAPES["phrases"]), **unused}).left_out == sorted(unused)


@pytest.mark.parametrize(
    ("network", "changes", "message"),
    [
        ("phrases", {"G_enc_transition_0": None}, "gated units, .* for phrases, found none of G_enc_transition_0$"),
        ("search", {"D_dec_transition_0": None}, "for RNNsearch, found none of D_dec_transition_0"),
        ("phrases", {"R_dec_transition_0": (H, H + 1)}, r"expected R_dec_transition_0 to be H × H, \(5, 5\), found"),
        ("phrases", {"W_0_enc_input_embdr_0": (E, 4 * H)}, "expected W_0_enc_input_embdr_0 to be E × H"),  # an LSTM's
        ("phrases", {"W_0_dec_approx_embdr": (K, E + 1)}, "expected W_0_dec_approx_embdr to be K × E"),
        ("phrases", {"b_dec_deep_softmax": (K + 1,)}, "expected b_dec_deep_softmax to be K,"),
        ("phrases", {"W_enc_transition_0": (H,)}, "expected W_enc_transition_0 to be a matrix"),
        ("phrases", {"W_0_enc_approx_embdr": ()}, "expected W_0_enc_approx_embdr to be a matrix"),
        ("phrases", {"W_0_enc_approx_embdr": (1 << 40, E)}, "expected W_0_enc_approx_embdr to be a matrix"),
        ("search", {"D_dec_transition_0": (A,)}, "expected D_dec_transition_0 to be A × 1"),
        ("search", {"B_dec_transition_0": (H, A + 1)}, "expected A_dec_transition_0 to be 2H × A"),
    ],
)
def test_what_does_not_fit_together_is_refused(network, changes, message):
    shapes = {name: shape for name, shape in {**dict(SHAPES[network]), **changes}.items() if shape is not None}
    with pytest.raises(ValueError, match=message):
        plan_of(shapes)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_weights_that_are_not_finite_are_refused(value):
    tensors = weights("phrases", np.float64)
    tensors["W_dec_transition_0"][2, 1] = value
    with pytest.raises(ValueError, match="found NaN or infinity in W_dec_transition_0"):
        imported("phrases", tensors)


# --- words --------------------------------------------------------------------------------------------------------------


def test_words_keep_their_order_behind_the_two_special_ones():
    words = words_of([b"eol", b"UNK", b"a", b"b"], 5)
    assert words.vocabulary.words == [b"<unk>", b"</s>", b"<s>", b"a", b"b"]
    assert words.rows.tolist() == [1, 4, 0, 2, 3]
    words = words_of([b"eol", b"UNK", b"a", b"eos", b"b", b"rare", b"rarer"], 5, 3)
    assert words.vocabulary.words == [b"<unk>", b"</s>", b"<s>", b"a", b"b"]
    assert (words.rows.tolist(), words.left_out) == ([1, 3, 0, 2, 4], 2)
    words = words_of([b"eol", b"UNK", b"a"], 3, 0)
    assert words.vocabulary.words == [b"<unk>", b"</s>", b"a"]


@pytest.mark.parametrize(
    ("lines", "rows", "end_row", "message"),
    [
        ([b"-", b"-", b"a"], 5, None, "expected a word for each of 5 rows but the last, found 3 lines"),
        ([b"-", b"-", b"a"], 4, 2, "expected a word for each of 4 rows but the last, found 3 lines"),
        ([b"-", b"-", b"a"], 3, 1, "expected the end symbol's row to be one of 3, but not 1, found 1"),
        ([b"-", b"-", b"a"], 3, 3, "found 3"),
        ([b"-", b"-"], 2, 0, "expected at least 3 rows, found 2"),
        ([b"-", b"-", b"a", b"a"], 5, None, "line 4: expected each word once, found b'a', which is line 3"),
        ([b"-", b"-", b"<s>"], 4, None, "line 3: expected each word once, found b'<s>', which is line 1"),
        ([b"-", b"-", b"</s>"], 4, None, "line 3: expected each word once, .* a word of its own row"),
        ([b"-", b"-", b"<unk>"], 4, None, "line 3: expected each word once"),
        ([b"-", b"-", b"a b"], 4, None, "line 3: expected one word in UTF-8, found b'a b'"),
        ([b"-", b"-", b""], 4, None, "line 3: expected one word"),
        ([b"-", b"-", b"a\r"], 4, None, "line 3: expected one word"),
        ([b"-", b"-", b"\xff"], 4, None, "line 3: expected one word"),
    ],
)
def test_words_that_do_not_fit_are_refused(lines, rows, end_row, message):
    with pytest.raises(ValueError, match=message):
        words_of(lines, rows, end_row)
