// The tile instructions; or, for tests on processors without them, what they do, written out (MOSES_RNN_TILES_IN_SOFTWARE).
#pragma once

#include <immintrin.h>

#include "kernels_on.h"

namespace {
namespace tiles {

#ifdef MOSES_RNN_TILES_IN_SOFTWARE

thread_local uint32_t rows[8][16][16];  // tiles × rows × four bytes each

inline void configure(const void*) {}
inline void forget() {}

template <int T>
void load(const void* from, size_t stride) {
  for (int i = 0; i < 16; ++i) __builtin_memcpy(rows[T][i], static_cast<const char*>(from) + i * stride, 64);
}

template <int T>
void store(void* to, size_t stride) {
  for (int i = 0; i < 16; ++i) __builtin_memcpy(static_cast<char*>(to) + i * stride, rows[T][i], 64);
}

// sums[i][j] += Σ_k a[i][2k] b[k][2j] + a[i][2k+1] b[k][2j+1]
template <int SUMS, int A, int B>
void dot() {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) {
      float sum;
      __builtin_memcpy(&sum, &rows[SUMS][i][j], sizeof sum);
      for (int k = 0; k < 16; ++k) {
        const uint32_t a = rows[A][i][k], b = rows[B][k][j];
        sum += float_of(static_cast<uint16_t>(a)) * float_of(static_cast<uint16_t>(b));
        sum += float_of(static_cast<uint16_t>(a >> 16)) * float_of(static_cast<uint16_t>(b >> 16));
      }
      __builtin_memcpy(&rows[SUMS][i][j], &sum, sizeof sum);
    }
}

#else

// Written as the assembler has them: compilers' headers want tiles as literal numbers, not as parameters of templates.
// Loading the same shape again costs as much as a product of tiles: only a thread's first time
thread_local bool configured = false;

inline void configure(const void* shape) {
  if (configured) return;
  asm volatile("ldtilecfg (%0)" : : "r"(shape) : "memory");
  configured = true;
}

inline void forget() { configured = false; }

template <int T>
void load(const void* from, size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(T) : "memory");
}

template <int T>
void store(void* to, size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(T) : "memory");
}

template <int SUMS, int A, int B>
void dot() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(SUMS), "i"(A), "i"(B));
}

#endif

}  // namespace tiles
}  // namespace
