"""What is chosen for a processor and a size of network."""

import pytest

from moses_rnn.networks import compute
from moses_rnn.networks.compute import LARGE, choose_precision


@pytest.mark.parametrize(
    ("flags", "large"), [("fpu avx512_bf16", "bf16"), ("amx_bf16 amx_tile", "bf16"), ("avx2", "fp32")]
)
def test_bf16_is_chosen_where_the_processor_has_it_and_the_network_is_large(monkeypatch, tmp_path, flags, large):
    (tmp_path / "cpuinfo").write_text(f"flags\t: {flags}\n")
    monkeypatch.setattr(compute, "CPU_FLAGS", tmp_path / "cpuinfo")
    assert choose_precision("auto", "cpu", LARGE) == large
    assert choose_precision("auto", "cpu", LARGE - 1) == "fp32"
    for wanted in ("fp32", "bf16"):
        assert choose_precision(wanted, "cpu", LARGE) == wanted
    monkeypatch.setattr(compute, "CPU_FLAGS", tmp_path / "nowhere")
    assert choose_precision("auto", "cpu", LARGE) == "fp32"
