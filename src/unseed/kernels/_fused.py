"""Kernels at every pair of points in one pass, on a GPU: there the memory, not the arithmetic, is what takes time.

`pairs.cu` is compiled for the GPU at hand when it is first used, by the compiler that torch brings along. Where there is none
(a build of torch without it), the plain operations of `unseed.kernels._recursion` do the same, tile by tile.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from unseed.kernels._recursion import Kind, Profile, expectations_of
from unseed.networks import MLP

_PLACE = "// THE CURVE"  # where an activation's own lines stand in pairs.cu
_TILE, _THREADS, _MOST_TILES = 64, 256, 65535


def can_fuse(network: MLP, points: Profile, kind: Kind) -> bool:
    """Whether this network has a kernel in one pass where these points are."""
    return _launcher(network, points.directions, kind) is not None


def fused_pairs(network: MLP, left: Profile, right: Profile, kind: Kind, *, is_gram: bool = False) -> Tensor | None:
    """One of the kernels at every pair, or None where it must be computed in the plain way. Shape (..., n, m).

    With ``is_gram`` the two sets are one, and every pair is computed once and written twice.
    """
    if (right.directions.device, right.directions.dtype) != (left.directions.device, left.directions.dtype):
        return None
    launch = _launcher(network, left.directions, kind)
    *sets, n, d = left.directions.shape
    m = right.directions.shape[-2]
    n_sets = sets[0] if sets else 1
    if launch is None or max(n // _TILE, n_sets) >= _MOST_TILES:
        return None
    values = left.directions.new_empty(*sets, n, m)
    if values.numel():
        ends = [end.directions.contiguous() for end in (left, right)]
        layers = [_roots(end) for end in (left, right)]
        itself = getattr(left.diagonal, kind).contiguous()
        scalars = [float(x) for x in (network.weight_std**2, network.bias_scale**2, network.initial_bias_variance)]
        grid = -(-m // _TILE), -(-n // _TILE), n_sets
        launch(grid, *ends, *layers, itself, values, ctypes.c_longlong(m), n, m, d, network.depth, int(is_gram), *scalars)
    return values


def _roots(points: Profile) -> Tensor:
    """Root variance and root mean square of activations, layer by layer. Shape (..., 2 depth, n)."""
    return torch.stack([values for layer in points.layers for values in (layer.variance, layer.power)], dim=-2).sqrt_()


def _launcher(network: MLP, directions: Tensor, kind: Kind) -> Callable[..., None] | None:
    curve = expectations_of(network).curve
    if directions.device.type != "cuda" or directions.dtype != torch.float64 or curve is None:
        return None
    index = directions.device.index
    return _compiled(curve, kind, torch.cuda.current_device() if index is None else index)


def source_of(curve: str, kind: Kind) -> str:
    """Text of the kernel for an activation's curve."""
    text = (resources.files("unseed.kernels") / "pairs.cu").read_text(encoding="utf-8")
    return f"#define IS_NTK {int(kind == 'ntk')}\n{text.replace(_PLACE, curve.strip())}"


@cache
def _compiled(curve: str, kind: Kind, device: int) -> Callable[..., None] | None:
    """The kernel as a function of its grid and arguments, or None where it cannot be made."""
    source = source_of(curve, kind)
    with torch.cuda.device(device):
        torch.cuda.current_stream().synchronize()  # what is loaded belongs to a context, which must be there
        try:
            library, function = _load(source, device)
        except (OSError, AttributeError):  # a torch without this library
            return None
        except RuntimeError as error:
            warnings.warn(f"kernels are computed in several passes on this GPU, which is slower: {error}", stacklevel=2)
            return None

    def launch(grid: tuple[int, int, int], *arguments: Any) -> None:
        with torch.cuda.device(device):
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            values = [_as_c(argument) for argument in arguments]
            pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
            _check(library.cuLaunchKernel(function, *grid, _THREADS, 1, 1, 0, stream, pointers, None))

    return launch


def _load(source: str, device: int) -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """The driver and the kernel, compiled by a small library of torch's that is linked to both driver and compiler."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libcaffe2_nvrtc.so"))
    major, minor = torch.cuda.get_device_capability(device)
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture=sm_{major}{minor}".encode())
    program, size, module, function = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_void_p(), ctypes.c_void_p()
    _check(library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"pairs.cu", 0, None, None))
    try:
        _check(library.nvrtcCompileProgram(program, len(options), options))
        _check(library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        code = ctypes.create_string_buffer(size.value)
        _check(library.nvrtcGetCUBIN(program, code))
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))
    _check(library.cuModuleLoadData(ctypes.byref(module), code))
    _check(library.cuModuleGetFunction(ctypes.byref(function), module, b"pairs"))
    return library, function


def _as_c(argument: Any) -> Any:
    if isinstance(argument, Tensor):
        return ctypes.c_void_p(argument.data_ptr())
    if isinstance(argument, int):
        return ctypes.c_int(argument)
    return ctypes.c_double(argument) if isinstance(argument, float) else argument


def _check(status: int) -> None:
    if status:
        raise RuntimeError(f"the GPU refused a kernel with status {status}")
