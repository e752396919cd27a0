// The gated recurrence over packed phrases and its gradient, as moses_rnn/networks/recurrence.py has them.
#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "core.h"
#include "training.h"

namespace moses_rnn {

namespace {

// What Python hands over; nodes × … unless said otherwise, row by row.
struct Sequence {
  int64_t H, phrases, steps, reset_after;
  const int64_t* active;  // phrases that have a step; steps, descending
  const float *x, *c, *h_0;  // 3H; phrases × 3H; phrases × H
  const float *U_z, *U_r, *U;  // H × H
  float *states, *gates, *h_tilde, *inside;  // H, 2H, H, H
};

struct SequenceGradients {
  const float* grad_states;  // nodes × H
  float *grad_x, *grad_c, *grad_h_0;  // nodes × 3H; phrases × 3H and phrases × H, zeros at first
  float *grad_U_z, *grad_U_r, *grad_U;  // H × H
};

class Recurrence {
 public:
  Recurrence(const Kernels& kernels, const Sequence& of)
      : kernels_(kernels), training_(kernels.training()), of_(of), H_(static_cast<int>(of.H)), begins_(of.steps + 1, 0) {
    for (int64_t t = 0; t < of.steps; ++t) begins_[t + 1] = begins_[t] + of.active[t];
  }

  // All states, and what their gradient needs.
  void forward() {
    const std::vector<Panels> all = pack(true);
    float* product = Room::of_thread().floats(Room::PRODUCT, size(of_.phrases) * 3);
    const int at_once = of_.reset_after ? 3 : 2;
    for (int64_t t = 0; t < of_.steps; ++t) {
      const CellRows cell = rows(t);
      for (int i = 0; i < at_once; ++i)
        multiply_packed(all[i], cell.rows, cell.above, H_, to_rows(product + i * H_, at_once));
      if (of_.reset_after) {
        training_.step_after(cell, product);
        continue;
      }
      training_.gates_before(cell, product);
      multiply_packed(all[2], cell.rows, cell.inside, H_, to_rows(product, 1));
      training_.state_before(cell, product);
    }
  }

  // Back through the steps, the last one first; then each matrix's gradient in one product over all steps.
  void backward(const SequenceGradients& to) {
    const std::vector<Panels> all = pack(false);
    Room& room = Room::of_thread();
    float* product = room.floats(Room::PRODUCT, size(of_.phrases));
    float* grad_Uh = of_.reset_after ? room.floats(Room::GRADIENT, size(nodes()) * 3) : to.grad_x;
    const int at_once = of_.reset_after ? 3 : 2;
    for (int64_t t = of_.steps - 1; t >= 0; --t) {
      const CellRows cell = rows(t);
      const CellGradients gradients = {to.grad_states + size(begins_[t]), to.grad_h_0, to.grad_x + 3 * size(begins_[t]),
                                       grad_Uh + 3 * size(begins_[t]), to.grad_c};
      if (of_.reset_after) {
        training_.back_after(cell, gradients);
      } else {
        training_.back_tilde(cell, gradients);
        multiply_packed(all[2], cell.rows, gradients.grad_x + 2 * H_, 3 * H_, to_rows(product, 1));
        training_.back_before(cell, gradients, product);
      }
      for (int i = 0; i < at_once; ++i)
        multiply_packed(all[i], cell.rows, gradients.grad_Uh + i * H_, 3 * H_, {to.grad_h_0, size(1), false, true});
    }
    grad_matrices(to, grad_Uh);
  }

 private:
  size_t size(int64_t rows) const { return static_cast<size_t>(rows) * H_; }
  Place to_rows(float* data, int matrices) const { return {data, size(matrices), false, false}; }
  int64_t nodes() const { return begins_[of_.steps]; }

  CellRows rows(int64_t t) const {
    const size_t from = size(begins_[t]);
    return {static_cast<int>(of_.active[t]), H_, of_.reset_after != 0, of_.x + 3 * from, of_.c,
            t ? of_.states + size(begins_[t - 1]) : of_.h_0, of_.states + from, of_.gates + 2 * from,
            of_.h_tilde + from, of_.inside + from};
  }

  // U_z, U_r and U: for h U^T going forward, for gradients times U going back.
  std::vector<Panels> pack(bool forward) const {
    const size_t one = Panels::size(kernels_, H_, H_);
    char* place = static_cast<char*>(Room::of_thread().bytes(Room::PACKED_1, 3 * one));
    std::vector<Panels> all;
    for (const float* U : {of_.U_z, of_.U_r, of_.U}) {
      all.push_back({kernels_, place + all.size() * one, H_, H_});
      all.back().fill({U, static_cast<size_t>(H_), forward}, 0, H_);
    }
    return all;
  }

  void grad_matrices(const SequenceGradients& to, const float* grad_Uh) const {
    float* above = Room::of_thread().floats(Room::ABOVE, size(nodes()));
    for (int64_t t = 0; t < of_.steps; ++t)
      std::memcpy(above + size(begins_[t]), rows(t).above, size(of_.active[t]) * sizeof(float));
    float* matrices[] = {to.grad_U_z, to.grad_U_r, to.grad_U};
    const Product sizes = {H_, static_cast<int>(nodes()), H_};
    for (int i = 0; i < 3; ++i)
      multiply(kernels_, sizes, {grad_Uh + i * H_, 3 * static_cast<size_t>(H_), true},
               {i == 2 && !of_.reset_after ? of_.inside : above, static_cast<size_t>(H_), false}, to_rows(matrices[i], 1));
  }

  const Kernels& kernels_;
  const TrainingKernels& training_;
  const Sequence of_;
  const int H_;
  std::vector<int64_t> begins_;  // of each step's nodes, and the end of the last
};

Sequence sequence_of(const int64_t* sizes, const int64_t* active, float* const* tensors) {
  Sequence of = {sizes[0], sizes[1], sizes[2], sizes[3], active, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                 nullptr, nullptr, nullptr, nullptr};
  const float** const operands[] = {&of.x, &of.c, &of.h_0, &of.U_z, &of.U_r, &of.U};
  float** const results[] = {&of.states, &of.gates, &of.h_tilde, &of.inside};
  for (float const** operand : operands) *operand = *tensors++;
  for (float** result : results) *result = *tensors++;
  return of;
}

}  // namespace

}  // namespace moses_rnn

// Sizes are H, phrases, steps, and whether the reset gate acts after the product; tensors those of Sequence, in order.
// 0, or 1 if memory ran out.
MOSES_RNN_API int moses_rnn_train_states(int64_t instructions, int64_t precision, const int64_t* sizes,
                                         const int64_t* active, float* const* tensors) {
  try {
    const moses_rnn::Kernels& kernels = *moses_rnn::kernels_to_train(instructions, precision);
    moses_rnn::Recurrence(kernels, moses_rnn::sequence_of(sizes, active, tensors)).forward();
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

// The same with the gradient of all states, and room for the gradients of x, c, h_0 (the latter two zeros), U_z, U_r, U.
MOSES_RNN_API int moses_rnn_train_states_back(int64_t instructions, int64_t precision, const int64_t* sizes,
                                              const int64_t* active, float* const* tensors, float* const* gradients) {
  try {
    const moses_rnn::Kernels& kernels = *moses_rnn::kernels_to_train(instructions, precision);
    const moses_rnn::SequenceGradients to = {gradients[0], gradients[1], gradients[2], gradients[3],
                                             gradients[4], gradients[5], gradients[6]};
    moses_rnn::Recurrence(kernels, moses_rnn::sequence_of(sizes, active, tensors)).backward(to);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}
