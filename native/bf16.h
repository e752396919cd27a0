// Operands in bfloat16 for vectors of sixteen floats: pairs of inner elements stand beside each other, as the
// instructions take them. Included after kernels_on.h by the files of instruction sets that multiply bf16.
#pragma once

#include <immintrin.h>

#include "kernels_on.h"

namespace {

// COPIES 1: rounded to bf16. COPIES 3 (BF16X3): x = high + low in two bf16 parts, and a product of two such numbers is
// high·high + low·high + high·low: written as one product of three times the inner size. What is left out, low·low, is
// 2^-16 of the product.
template <int COPIES_, int PAD_>
struct Bf16Operand {
  using Element = uint16_t;
  static constexpr int LANES = 16, PANEL = 32, PAD = PAD_, COPIES = COPIES_;
  typedef float F __attribute__((vector_size(64)));

  static constexpr size_t place(int k, int column) { return (static_cast<size_t>(k / 2) * PANEL + column) * 2 + k % 2; }

  static uint16_t of_matrix(float w, int copy) {
    const uint16_t high = bf16_of(w);
    return copy < 2 ? high : bf16_of(w - float_of(high));
  }

  static __m256i rounded(__m512 x) { return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)); }
  static __m512 widened(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }
  static void prepare() {}
  static void put(uint16_t* to, __m256i x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), x); }

  static void write(uint16_t* operand, int k, int part, F v) {
    const __m512 x = reinterpret_cast<__m512>(v);
    const __m256i high = rounded(x);
    put(operand + k, high);
    if (COPIES == 3) {
      put(operand + part + k, rounded(_mm512_sub_ps(x, widened(high))));
      put(operand + 2 * part + k, high);
    }
  }

  static void write_one(uint16_t* operand, int k, int part, float x) {
    const uint16_t high = bf16_of(x);
    operand[k] = high;
    if (COPIES == 3) {
      operand[part + k] = bf16_of(x - float_of(high));
      operand[2 * part + k] = high;
    }
  }
};

}  // namespace
