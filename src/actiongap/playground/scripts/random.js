"use strict";
// NumPy's default_rng(seed), so that a Garnet has the same numbers here as mdps.garnet has in Python, and a fast source
// of normal errors. NumPy's generator is PCG64 (O'Neill 2014), seeded by mixing the seed into a pool of four words.

const MASK_64 = (1n << 64n) - 1n, MASK_128 = (1n << 128n) - 1n;
const PCG_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645n;

/** Eight 32-bit words that depend on every bit of the seed, a whole number below 2^32. */
function seedWords(seed) {
  let constant = 0x43b0d7e5;
  const hashed = word => {
    word ^= constant;
    constant = Math.imul(constant, 0x931e8875);
    word = Math.imul(word, constant);
    return word ^ (word >>> 16);
  };
  const mixed = (x, y) => {
    const word = Math.imul(0xca01f9dd, x) - Math.imul(0x4973f715, y) | 0;
    return word ^ (word >>> 16);
  };
  const pool = [seed | 0, 0, 0, 0].map(hashed);
  for (let from = 0; from < 4; from++) {
    for (let to = 0; to < 4; to++) if (to !== from) pool[to] = mixed(pool[to], hashed(pool[from]));
  }
  constant = 0x8b51f9dd;
  return Array.from({length: 8}, (_, i) => {
    let word = pool[i % 4] ^ constant;
    constant = Math.imul(constant, 0x58f38ded);
    word = Math.imul(word, constant);
    return (word ^ (word >>> 16)) >>> 0;
  });
}

/** random(): uniform in [0, 1). integer(n): uniform in 0 ... n - 1, as Generator.integers draws 32-bit numbers. */
function numpyRandom(seed) {
  const words = seedWords(seed).map(BigInt);
  const long = i => words[2 * i] | (words[2 * i + 1] << 32n);
  const increment = ((((long(2) << 64n) | long(3)) << 1n) | 1n) & MASK_128;
  let state = 0n, spare = null;
  const advance = () => { state = (state * PCG_MULTIPLIER + increment) & MASK_128; };
  advance();
  state = (state + ((long(0) << 64n) | long(1))) & MASK_128;
  advance();

  function next64() {
    advance();
    const folded = (state >> 64n) ^ (state & MASK_64), turn = state >> 122n;
    return ((folded >> turn) | (folded << (64n - turn))) & MASK_64;
  }
  function next32() {
    if (spare !== null) { const word = spare; spare = null; return word; }
    const both = next64();
    spare = both >> 32n;
    return both & 0xffffffffn;
  }
  function integer(count) {
    if (count === 1) return 0;
    const size = BigInt(count), refused = (0x100000000n - size) % size;
    for (;;) {
      const product = next32() * size;
      if ((product & 0xffffffffn) >= refused) return Number(product >> 32n);
    }
  }
  return {random: () => Number(next64() >> 11n) / 2 ** 53, integer};
}

/** A function that draws standard normal numbers: fast, and the same for the same seed. They are not NumPy's. */
function normalSource(seed) {
  let counter = Math.imul(seed + 1, 0x9e3779b9) | 0, spare = null;
  const uniform = () => {
    counter = (counter + 0x6d2b79f5) | 0;
    let word = Math.imul(counter ^ (counter >>> 15), counter | 1);
    word ^= word + Math.imul(word ^ (word >>> 7), word | 61);
    return ((word ^ (word >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => {
    if (spare !== null) { const drawn = spare; spare = null; return drawn; }
    const radius = Math.sqrt(-2 * Math.log(1 - uniform())), angle = 2 * Math.PI * uniform();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}
