// The patches of a batch of boolean images, as bits, and the groups of equal ones. A part of kernel.h.
//
// A patch is three segments, one below the other, and is never put together for all samples: samples are compared by
// their segments, a vector of samples at a time.

typedef uint32_t Words __attribute__((vector_size(4 * LANES)));

// A bit for each of 8 * count bytes: is it not 0? In steps that the compiler has vectors for.
INLINE void set_bytes(const uint8_t* bytes, int64_t count, uint8_t* bits) {
  const uint64_t low = 0x7f7f7f7f7f7f7f7f;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t word;
    __builtin_memcpy(&word, bytes + 8 * i, 8);
    word = ((((word & low) + low) | word) >> 7) & 0x0101010101010101;
    word |= word >> 7;
    word |= word >> 14;
    bits[i] = static_cast<uint8_t>(word | word >> 28);
  }
}

// Cuts every image into the segments of which its patches are made: 3 cells of one row, all channels, a bit each.
INLINE void cut(const Shape shape, const uint8_t* images, const Workspace work) {
  const int64_t cells = shape.cells(), whole = cells / 8 * 8, stride = shape.stride();
  for (int64_t b = 0; b < shape.batch; ++b) {
    const uint8_t* image = images + b * cells;
    set_bytes(image, whole / 8, work.bits);
    if (whole < cells) {
      uint8_t rest[8] = {};
      __builtin_memcpy(rest, image + whole, cells - whole);
      set_bytes(rest, 1, work.bits + whole / 8);
    }
    uint32_t* segment = work.segments + b;
    for (int64_t row = 0; row < shape.height; ++row)
      for (int64_t column = 0; column < shape.columns(); ++column)
        for (int64_t i = 0; i < shape.segment_words; ++i, segment += stride) {
          const int64_t start = i * SEGMENT_BITS, left = 3 * shape.channels - start;
          const int64_t count = left < SEGMENT_BITS ? left : SEGMENT_BITS;
          const int64_t from = (row * shape.width + column) * shape.channels + start;
          uint64_t word;
          __builtin_memcpy(&word, work.bits + from / 8, 8);
          *segment = static_cast<uint32_t>((word >> (from % 8)) & ((uint64_t{1} << count) - 1));
        }
  }
}

// The first word of the patches at a position, for sample 0; those of the next samples follow.
INLINE const uint32_t* patches_at(const Shape& shape, int64_t position, const Workspace& work) {
  return work.segments + position * shape.segment_words * shape.stride();
}

// Calls visit(offset, place) for each word of the patches at a position: where it is from the first word on, and the
// place in [3, 3, channels] of its first bit, where conv_weight has its row.
template <class Visit>
INLINE void for_each_word(const Shape& shape, Visit visit) {
  UNROLL for (int64_t r = 0; r < 3; ++r)
    for (int64_t i = 0; i < shape.segment_words; ++i)
      visit((r * shape.columns() * shape.segment_words + i) * shape.stride(),
            r * 3 * shape.channels + i * SEGMENT_BITS);
}

// Calls visit(place) for each set cell of a sample's patch, in the order of [3, 3, channels]. The patch's words are put
// together into words of 64 bits first: where a loop over set bits ends is hard to foretell, and so costs.
template <class Visit>
INLINE void for_each_set_cell(const Shape& shape, const uint32_t* patch, Visit visit) {
  const int64_t width = shape.segment_words == 1 ? 3 * shape.channels : SEGMENT_BITS;
  uint64_t bits = 0;
  int64_t start = 0;
  auto visit_bits = [&]() ALWAYS_INLINE {
    for (; bits != 0; bits &= bits - 1) visit(start + __builtin_ctzll(bits));
  };
  for_each_word(shape, [&](int64_t offset, int64_t place) ALWAYS_INLINE {
    if (place + width > start + 64) {
      visit_bits();
      start = place;
    }
    bits |= uint64_t{patch[offset]} << (place - start);
  });
  visit_bits();
}

// A bit for each of the first `count` samples: is its patch that of `sample`? Bits beyond `count` are undefined.
INLINE uint64_t same_patches(const Shape& shape, const uint32_t* patches, int64_t sample, int64_t count) {
  uint64_t same = 0;
  for (int64_t i = 0; i < count; i += LANES) {
    Words differs{};
    for_each_word(shape, [&](int64_t offset, int64_t) ALWAYS_INLINE {
      Words words;
      __builtin_memcpy(&words, patches + offset + i, sizeof(words));
      differs |= words ^ patches[offset + sample];
    });
    same |= uint64_t{ZERO_LANES(differs)} << i;
  }
  return same;
}

// The number of the group with the patch of `sample`: `next` where there is none yet.
static __attribute__((noinline)) int32_t find_group(const Shape shape, const uint32_t* patches, int64_t sample,
                                                    int32_t next, const Workspace work) {
  uint64_t hash = 0;
  for_each_word(shape, [&](int64_t offset, int64_t) ALWAYS_INLINE {
    hash = hash * 0xff51afd7ed558ccd + patches[offset + sample] * 0x9e3779b97f4a7c15;
  });
  for (int64_t place = static_cast<int64_t>(hash >> 32);; ++place) {
    int32_t& group = work.table[place & (work.table_size - 1)];
    if (group < 0) return group = next;
    bool same = true;
    for_each_word(shape, [&](int64_t offset, int64_t) ALWAYS_INLINE {
      same &= patches[offset + sample] == patches[offset + work.first[group]];
    });
    if (same) return group;
  }
}

// Puts the samples into groups of equal patches, the largest of them group 0. Returns how many groups there are;
// work.first has a sample of each, and work.runs its samples.
//
// Samples go by chunks of 64, the bits of a word. In a chunk, the first sample without a group is compared with all at
// once, and those like it are a run. Where there are more chunks, a table tells which group a run belongs to.
// Groups are numbered in the order of their first samples, and of the largest the first counts: sums keep their order.
INLINE int64_t make_groups(const Shape& shape, const uint32_t* patches, const Workspace& work) {
  const bool chunks = shape.batch > 64;
  if (chunks) __builtin_memset(work.table, 0xff, work.table_size * sizeof(int32_t));  // -1: free
  int32_t groups = 0, largest = 0, more = static_cast<int32_t>(shape.batch);
  for (int64_t start = 0; start < shape.batch; start += 64) {
    const int64_t count = shape.batch - start < 64 ? shape.batch - start : 64;
    for (uint64_t left = ~uint64_t{0} >> (64 - count); left != 0;) {
      const int64_t sample = __builtin_ctzll(left);
      const uint64_t same = left & same_patches(shape, patches + start, sample, count);
      left ^= same;
      const int32_t group = chunks ? find_group(shape, patches, start + sample, groups, work) : groups;
      int32_t run = group;
      if (group == groups) {
        work.first[groups] = static_cast<int32_t>(start + sample);
        work.size[groups++] = 0;
      } else {
        run = work.runs[work.last[group]].next = more++;
      }
      if (chunks) work.last[group] = run;
      work.size[group] += __builtin_popcountll(same);
      work.runs[run] = {same, static_cast<int32_t>(start), -1};
    }
  }
  for (int32_t k = 1; k < groups; ++k) largest = work.size[k] > work.size[largest] ? k : largest;
  const int32_t first = work.first[0];
  work.first[0] = work.first[largest];
  work.first[largest] = first;
  const Run run = work.runs[0];
  work.runs[0] = work.runs[largest];
  work.runs[largest] = run;
  return groups;
}

// Calls visit(sample) for each sample of a group, in order.
template <class Visit>
INLINE void for_each_sample(const Workspace& work, int64_t group, Visit visit) {
  for (int64_t run = group; run >= 0; run = work.runs[run].next)
    for (uint64_t left = work.runs[run].samples; left != 0; left &= left - 1)
      visit(work.runs[run].start + __builtin_ctzll(left));
}
