"""A device that is only pretended: tensors have places, and waiting for the device is noticed, on any machine.

Tensors on it bear the name of torch's device ``meta``, for which torch asks no driver, and hold an ordinary tensor that
is computed with, so that results are those of the processor, bit for bit. It is stricter than CUDA, which also takes
indices from the processor's memory: it copies them, and the processor waits.
"""

from contextlib import contextmanager

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

DEVICE = torch.device("meta")
CPU = torch.device("cpu")
aten = torch.ops.aten
INDEXING = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default}
DECIDED_BY_VALUES = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}  # a number, or a size


class MisplacedError(Exception):
    """The operands of an operation are not on one device."""


class Placed(torch.Tensor):
    """A tensor on the device."""

    @staticmethod
    def __new__(cls, held):
        shape = {"size": held.shape, "strides": held.stride(), "storage_offset": held.storage_offset()}
        with torch.inference_mode(False):  # else torch refuses views of it where the mode is another
            return torch.Tensor._make_wrapper_subclass(cls, **shape, dtype=held.dtype, device=DEVICE)

    def __init__(self, held):
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"{func} where no device is pretended")


class PretendedDevice(TorchDispatchMode):
    """Makes, copies and computes what is on the device.

    `waits` has whether the processor waits, for each operation that involves the device.
    """

    def __init__(self):
        super().__init__()
        self.waits = []
        self._pinned = []  # storages

    def waits_only_at_the_end(self):
        """Whether the processor waits once, and the device has nothing more to do after it."""
        return self.waits == [False] * (len(self.waits) - 1) + [True]

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with self:
            result = func.decompose(*args, **kwargs)  # into operations that are more than names for others
        if result is not NotImplemented:
            return result
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        into = _destination(func, args, kwargs, tensors)
        if DEVICE not in {into, *(tensor.device for tensor in tensors)}:
            return self._on_processor(func, args, kwargs)
        _check_places(func, tensors)
        self.waits.append(self._waits(func, args, kwargs, tensors, into))
        return _compute(func, args, kwargs, tensors, into)

    def _on_processor(self, func, args, kwargs):
        if not kwargs.get("pin_memory"):
            return func(*args, **kwargs)
        result = func(*args, **{**kwargs, "pin_memory": False})  # pinning takes a driver
        self._pinned.append(result.untyped_storage())
        return result

    def _waits(self, func, args, kwargs, tensors, into):
        if _is_copy(func) and tensors[-1].device != into:
            asynchronous = kwargs.get("non_blocking") or args[2:] == (True,)
            return not (into == DEVICE and asynchronous and self._is_pinned(tensors[-1]))
        if func in INDEXING:
            return any(index is not None and index.dtype in {torch.bool, torch.uint8} for index in args[1])
        return not DECIDED_BY_VALUES.isdisjoint(func.tags)

    def _is_pinned(self, tensor):
        return tensor.untyped_storage().data_ptr() in {storage.data_ptr() for storage in self._pinned}


class _Lists(TorchFunctionMode):
    """Tensors made of lists, and lists of tensors, as what they are: by way of a tensor on the processor."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.tensor and kwargs.get("device") is not None:
            device = kwargs.pop("device")
            return torch.tensor(*args, **kwargs).to(device)
        if func is torch.Tensor.tolist:
            return args[0].cpu().tolist()
        return func(*args, **kwargs)


@contextmanager
def pretended_device():
    """Pretend that there is a `DEVICE`."""
    with _Lists(), PretendedDevice() as device:
        yield device


def _is_copy(func):
    return func in {aten._to_copy.default, aten.copy_.default}


def _destination(func, args, kwargs, tensors):
    """Where the result of an operation is."""
    if kwargs.get("device") is not None:
        return torch.device(kwargs["device"])
    if func is aten.copy_.default:
        return args[0].device
    return tensors[0].device if tensors else CPU


def _check_places(func, tensors):
    if any(tensor.device == DEVICE and not isinstance(tensor, Placed) for tensor in tensors):
        raise MisplacedError(f"{func}: expected operands made while the device is pretended")
    if not _is_copy(func) and len({tensor.device for tensor in tensors}) > 1:
        places = [f"{tuple(tensor.shape)} on {tensor.device}" for tensor in tensors]
        raise MisplacedError(f"{func}: expected operands on one device, found {', '.join(places)}")


def _compute(func, args, kwargs, tensors, into):
    placed = {id(tensor.held): tensor for tensor in tensors if isinstance(tensor, Placed)}
    args, kwargs = tree_map_only(Placed, lambda tensor: tensor.held, (args, kwargs))
    result = func(*args, **{**kwargs, "device": CPU} if "device" in kwargs else kwargs)
    if into == CPU:
        return result

    def place(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        return placed[id(leaf)] if id(leaf) in placed else Placed(leaf)  # written into, a tensor stays the same

    return tree_map(place, result)
