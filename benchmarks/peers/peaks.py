"""What one core can do at most: independent multiply-adds in registers, and a large matrix product in XLA."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

_SOURCE = r"""
#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
typedef float vector __attribute__((vector_size(BYTES)));
enum { CHAINS = 12 };  /* more than latency x units, fewer than registers */

int lanes(void) { return BYTES / 4; }

float multiply_add(long rounds, float start) {
  vector sums[CHAINS], factor = (vector){} + .999999f, term = (vector){} + start;
  for (int i = 0; i < CHAINS; ++i) sums[i] = term * (float)i;
  for (long round = 0; round < rounds; ++round)
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS; ++i) sums[i] = sums[i] * factor + term;
  float total = 0;
  for (int i = 0; i < CHAINS; ++i)
    for (int lane = 0; lane < BYTES / 4; ++lane) total += sums[i][lane];
  return total;
}
"""
_CHAINS = 12


class MultiplyAdd:
    """A unit is a billion floating-point operations."""

    flops = 1e9
    parameters = 0

    def __init__(self, game: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "peak.so"
            options = ["-O3", "-march=native", "-ffp-contract=fast", "-shared", "-fPIC", "-x", "c", "-", "-o"]
            subprocess.run([os.environ.get("CC", "cc"), *options, str(library)], input=_SOURCE, text=True, check=True)
            loaded = ctypes.CDLL(str(library))
        self.kernel = loaded.multiply_add
        self.kernel.argtypes, self.kernel.restype = [ctypes.c_long, ctypes.c_float], ctypes.c_float
        self.lanes = loaded.lanes()
        self.about = f"{32 * self.lanes} bits wide"
        self.units = 0

    def run(self, units: int) -> None:
        self.kernel(round(units * self.flops / (2 * self.lanes * _CHAINS)), 1e-6)
        self.units += units

    def done(self) -> int:
        return self.units


class Product:
    """A unit is one product of two 768 x 768 matrices."""

    flops = 2 * 768**3
    parameters = 0
    about = "768 x 768, float32, XLA"

    def __init__(self, game: str) -> None:
        from image_layer import matmul_rate

        self.product = matmul_rate()
        self.units = 0

    def run(self, units: int) -> None:
        for _ in range(units):
            self.product()
        self.units += units

    def done(self) -> int:
        return self.units
