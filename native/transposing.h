// Squares of numbers of four bytes, turned over in registers; included after kernels_on.h's vectors.
#pragma once

#include <utility>

namespace {

template <int LANES>
struct Transposing {
  using I = typename Vectors<LANES>::I;
  using Square = I[LANES];

  // Lanes of two rows by number, those of the second behind those of the first. Compilers have it by different names.
  template <int... L>
  static I pick(I a, I b) {
#ifdef __clang__
    return __builtin_shufflevector(a, b, L...);
#else
    return __builtin_shuffle(a, b, I{L...});
#endif
  }

  // Two rows whose places trade those lanes whose numbers differ from their own in bit S.
  template <int S, int... L>
  static I low(I a, I b, std::integer_sequence<int, L...>) {
    return pick<(L & S ? LANES + L - S : L)...>(a, b);
  }
  template <int S, int... L>
  static I high(I a, I b, std::integer_sequence<int, L...>) {
    return pick<(L & S ? LANES + L : L + S)...>(a, b);
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
