// Kernels for AVX-512 with products of bf16 pairs (vdpbf16ps): the tile of AVX-512, two inner elements at a time.
#include "bf16.h"

namespace {

struct Bf16 : Bf16Operand<2> {
  static constexpr int TILE_ROWS = 12;

  __attribute__((noinline)) static void tile(const uint16_t* A, int stride, const uint16_t* panel, int inner, const float* bias, float* out) {
    __m512 sums[TILE_ROWS][2];
    const __m512 b0 = bias ? _mm512_loadu_ps(bias) : _mm512_setzero_ps();
    const __m512 b1 = bias ? _mm512_loadu_ps(bias + 16) : _mm512_setzero_ps();
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; ++i) sums[i][0] = b0, sums[i][1] = b1;
    for (int k = 0; k < inner; k += 2, panel += 64) {
      const __m512bh w0 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panel));
      const __m512bh w1 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(panel + 32));
#pragma GCC unroll 16
      for (int i = 0; i < TILE_ROWS; ++i) {
        int pair;
        __builtin_memcpy(&pair, A + static_cast<size_t>(i) * stride + k, sizeof pair);
        const __m512bh a = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
        sums[i][0] = _mm512_dpbf16_ps(sums[i][0], a, w0);
        sums[i][1] = _mm512_dpbf16_ps(sums[i][1], a, w1);
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; ++i) {
      _mm512_storeu_ps(out + i * 32, sums[i][0]);
      _mm512_storeu_ps(out + i * 32 + 16, sums[i][1]);
    }
  }
};

}  // namespace

namespace moses_rnn {

const Kernels* kernels_avx512bf16(Precision precision) {
  return precision == BF16 ? KernelsOn<Bf16>::table() : kernels_avx512(precision);
}

}  // namespace moses_rnn
