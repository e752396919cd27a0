// The optimisers' steps, each in one pass over a tensor without temporaries.
#include "core.h"
#include "training.h"

namespace {

const moses_rnn::TrainingKernels& kernels(int64_t instructions) {
  return moses_rnn::kernels_to_train(instructions, moses_rnn::FP32)->training();
}

}  // namespace

// Options are those of moses_rnn::Adam, in order.
MOSES_RNN_API void moses_rnn_train_adam(int64_t instructions, const float* options, float* weights, const float* gradient,
                                        float* average, float* square, int64_t size) {
  const moses_rnn::Adam adam = {options[0], options[1], options[2], options[3], options[4], options[5], options[6]};
  kernels(instructions).adam(adam, weights, gradient, average, square, size);
}

// Options are those of moses_rnn::Adadelta, in order.
MOSES_RNN_API void moses_rnn_train_adadelta(int64_t instructions, const float* options, float* weights,
                                            const float* gradient, float* square, float* steps, int64_t size) {
  const moses_rnn::Adadelta adadelta = {options[0], options[1], options[2], options[3]};
  kernels(instructions).adadelta(adadelta, weights, gradient, square, steps, size);
}

MOSES_RNN_API double moses_rnn_train_sum_squares(int64_t instructions, const float* from, int64_t size) {
  return kernels(instructions).sum_squares(from, size);
}
