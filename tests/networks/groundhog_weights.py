"""Random weights by the names of the released code, every number another one."""

import numpy as np

S, K, E, H, M, R, A = 9, 8, 3, 5, 4, 6, 7


def _embeddings():
    yield from (("W_0_enc_approx_embdr", (S, E)), ("b_0_enc_approx_embdr", (E,)))
    yield from (("W_0_dec_approx_embdr", (K, E)), ("b_0_dec_approx_embdr", (E,)))


def _gated(part):
    for signal in ("input", "update", "reset"):
        yield f"W_0_{part}_{signal}_embdr_0", (E, H)
    yield f"b_0_{part}_input_embdr_0", (H,)
    for letter in "WGR":
        yield f"{letter}_{part}_transition_0", (H, H)


def _decoder(context):
    yield from (("W_0_dec_initializer_0", (H, H)), ("b_0_dec_initializer_0", (H,)))
    for signal in ("inputter", "updater", "reseter"):
        yield f"W_0_dec_dec_{signal}_0", (context, H)
    yield from (("W_0_dec_hid_readout_0", (H, 2 * M)), ("b_0_dec_hid_readout_0", (2 * M,)))
    yield from (("W_0_dec_prev_readout_0", (E, 2 * M)), ("W_0_dec_repr_readout", (context, 2 * M)))
    yield from (("W1_dec_deep_softmax", (M, R)), ("W2_dec_deep_softmax", (R, K)), ("b_dec_deep_softmax", (K,)))


def _attention():
    yield from (("A_dec_transition_0", (2 * H, A)), ("B_dec_transition_0", (H, A)), ("D_dec_transition_0", (A, 1)))


SHAPES = {
    "phrases": [*_embeddings(), *_gated("enc"), *_gated("dec"), *_decoder(H)],
    "search": [*_embeddings(), *_gated("enc"), *_gated("back_enc"), *_gated("dec"), *_decoder(2 * H), *_attention()],
}


def weights(network, dtype=np.float32, seed=4):
    """Of "phrases" or "search"."""
    random = np.random.default_rng(seed)
    return {name: random.normal(0, 0.6, shape).astype(dtype) for name, shape in SHAPES[network]}


SOURCE_LINES = [b"eol", b"UNK", *(b"s%d" % row for row in range(2, S - 1))]  # the last row has no word
TARGET_LINES = [b"eol", b"UNK", *(b"t%d" % row for row in range(2, K - 1))]
