// The image layer's forward and backward pass. Included once per instruction set, each time inside another namespace,
// with LANES (floats in a vector register), ZERO_LANES (a bit for each lane of a vector of words: is it 0?), the sizes
// of the tiles of sums and the shuffles of `totals` defined.
//
// At a position p of a boolean image there are few different 3x3 patches in a batch: often the empty one, or the same
// bricks in every sample. Samples with the same patch have the same h = relu(convolution) there. So the samples are put
// into groups of equal patches, and the products are taken once a group, relative to the largest group 0. With W_p the
// panel [filters, units] of dense_weight at position p, and k the group of sample b at p:
//
//     y_b   = (dense_bias + sum_p h_p0 W_p) + sum_{p where k != 0} (h_pk - h_p0) W_p
//     dW_p  = h_p0' (sum_b g_b) + sum_{k != 0} (h_pk - h_p0)' G_pk        g_b: the gradient of y_b
//     dh_pk = G_pk W_p'                                                   G_pk = sum of g_b over group k
//
// Nothing is approximated, and every sum is taken in a fixed order: the same input gives the same bits.

typedef float Lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t Indices __attribute__((vector_size(4 * LANES)));

template <class T>
INLINE T load(const float* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
INLINE void store(float* to, T value) {
  __builtin_memcpy(to, &value, sizeof(T));
}

// Calls body(zero, i) for every i in steps of a vector, then for the rest one by one; zero tells which by its type.
template <class Body>
INLINE void for_each_vector(int64_t count, Body body) {
  const int64_t whole = count / LANES * LANES;
  for (int64_t i = 0; i < whole; i += LANES) body(Lanes{}, i);
  for (int64_t i = whole; i < count; ++i) body(0.0f, i);
}

INLINE void add_row(float* to, const float* from, int64_t count) {
  for_each_vector(count, [=](auto zero, int64_t i) ALWAYS_INLINE {
    using T = decltype(zero);
    store(to + i, load<T>(to + i) + load<T>(from + i));
  });
}

// The totals of four vectors, as four floats.
INLINE Quad totals(Lanes a, Lanes b, Lanes c, Lanes d) {
  const Lanes ab = SHUFFLE(a, b, EVENS) + SHUFFLE(a, b, ODDS), cd = SHUFFLE(c, d, EVENS) + SHUFFLE(c, d, ODDS);
  const Lanes parts = SHUFFLE(ab, cd, EVENS) + SHUFFLE(ab, cd, ODDS);
  Quad sum{};
  UNROLL for (int part = 0; part < LANES / 4; ++part) {
    Quad next;
    __builtin_memcpy(&next, reinterpret_cast<const char*>(&parts) + part * sizeof(Quad), sizeof(Quad));
    sum += next;
  }
  return sum;
}

#include "patches.h"

// The convolution of each group's patch: work.sums [groups, filters] before the ReLU, and work.hidden after it, less
// that of group 0 for the others.
INLINE void convolve(const Shape shape, const uint32_t* patches, int64_t groups, const float* conv_weight,
                     const float* conv_bias, const Workspace work) {
  const int64_t filters = shape.filters;
  for (int64_t k = 0; k < groups; ++k)
    for_each_vector(filters, [=](auto zero, int64_t f) ALWAYS_INLINE {
      using T = decltype(zero);
      T sum = load<T>(conv_bias + f);
      for_each_set_cell(shape, patches + work.first[k],
                        [&](int64_t place) ALWAYS_INLINE { sum += load<T>(conv_weight + place * filters + f); });
      store(work.sums + k * filters + f, sum);
      // Written so that NaN passes: a network that diverged must show it.
      const T hidden = sum < zero ? zero : sum;
      store(work.hidden + k * filters + f, k == 0 ? hidden : hidden - load<T>(work.hidden + f));
    });
}

// Asks for memory that is needed soon: the dense weights do not fit into the caches near the processor.
INLINE void prefetch(const float* from, int64_t count) {
  for (int64_t i = 0; i < count; i += 16) __builtin_prefetch(from + i);
}

// to[0 .. VECTORS) += sums
template <class T, int VECTORS>
INLINE void add_vectors(float* to, const T (&sums)[VECTORS]) {
  constexpr int width = sizeof(T) / sizeof(float);
  UNROLL for (int v = 0; v < VECTORS; ++v) store(to + v * width, load<T>(to + v * width) + sums[v]);
}

// hidden[k, :] panel[:, unit..] for GROUPS rows, from group k on, and VECTORS registers of units. Added to the outputs
// of the group's samples; that of group 0 to what all samples have in common.
template <class T, int GROUPS, int VECTORS>
INLINE void product_tile(const Shape& shape, int64_t group, const float* panel, int64_t unit, const Workspace& work,
                         float* out) {
  constexpr int width = sizeof(T) / sizeof(float);
  const float* hidden = work.hidden + group * shape.filters;
  T sums[GROUPS][VECTORS];
  UNROLL for (int k = 0; k < GROUPS; ++k) UNROLL for (int v = 0; v < VECTORS; ++v) sums[k][v] = T{};
  for (int64_t f = 0; f < shape.filters; ++f) {
    T weights[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; ++v) weights[v] = load<T>(panel + f * shape.units + unit + v * width);
    UNROLL for (int k = 0; k < GROUPS; ++k)
      UNROLL for (int v = 0; v < VECTORS; ++v) sums[k][v] += weights[v] * hidden[k * shape.filters + f];
  }
  UNROLL for (int k = 0; k < GROUPS; ++k) {
    if (group + k == 0)
      add_vectors(work.common + unit, sums[k]);
    else
      for_each_sample(work, group + k,
                      [&](int64_t b) ALWAYS_INLINE { add_vectors(out + b * shape.units + unit, sums[k]); });
  }
}

template <class T, int VECTORS>
INLINE void product_strip(const Shape& shape, int64_t groups, const float* panel, int64_t unit, const Workspace& work,
                          float* out) {
  const int64_t whole = groups / GROUP_TILE * GROUP_TILE;
  for (int64_t k = 0; k < whole; k += GROUP_TILE)
    product_tile<T, GROUP_TILE, VECTORS>(shape, k, panel, unit, work, out);
  int64_t k = whole;
  for (; k + 2 <= groups; k += 2) product_tile<T, 2, VECTORS>(shape, k, panel, unit, work, out);
  for (; k < groups; ++k) product_tile<T, 1, VECTORS>(shape, k, panel, unit, work, out);
}

INLINE void forward_of(const Shape shape, const uint8_t* images, const float* conv_weight, const float* conv_bias,
                       const float* dense_weight, const float* dense_bias, const Workspace work, float* out) {
  const int64_t units = shape.units, filters = shape.filters, positions = shape.positions();
  const int64_t whole = units / (VECTOR_TILE * LANES) * (VECTOR_TILE * LANES);
  cut(shape, images, work);
  __builtin_memset(out, 0, shape.batch * units * sizeof(float));
  __builtin_memcpy(work.common, dense_bias, units * sizeof(float));
  for (int64_t p = 0; p < positions; ++p) {
    const float* panel = dense_weight + p * filters * units;
    if (p + 1 < positions) prefetch(panel + filters * units, filters * units);
    const uint32_t* patches = patches_at(shape, p, work);
    const int64_t groups = make_groups(shape, patches, work);
    convolve(shape, patches, groups, conv_weight, conv_bias, work);
    for (int64_t u = 0; u < whole; u += VECTOR_TILE * LANES)
      product_strip<Lanes, VECTOR_TILE>(shape, groups, panel, u, work, out);
    for (int64_t u = whole; u < units; ++u) product_strip<float, 1>(shape, groups, panel, u, work, out);
  }
  for (int64_t b = 0; b < shape.batch; ++b) add_row(out + b * units, work.common, units);
}

// rows[k, unit..] = sum of the gradients of the samples in group k, for all groups but the largest, 0; and in
// work.common what that leaves of the sum over all samples, which is in row 0.
template <class T, int VECTORS>
INLINE void sum_strip(const Shape& shape, int64_t groups, const float* gradient, int64_t unit, const Workspace& work) {
  constexpr int width = sizeof(T) / sizeof(float);
  T rest[VECTORS];
  UNROLL for (int v = 0; v < VECTORS; ++v) rest[v] = load<T>(work.rows + unit + v * width);
  for (int64_t k = 1; k < groups; ++k) {
    T sums[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; ++v) sums[v] = T{};
    for_each_sample(work, k, [&](int64_t b) ALWAYS_INLINE {
      UNROLL for (int v = 0; v < VECTORS; ++v) sums[v] += load<T>(gradient + b * shape.units + unit + v * width);
    });
    UNROLL for (int v = 0; v < VECTORS; ++v) {
      store(work.rows + k * shape.units + unit + v * width, sums[v]);
      rest[v] -= sums[v];
    }
  }
  UNROLL for (int v = 0; v < VECTORS; ++v) store(work.common + unit + v * width, rest[v]);
}

// out[f, unit..] = sum over the groups of hidden[k, f] rows[k, unit..], for FILTERS filters.
template <class T, int FILTERS, int VECTORS>
INLINE void outer_tile(const Shape& shape, int64_t groups, const float* hidden, const float* rows, float* out) {
  constexpr int width = sizeof(T) / sizeof(float);
  T sums[FILTERS][VECTORS];
  UNROLL for (int f = 0; f < FILTERS; ++f) UNROLL for (int v = 0; v < VECTORS; ++v) sums[f][v] = T{};
  for (int64_t k = 0; k < groups; ++k) {
    T gradient[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; ++v) gradient[v] = load<T>(rows + k * shape.units + v * width);
    UNROLL for (int f = 0; f < FILTERS; ++f)
      UNROLL for (int v = 0; v < VECTORS; ++v) sums[f][v] += gradient[v] * hidden[k * shape.filters + f];
  }
  UNROLL for (int f = 0; f < FILTERS; ++f)
    UNROLL for (int v = 0; v < VECTORS; ++v) store(out + f * shape.units + v * width, sums[f][v]);
}

template <class T, int VECTORS>
INLINE void outer_strip(const Shape& shape, int64_t groups, const float* hidden, const float* rows, float* out) {
  const int64_t whole = shape.filters / 4 * 4;
  for (int64_t f = 0; f < whole; f += 4)
    outer_tile<T, 4, VECTORS>(shape, groups, hidden + f, rows, out + f * shape.units);
  for (int64_t f = whole; f < shape.filters; ++f)
    outer_tile<T, 1, VECTORS>(shape, groups, hidden + f, rows, out + f * shape.units);
}

// out[k, f] = rows[k] . panel[f] for GROUPS rows and four filters.
template <int GROUPS>
INLINE void dot_tile(const Shape& shape, const float* rows, const float* panel, float* out) {
  const int64_t units = shape.units, whole = units / LANES * LANES;
  Lanes sums[GROUPS][4];
  UNROLL for (int k = 0; k < GROUPS; ++k) UNROLL for (int f = 0; f < 4; ++f) sums[k][f] = Lanes{};
  for (int64_t u = 0; u < whole; u += LANES) {
    Lanes weights[4];
    UNROLL for (int f = 0; f < 4; ++f) weights[f] = load<Lanes>(panel + f * units + u);
    UNROLL for (int k = 0; k < GROUPS; ++k) {
      const Lanes gradient = load<Lanes>(rows + k * units + u);
      UNROLL for (int f = 0; f < 4; ++f) sums[k][f] += gradient * weights[f];
    }
  }
  UNROLL for (int k = 0; k < GROUPS; ++k)
    store(out + k * shape.filters, totals(sums[k][0], sums[k][1], sums[k][2], sums[k][3]));
  for (int64_t u = whole; u < units; ++u)
    for (int k = 0; k < GROUPS; ++k)
      for (int f = 0; f < 4; ++f) out[k * shape.filters + f] += rows[k * units + u] * panel[f * units + u];
}

template <int GROUPS>
INLINE void dot_strip(const Shape& shape, const float* rows, const float* panel, float* out) {
  const int64_t units = shape.units, whole = shape.filters / 4 * 4;
  for (int64_t f = 0; f < whole; f += 4) dot_tile<GROUPS>(shape, rows, panel + f * units, out + f);
  for (int64_t f = whole; f < shape.filters; ++f)
    for (int k = 0; k < GROUPS; ++k) {
      float sum = 0.0f;
      for (int64_t u = 0; u < units; ++u) sum += rows[k * units + u] * panel[f * units + u];
      out[k * shape.filters + f] = sum;
    }
}

INLINE void backward_of(const Shape shape, const uint8_t* images, const float* conv_weight, const float* conv_bias,
                        const float* dense_weight, const float* gradient, const Workspace work,
                        const Gradients gradients) {
  const int64_t units = shape.units, filters = shape.filters, positions = shape.positions();
  const int64_t whole = units / (VECTOR_TILE * LANES) * (VECTOR_TILE * LANES);
  cut(shape, images, work);
  __builtin_memset(gradients.conv_weight, 0, 9 * shape.channels * filters * sizeof(float));
  __builtin_memset(gradients.conv_bias, 0, filters * sizeof(float));
  __builtin_memset(gradients.dense_bias, 0, units * sizeof(float));
  for (int64_t b = 0; b < shape.batch; ++b) add_row(gradients.dense_bias, gradient + b * units, units);

  for (int64_t p = 0; p < positions; ++p) {
    const float* panel = dense_weight + p * filters * units;
    float* panel_gradient = gradients.dense_weight + p * filters * units;
    if (p + 1 < positions) prefetch(panel + filters * units, filters * units);
    const uint32_t* patches = patches_at(shape, p, work);
    const int64_t groups = make_groups(shape, patches, work);
    convolve(shape, patches, groups, conv_weight, conv_bias, work);

    // rows: the sum of the gradients over each group; in row 0 first that over all samples, as dW_p needs it
    float* rows = work.rows;
    __builtin_memcpy(rows, gradients.dense_bias, units * sizeof(float));
    for (int64_t u = 0; u < whole; u += VECTOR_TILE * LANES)
      sum_strip<Lanes, VECTOR_TILE>(shape, groups, gradient, u, work);
    for (int64_t u = whole; u < units; ++u) sum_strip<float, 1>(shape, groups, gradient, u, work);
    for (int64_t u = 0; u < whole; u += VECTOR_TILE * LANES)
      outer_strip<Lanes, VECTOR_TILE>(shape, groups, work.hidden, rows + u, panel_gradient + u);
    for (int64_t u = whole; u < units; ++u)
      outer_strip<float, 1>(shape, groups, work.hidden, rows + u, panel_gradient + u);

    __builtin_memcpy(rows, work.common, units * sizeof(float));
    int64_t k = 0;
    for (; k + DOT_TILE <= groups; k += DOT_TILE)
      dot_strip<DOT_TILE>(shape, rows + k * units, panel, work.dots + k * filters);
    for (; k < groups; ++k) dot_strip<1>(shape, rows + k * units, panel, work.dots + k * filters);

    for (k = 0; k < groups; ++k)
      for_each_vector(filters, [=](auto zero, int64_t f) ALWAYS_INLINE {
        using T = decltype(zero);
        const T passed = load<T>(work.sums + k * filters + f) > zero ? load<T>(work.dots + k * filters + f) : zero;
        store(gradients.conv_bias + f, load<T>(gradients.conv_bias + f) + passed);
        for_each_set_cell(shape, patches + work.first[k], [&](int64_t place) ALWAYS_INLINE {
          float* to = gradients.conv_weight + place * filters + f;
          store(to, load<T>(to) + passed);
        });
      });
  }
}

// The usual sizes, with segments of WORDS words, are constants to the compiler; WORDS = 0 takes any others.
template <int WORDS>
INLINE Shape known(Shape shape) {
  if (WORDS > 0) shape.filters = 16, shape.units = 128, shape.segment_words = WORDS;
  return shape;
}

template <int WORDS>
__attribute__((noinline)) void forward(const Shape& shape, const uint8_t* images, const float* conv_weight,
                                       const float* conv_bias, const float* dense_weight, const float* dense_bias,
                                       const Workspace& work, float* out) {
  forward_of(known<WORDS>(shape), images, conv_weight, conv_bias, dense_weight, dense_bias, work, out);
}

template <int WORDS>
__attribute__((noinline)) void backward(const Shape& shape, const uint8_t* images, const float* conv_weight,
                                        const float* conv_bias, const float* dense_weight, const float* gradient,
                                        const Workspace& work, const Gradients& gradients) {
  backward_of(known<WORDS>(shape), images, conv_weight, conv_bias, dense_weight, gradient, work, gradients);
}
