// What training does between its matrices, written once over an operand's policy; included by kernels_on.h.
#pragma once

#include <cmath>

#include "training.h"
#include "transposing.h"

namespace {

template <class P>
struct TrainingOn {
  using V = Vectors<P::LANES>;
  using F = typename V::F;
  using Element = typename P::Element;
  static constexpr int PANEL = P::PANEL, LANES = P::LANES, TILE_ROWS = P::TILE_ROWS;
  static constexpr int UNIT = 4 / sizeof(Element);  // elements of a column that stand beside each other

  static F load(const float* from, int count) {
    if (count >= LANES) return V::load(from);
    float part[LANES] = {};
    for (int v = 0; v < count; ++v) part[v] = from[v];
    return V::load(part);
  }

  static void store(float* to, F x, int count) {
    if (count >= LANES) return V::store(to, x);
    for (int v = 0; v < count; ++v) to[v] = x[v];
  }

  static void write(const float* from, int count, Element* to) {
    for (int v = 0; v < count; v += LANES) P::write(to, v, load(from + v, count - v));
  }

  static void write_rows(const float* from, size_t from_stride, int rows, int size, void* operand, int stride) {
    Element* to = static_cast<Element*>(operand);
    for (int i = 0; i < rows; ++i, to += stride, from += from_stride) {
      const int whole = size / LANES * LANES;
      write(from, whole, to);
      for (int k = whole; k < stride; ++k) P::write_one(to, k, k < size ? from[k] : 0.f);
    }
  }

  using I = typename V::I;
  using Square = typename Transposing<LANES>::Square;

  // Elements of one column that stand beside each other, of LANES columns: from as many rows of floats.
  static I across(const float* from, size_t stride, int rows, int columns) {
    if (rows <= 0 || columns <= 0) return I{};
    uint32_t units[LANES];
    if constexpr (UNIT == 1) {
      write(from, min_of(columns, LANES), reinterpret_cast<Element*>(units));
    } else {
      Element two[2][LANES] = {};
      for (int l = 0; l < min_of(rows, 2); ++l) write(from + l * stride, min_of(columns, LANES), two[l]);
      for (int v = 0; v < LANES; ++v) units[v] = static_cast<uint32_t>(two[0][v]) | static_cast<uint32_t>(two[1][v]) << 16;
    }
    I result;
    __builtin_memcpy(&result, units, sizeof result);
    return result;
  }

  static void write_columns(const float* from, size_t from_stride, int rows, int size, void* operand, int stride) {
    Element* to = static_cast<Element*>(operand);
    for (int k = 0; k < stride; k += LANES * UNIT)
      for (int row = 0; row < rows; row += LANES) {
        Square block;
        for (int u = 0; u < LANES; ++u) {
          const int l = k + u * UNIT;
          block[u] = across(from + l * from_stride + row, from_stride, size - l, rows - row);
        }
        Transposing<LANES>::transpose(block);
        const size_t bytes = sizeof(Element) * min_of(LANES * UNIT, stride - k);
        for (int i = 0; i < min_of(LANES, rows - row); ++i)
          __builtin_memcpy(to + static_cast<size_t>(row + i) * stride + k, &block[i], bytes);
      }
  }

  static void pack_rows(const float* B, size_t stride, int inner, int columns, void* panel) {
    I* to = static_cast<I*>(panel);
    const int padded = (inner + P::PAD - 1) / P::PAD * P::PAD;
    for (int k = 0; k < padded; k += UNIT)
      for (int j = 0; j < PANEL; j += LANES) *to++ = across(B + k * stride + j, stride, inner - k, columns - j);
  }

  static void pack_columns(const float* B, size_t stride, int inner, int columns, void* panel) {
    uint32_t* to = static_cast<uint32_t*>(panel);
    const int padded = (inner + P::PAD - 1) / P::PAD * P::PAD;
    for (int k = 0; k < padded; k += LANES * UNIT)
      for (int j = 0; j < PANEL; j += LANES) {
        Square block = {};
        for (int i = 0; i < min_of(LANES, columns - j); ++i)
          write(B + (j + i) * stride + k, min_of(LANES * UNIT, inner - k), reinterpret_cast<Element*>(&block[i]));
        Transposing<LANES>::transpose(block);
        for (int u = 0; u < min_of(LANES, (padded - k) / UNIT); ++u)
          __builtin_memcpy(to + static_cast<size_t>(k / UNIT + u) * PANEL + j, &block[u], sizeof(I));
      }
  }

  static void multiply(const void* A, int stride, int rows, const void* panel, int inner, const Place& out, int columns) {
    float tile[TILE_ROWS * PANEL];
    P::prepare();
    for (int row = 0; row < rows; row += TILE_ROWS) {
      const Element* from = static_cast<const Element*>(A) + static_cast<size_t>(row) * stride;
      P::tile(from, stride, static_cast<const Element*>(panel), inner, nullptr, tile);
      const int tall = min_of(TILE_ROWS, rows - row);
      if (out.turned) put_turned(tile, tall, columns, {out.data + row, out.stride, true, out.add});
      else put(tile, tall, columns, {out.data + row * out.stride, out.stride, false, out.add});
    }
  }

  static void put(const float* tile, int rows, int columns, const Place& out) {
    for (int i = 0; i < rows; ++i)
      for (int v = 0; v < columns; v += LANES) {
        float* to = out.data + i * out.stride + v;
        const F x = V::load(tile + i * PANEL + v);
        store(to, out.add ? x + load(to, columns - v) : x, columns - v);
      }
  }

  static void put_turned(const float* tile, int rows, int columns, const Place& out) {
    for (int j = 0; j < columns; ++j)
      for (int i = 0; i < rows; ++i) {
        float* to = out.data + j * out.stride + i;
        *to = tile[i * PANEL + j] + (out.add ? *to : 0.f);
      }
  }

  // act(row, unit, units of this vector) for all of them
  template <class Act>
  static void each(int rows, int size, Act act) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < size; j += LANES) act(static_cast<size_t>(i), j, size - j);
  }

  // To a relative error of some 1e-7 near 0 too, where the states of a network are that has hardly learned.
  static F tanh(F x) {
    const F y = x * x;
    F p = V::splat(62.f / 2835.f);  // Taylor's series to the ninth power
    p = p * y - 17.f / 315.f;
    p = p * y + 2.f / 15.f;
    p = p * y - 1.f / 3.f;
    p = x + x * y * p;
    return y < 0.0625f ? p : V::tanh(x);
  }

  static F lerp(F h_tilde, F h, F z) { return h_tilde + z * (h - h_tilde); }

  // z = σ(x_z + U_z h + c_z), r likewise; h~ = tanh(x + r (U h + c)); h_t = z h_{t-1} + (1 - z) h~
  static void step_after(const CellRows& cell, const float* Uh) {
    const int H = cell.H;
    each(cell.rows, H, [&](size_t i, int j, int n) {
      const size_t at = i * 3 * H + j, one = i * H + j, two = i * 2 * H + j;
      const F z = V::sigmoid(load(cell.x + at, n) + (load(Uh + at, n) + load(cell.c + at, n)));
      const F r = V::sigmoid(load(cell.x + at + H, n) + (load(Uh + at + H, n) + load(cell.c + at + H, n)));
      const F q = load(Uh + at + 2 * H, n) + load(cell.c + at + 2 * H, n);
      const F h_tilde = tanh(load(cell.x + at + 2 * H, n) + r * q);
      store(cell.gates + two, z, n), store(cell.gates + two + H, r, n);
      store(cell.inside + one, q, n), store(cell.h_tilde + one, h_tilde, n);
      store(cell.h + one, lerp(h_tilde, load(cell.above + one, n), z), n);
    });
  }

  static void gates_before(const CellRows& cell, const float* Uh) {
    const int H = cell.H;
    each(cell.rows, H, [&](size_t i, int j, int n) {
      const size_t at = i * 3 * H + j, one = i * H + j, two = i * 2 * H + j;
      const F z = V::sigmoid(load(cell.x + at, n) + load(Uh + two, n) + load(cell.c + at, n));
      const F r = V::sigmoid(load(cell.x + at + H, n) + load(Uh + two + H, n) + load(cell.c + at + H, n));
      store(cell.gates + two, z, n), store(cell.gates + two + H, r, n);
      store(cell.inside + one, r * load(cell.above + one, n), n);
    });
  }

  static void state_before(const CellRows& cell, const float* Urh) {
    const int H = cell.H;
    each(cell.rows, H, [&](size_t i, int j, int n) {
      const size_t at = i * 3 * H + 2 * H + j, one = i * H + j;
      const F h_tilde = tanh(load(cell.x + at, n) + load(Urh + one, n) + load(cell.c + at, n));
      store(cell.h_tilde + one, h_tilde, n);
      store(cell.h + one, lerp(h_tilde, load(cell.above + one, n), load(cell.gates + i * 2 * H + j, n)), n);
    });
  }

  static void add_to(float* to, F x, int n) { store(to, load(to, n) + x, n); }

  // As Recurrence.back in moses_rnn/networks/recurrence.py.
  static void back_after(const CellRows& cell, const CellGradients& to) {
    const int H = cell.H;
    each(cell.rows, H, [&](size_t i, int j, int n) {
      const size_t at = i * 3 * H + j, one = i * H + j, two = i * 2 * H + j;
      const F grad = load(to.grad_h + one, n) + load(to.grad_states + one, n);
      const F z = load(cell.gates + two, n), r = load(cell.gates + two + H, n);
      const F h_tilde = load(cell.h_tilde + one, n), h = load(cell.above + one, n);
      const F grad_tilde = grad * (1.f - z) * (1.f - h_tilde * h_tilde);
      const F grad_z = grad * (h - h_tilde) * z * (1.f - z);
      const F grad_r = grad_tilde * load(cell.inside + one, n) * r * (1.f - r);
      const F grad_q = grad_tilde * r;
      store(to.grad_x + at, grad_z, n), store(to.grad_x + at + H, grad_r, n), store(to.grad_x + at + 2 * H, grad_tilde, n);
      store(to.grad_Uh + at, grad_z, n), store(to.grad_Uh + at + H, grad_r, n), store(to.grad_Uh + at + 2 * H, grad_q, n);
      add_to(to.grad_c + at, grad_z, n), add_to(to.grad_c + at + H, grad_r, n), add_to(to.grad_c + at + 2 * H, grad_q, n);
      store(to.grad_h + one, grad * z, n);
    });
  }

  static void back_tilde(const CellRows& cell, const CellGradients& to) {
    const int H = cell.H;
    each(cell.rows, H, [&](size_t i, int j, int n) {
      const size_t at = i * 3 * H + 2 * H + j, one = i * H + j;
      const F grad = load(to.grad_h + one, n) + load(to.grad_states + one, n);
      const F h_tilde = load(cell.h_tilde + one, n);
      const F grad_tilde = grad * (1.f - load(cell.gates + i * 2 * H + j, n)) * (1.f - h_tilde * h_tilde);
      store(to.grad_h + one, grad, n), store(to.grad_x + at, grad_tilde, n);
      add_to(to.grad_c + at, grad_tilde, n);
    });
  }

  static void back_before(const CellRows& cell, const CellGradients& to, const float* grad_rh) {
    const int H = cell.H;
    each(cell.rows, H, [&](size_t i, int j, int n) {
      const size_t at = i * 3 * H + j, one = i * H + j, two = i * 2 * H + j;
      const F grad = load(to.grad_h + one, n), through = load(grad_rh + one, n);
      const F z = load(cell.gates + two, n), r = load(cell.gates + two + H, n), h = load(cell.above + one, n);
      const F grad_z = grad * (h - load(cell.h_tilde + one, n)) * z * (1.f - z);
      const F grad_r = through * h * r * (1.f - r);
      store(to.grad_x + at, grad_z, n), store(to.grad_x + at + H, grad_r, n);
      add_to(to.grad_c + at, grad_z, n), add_to(to.grad_c + at + H, grad_r, n);
      store(to.grad_h + one, grad * z + through * r, n);
    });
  }

  static void grad_logits(const void* A, int stride, int rows, const Packed& G_l, int panel, const float* log_total,
                          const float* grad, float* out, size_t out_stride) {
    float logits[TILE_ROWS * PANEL];
    P::prepare();
    for (int row = 0; row < rows; row += TILE_ROWS) {
      KernelsOn<P>::tile(A, stride, row, G_l, panel, logits);
      for (int i = row; i < min_of(row + TILE_ROWS, rows); ++i)
        for (int v = 0; v < PANEL; v += LANES)
          V::store(out + i * out_stride + v, V::exp2(V::load(logits + (i - row) * PANEL + v) - log_total[i]) * -grad[i]);
    }
  }

  static void sum_rows(const float* from, size_t stride, int rows, int columns, float* sums) {
    for (int j = 0; j < columns; ++j) sums[j] = 0.f;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) sums[j] += from[i * stride + j];
  }

  // Kingma and Ba (2015), algorithm 1, with decoupled weight decay.
  static void adam(const Adam& options, float* __restrict w, const float* __restrict g, float* __restrict average,
                   float* __restrict square, int64_t size) {
    const Adam o = options;
    for (int64_t i = 0; i < size; ++i) {
      const float x = g[i] * o.scale;
      average[i] += (x - average[i]) * (1.f - o.beta_1);
      square[i] = square[i] * o.beta_2 + x * x * (1.f - o.beta_2);
      w[i] = w[i] * o.decay - o.rate * average[i] / (std::sqrt(square[i]) * o.correction_2 + o.epsilon);
    }
  }

  // Zeiler (2012), algorithm 1, ε inside both roots.
  static void adadelta(const Adadelta& options, float* __restrict w, const float* __restrict g,
                       float* __restrict square, float* __restrict steps, int64_t size) {
    const Adadelta o = options;
    for (int64_t i = 0; i < size; ++i) {
      const float x = g[i] * o.scale;
      square[i] = square[i] * o.rho + x * x * (1.f - o.rho);
      const float step = std::sqrt(steps[i] + o.epsilon) / std::sqrt(square[i] + o.epsilon) * x;
      steps[i] = steps[i] * o.rho + step * step * (1.f - o.rho);
      w[i] -= o.rate * step;
    }
  }

  // In double precision from part to part: a sum of millions of float32 would lose digits.
  static double sum_squares(const float* from, int64_t size) {
    constexpr int64_t PART = 4096;
    double total = 0.0;
    for (int64_t first = 0; first < size; first += PART) {
      const int64_t last = first + PART < size ? first + PART : size;
      F sums = F{}, others = F{};
      int64_t i = first;
      for (; i + 2 * LANES <= last; i += 2 * LANES) {
        const F x = V::load(from + i), y = V::load(from + i + LANES);
        sums += x * x, others += y * y;
      }
      sums += others;
      float sum = 0.f;
      for (int v = 0; v < LANES; ++v) sum += sums[v];
      for (; i < last; ++i) sum += from[i] * from[i];
      total += sum;
    }
    return total;
  }

  static const TrainingKernels& table() {
    static constexpr TrainingKernels kernels = {
        TILE_ROWS,    write_rows,  write_columns, pack_rows,   pack_columns, multiply, step_after, gates_before,
        state_before, back_after,  back_tilde,    back_before, grad_logits,  sum_rows, adam,       adadelta,
        sum_squares};
    return kernels;
  }
};

}  // namespace
