"""The text of the fused kernels, compiled for this machine's processor, against the plain recursion."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from unseed import MLP
from unseed.kernels import PopulationKernel
from unseed.kernels import _fused as fused
from unseed.networks import ACTIVATIONS

BEFORE = """
#include <algorithm>
#include <cmath>
#include <cstddef>
using std::min;
#define __device__
#define __global__
#define __shared__ static
#define __launch_bounds__(threads)
struct { int x, y, z; } blockIdx, threadIdx;
void __syncthreads() {}
double rsqrt(double x) { return 1 / std::sqrt(x); }
"""
AFTER = """
extern "C" void all_pairs(const double* left, const double* right, const double* left_layers, const double* right_layers,
                          double* out, int n, int m, int d, int depth, double w2, double b2, double start_b2) {
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < m; ++j) {
      double cosine = 0;
      for (int k = 0; k < d; ++k) cosine += left[i * d + k] * right[j * d + k];
      out[i * m + j] = pair_value(cosine, left + i * d, right + j * d, left_layers + i, right_layers + j, n, m, d, depth, w2,
                                  b2, start_b2);
    }
}
"""
CURVES = {activation.name: activation.expectations.curve for activation in ACTIVATIONS if activation.expectations.curve}


def test_closed_forms_have_curves():
    assert set(CURVES) == {activation.name for activation in ACTIVATIONS if activation.closed_form is not None}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """All pairs of points by the text for an activation and a kind of kernel."""
    if (compiler := shutil.which("c++")) is None:
        pytest.skip("needs a C++ compiler")
    folder, libraries = tmp_path_factory.mktemp("curves"), {}

    def library(activation, kind):
        if (activation, kind) not in libraries:
            source, target = folder / f"{activation}_{kind}.cpp", folder / f"{activation}_{kind}.so"
            source.write_text(BEFORE + fused.source_of(CURVES[activation], kind) + AFTER)
            subprocess.run([compiler, "-O1", "-w", "-shared", "-fPIC", "-o", target, source], check=True)
            libraries[activation, kind] = ctypes.CDLL(str(target))
        return libraries[activation, kind]

    return library


@pytest.mark.parametrize("kind", ["ntk", "nngp"])
@pytest.mark.parametrize("activation", CURVES)
@pytest.mark.parametrize("bias", [{}, {"bias_scale": 0.7}, {"bias_scale": 0.7, "bias_init": "zero"}], ids=str)
@pytest.mark.parametrize("depth", [1, 3])
def test_a_curve_is_the_closed_form(activation, kind, bias, depth, compiled):
    rng = np.random.default_rng(0)
    right = torch.tensor(rng.normal(size=(9, 5)))
    left = torch.cat([right[:3], -right[3:4], 2 * right[4:5], right[5:6] + 1e-7 * right[6:7], torch.zeros(1, 5), right[:2] - 1])
    network = MLP(depth=depth, activation=activation, weight_std=1.3, **bias)
    kernel = PopulationKernel(network)
    here, there = kernel.profile(left.double()), kernel.profile(right)
    expected = {"ntk": kernel.ntk_cross, "nngp": kernel.nngp_cross}[kind](here, there)
    found = torch.empty_like(expected)
    tensors = [*(end.directions.contiguous() for end in (here, there)), *map(fused._roots, (here, there)), found]
    sizes = *found.shape, here.directions.shape[1], depth
    scales = network.weight_std**2, network.bias_scale**2, network.initial_bias_variance
    pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors]
    compiled(activation, kind).all_pairs(*pointers, *map(ctypes.c_int, sizes), *map(ctypes.c_double, scales))
    assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
