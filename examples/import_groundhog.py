"""Make a model folder of weights that GroundHog's experiments/nmt saved, the code that the papers' authors released.

    python examples/import_groundhog.py MODEL.npz SOURCE-VOCABULARY TARGET-VOCABULARY FOLDER

Vocabularies are text, one word a line: the line number, from 0, is the row of the embedding. examples/README.md says
where each tensor goes. There, a matrix maps a row vector, so all are transposed; embeddings have a bias; and the update
gate takes the new state, where here it keeps the old one: σ(-x) = 1 - σ(x), so its weights change their signs.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
import torch

from moses_rnn import __version__
from moses_rnn.errors import MosesRnnError
from moses_rnn.models.model import Model
from moses_rnn.models.open import save_model
from moses_rnn.networks.config import SOURCE_TO_TARGET, TARGET_TO_SOURCE
from moses_rnn.networks.encdec import ENCDEC, SWITCHES
from moses_rnn.networks.rnnsearch import RNNSEARCH
from moses_rnn.networks.vocabulary import END, UNKNOWN, Vocabulary

PARTS = {"enc": "encoder", "dec": "decoder"}
SEARCH_PARTS = {"enc": "encoder.forward", "back_enc": "encoder.backward", "dec": "decoder"}
GATED = {"W_0_{}_input_embdr_0": "W", "W_0_{}_update_embdr_0": "W_z", "W_0_{}_reset_embdr_0": "W_r"}
GATED |= {"b_0_{}_input_embdr_0": "b", "W_{}_transition_0": "U", "G_{}_transition_0": "U_z", "R_{}_transition_0": "U_r"}
DECODER = {"W_0_dec_initializer_0": "V", "b_0_dec_initializer_0": "b_V", "W_0_dec_dec_inputter_0": "C"}
DECODER |= {"W_0_dec_dec_updater_0": "C_z", "W_0_dec_dec_reseter_0": "C_r", "W_0_dec_hid_readout_0": "O_h"}
DECODER |= {"b_0_dec_hid_readout_0": "b_O", "W_0_dec_prev_readout_0": "O_y", "W_0_dec_repr_readout": "O_c"}
DECODER |= {"W1_dec_deep_softmax": "G_r", "W2_dec_deep_softmax": "G_l", "b_dec_deep_softmax": "b_G"}
ALIGN = {"A_dec_transition_0": "align.U_a", "B_dec_transition_0": "align.W_a", "D_dec_transition_0": "align.v"}
EMBEDDINGS = {"enc": "encoder.embedding", "dec": "decoder.embedding"}
NEGATIVE = ("W_z", "U_z", "C_z")
OF_TARGET_WORDS = ("decoder.G_l", "decoder.b_G")


def places(searches: bool) -> dict[str, str]:
    """Our name of each of their tensors but the embeddings."""
    parts = SEARCH_PARTS if searches else PARTS
    of_parts = {theirs.format(x): f"{p}.{name}" for x, p in parts.items() for theirs, name in GATED.items()}
    return of_parts | {theirs: f"decoder.{name}" for theirs, name in DECODER.items()} | (ALIGN if searches else {})


def read_words(path: Path, rows: int, end: int | None) -> tuple[Vocabulary, list[int]]:
    """The words in our order, ``<unk>``, ``</s>``, then all others as they come, and the row of each."""
    end = rows - 1 if end is None else end
    lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
    others = [row for row in range(rows) if row not in {1, end}]
    if rows < 3 or not 0 <= end < rows or end == 1 or others[-1] >= len(lines):
        sys.exit(
            f"{path}: expected words for {rows} rows, of which {end} is the end symbol's, found {len(lines)} lines"
        )
    words = [lines[row] if row else b"<s>" for row in others]
    return Vocabulary([UNKNOWN, END, *words]), [1, end, *others]


def convert(arrays: dict[str, np.ndarray], rows: dict[str, list[int]], zeros: dict[str, torch.Tensor]) -> None:
    """Fill in the tensors of a network, all of them zeros so far."""
    for theirs, ours in places("A_dec_transition_0" in arrays).items():
        array = arrays[theirs][:, 0] if ours == "align.v" else arrays[theirs].T
        array = array[rows["dec"]] if ours in OF_TARGET_WORDS else array
        zeros[ours] = torch.tensor(-array if ours.endswith(NEGATIVE) else array, dtype=torch.float32)
    for side, ours in EMBEDDINGS.items():
        embedding = arrays[f"W_0_{side}_approx_embdr"] + arrays[f"b_0_{side}_approx_embdr"]
        zeros[ours] = torch.tensor(embedding[rows[side]], dtype=torch.float32)


def main() -> None:
    """Read an archive, write a folder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("source_vocabulary", type=Path)
    parser.add_argument("target_vocabulary", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--end-row", type=int, help="row of the end symbol on both sides [default: each side's last]")
    parser.add_argument("--inverse", action="store_true", help="it reads the tables' target side")
    parser.add_argument("--unit", choices=["phrases", "sentences"], help="[default: phrases, an RNNsearch sentences]")
    given = parser.parse_args()
    if given.folder.exists():
        sys.exit(f"{given.folder}: already exists")
    with np.load(given.archive, allow_pickle=False) as archive:
        arrays = dict(archive)
    kind = RNNSEARCH if "A_dec_transition_0" in arrays else ENCDEC
    embeddings = {f"{letter}_0_{side}_approx_embdr" for letter in "Wb" for side in EMBEDDINGS}
    wanted = embeddings | places(kind is RNNSEARCH).keys()
    if missing := sorted(wanted - arrays.keys()):
        sys.exit(f"{given.archive}: expected the tensors of gated units, found none of {', '.join(missing)}")
    sizes = [len(arrays[f"W_0_{side}_approx_embdr"]) for side in EMBEDDINGS]
    given_words = zip((given.source_vocabulary, given.target_vocabulary), sizes, strict=True)
    (source, source_rows), (target, target_rows) = (read_words(*of, given.end_row) for of in given_words)
    config = {
        "hidden_size": len(arrays["W_enc_transition_0"]),
        "embedding_size": len(arrays["b_0_enc_approx_embdr"]),
        "maxout_size": len(arrays["W1_dec_deep_softmax"]),
        "output_rank": len(arrays["W2_dec_deep_softmax"]),
    }
    if kind is ENCDEC:
        config |= {"variant": "groundhog", **SWITCHES["groundhog"]}
    else:
        alignment_size = len(arrays["D_dec_transition_0"])
        config |= {"alignment_size": alignment_size, "phases": "groundhog", "unit": given.unit or "sentences"}
    config |= {"source_vocabulary_size": len(source), "target_vocabulary_size": len(target)}
    with torch.device("meta"):
        network = kind.module(kind.config(**config), seed=None)
    weights = {name: torch.zeros(tensor.shape) for name, tensor in network.state_dict().items()}
    convert(arrays, {"enc": source_rows, "dec": target_rows}, weights)
    network.load_state_dict(weights, assign=True)  # which refuses other shapes
    if not all(tensor.isfinite().all() for tensor in weights.values()):
        sys.exit(f"{given.archive}: expected finite weights, found NaN or infinity")
    left_out = sorted(arrays.keys() - wanted)
    provenance = {
        "version": __version__,
        "unit": given.unit or "phrases",
        "imported": {"archive": given.archive.name, "left_out": left_out},
    }
    direction = TARGET_TO_SOURCE if given.inverse else SOURCE_TO_TARGET
    save_model(given.folder, Model(kind, network, {"source": source, "target": target}, direction, provenance))
    print(f"{given.folder}: {kind.key}, {len(source)} and {len(target)} words; left out: {left_out or 'nothing'}")


if __name__ == "__main__":
    try:
        main()
    except (MosesRnnError, OSError, ValueError, RuntimeError) as error:
        sys.exit(f"import_groundhog.py: {error}")
