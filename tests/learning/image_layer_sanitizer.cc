// Runs every kernel that this processor has on many shapes, in buffers of exactly the right size, and compares with
// plain loops in double precision. Built with the address and undefined-behaviour sanitizers.

#include "image_layer.cc"

#include <cmath>
#include <cstdio>
#include <random>

using Vector = std::vector<float>;

static bool close(const Vector& actual, const std::vector<double>& expected, const char* what, const char* kernel) {
  double scale = 1e-3;
  for (double value : expected) scale = std::max(scale, std::fabs(value));
  for (size_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(actual[i] - expected[i]) <= 1e-5 * scale)) {
      std::printf("%s of %s: [%zu] is %g, not %g\n", what, kernel, i, actual[i], expected[i]);
      return false;
    }
  return true;
}

int main() {
  std::mt19937 random(0);
  auto integer = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  auto floats = [&](int64_t count) {
    Vector values(count);
    for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
    return values;
  };
  for (int round = 0; round < 60; ++round) {
    const bool usual = round % 3 == 0;
    const int64_t channels = integer(1, usual ? 15 : 45);
    const Shape s{integer(1, round % 4 ? 40 : 150), integer(3, 7), integer(3, 8), channels, usual ? 16 : integer(1, 18),
                  usual ? 128 : integer(1, 70)};
    std::vector<uint8_t> images(s.batch * s.cells());
    const int sparse = integer(1, 30);
    for (uint8_t& cell : images) cell = integer(0, sparse) == 0;
    for (int64_t i = s.cells(); i < static_cast<int64_t>(images.size()); ++i)  // many patches alike
      if (integer(0, 9)) images[i] = images[i - s.cells()];
    const Vector cw = floats(9 * channels * s.filters), cb = floats(s.filters), db = floats(s.units);
    const Vector dw = floats(s.positions() * s.filters * s.units), g = floats(s.batch * s.units);

    std::vector<double> out(s.batch * s.units), gcw(cw.size()), gcb(cb.size()), gdw(dw.size()), gdb(db.size());
    for (int64_t b = 0; b < s.batch; ++b) {
      for (int64_t u = 0; u < s.units; ++u) out[b * s.units + u] = db[u], gdb[u] += g[b * s.units + u];
      for (int64_t p = 0; p < s.positions(); ++p)
        for (int64_t f = 0; f < s.filters; ++f) {
          std::vector<int64_t> taps;
          double sum = cb[f];
          for (int64_t tap = 0; tap < 9 * channels; ++tap) {
            const int64_t row = p / s.columns() + tap / (3 * channels), rest = tap % (3 * channels);
            const int64_t cell = (row * s.width + p % s.columns()) * channels + rest;
            if (images[b * s.cells() + cell]) taps.push_back(tap), sum += cw[tap * s.filters + f];
          }
          const float* weight = &dw[(p * s.filters + f) * s.units];
          double back = 0;
          for (int64_t u = 0; u < s.units; ++u) {
            out[b * s.units + u] += std::max(sum, 0.0) * weight[u];
            gdw[(p * s.filters + f) * s.units + u] += std::max(sum, 0.0) * g[b * s.units + u];
            back += weight[u] * g[b * s.units + u];
          }
          if (sum <= 0) continue;
          gcb[f] += back;
          for (int64_t tap : taps) gcw[tap * s.filters + f] += back;
        }
    }

    for (const Kernel& kernel : kernels) {
      if (!supported(kernel.name)) continue;
      Vector y(out.size()), a(gcw.size()), b(gcb.size()), c(gdw.size()), d(gdb.size());
      const Scratch scratch(s);
      kernel.forwards[s.usual()](s, images.data(), cw.data(), cb.data(), dw.data(), db.data(), scratch.work, y.data());
      kernel.backwards[s.usual()](s, images.data(), cw.data(), cb.data(), dw.data(), g.data(), scratch.work,
                      Gradients{a.data(), b.data(), c.data(), d.data()});
      if (!close(y, out, "output", kernel.name) || !close(a, gcw, "conv_weight", kernel.name) ||
          !close(b, gcb, "conv_bias", kernel.name) || !close(c, gdw, "dense_weight", kernel.name) ||
          !close(d, gdb, "dense_bias", kernel.name))
        return 1;
    }
  }
  return 0;
}
