// XLA calls into the image layer's kernel: the choice of instruction set, the batch axes that vmap adds, and scratch
// memory. Every call allocates its own scratch, so that any number of threads may call at once.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#include "xla/ffi/api/ffi.h"

#if !defined(__GNUC__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "The kernel needs GCC's vector extensions and a little-endian machine."
#endif

namespace {

// A segment, one row of a patch, has 3 * channels bits, kept in words of this many.
constexpr int64_t SEGMENT_BITS = 32;

struct Shape {
  int64_t batch, height, width, channels, filters, units;
  int64_t segment_words = (3 * channels + SEGMENT_BITS - 1) / SEGMENT_BITS;

  // 1 or 2, the words of a segment, if filters and units are the usual ones; else 0.
  int64_t usual() const { return filters == 16 && units == 128 && segment_words <= 2 ? segment_words : 0; }
  int64_t stride() const { return (batch + 15) / 16 * 16; }  // of samples: whole vectors
  int64_t rows() const { return height - 2; }
  int64_t columns() const { return width - 2; }
  int64_t positions() const { return rows() * columns(); }
  int64_t cells() const { return height * width * channels; }
};

// Samples of one group: start + the place of each set bit. The group's others are in the run `next`, if it is not -1.
struct Run {
  uint64_t samples;
  int32_t start, next;
};

// Where the kernel keeps what it needs during a call.
struct Workspace {
  uint8_t* bits;          // [cells / 8 + 8]: one image, a bit for each cell and channel
  uint32_t* segments;     // [height, columns, segment_words, stride]
  int64_t table_size;     // a power of two, at least twice the batch
  int32_t* table;         // [table_size]: groups by the hash of their patch
  int32_t* first;         // [batch]: a sample of each group
  int32_t* size;          // [batch]: how many samples are in each group, in the order of discovery
  int32_t* last;          // [batch]: each group's last run
  Run* runs;              // [2 batch]: each group's first run, then the others
  float* sums;            // [batch, filters]: the convolution of each group
  float* hidden;          // [batch, filters]: after the ReLU, less that of group 0
  float* dots;            // [batch, filters]: the gradient of each group's hidden
  float* rows;            // [batch, units]: a row for each group
  float* common;          // [units]: what all samples have in common
};

struct Gradients {
  float *conv_weight, *conv_bias, *dense_weight, *dense_bias;
};

#define ALWAYS_INLINE __attribute__((always_inline))  // of a lambda: one that is called holds its captures in memory
#define INLINE inline ALWAYS_INLINE
#define UNROLL _Pragma("GCC unroll 16")
#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, Indices{__VA_ARGS__})
#endif

typedef float Quad __attribute__((vector_size(16)));
typedef uint32_t WordQuad __attribute__((vector_size(16)));

// A bit for each lane: is it 0?
INLINE uint32_t zero_lanes(WordQuad words) {
#ifdef __SSE2__
  return static_cast<uint32_t>(_mm_movemask_ps((__m128)(words == 0)));
#else
  const WordQuad bits = (WordQuad)(words == 0) & WordQuad{1, 2, 4, 8};
  return bits[0] | bits[1] | bits[2] | bits[3];
#endif
}

namespace baseline {
#define LANES 4
#define ZERO_LANES(words) zero_lanes(words)
#define EVENS 0, 2, 4, 6
#define ODDS 1, 3, 5, 7
#define DOT_TILE 2
#define GROUP_TILE 4
#define VECTOR_TILE 2
#include "kernel.h"
#undef LANES
#undef ZERO_LANES
#undef EVENS
#undef ODDS
#undef DOT_TILE
#undef GROUP_TILE
#undef VECTOR_TILE
}  // namespace baseline

#if defined(__x86_64__) && !defined(__clang__)
#define HAVE_X86_KERNELS
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2")
namespace avx2 {
#define LANES 8
#define ZERO_LANES(words) static_cast<uint32_t>(_mm256_movemask_ps((__m256)((words) == 0)))
#define EVENS 0, 2, 8, 10, 4, 6, 12, 14
#define ODDS 1, 3, 9, 11, 5, 7, 13, 15
#define DOT_TILE 2
#define GROUP_TILE 4
#define VECTOR_TILE 2
#include "kernel.h"
#undef LANES
#undef ZERO_LANES
#undef EVENS
#undef ODDS
#undef DOT_TILE
#undef GROUP_TILE
#undef VECTOR_TILE
}  // namespace avx2
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi,bmi2")
namespace avx512 {
#define LANES 16
#define ZERO_LANES(words) _mm512_testn_epi32_mask((__m512i)(words), (__m512i)(words))
#define EVENS 0, 2, 16, 18, 4, 6, 20, 22, 8, 10, 24, 26, 12, 14, 28, 30
#define ODDS 1, 3, 17, 19, 5, 7, 21, 23, 9, 11, 25, 27, 13, 15, 29, 31
#define DOT_TILE 4
#define GROUP_TILE 4
#define VECTOR_TILE 4
#include "kernel.h"
#undef LANES
#undef ZERO_LANES
#undef EVENS
#undef ODDS
#undef DOT_TILE
#undef GROUP_TILE
#undef VECTOR_TILE
}  // namespace avx512
#pragma GCC pop_options
#endif

struct Kernel {
  const char* name;
  decltype(&baseline::forward<0>) forwards[3];  // by shape.usual()
  decltype(&baseline::backward<0>) backwards[3];
};

bool supported(const char* name) {
#ifdef HAVE_X86_KERNELS
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  if (std::strcmp(name, "avx512") == 0) return avx512;
  if (std::strcmp(name, "avx2") == 0) return avx2;
#endif
  return std::strcmp(name, "baseline") == 0;
}

#define KERNEL(name)                                              \
  {#name,                                                         \
   {name::forward<0>, name::forward<1>, name::forward<2>},        \
   {name::backward<0>, name::backward<1>, name::backward<2>}}

const Kernel kernels[] = {  // best first
#ifdef HAVE_X86_KERNELS
    KERNEL(avx512),
    KERNEL(avx2),
#endif
    KERNEL(baseline),
};

const Kernel* chosen = nullptr;  // set once, before any call

// One allocation, cut into cache-aligned parts.
class Scratch {
 public:
  explicit Scratch(const Shape& shape) {
    const size_t batch = shape.batch, filters = shape.filters, units = shape.units;
    for (work.table_size = 2; work.table_size < 2 * shape.batch;) work.table_size *= 2;
    for (int pass = 0; pass < 2; ++pass) {  // measure, then place
      used_ = 0;
      take(work.bits, shape.cells() / 8 + 8);
      take(work.segments, shape.height * shape.columns() * shape.segment_words * shape.stride());
      take(work.table, work.table_size);
      take(work.first, batch);
      take(work.size, batch);
      take(work.last, batch);
      take(work.runs, 2 * batch);
      take(work.sums, batch * filters);
      take(work.hidden, batch * filters);
      take(work.dots, batch * filters);
      take(work.rows, batch * units);
      take(work.common, units);
      if (pass == 0) memory_.reset(static_cast<char*>(std::aligned_alloc(64, used_)));
      if (!memory_) return;
    }
    std::memset(work.bits, 0, shape.cells() / 8 + 8);  // the last word read may end beyond the last bit
  }
  explicit operator bool() const { return memory_ != nullptr; }
  Workspace work{};

 private:
  template <class T>
  void take(T*& part, size_t count) {
    if (memory_) part = reinterpret_cast<T*>(memory_.get() + used_);
    used_ += (count * sizeof(T) + 63) / 64 * 64;
  }
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  size_t used_ = 0;
  std::unique_ptr<char, Free> memory_;
};

// vmap puts batch axes in front of every array, of size 1 where the array is shared. This walks them all.
class Axes {
 public:
  void add(xla::ffi::AnyBuffer::Dimensions dimensions, size_t rank) {
    if (dimensions.size() < rank) valid_ = false;
    if (!valid_) return;
    const size_t leading = dimensions.size() - rank;
    if (strides_.empty()) sizes_.assign(leading, 1);
    if (leading != sizes_.size()) valid_ = false;
    if (!valid_) return;
    int64_t stride = 1;
    for (size_t i = leading; i < dimensions.size(); ++i) stride *= dimensions[i];
    std::vector<int64_t> strides(leading, 0);
    for (size_t i = leading; i-- > 0;) {
      if (dimensions[i] != 1) {
        if (sizes_[i] != 1 && sizes_[i] != dimensions[i]) valid_ = false;
        sizes_[i] = dimensions[i];
        strides[i] = stride;
      }
      stride *= dimensions[i];
    }
    strides_.push_back(strides);
  }
  bool valid() const { return valid_; }
  int64_t groups() const {
    int64_t count = 1;
    for (int64_t size : sizes_) count *= size;
    return count;
  }
  // Is the array the same for every group?
  bool shared(size_t array) const {
    for (int64_t stride : strides_[array])
      if (stride != 0) return false;
    return true;
  }
  // Does the array have a part of its own for every group?
  bool full(size_t array) const {
    for (size_t i = 0; i < sizes_.size(); ++i)
      if (sizes_[i] != 1 && strides_[array][i] == 0) return false;
    return true;
  }
  int64_t offset(size_t array, int64_t group) const {
    int64_t sum = 0;
    for (size_t i = sizes_.size(); i-- > 0; group /= sizes_[i]) sum += group % sizes_[i] * strides_[array][i];
    return sum;
  }

 private:
  bool valid_ = true;
  std::vector<int64_t> sizes_;
  std::vector<std::vector<int64_t>> strides_;
};

using xla::ffi::Error;
using xla::ffi::ErrorCode;
using Images = xla::ffi::Buffer<xla::ffi::PRED>;
using Floats = xla::ffi::Buffer<xla::ffi::F32>;
using Result = xla::ffi::ResultBuffer<xla::ffi::F32>;

Shape shape_of(const Images& images, const Floats& dense_weight, const Floats& conv_weight) {
  const auto image = images.dimensions();
  const size_t end = image.size();
  return {image[end - 4], image[end - 3], image[end - 2], image[end - 1], conv_weight.dimensions().back(),
          dense_weight.dimensions().back()};
}

Error failure(const char* message) { return Error(ErrorCode::kInternal, message); }

Error run_forward(Images images, Floats conv_weight, Floats conv_bias, Floats dense_weight, Floats dense_bias,
                  Result out) {
  Axes axes;
  axes.add(images.dimensions(), 4);
  axes.add(conv_weight.dimensions(), 4);
  axes.add(conv_bias.dimensions(), 1);
  axes.add(dense_weight.dimensions(), 2);
  axes.add(dense_bias.dimensions(), 1);
  axes.add(out->dimensions(), 2);
  if (!axes.valid() || !axes.full(5)) return failure("image layer: the batch axes do not fit together");
  Shape shape = shape_of(images, dense_weight, conv_weight);
  int64_t groups = axes.groups();
  if (axes.full(0) && axes.shared(1) && axes.shared(2) && axes.shared(3) && axes.shared(4)) {
    shape.batch *= groups;  // the same weights for all: one larger batch
    groups = 1;
  }
  if (shape.batch == 0 || groups == 0) return Error::Success();
  const Scratch scratch(shape);
  if (!scratch) return failure("image layer: out of memory");
  for (int64_t group = 0; group < groups; ++group)
    chosen->forwards[shape.usual()](
        shape, reinterpret_cast<const uint8_t*>(images.typed_data()) + axes.offset(0, group),
        conv_weight.typed_data() + axes.offset(1, group), conv_bias.typed_data() + axes.offset(2, group),
        dense_weight.typed_data() + axes.offset(3, group), dense_bias.typed_data() + axes.offset(4, group),
        scratch.work, out->typed_data() + axes.offset(5, group));
  return Error::Success();
}

Error run_backward(Images images, Floats conv_weight, Floats conv_bias, Floats dense_weight, Floats gradient,
                   Result conv_weight_gradient, Result conv_bias_gradient, Result dense_weight_gradient,
                   Result dense_bias_gradient) {
  Axes axes;
  axes.add(images.dimensions(), 4);
  axes.add(conv_weight.dimensions(), 4);
  axes.add(conv_bias.dimensions(), 1);
  axes.add(dense_weight.dimensions(), 2);
  axes.add(gradient.dimensions(), 2);
  axes.add(conv_weight_gradient->dimensions(), 4);
  axes.add(conv_bias_gradient->dimensions(), 1);
  axes.add(dense_weight_gradient->dimensions(), 2);
  axes.add(dense_bias_gradient->dimensions(), 1);
  if (!axes.valid() || !axes.full(5) || !axes.full(6) || !axes.full(7) || !axes.full(8))
    return failure("image layer: the batch axes do not fit together");
  const Shape shape = shape_of(images, dense_weight, conv_weight);
  const int64_t groups = axes.groups();
  if (shape.batch == 0)
    for (Result result : {conv_weight_gradient, conv_bias_gradient, dense_weight_gradient, dense_bias_gradient})
      std::memset(result->typed_data(), 0, result->size_bytes());
  if (shape.batch == 0 || groups == 0) return Error::Success();
  const Scratch scratch(shape);
  if (!scratch) return failure("image layer: out of memory");
  for (int64_t group = 0; group < groups; ++group)
    chosen->backwards[shape.usual()](
        shape, reinterpret_cast<const uint8_t*>(images.typed_data()) + axes.offset(0, group),
        conv_weight.typed_data() + axes.offset(1, group), conv_bias.typed_data() + axes.offset(2, group),
        dense_weight.typed_data() + axes.offset(3, group), gradient.typed_data() + axes.offset(4, group), scratch.work,
        Gradients{conv_weight_gradient->typed_data() + axes.offset(5, group),
         conv_bias_gradient->typed_data() + axes.offset(6, group),
         dense_weight_gradient->typed_data() + axes.offset(7, group),
         dense_bias_gradient->typed_data() + axes.offset(8, group)});
  return Error::Success();
}

}  // namespace

// Chooses the kernel by name, or the best that this processor runs where the name is empty. Returns the name of the
// one chosen, or null.
extern "C" const char* actiongap_image_layer_choose(const char* name) {
  for (const Kernel& kernel : kernels) {
    if ((name[0] == '\0' || std::strcmp(name, kernel.name) == 0) && supported(kernel.name)) {
      chosen = &kernel;
      return kernel.name;
    }
  }
  return nullptr;
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(actiongap_image_layer_forward, run_forward,
                              xla::ffi::Ffi::Bind()
                                  .Arg<Images>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Ret<Floats>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(actiongap_image_layer_backward, run_backward,
                              xla::ffi::Ffi::Bind()
                                  .Arg<Images>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Arg<Floats>()
                                  .Ret<Floats>()
                                  .Ret<Floats>()
                                  .Ret<Floats>()
                                  .Ret<Floats>());
