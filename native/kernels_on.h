// The kernels, written once over an operand's policy (its instruction set and precision). Included by one file for each
// instruction set, whose policies live in an unnamed namespace: all that is made of these templates stays in that file.
//
// A policy P has LANES (floats of a vector), TILE_ROWS, PANEL (columns, a multiple of LANES), PAD, Element, and
//   tile(A, stride, panel, inner, bias, out): out = A W + bias for TILE_ROWS rows and one panel, row by row
//   write(operand, k, vector): LANES values of an operand, from its k-th on
// Products stay in `tile` until they are done; what follows them (gates, blends, maxout, the normaliser) is done on the
// finished tile, while it is in the nearest cache.
#pragma once

#include "kernels.h"

namespace {

using namespace moses_rnn;

constexpr float LOG2_E = 1.4426950408889634f;

template <int LANES>
struct Vectors {
  typedef float F __attribute__((vector_size(4 * LANES)));
  typedef int32_t I __attribute__((vector_size(4 * LANES)));

  static F load(const float* from) {
    F v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  }
  static void store(float* to, F v) { __builtin_memcpy(to, &v, sizeof v); }
  static F splat(float x) { return x - F{}; }  // which compilers know to be x, unlike x + 0

  // 2^x, relative error below 2e-7; 0 becomes 2^-126 and NaN stays.
  static F exp2(F x) {
    x = x < -126.f ? splat(-126.f) : x;
    x = x > 126.f ? splat(126.f) : x;
    const F magic = splat(12582912.f);  // 1.5 · 2^23: adding it rounds to a whole number
    const F shifted = x + magic;
    const F whole = shifted - magic, f = x - whole;  // f in [-0.5, 0.5]
    F p = splat(1.5403530e-4f);  // Taylor's series of 2^f, to the sixth power
    p = p * f + 1.3333558e-3f;
    p = p * f + 9.6181291e-3f;
    p = p * f + 5.5504109e-2f;
    p = p * f + 2.4022651e-1f;
    p = p * f + 6.9314718e-1f;
    p = p * f + 1.f;
    I bits;
    __builtin_memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23;  // the whole number stands in the lowest bits
    F scale;
    __builtin_memcpy(&scale, &bits, sizeof scale);
    return p * scale;
  }
  static F sigmoid(F x) { return 1.f / (1.f + exp2(x * -LOG2_E)); }
  static F tanh(F x) { return 1.f - 2.f / (1.f + exp2(x * (2.f * LOG2_E))); }
};

// bf16 of floats, rounded to nearest even; NaN stays NaN as long as its upper bits say so.
inline uint16_t bf16_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float float_of(uint16_t x) {
  const uint32_t bits = static_cast<uint32_t>(x) << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

inline int min_of(int a, int b) { return a < b ? a : b; }

template <class P>
struct TrainingOn;

template <class P>
struct KernelsOn {
  using V = Vectors<P::LANES>;
  using F = typename V::F;
  using Element = typename P::Element;
  static constexpr int PANEL = P::PANEL, LANES = P::LANES;
  static_assert(BLOCK_ROWS % P::TILE_ROWS == 0 && UNITS % PANEL == 0 && PANEL % (2 * LANES) == 0);

  using Tile = float[P::TILE_ROWS * PANEL];

  static const Element* panel_of(const Packed& W, int panel) {
    return static_cast<const Element*>(W.data) + static_cast<size_t>(panel) * W.inner * PANEL;
  }
  static const float* bias_of(const Packed& W, int panel) { return W.bias ? W.bias + panel * PANEL : nullptr; }

  // The tile of one panel of W and the rows of A from `row` on.
  static void tile(const void* A, int stride, int row, const Packed& W, int panel, float* out) {
    const Element* rows = static_cast<const Element*>(A) + static_cast<size_t>(row) * stride;
    P::tile(rows, stride, panel_of(W, panel), W.inner, bias_of(W, panel), out);
  }

  // act(row, column, at, tile row) for all vectors of the tiles that begin at `row` and `panel`
  template <class Act>
  static void each_vector(int row, int rows, int panel, Act act) {
    const int last = min_of(row + P::TILE_ROWS, rows);
    for (int i = row; i < last; ++i)
      for (int v = 0; v < PANEL; v += LANES) act(i, panel * PANEL + v, (i - row) * PANEL + v);
  }

  static void pack(const float* W, int columns, int size, const Packed& to, int offset) {
    const int part = (size + P::PAD - 1) / P::PAD * P::PAD;
    for (int panel = 0; panel * PANEL < to.columns; ++panel) {
      Element* base = const_cast<Element*>(panel_of(to, panel));
      for (int j = 0; j < PANEL; ++j) {
        const int column = panel * PANEL + j;
        for (int k = 0; k < part; ++k) {
          const float w = column < columns && k < size ? W[static_cast<size_t>(column) * size + k] : 0.f;
          base[P::place(offset + k, j)] = P::of_matrix(w);
        }
      }
    }
  }

  static void write_part(const float* from, int size, void* operand) {
    const int part = (size + P::PAD - 1) / P::PAD * P::PAD;
    Element* to = static_cast<Element*>(operand);
    int k = 0;
    for (; k + LANES <= size; k += LANES) P::write(to, k, V::load(from + k));
    for (; k < part; k += LANES) {
      float rest[LANES] = {};
      for (int i = 0; k + i < size; ++i) rest[i] = from[k + i];
      P::write(to, k, V::load(rest));
    }
  }

  static const float* terms_of(const TermRows& terms, int row) { return terms.data + terms.stride * terms.sources[row]; }

  // z_t = σ(W_z e + U_z h + C_z c + b_z), r_t likewise, kept as z and [e | r ⊙ h]
  static void gates_before(const Step& step, const Gates& gates) {
    Tile z, r;
    const bool with_terms = step.terms.data;
    Element* second = static_cast<Element*>(step.next) + step.e_inner;
    for (int panel = 0; panel * PANEL < step.H; ++panel)
      for (int row = 0; row < step.rows; row += P::TILE_ROWS) {
        tile(step.operand, step.operand_stride, row, gates.z, panel, z);
        tile(step.operand, step.operand_stride, row, gates.r, panel, r);
        each_vector(row, step.rows, panel, [&](int i, int j, int at) {
          F z_i = V::load(z + at), r_i = V::load(r + at);
          if (with_terms) {
            z_i += V::load(terms_of(step.terms, i) + step.terms.gates_z + j);
            r_i += V::load(terms_of(step.terms, i) + step.terms.gates_r + j);
          }
          const F h = V::load(step.states + static_cast<size_t>(step.parents[i]) * step.state_stride + j);
          V::store(step.z + static_cast<size_t>(i) * step.state_stride + j, V::sigmoid(z_i));
          P::write(second + static_cast<size_t>(i) * step.operand_stride, j, V::sigmoid(r_i) * h);
        });
      }
  }

  static void keep(const Step& step, int i, int j, F z, F h_tilde) {
    const F h = V::load(step.states + static_cast<size_t>(step.parents[i]) * step.state_stride + j);
    V::store(step.new_states + static_cast<size_t>(i) * step.state_stride + j, h_tilde + z * (h - h_tilde));
  }

  // h_t as the operand of the read-out, after the last product with the operand that stood there
  static void write_states(const Step& step) {
    Element* next = static_cast<Element*>(step.next) + step.e_inner;
    for (int i = 0; i < step.rows; ++i)
      for (int j = 0; j < step.H; j += LANES) {
        const F h = V::load(step.new_states + static_cast<size_t>(i) * step.state_stride + j);
        P::write(next + static_cast<size_t>(i) * step.operand_stride, j, h);
      }
  }

  // h~_t = tanh(W e + U (r ⊙ h) + C c + b);  h_t = z ⊙ h + (1 - z) ⊙ h~_t
  static void step_reset_before(const Step& step, const Gates& gates) {
    gates_before(step, gates);
    Tile candidate;
    for (int panel = 0; panel * PANEL < step.H; ++panel)
      for (int row = 0; row < step.rows; row += P::TILE_ROWS) {
        tile(step.next, step.operand_stride, row, gates.candidate, panel, candidate);
        each_vector(row, step.rows, panel, [&](int i, int j, int at) {
          F x = V::load(candidate + at);
          if (step.terms.data) x += V::load(terms_of(step.terms, i) + step.terms.Cc + j);
          keep(step, i, j, V::load(step.z + static_cast<size_t>(i) * step.state_stride + j), V::tanh(x));
        });
      }
    write_states(step);
  }

  // h~'_t = tanh(W' e + r' ⊙ (U' h' + C c) + b');  h'_t = z' ⊙ h' + (1 - z') ⊙ h~'_t
  static void step_reset_after(const Step& step, const Gates& gates) {
    Tile z, r, We, Uh;
    const Element* h_part = static_cast<const Element*>(step.operand) + step.e_inner;
    for (int panel = 0; panel * PANEL < step.H; ++panel)
      for (int row = 0; row < step.rows; row += P::TILE_ROWS) {
        tile(step.operand, step.operand_stride, row, gates.z, panel, z);
        tile(step.operand, step.operand_stride, row, gates.r, panel, r);
        tile(step.operand, step.operand_stride, row, gates.W, panel, We);
        tile(h_part, step.operand_stride, row, gates.U, panel, Uh);
        each_vector(row, step.rows, panel, [&](int i, int j, int at) {
          const float* terms = terms_of(step.terms, i);
          const F z_i = V::sigmoid(V::load(z + at) + V::load(terms + step.terms.gates_z + j));
          const F r_i = V::sigmoid(V::load(r + at) + V::load(terms + step.terms.gates_r + j));
          const F Uh_Cc = V::load(Uh + at) + V::load(terms + step.terms.Cc + j);
          keep(step, i, j, z_i, V::tanh(V::load(We + at) + r_i * Uh_Cc));
        });
      }
    write_states(step);
  }

  static void affine(const void* A, int stride, int rows, const Packed& W, bool with_tanh, float* out, size_t out_stride) {
    Tile product;
    for (int panel = 0; panel * PANEL < W.columns; ++panel)
      for (int row = 0; row < rows; row += P::TILE_ROWS) {
        tile(A, stride, row, W, panel, product);
        each_vector(row, rows, panel, [&](int i, int j, int at) {
          const F x = V::load(product + at);
          V::store(out + i * out_stride + j, with_tanh ? V::tanh(x) : x);
        });
      }
  }

  static void maxout(const void* A, int stride, int rows, const Packed& O, const TermRows& terms, void* s,
                     int s_stride) {
    constexpr int HALF = PANEL / 2;
    Tile units;
    for (int panel = 0; panel * PANEL < O.columns; ++panel)
      for (int row = 0; row < rows; row += P::TILE_ROWS) {
        tile(A, stride, row, O, panel, units);
        for (int i = row; i < min_of(row + P::TILE_ROWS, rows); ++i) {
          const float* O_cc = terms_of(terms, i) + terms.O_cc + panel * PANEL;
          const float* s_i = units + (i - row) * PANEL;
          Element* to = static_cast<Element*>(s) + static_cast<size_t>(i) * s_stride;
          for (int v = 0; v < HALF; v += LANES) {
            const F odd = V::load(s_i + v) + V::load(O_cc + v);
            const F even = V::load(s_i + HALF + v) + V::load(O_cc + HALF + v);
            P::write(to, panel * HALF + v, (odd > even) | (odd != odd) ? odd : even);  // NaN stays
          }
        }
      }
  }

  // Of each lane: the largest logit so far, its place, and the sum of the others' 2^(logit - largest).
  struct Lanes {
    F largest, rest;
    typename V::I at;
  };

  static void take(Lanes& lanes, F x, typename V::I places) {
    const F difference = x - lanes.largest;
    const auto larger = x > lanes.largest;
    const F e = V::exp2(larger ? -difference : difference);  // 2^-|x - largest|
    lanes.rest = larger ? (lanes.rest + 1.f) * e : lanes.rest + e;
    lanes.largest = larger ? x : lanes.largest;
    lanes.at = larger ? places : lanes.at;
  }

  static void normalise(const void* A, int stride, int rows, const Packed& G_l, const Normaliser& to) {
    Lanes lanes[BLOCK_ROWS];
    typename V::I first;
    for (int v = 0; v < LANES; ++v) first[v] = v;
    for (int i = 0; i < rows; ++i) lanes[i] = {V::splat(-1e30f), F{} - 1.f, first};  // the first logit makes -1 + 1 = 0
    Tile logits;
    for (int panel = 0; panel * PANEL < G_l.columns; ++panel)
      for (int row = 0; row < rows; row += P::TILE_ROWS) {
        tile(A, stride, row, G_l, panel, logits);
        each_vector(row, rows, panel, [&](int i, int j, int at) { take(lanes[i], V::load(logits + at), first + j); });
      }
    for (int i = 0; i < rows; ++i) join(lanes[i], i, to);
  }

  static void join(const Lanes& lanes, int i, const Normaliser& to) {
    int best = 0;
    for (int v = 1; v < LANES; ++v)
      if (lanes.largest[v] > lanes.largest[best]) best = v;
    const F e = V::exp2(lanes.largest - lanes.largest[best]);
    float rest = 0.f;
    for (int v = 0; v < LANES; ++v) rest += lanes.rest[v] * e[v] + (v == best ? 0.f : e[v]);
    to.largest[i] = lanes.largest[best];
    to.at[i] = lanes.at[best];
    to.rest[i] = rest;
  }

  static float dot(const float* a, const float* b, int size) {
    F sums = F{};
    int k = 0;
    for (; k + LANES <= size; k += LANES) sums += V::load(a + k) * V::load(b + k);
    float sum = 0.f;
    for (int v = 0; v < LANES; ++v) sum += sums[v];
    for (; k < size; ++k) sum += a[k] * b[k];
    return sum;
  }

  static const Kernels* table() {
    static constexpr Kernels kernels = {PANEL,      static_cast<int>(sizeof(Element)),
                                        P::PAD,     pack,
                                        write_part, P::prepare,
                                        step_reset_before, step_reset_after,
                                        affine,     maxout,
                                        normalise,  dot,
                                        TrainingOn<P>::table};
    return &kernels;
  }
};

// Operands in float32, on vectors of any width.
template <int LANES_, int TILE_ROWS_, int PANEL_>
struct Fp32 {
  using Element = float;
  static constexpr int LANES = LANES_, TILE_ROWS = TILE_ROWS_, PANEL = PANEL_, PAD = 1;
  using V = Vectors<LANES>;
  using F = typename V::F;

  static constexpr size_t place(int k, int column) { return static_cast<size_t>(k) * PANEL + column; }
  static float of_matrix(float w) { return w; }
  static void write(float* operand, int k, F v) { V::store(operand + k, v); }
  static void write_one(float* operand, int k, float v) { operand[k] = v; }
  static void prepare() {}

  __attribute__((noinline)) static void tile(const float* A, int stride, const float* panel, int inner, const float* bias, float* out) {
    constexpr int VECTORS = PANEL / LANES;
    F sums[TILE_ROWS][VECTORS];
    for (int v = 0; v < VECTORS; ++v) {
      const F b = bias ? V::load(bias + v * LANES) : F{};
#pragma GCC unroll 16
      for (int i = 0; i < TILE_ROWS; ++i) sums[i][v] = b;
    }
    for (int k = 0; k < inner; ++k, panel += PANEL) {
      F w[VECTORS];
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; ++v) w[v] = V::load(panel + v * LANES);
#pragma GCC unroll 16
      for (int i = 0; i < TILE_ROWS; ++i) {
        const F a = V::splat(A[static_cast<size_t>(i) * stride + k]);
#pragma GCC unroll 4
        for (int v = 0; v < VECTORS; ++v) sums[i][v] += a * w[v];
      }
    }
#pragma GCC unroll 16
    for (int i = 0; i < TILE_ROWS; ++i)
#pragma GCC unroll 4
      for (int v = 0; v < VECTORS; ++v) V::store(out + i * PANEL + v * LANES, sums[i][v]);
  }
};

}  // namespace

#include "training_on.h"
