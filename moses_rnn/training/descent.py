"""A training step: the gradient of a minibatch, computed by threads and ranks, and the optimisers that use it."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

from moses_rnn.native import NativeCore
from moses_rnn.networks.native_learning import address, core_named
from moses_rnn.training.corpus import Positions
from moses_rnn.training.presets import TrainingConfig
from moses_rnn.training.ranks import Ranks, Threads
from moses_rnn.training.tasks import Task

STEPS_BETWEEN = 10  # between averaged weights, once the average covers many: neighbouring steps differ little


class NativeSteps:
    """The native core's optimiser steps for float32 tensors on the CPU, in one pass over memory."""

    def __init__(self, core: NativeCore) -> None:
        self._functions = core.functions
        self._instructions = ctypes.c_int64(core.instructions)
        self._functions.moses_rnn_train_sum_squares.restype = ctypes.c_double

    def step(self, rule: str, tensors: Sequence[Tensor], options: Sequence[float]) -> None:
        """Take one step in place: weights, gradient and both averages; options as in native/training.h."""
        weights, gradient, *averages = tensors
        operands = [weights, gradient.contiguous(), *averages]
        getattr(self._functions, f"moses_rnn_train_{rule}")(
            self._instructions,
            (ctypes.c_float * len(options))(*options),
            *(ctypes.c_void_p(address(tensor)) for tensor in operands),
            ctypes.c_int64(weights.numel()),
        )

    def sum_squares(self, gradient: Tensor) -> float:
        """Return Σ g² of a tensor; partial sums of some thousand numbers are added in double precision."""
        numbers = gradient.contiguous()
        total: float = self._functions.moses_rnn_train_sum_squares(
            self._instructions, ctypes.c_void_p(address(numbers)), ctypes.c_int64(numbers.numel())
        )
        return total


class Optimiser(torch.optim.Optimizer):
    """Steps along scaled gradients, for some weights at a time; state names are torch's."""

    state_names: tuple[str, ...] = ()  # of a tensor's averages, and of its steps if they count

    def __init__(self, weights: Iterable[Tensor], config: TrainingConfig) -> None:
        super().__init__(weights, {"fused": True})  # so that Adam's steps stay on the device
        self.config = config
        self.native = NativeSteps(core_named(config.native)) if config.native else None

    @torch.no_grad()
    def step_along(self, rate: float, scale: float, weights: Sequence[Tensor], examples: int) -> None:
        """Step some weights at a learning rate along their gradients times `scale`; the batch has so many `examples`.

        Other threads may step other weights.
        """
        raise NotImplementedError

    def operands(self, tensor: Tensor) -> list[Tensor]:
        """Return a tensor, its gradient, and its averages, which begin at zero."""
        state = self.state[tensor]
        if not state:
            shapes = {name: () if name == "step" else tensor.shape for name in self.state_names}
            state.update({name: torch.zeros(shape, device=tensor.device) for name, shape in shapes.items()})
        return [tensor, _gradient(tensor), *(state[name] for name in self.state_names)]


class Adam(Optimiser):
    """Adam (Kingma and Ba 2015) with decoupled weight decay (Loshchilov and Hutter 2019).

    The decay applies only to matrices.
    """

    BETA_1 = 0.9
    EPSILON = 1e-8
    state_names = ("exp_avg", "exp_avg_sq", "step")

    @torch.no_grad()
    def step_along(self, rate: float, scale: float, weights: Sequence[Tensor], examples: int) -> None:
        """See `Optimiser`."""
        operands = [self.operands(tensor) for tensor in weights]
        beta_1, beta_2 = self.BETA_1, self.config.beta_2
        if self.native:
            for *tensors, step in operands:
                done = float(step.add_(1))
                decay = 1 - rate * self.config.weight_decay if tensors[0].dim() > 1 else 1.0
                unbiased, root = rate / (1 - beta_1**done), (1 - beta_2**done) ** -0.5
                self.native.step("adam", tensors, [unbiased, decay, beta_1, beta_2, root, self.EPSILON, scale])
            return
        if scale != 1.0:
            torch._foreach_mul_([gradient for _, gradient, *_ in operands], scale)
        for matrices in (True, False):
            chosen = [each for each in operands if (each[0].dim() > 1) == matrices]
            tensors, gradients, averages, squares, steps = ([each[k] for each in chosen] for k in range(5))
            adamw(
                [tensor.data for tensor in tensors],
                gradients,
                averages,
                squares,
                [],
                steps,
                fused=True,
                amsgrad=False,
                beta1=beta_1,
                beta2=beta_2,
                lr=rate,
                weight_decay=self.config.weight_decay if matrices else 0.0,
                eps=self.EPSILON,
                maximize=False,
            )


class Adadelta(Optimiser):
    """Adadelta (Zeiler 2012, algorithm 1), with ε inside both roots."""

    state_names = ("square_avg", "acc_delta")

    @torch.no_grad()
    def step_along(self, rate: float, scale: float, weights: Sequence[Tensor], examples: int) -> None:
        """See `Optimiser`."""
        rho, epsilon = self.config.rho, self.config.epsilon
        for tensor in weights:
            operands = self.operands(tensor)
            if self.native:
                self.native.step("adadelta", operands, [rate, rho, epsilon, scale])
                continue
            _, gradient, square_avg, acc_delta = operands
            g = gradient * scale
            square_avg.mul_(rho).addcmul_(g, g, value=1 - rho)
            step = torch.sqrt(acc_delta + epsilon) / torch.sqrt(square_avg + epsilon) * g
            acc_delta.mul_(rho).addcmul_(step, step, value=1 - rho)
            tensor.sub_(step, alpha=rate)


class Sgd(Optimiser):
    """Stochastic gradient descent without momentum: θ - lr (g + λθ), with λ only for matrices.

    This is one pass over weights and gradient, which the native core could not improve.
    """

    @torch.no_grad()
    def step_along(self, rate: float, scale: float, weights: Sequence[Tensor], examples: int) -> None:
        """See `Optimiser`."""
        # A step along a sum replaces one step per example, and so does its decay.
        decay = self.config.weight_decay * (examples if self.config.reduction == "sum" else 1)
        for tensor in weights:
            if decay and tensor.dim() > 1:
                tensor.mul_(1 - rate * decay)
            tensor.add_(_gradient(tensor), alpha=-rate * scale)


OPTIMISERS: Mapping[str, type[Optimiser]] = {"adadelta": Adadelta, "adam": Adam, "sgd": Sgd}


def _gradient(tensor: Tensor) -> Tensor:
    assert tensor.grad is not None
    return tensor.grad


class Average:
    """Weights averaged over the last steps, which cost less than the last weights while the learning rate is high.

    A running average whose horizon grows (Shamir and Zhang 2013, section 4): the weights of step t enter with
    1 / (share · t), so that about the last `share` of all steps count, whenever training ends; none if it is 0.
    """

    def __init__(self, model: nn.Module, share: float) -> None:
        self._share = share
        self._weights = list(model.parameters())
        names = [name for name, _ in model.named_parameters()] if share else []
        # by name, as they are saved
        self.tensors = {name: tensor.detach().clone() for name, tensor in zip(names, self._weights, strict=False)}
        self._averages = list(self.tensors.values())

    @torch.no_grad()
    def add(self, part: list[int], steps: int) -> None:
        """Add the weights in `part` to the average, if it is their turn; `steps` were taken before."""
        covered = self._share * (steps + 1)
        between = STEPS_BETWEEN if covered > STEPS_BETWEEN**2 else 1
        if not self._averages or (steps + 1) % between:
            return
        rate = min(between / covered, 1.0)
        torch._foreach_lerp_([self._averages[i] for i in part], [self._weights[i].detach() for i in part], rate)

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Make the network use the averages, if there are any."""
        if not self._averages:
            yield
            return
        self._exchange()
        try:
            yield
        finally:
            self._exchange()

    @torch.no_grad()
    def _exchange(self) -> None:
        for average, weights in zip(self._averages, self._weights, strict=True):
            kept = average.clone()
            average.copy_(weights)
            weights.copy_(kept)


# --- gradients --------------------------------------------------------------------------------------------------------
#
# Part p of P has every P-th example from the p-th on. Ranks, threads and `accumulate` together decide the number of
# parts, and a part's number decides its dropout, whoever computes it. So the same number of parts gives the same sums,
# up to the order in which float32 numbers are added.


LINE = 16  # float32 numbers per cache line; each weight's gradient is aligned to one in the common tensor


class Sums(NamedTuple):
    """Sums over a whole minibatch."""

    nats: float
    tokens: int
    seconds: float  # by the clock of the first rank
    squares: float  # the squared L2 norm of the gradient of its objective


class Gradients:
    """Computes the gradients of whole minibatches for a network's weights."""

    def __init__(self, task: Task, threads: Threads, ranks: Ranks) -> None:
        config = task.config
        self.weights = list(task.model.parameters())
        self.places = even_parts(self.weights, config.threads)  # indices of weights for each thread
        self._task, self._threads, self._ranks = task, threads, ranks
        self._parts = threads.count * ranks.size * rounds(config.accumulate, ranks.size)
        self._native = NativeSteps(core_named(config.native)) if config.native else None
        self._common = self._make_common() if ranks.size > 1 else None

    def compute(self, rows: Positions, step: int, clock: Callable[[], float]) -> Sums:
        """Set ``grad`` of the weights to the summed gradient of a minibatch, after `step` earlier steps.

        Rows and result are equal on all ranks.
        """
        worked = self._threads.each(lambda parts: self._learn(parts, rows, step), self._shares(len(rows)))
        mine = sum(nats for nats, _, _ in worked), sum(tokens for _, tokens, _ in worked)
        nats, tokens, seconds = self._ranks.sums([*mine, clock() if self._ranks.leads else 0.0])
        gradients = [summed for _, _, summed in worked]
        squares = self._threads.each(lambda places: self._add_up(gradients, places), self.places)
        if self._common is not None:
            self._ranks.add_up(self._common)
            squares = self._threads.each(self._squares_of, self.places)
        return Sums(float(nats), int(tokens), seconds, sum(squares))

    def _shares(self, examples: int) -> list[list[int]]:
        """Return the numbers of this rank's non-empty parts, for each thread."""
        mine = range(self._ranks.rank, min(self._parts, examples), self._ranks.size)
        shares = (list(mine[i :: self._threads.count]) for i in range(self._threads.count))
        return [share for share in shares if share]

    def _learn(self, parts: list[int], rows: Positions, step: int) -> tuple[float, int, Sequence[Tensor]]:
        """Return nats, tokens and one gradient per weight, summed over parts, which run one after the other."""
        nats, tokens, added = 0.0, 0, None
        for part in parts:
            cost = self._task.cost(rows[part :: self._parts], step, part)
            every = torch.autograd.grad(cost.objective, self.weights, allow_unused=True, materialize_grads=True)
            gradients = tuple(gradient.contiguous() for gradient in every)  # fused optimisers go by places in memory
            nats, tokens = nats + cost.nats, tokens + cost.tokens
            added = gradients if added is None else torch._foreach_add(added, gradients)
        assert added is not None
        return nats, tokens, added

    def _add_up(self, gradients: list[Sequence[Tensor]], places: list[int]) -> float:
        """Sum all threads' gradients of some weights; return the squared L2 norm, or 0 if other ranks add theirs."""
        for i in places:
            of_threads = [of_thread[i] for of_thread in gradients]
            if self._common is None:
                self.weights[i].grad = reduce(torch.add, of_threads)
            else:
                common = _gradient(self.weights[i])  # of a minibatch with fewer examples than ranks it may be zero
                common.copy_(reduce(torch.add, of_threads)) if of_threads else common.zero_()
        return self._squares_of(places) if self._common is None else 0.0

    def _squares_of(self, places: list[int]) -> float:
        """Return the squared L2 norm of the gradients of some weights."""
        gradients = [_gradient(self.weights[i]) for i in places]
        if self._native:
            return sum(map(self._native.sum_squares, gradients))
        norms = torch.stack(torch._foreach_norm(gradients)).tolist()  # waits for a GPU once, not for each weight
        return float(sum(norm**2 for norm in norms))

    def _make_common(self) -> Tensor:
        """Make one tensor that contains all gradients, so that ranks exchange them at once."""
        sizes = [math.ceil(tensor.numel() / LINE) * LINE for tensor in self.weights]
        starts = itertools.accumulate(sizes, initial=0)
        common = torch.zeros(sum(sizes), device=self.weights[0].device)
        for tensor, start in zip(self.weights, starts, strict=False):
            tensor.grad = common[start : start + tensor.numel()].view_as(tensor)
        return common


def even_parts(weights: list[nn.Parameter], count: int) -> list[list[int]]:
    """Split the indices of weights into parts with about equally many numbers, for threads."""
    parts: list[list[int]] = [[] for _ in range(count)]
    sizes = [0] * count
    for place in sorted(range(len(weights)), key=lambda i: -weights[i].numel()):
        smallest = sizes.index(min(sizes))
        parts[smallest].append(place)
        sizes[smallest] += weights[place].numel()
    return [part for part in parts if part]


def rounds(parts: int, ranks: int) -> int:
    """Return the number of parts of a minibatch that a rank computes one after the other."""
    return math.ceil(parts / ranks)
