"""What is chosen for a processor and a size of network."""

import pytest

from moses_rnn.errors import MosesRnnError
from moses_rnn.networks import hardware
from moses_rnn.networks.hardware import LARGE, choose_compiled, choose_precision


@pytest.mark.parametrize(
    ("flags", "large"), [("fpu avx512_bf16", "bf16"), ("amx_bf16 amx_tile", "bf16"), ("avx2", "fp32")]
)
def test_bf16_is_chosen_where_the_processor_has_it_and_the_network_is_large(monkeypatch, tmp_path, flags, large):
    (tmp_path / "cpuinfo").write_text(f"flags\t: {flags}\n")
    monkeypatch.setattr(hardware, "CPU_FLAGS", tmp_path / "cpuinfo")
    assert choose_precision("auto", "cpu", LARGE) == large
    assert choose_precision("auto", "cpu", LARGE - 1) == "fp32"
    for wanted in ("fp32", "bf16"):
        assert choose_precision(wanted, "cpu", LARGE) == wanted
    monkeypatch.setattr(hardware, "CPU_FLAGS", tmp_path / "nowhere")
    assert choose_precision("auto", "cpu", LARGE) == "fp32"


def test_compiling_is_chosen_for_long_work_with_large_networks(monkeypatch):
    monkeypatch.setattr(hardware, "require_fusing", lambda: None)
    assert choose_compiled(None, "cpu", LARGE, long=True)
    assert not choose_compiled(None, "cpu", LARGE, long=False)
    assert not choose_compiled(None, "cpu", LARGE - 1, long=True)
    assert not choose_compiled(None, "cuda:0", LARGE, long=True)
    assert not choose_compiled(False, "cpu", LARGE, long=True)

    def missing():
        raise MosesRnnError("no compiler")

    monkeypatch.setattr(hardware, "require_fusing", missing)
    assert not choose_compiled(None, "cpu", LARGE, long=True)
    with pytest.raises(MosesRnnError, match="no compiler"):
        choose_compiled(True, "cpu", 8, long=False)
