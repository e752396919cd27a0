// Training on CPUs: products of all three kinds that a layer needs, with its gradient; the gated recurrence and the
// normalisation over all words, each with its gradient; the optimisers. Called by moses_rnn/networks/native_learning.py,
// which says what each function computes. Everything is done in the calling thread: threads that share a minibatch meet
// outside, and the same call gives the same numbers every time.
//
// Letters are the paper's: H hidden units, R output rank, K words. A node is a word of a phrase; packed rows come step
// by step, as in moses_rnn/networks/recurrence.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels.h"

namespace moses_rnn {

// The rows of one step of the recurrence, and what each row is given and leaves behind.
struct CellRows {
  int rows, H;
  bool reset_after;     // r acts on U h + c, else on h before the product
  const float* x;       // what words add inside z, r and h~; rows × 3H
  const float* c;       // what sources add, likewise; rows × 3H
  const float* above;   // h_{t-1}; rows × H
  float* h;             // h_t; rows × H
  float* gates;         // z and r; rows × 2H
  float* h_tilde;       // rows × H
  float* inside;        // U h + c where r acts after the product, else r h; rows × H
};

// The gradients that belong to them.
struct CellGradients {
  const float* grad_states;  // from outside, of h_t; rows × H
  float* grad_h;             // of h_t, and then of h_{t-1} where it does not go through a product; rows × H
  float* grad_x;             // of the sums inside z, r and h~; rows × 3H
  float* grad_Uh;            // of what products gave; rows × 3H, and `grad_x` itself while r acts before the product
  float* grad_c;             // to be added to; rows × 3H
};

struct Adam {
  float rate, decay;         // of the step, and what of a weight is left by weight decay
  float beta_1, beta_2, correction_2, epsilon, scale;  // correction_2: 1 / sqrt(1 - beta_2^step)
};

struct Adadelta {
  float rate, rho, epsilon, scale;
};

// Where a product goes.
struct Place {
  float* data;
  size_t stride;
  bool turned;  // its rows become columns there
  bool add;     // to what is there
};

// Of one instruction set and precision; operands and panels are those of kernels.h.
struct TrainingKernels {
  int tile_rows;
  // Rows of `size` floats as operands, filled up with zeros.
  void (*write_rows)(const float* from, size_t from_stride, int rows, int size, void* to, int stride);
  // Columns of `size` floats as operands: row i of `to` is column i of `from`.
  void (*write_columns)(const float* from, size_t from_stride, int rows, int size, void* to, int stride);
  // A panel of `columns` columns of B, which is inner × columns: by its rows, or given as the rows of its transpose.
  void (*pack_rows)(const float* B, size_t stride, int inner, int columns, void* to);
  void (*pack_columns)(const float* B, size_t stride, int inner, int columns, void* to);
  // out = A B for one panel; A has whole tiles of rows
  void (*multiply)(const void* A, int stride, int rows, const void* panel, int inner, const Place& out, int columns);
  void (*step_after)(const CellRows& cell, const float* Uh);   // Uh: rows × 3H
  void (*gates_before)(const CellRows& cell, const float* Uh);  // rows × 2H
  void (*state_before)(const CellRows& cell, const float* Urh);  // rows × H
  void (*back_after)(const CellRows& cell, const CellGradients& gradients);
  void (*back_tilde)(const CellRows& cell, const CellGradients& gradients);
  void (*back_before)(const CellRows& cell, const CellGradients& gradients, const float* grad_rh);  // rows × H
  // For one panel of G_l: -2^(logit - log_total) grad of each row; out is rows × out_stride
  void (*grad_logits)(const void* A, int stride, int rows, const Packed& G_l, int panel, const float* log_total,
                      const float* grad, float* out, size_t out_stride);
  void (*sum_rows)(const float* from, size_t stride, int rows, int columns, float* sums);
  void (*adam)(const Adam& options, float* w, const float* g, float* average, float* square, int64_t size);
  void (*adadelta)(const Adadelta& options, float* w, const float* g, float* square, float* steps, int64_t size);
  double (*sum_squares)(const float* from, int64_t size);
};

// Memory that a thread keeps for its next call: fresh pages would cost more than what is written to them.
class Room {
 public:
  enum Use { OPERAND, PANELS, PRODUCT, PACKED_1, PACKED_2, ABOVE, GRADIENT, USES };
  // At least so many bytes, aligned to a line of the cache; whatever was there is lost.
  void* bytes(Use use, size_t count);
  float* floats(Use use, size_t count) { return static_cast<float*>(bytes(use, count * sizeof(float))); }
  static Room& of_thread();

 private:
  std::vector<char> places_[USES];
};

struct Matrix {
  const float* data;
  size_t stride;
  bool transposed;  // it stands there with rows for columns
};

// A packed matrix of inner × columns: panel after panel.
struct Panels {
  const Kernels& kernels;
  char* data;
  int inner, columns;  // as they are used

  static size_t size(const Kernels& kernels, int inner, int columns);
  // Some columns at a time: `first` a multiple of the panel, as all but the last part's number is.
  void fill(const Matrix& B, int first, int count) const;
  const void* at(int column) const;
};

// out (rows × columns) = A (rows × inner) B (inner × columns)
struct Product {
  int rows, inner, columns;
};

void multiply(const Kernels& kernels, const Product& sizes, const Matrix& A, const Matrix& B, const Place& out);
// The same with few rows of A and a packed B.
void multiply_packed(const Panels& B, int rows, const float* A, size_t stride, const Place& out);

inline int up_to_multiple(int64_t size, int64_t multiple) {
  return static_cast<int>((size + multiple - 1) / multiple * multiple);
}

// The kernels to train with, or null: the precision is not there for these instructions.
const Kernels* kernels_to_train(int64_t instructions, int64_t precision);

}  // namespace moses_rnn
