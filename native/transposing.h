// Squares of numbers of four bytes, turned over in registers; included after kernels_on.h's vectors.
#pragma once

#include <utility>

namespace {

template <int LANES>
struct Transposing {
  using I = typename Vectors<LANES>::I;
  using Square = I[LANES];

  // Lane I of a pair of rows, whose columns trade places where bit S of their numbers differs.
  template <int S, int... L>
  static I low(I a, I b, std::integer_sequence<int, L...>) {
    return __builtin_shufflevector(a, b, (L & S ? LANES + L - S : L)...);
  }
  template <int S, int... L>
  static I high(I a, I b, std::integer_sequence<int, L...>) {
    return __builtin_shufflevector(a, b, (L & S ? LANES + L : L + S)...);
  }

  template <int S>
  static void exchange(Square& rows) {
    if constexpr (S < LANES) {
      constexpr auto lanes = std::make_integer_sequence<int, LANES>();
#pragma GCC unroll 16
      for (int i = 0; i < LANES; ++i)
        if (!(i & S)) {
          const I a = rows[i], b = rows[i + S];
          rows[i] = low<S>(a, b, lanes), rows[i + S] = high<S>(a, b, lanes);
        }
      exchange<2 * S>(rows);
    }
  }

  static void transpose(Square& rows) { exchange<1>(rows); }
};

}  // namespace
