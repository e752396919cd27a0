"""The native core with every instruction set that this machine can run, and every precision to learn in."""

import pytest
import torch

from moses_rnn.native import INSTRUCTION_SETS, NativeCore, native_core
from moses_rnn.networks.batches import Batch
from moses_rnn.networks.encdec import EncDec, EncDecConfig
from moses_rnn.networks.native_learning import NativeKernel

CORE = native_core()
BF16 = INSTRUCTION_SETS.index("avx512bf16")
needs_native = pytest.mark.skipif(CORE is None, reason="the native core was not built, or is switched off")
SETS = [(i, torch.float32) for i in range(CORE.instructions + 1 if CORE else 1)]
KINDS = SETS + [(i, torch.bfloat16) for i, _ in SETS if i >= BF16]
FLOAT32 = pytest.mark.parametrize("instructions", [i for i, _ in SETS], ids=lambda i: INSTRUCTION_SETS[i])


def named(kind):
    return f"{INSTRUCTION_SETS[kind[0]]}-{str(kind[1]).removeprefix('torch.')}"


EACH = pytest.mark.parametrize("kind", KINDS, ids=named)


def core_of(instructions):
    return NativeCore(CORE.functions, instructions) if isinstance(instructions, int) else instructions


def kernel_of(instructions, product_dtype=torch.float32):
    return NativeKernel(product_dtype, core=core_of(instructions))


def close(values, exact, product_dtype):
    """Of each tensor, the distance from its float64 version is small for sums of float32, or of bf16 products."""
    most = 3e-6 if product_dtype == torch.float32 else 0.02
    for value, expected in zip(values, exact, strict=True):
        assert value.dtype == torch.float32
        assert torch.linalg.vector_norm(value.double() - expected) <= most * torch.linalg.vector_norm(expected)


def gradients_of_network(switches, kernel=None):
    """log p of every word of 30 phrase pairs, and the gradients of their sum by all weights; without a kernel exact."""
    model = EncDec(EncDecConfig(60, 333, 50, 35, 21, 18, variant="custom", **switches), seed=None)
    model.initialise(1, 0.1)
    model.use_kernel(kernel) if kernel else model.double()
    random = torch.Generator().manual_seed(4)
    lengths = sorted(torch.randint(7, (30,), generator=random).tolist(), reverse=True)
    sources, targets = (
        Batch.from_lists([torch.randint(words, (n,), generator=random).tolist() for n in lengths])
        for words in (60, 333)
    )
    log_probs = model.word_log_probs(sources, targets, torch.arange(30))
    return [log_probs.detach(), *torch.autograd.grad(log_probs.sum(), list(model.parameters()))]


def similarity(values, exact):
    flat = (torch.cat([tensor.double().flatten() for tensor in tensors]) for tensors in (values, exact))
    return torch.nn.functional.cosine_similarity(*flat, dim=0)
