"""A device that is only pretended: tensors have places, on any machine.

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


class MisplacedError(Exception):
    """The operands of an operation are not on one device."""


class Placed(torch.Tensor):
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
    """Makes, copies and computes what is on the device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with self:
            result = func.decompose(*args, **kwargs)  # into operations that are more than names for others
        if result is not NotImplemented:
            return result
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        into = _destination(func, args, kwargs, tensors)
        if DEVICE not in {into, *(tensor.device for tensor in tensors)}:
            return func(*args, **{**kwargs, "pin_memory": False} if "pin_memory" in kwargs else kwargs)
        _check_places(func, tensors)
        return _compute(func, args, kwargs, tensors, into)


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
    with _Lists(), PretendedDevice():
        yield


def _is_copy(func):
    return func in {aten._to_copy.default, aten.copy_.default}


def _destination(func, args, kwargs, tensors):
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
