"""The scalar references themselves, against figures that can be worked out by hand."""

import random
from math import atanh, exp, log, sqrt, tanh

import pytest

from tests.models import reference_ensembles, reference_rnnsearch, reference_seq2seq
from tests.models.reference import sigma, softmax

K_S, K, E, H, A, M, R = 5, 4, 2, 3, 2, 2, 2
END = 1
PHASES = ("paper", "groundhog")


def filled(shapes, number):
    """Tensors by name, each of whose numbers is what `number` returns."""
    return {
        name: [[number() for _ in range(shape[1])] for _ in range(shape[0])]
        if len(shape) == 2
        else [number() for _ in range(shape[0])]
        for name, shape in shapes.items()
    }


def at_random(shapes, seed=1):
    draw = random.Random(seed)
    return filled(shapes, lambda: draw.uniform(-1, 1))


def zeros(shapes):
    return filled(shapes, float)


def search_shapes(rank=0, k=K, e=E, h=H, a=A, m=M):
    shapes = {"encoder.embedding": (K_S, e), "decoder.embedding": (k, e)}
    for side in ("encoder.forward", "encoder.backward", "decoder"):
        for gate in ("", "_z", "_r"):
            shapes |= {f"{side}.W{gate}": (h, e), f"{side}.U{gate}": (h, h), f"{side}.b{gate}": (h,)}
    shapes |= {f"decoder.C{gate}": (h, 2 * h) for gate in ("", "_z", "_r")}
    shapes |= {"align.W_a": (a, h), "align.U_a": (a, 2 * h), "align.v": (a,)}
    shapes |= {"decoder.V": (h, h), "decoder.b_V": (h,), "decoder.b_G": (k,)}
    shapes |= {"decoder.O_h": (2 * m, h), "decoder.O_y": (2 * m, e), "decoder.O_c": (2 * m, 2 * h)}
    shapes |= {"decoder.b_O": (2 * m,)}
    return shapes | ({"decoder.G_r": (rank, m), "decoder.G_l": (k, rank)} if rank else {"decoder.G": (k, m)})


def lstm_shapes(layers=2, peepholes=True, k=K, e=E, h=H):
    shapes = {"encoder.embedding": (K_S, e), "decoder.embedding": (k, e), "decoder.G": (k, h), "decoder.b_G": (k,)}
    for side in ("encoder", "decoder"):
        for number in range(1, layers + 1):
            name = f"{side}.layer{number}"
            shapes |= {f"{name}.W_{q}": (h, e if number == 1 else h) for q in "ifmo"}
            shapes |= {f"{name}.U_{q}": (h, h) for q in "ifmo"} | {f"{name}.b_{q}": (h,) for q in "ifmo"}
            shapes |= {f"{name}.p_{q}": (h,) for q in "ifo"} if peepholes else {}
    return shapes


def lstm_switches(order="reversed", peepholes=True, layers=2):
    return {"source_order": order, "peepholes": peepholes, "layers": layers}


# --- rnnsearch ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.parametrize("rank", [0, R])
def test_rnnsearch_gives_distributions_over_words_and_over_positions(phases, rank):
    weights, switches = at_random(search_shapes(rank)), {"phases": phases}
    words = reference_rnnsearch.distributions(weights, [2, 4, 3, END], [2, 3, END], switches)
    alphas = reference_rnnsearch.alignments(weights, [2, 4, 3, END], [2, 3, END], switches)
    assert [len(p) for p in words] == [K] * 3
    assert [len(alpha) for alpha in alphas] == [4] * 3
    assert [sum(p) for p in (*words, *alphas)] == pytest.approx([1] * 6, abs=1e-14)
    assert len({alpha[0] for alpha in alphas}) == 3
    score = reference_rnnsearch.log_prob(weights, [2, 4, 3, END], [2, 3, END], switches)
    assert score == pytest.approx(log(words[0][2] * words[1][3] * words[2][END]), abs=1e-13)


@pytest.mark.parametrize("phases", PHASES)
def test_probabilities_of_all_short_targets_and_of_all_longer_ones_sum_to_one(phases):
    weights, switches = at_random(search_shapes()), {"phases": phases}
    words = [word for word in range(K) if word != END]
    first = reference_rnnsearch.distributions(weights, [2, END], [END], switches)[0]
    second = [reference_rnnsearch.distributions(weights, [2, END], [word, END], switches)[1] for word in words]
    ended = first[END] + sum(first[word] * p[END] for word, p in zip(words, second, strict=True))
    longer = sum(first[word] * p[other] for word, p in zip(words, second, strict=True) for other in words)
    assert ended + longer == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("phases", PHASES)
def test_rnnsearch_looks_everywhere_alike_without_v_and_at_the_end_of_an_empty_line(phases):
    weights = at_random(search_shapes())
    assert reference_rnnsearch.alignments(weights, [END], [2, END], {"phases": phases}) == [[1.0], [1.0]]
    weights["align.v"] = [0.0] * A
    alphas = reference_rnnsearch.alignments(weights, [2, 3, 2, END], [2, END], {"phases": phases})
    assert alphas == [[0.25] * 4] * 2


@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.parametrize("rank", [0, R])
def test_rnnsearch_of_zeros_knows_the_bias_alone(phases, rank):
    weights = zeros(search_shapes(rank)) | {"decoder.b_G": [0.5, -1.0, 0.0, 2.0]}
    words = reference_rnnsearch.distributions(weights, [2, 3, END], [3, END], {"phases": phases})
    assert words == [softmax([0.5, -1.0, 0.0, 2.0])] * 2


def test_a_product_of_two_matrices_is_one_matrix():
    weights = at_random(search_shapes(R))
    left, right = weights["decoder.G_l"], weights["decoder.G_r"]
    whole = [[sum(row[r] * right[r][m] for r in range(R)) for m in range(M)] for row in left]
    pair = ([2, 4, END], [3, 2, END], {"phases": "paper"})
    expected = reference_rnnsearch.log_prob(weights, *pair)
    factored = {name: value for name, value in weights.items() if name not in {"decoder.G_l", "decoder.G_r"}}
    assert reference_rnnsearch.log_prob(factored | {"decoder.G": whole}, *pair) == pytest.approx(expected, abs=1e-13)


@pytest.fixture
def small_search():
    """One unit everywhere; gates stand at a half, the encoders' candidates at 1/2 (forward) and 1/4 (backward)."""
    weights = zeros(search_shapes(k=3, e=1, h=1, a=1, m=1))
    return weights | {"encoder.forward.b": [atanh(0.5)], "encoder.backward.b": [atanh(0.25)]}


def test_annotations_by_hand(small_search):
    first, second = reference_rnnsearch.annotations(small_search, [2, END])
    assert first == pytest.approx([0.25, 0.1875])  # halfway from 0 to the candidate; backward, halfway again
    assert second == pytest.approx([0.375, 0.125])


@pytest.mark.parametrize(
    ("phases", "outputs"),
    [("paper", (0.5, 0.25)), ("groundhog", (1.0, 0.5))],  # shares of s_0 left when each word is generated
)
def test_the_state_that_generates_by_hand(small_search, phases, outputs):
    weights = small_search | {
        "decoder.V": [[4.0]],
        "decoder.O_h": [[1.0], [-1.0]],
        "decoder.G": [[1.0], [0.0], [0.0]],
    }
    words = reference_rnnsearch.distributions(weights, [2, END], [2, END], {"phases": phases})
    assert [p[0] / p[1] for p in words] == pytest.approx([exp(share * tanh(4 * 0.1875)) for share in outputs])


@pytest.mark.parametrize("phases", PHASES)
def test_alignment_and_context_by_hand(small_search, phases):
    """Annotations are (1/4, 3/16) and (3/8, 1/8); s_0 is 1/2, and is what the first look sees."""
    weights = small_search | {
        "decoder.b_V": [atanh(0.5)],
        "align.W_a": [[2.0]],
        "align.U_a": [[8.0, -16.0]],
        "align.v": [3.0],
        "decoder.O_c": [[8.0, 0.0], [0.0, 8.0]],
        "decoder.G": [[1.0], [0.0], [0.0]],
    }
    odds = exp(3 * (tanh(1 + 2 - 3) - tanh(1 + 3 - 2)))
    alpha = [odds / (1 + odds), 1 / (1 + odds)]
    assert reference_rnnsearch.alignments(weights, [2, END], [END], {"phases": phases})[0] == pytest.approx(alpha)
    p = reference_rnnsearch.distributions(weights, [2, END], [END], {"phases": phases})[0]
    assert log(p[0] / p[1]) == pytest.approx(8 * (alpha[0] * 0.25 + alpha[1] * 0.375))


@pytest.mark.parametrize("phases", PHASES)
def test_the_word_before_moves_the_state_by_hand(small_search, phases):
    """The second word's state has read the first word in either variant; the first word's has read none."""
    weights = small_search | {
        "decoder.W": [[atanh(0.5)]],
        "decoder.b_z": [-1e3],
        "decoder.embedding": [[0.0], [7.0], [1.0]],
        "decoder.O_h": [[1.0], [-1.0]],
        "decoder.G": [[1.0], [0.0], [0.0]],
    }
    words = reference_rnnsearch.distributions(weights, [2, END], [2, END], {"phases": phases})
    assert [log(p[0] / p[1]) for p in words] == pytest.approx([0.0, 0.5], abs=1e-14)


@pytest.mark.parametrize("open_unit", [0, 1])
def test_the_reset_comes_before_the_product(open_unit):
    """The second unit reaches the first through U: it is the reset of the unit that is read that counts."""
    nothing = [[0.0] * 2] * 2
    w = {f"{letter}{gate}": nothing for letter in "WUC" for gate in ("", "_z", "_r")} | {"b": [0.25, 0.0]}
    w |= {"U": [[0.0, 2.0], [0.0, 0.0]], "C": [[3.0, 0.0], [0.0, 0.0]], "b_z": [-1e3, -1e3]}
    w |= {"b_r": [1e3 if unit == open_unit else -1e3 for unit in range(2)]}
    state = reference_rnnsearch.gated_step(w, [0.0, 0.0], [0.75, 0.5], [0.125, 0.0])
    assert state == pytest.approx([tanh(2 * open_unit * 0.5 + 3 * 0.125 + 0.25), 0.0])


@pytest.mark.parametrize("phases", PHASES)
def test_neighbouring_rows_are_pooled_and_the_word_before_is_seen(phases):
    weights = zeros(search_shapes(k=2, e=1, h=1, a=1, m=2))
    weights |= {"decoder.b_O": [1.0, 4.0, 2.0, 3.0], "decoder.O_y": [[5.0], [0.0], [0.0], [0.0]]}
    weights |= {"decoder.G": [[0.0, 0.0], [0.5, 0.25]], "decoder.embedding": [[1.0], [7.0]]}
    words = reference_rnnsearch.distributions(weights, [2, END], [0, END], {"phases": phases})
    assert [log(p[1] / p[0]) for p in words] == pytest.approx([0.5 * 4 + 0.25 * 3, 0.5 * 6 + 0.25 * 3])


# --- seq2seq ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["reversed", "forward"])
@pytest.mark.parametrize("peepholes", [True, False])
@pytest.mark.parametrize("layers", [1, 3])
def test_seq2seq_gives_distributions(order, peepholes, layers):
    weights, switches = at_random(lstm_shapes(layers, peepholes)), lstm_switches(order, peepholes, layers)
    words = reference_seq2seq.distributions(weights, [2, 4, END], [2, 3, END], switches)
    assert [sum(p) for p in words] == pytest.approx([1] * 3, abs=1e-14)
    score = reference_seq2seq.log_prob(weights, [2, 4, END], [2, 3, END], switches)
    assert score == pytest.approx(log(words[0][2] * words[1][3] * words[2][END]), abs=1e-13)


def test_seq2seq_of_zeros_knows_the_bias_alone():
    weights = zeros(lstm_shapes()) | {"decoder.b_G": [0.5, -1.0, 0.0, 2.0]}
    words = reference_seq2seq.distributions(weights, [2, 3, END], [3, END], lstm_switches())
    assert words == [softmax([0.5, -1.0, 0.0, 2.0])] * 2


def test_words_are_read_backwards_and_the_end_last():
    assert reference_seq2seq.in_order([2, 3, 4, END], "reversed") == [4, 3, 2, END]
    assert reference_seq2seq.in_order([2, 3, 4, END], "forward") == [2, 3, 4, END]
    assert reference_seq2seq.in_order([END], "reversed") == [END]
    weights, target = at_random(lstm_shapes()), [3, END]
    backwards = reference_seq2seq.log_prob(weights, [4, 3, 2, END], target, lstm_switches("reversed"))
    assert backwards == reference_seq2seq.log_prob(weights, [2, 3, 4, END], target, lstm_switches("forward"))
    assert backwards != reference_seq2seq.log_prob(weights, [4, 3, 2, END], target, lstm_switches("forward"))


def test_peepholes_of_zero_are_none():
    weights = at_random(lstm_shapes())
    blind = {name: value for name, value in weights.items() if ".p_" not in name}
    shut = {name: [0.0] * H if ".p_" in name else value for name, value in weights.items()}
    pair = ([2, 4, END], [3, END])
    expected = reference_seq2seq.log_prob(blind, *pair, lstm_switches(peepholes=False))
    assert reference_seq2seq.log_prob(shut, *pair, lstm_switches()) == expected
    assert reference_seq2seq.log_prob(weights, *pair, lstm_switches()) != expected


def test_memory_and_output_by_hand():
    """Gates at a half: the memory goes from 0 to 1/4 to 3/8, and in the decoder on to 7/16 and 15/32."""
    weights = zeros(lstm_shapes(1, peepholes=False, k=3, e=1, h=1))
    weights |= {f"{side}.layer1.b_m": [atanh(0.5)] for side in ("encoder", "decoder")}
    weights |= {"decoder.G": [[2.0], [0.0], [0.0]]}
    words = reference_seq2seq.distributions(weights, [2, END], [2, END], lstm_switches(peepholes=False, layers=1))
    assert [p[0] / p[1] for p in words] == pytest.approx([exp(tanh(7 / 16)), exp(tanh(15 / 32))])


def test_the_output_gate_sees_the_new_memory_and_the_others_the_old_one():
    w = {f"{letter}_{q}": [[0.0]] for letter in "WU" for q in "ifmo"} | {f"b_{q}": [0.0] for q in "ifo"}
    w |= {"b_m": [atanh(0.5)], "p_i": [2.0], "p_f": [-3.0], "p_o": [5.0]}
    (h,), (m,) = reference_seq2seq.lstm_step(w, [1.0], [0.0], [0.25], peepholes=True)
    memory = sigma(-0.75) * 0.25 + sigma(0.5) * 0.5
    assert (m, h) == pytest.approx((memory, sigma(5 * memory) * tanh(memory)))


def test_the_decoder_starts_from_the_last_output_too():
    weights = zeros(lstm_shapes(1, peepholes=False, k=3, e=1, h=1))
    weights |= {"encoder.layer1.b_m": [atanh(0.5)], "decoder.layer1.U_m": [[3.0]], "decoder.G": [[2.0], [0.0], [0.0]]}
    p, *_ = reference_seq2seq.distributions(weights, [2, END], [END], lstm_switches(peepholes=False, layers=1))
    memory = 0.5 * 3 / 8 + 0.5 * tanh(3 * 0.5 * tanh(3 / 8))
    assert p[0] / p[1] == pytest.approx(exp(tanh(memory)))


@pytest.mark.parametrize(
    ("number", "memory"),
    [(1, 0.5 * tanh(0.5 * tanh(3 / 8))), (2, 3 / 8)],  # by way of the lower layer's output; kept in the upper one
)
def test_every_layer_starts_from_the_same_layer_of_the_encoder(number, memory):
    """The decoder keeps its memories (f = 1), and its upper layer reads the lower one."""
    weights = zeros(lstm_shapes(2, peepholes=False, k=3, e=1, h=1))
    weights |= {f"encoder.layer{number}.b_m": [atanh(0.5)], "decoder.G": [[2.0], [0.0], [0.0]]}
    weights |= {"decoder.layer1.b_f": [1e3], "decoder.layer2.b_f": [1e3], "decoder.layer2.W_m": [[1.0]]}
    p, *_ = reference_seq2seq.distributions(weights, [2, END], [END], lstm_switches(peepholes=False))
    assert p[0] / p[1] == pytest.approx(exp(tanh(memory)))


def test_the_decoder_reads_the_end_symbol_first():
    weights = at_random(lstm_shapes())
    pair = ([2, 4, END], [3, 2, END], lstm_switches())
    before = reference_seq2seq.distributions(weights, *pair)
    weights["decoder.embedding"] = [
        row if word != END else [9.0] * E for word, row in enumerate(weights["decoder.embedding"])
    ]
    assert reference_seq2seq.distributions(weights, *pair)[0] != before[0]
    weights = at_random(lstm_shapes())
    weights["decoder.embedding"] = [
        row if word != 3 else [9.0] * E for word, row in enumerate(weights["decoder.embedding"])
    ]
    after = reference_seq2seq.distributions(weights, *pair)
    assert (after[0] == before[0], after[1] == before[1]) == (True, False)


# --- ensembles ----------------------------------------------------------------------------------------------------------


def test_ensembles_by_hand():
    members = [[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]]
    roots = [0.25, 0.25, sqrt(0.15625)]
    combined = {kind: reference_ensembles.combine(members, kind) for kind in ("geometric", "mean-log", "arithmetic")}
    assert [exp(x) for x in combined["mean-log"]] == pytest.approx(roots)
    assert [exp(x) for x in combined["geometric"]] == pytest.approx([root / sum(roots) for root in roots])
    assert [exp(x) for x in combined["arithmetic"]] == pytest.approx([0.3125, 0.25, 0.4375])
    weighed = reference_ensembles.combine(members, "arithmetic", [0.75, 0.25])
    assert [exp(x) for x in weighed] == pytest.approx([0.40625, 0.25, 0.34375])


@pytest.mark.parametrize("kind", ["geometric", "mean-log", "arithmetic"])
def test_copies_of_a_member_are_that_member(kind):
    member = [0.5, 0.125, 0.375]
    assert reference_ensembles.combine([member] * 3, kind) == pytest.approx([log(p) for p in member], abs=1e-15)


def test_a_geometric_ensemble_is_the_softmax_of_the_mean_of_the_scores():
    scores = [[0.5, -1.0, 2.0], [1.5, 0.0, -3.0]]
    expected = softmax([(a + b) / 2 for a, b in zip(*scores, strict=True)])
    combined = reference_ensembles.combine([softmax(member) for member in scores], "geometric")
    assert [exp(x) for x in combined] == pytest.approx(expected, abs=1e-15)


def test_an_arithmetic_mean_is_no_smaller_than_a_geometric_one():
    draw = random.Random(3)
    members = [softmax([draw.uniform(-5, 5) for _ in range(6)]) for _ in range(4)]
    pairs = zip(
        reference_ensembles.combine(members, "arithmetic"),
        reference_ensembles.combine(members, "mean-log"),
        strict=True,
    )
    assert all(arithmetic >= geometric for arithmetic, geometric in pairs)
