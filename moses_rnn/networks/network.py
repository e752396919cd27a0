"""What networks have in common, for learning: dropout (Srivastava et al. 2014), and what all networks of pairs have."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from moses_rnn.networks.batches import Batch
from moses_rnn.networks.hardware import EAGER, Kernel
from moses_rnn.networks.softmax import Estimate

Drop = Callable[[Tensor], Tensor]


def keep(x: Tensor) -> Tensor:
    """Leave nothing out."""
    return x


def drop_units(share: float, seed: int, device: torch.device) -> Drop:
    """A function that sets a share of the units to zero and scales the others up; of any shape.

    A number decides which, so that a resumed training leaves out the same units.

    Args:
        share: of the units, from 0 to below 1.
        seed: decides which.
        device: of the units.
    """
    if not share:
        return keep
    random = torch.Generator(device).manual_seed(seed)

    def drop(x: Tensor) -> Tensor:
        kept = torch.empty_like(x).bernoulli_(1 - share, generator=random)
        return x * kept.div_(1 - share)

    return drop


class NetworkOfPairs(nn.Module):
    """A network of pairs, whatever its equations; `state_dict` has the tensor names of the checkpoint format.

    Its `config` is a dataclass of what config.json has of it, with a `width` in hidden units and a `description`.
    """

    config: Any
    kernel: Kernel = EAGER

    @property
    def embeddings(self) -> Mapping[str, nn.Parameter]:
        """Of the sides that have them: "source", which is read, and "target"; a row for each id at least."""
        return {
            "source": self.get_parameter("encoder.embedding"),
            "target": self.get_parameter("decoder.embedding"),
        }

    @abstractmethod
    def initialise(self, seed: int, deviation: float) -> None:
        """Draw the weights.

        Args:
            seed: equal seeds give equal weights.
            deviation: of those that their paper gives one figure for.
        """

    def use_kernel(self, kernel: Kernel) -> None:
        """Choose how the work between products is done: compiled or natively, for a long training."""
        self.kernel = kernel


class TranslationNetwork(NetworkOfPairs):
    """A network that gives p(target | source)."""

    @abstractmethod
    def word_log_probs(
        self,
        sources: Batch,
        targets: Batch,
        source_of: Tensor,
        product_dtype: torch.dtype | None = None,
        sample: Estimate | None = None,
        drop: Drop = keep,
    ) -> Tensor:
        """Score every target word, the closing ``</s>`` included, by its log p given the words before and the source.

        Args:
            sources: S sources.
            targets: T targets.
            source_of: for each target its source's row; T.
            product_dtype: the type that matrix products are computed in; by default that of the weights.
            sample: normalise by words drawn or by a partition, for training with a large shortlist.
            drop: leaves units out, for training.

        Returns:
            One value for each of ``targets.packed()``; nodes.
        """
