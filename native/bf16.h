// Operands in bfloat16 for vectors of sixteen floats: pairs of inner elements stand beside each other, as the
// instructions take them. Included after kernels_on.h by the files of instruction sets that multiply bf16.
#pragma once

#include <immintrin.h>

#include "kernels_on.h"

namespace {

template <int PAD_>
struct Bf16Operand {
  using Element = uint16_t;
  static constexpr int LANES = 16, PANEL = 32, PAD = PAD_;
  typedef float F __attribute__((vector_size(64)));

  static constexpr size_t place(int k, int column) { return (static_cast<size_t>(k / 2) * PANEL + column) * 2 + k % 2; }

  static uint16_t of_matrix(float w) { return bf16_of(w); }

  static __m256i rounded(__m512 x) { return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)); }
  static void prepare() {}

  static void write(uint16_t* operand, int k, F v) {
    const __m256i x = rounded(reinterpret_cast<__m512>(v));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(operand + k), x);
  }

  static void write_one(uint16_t* operand, int k, float x) { operand[k] = bf16_of(x); }
};

}  // namespace
