// log softmax at one word of each row, and its gradient: logits are computed panel by panel, and again for the gradient,
// but never kept.
#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "core.h"
#include "training.h"

namespace moses_rnn {

namespace {

constexpr float LOG2_E = 1.4426950408889634f, LN_2 = 0.6931471805599453f;
constexpr float NEVER = -1e30f;  // the logit of a column that is no word
constexpr int WORDS = 512;       // whose gradients of logits are kept at a time

// What Python hands over.
struct Softmax {
  int64_t nodes, R, K;
  const float *projected, *G_l, *b_G;  // nodes × R, K × R, K
  const int64_t* words;                // nodes
};

// G_l packed, and the rows that it is multiplied with: in base 2, so that 2^x is what is computed.
class Logits {
 public:
  Logits(const Kernels& kernels, const Softmax& of)
      : kernels_(kernels), training_(kernels.training()), of_(of), R_(static_cast<int>(of.R)), K_(static_cast<int>(of.K)),
        bias_(up_to_multiple(of.K, kernels.panel), NEVER),
        stride_(up_to_multiple(R_, std::max<int>(kernels.pad, CACHE_LINE / kernels.element))) {
    for (int k = 0; k < K_; ++k) bias_[k] = of.b_G[k] * LOG2_E;
    Room& room = Room::of_thread();
    const Panels panels = {kernels, static_cast<char*>(room.bytes(Room::PACKED_1, Panels::size(kernels, R_, K_))), R_, K_};
    panels.fill({of.G_l, static_cast<size_t>(R_), true}, 0, K_);
    G_l_ = {panels.data, bias_.data(), up_to_multiple(R_, kernels.pad), static_cast<int>(bias_.size())};
    std::vector<float> scaled(of.projected, of.projected + of.nodes * of.R);
    for (float& x : scaled) x *= LOG2_E;
    const size_t rows = up_to_multiple(of.nodes, BLOCK_ROWS);
    rows_ = static_cast<char*>(room.bytes(Room::PACKED_2, rows * stride_ * kernels.element));
    training_.write_rows(scaled.data(), R_, static_cast<int>(of.nodes), R_, rows_, stride_);
  }

  // log p of the words, and the logarithm of the sum over all words in base 2.
  void forward(float* log_probs, float* log_total) const {
    std::vector<float> largest(BLOCK_ROWS), rest(BLOCK_ROWS);
    std::vector<int32_t> at(BLOCK_ROWS);
    for (int64_t first = 0; first < of_.nodes; first += BLOCK_ROWS) {
      const int rows = static_cast<int>(std::min<int64_t>(BLOCK_ROWS, of_.nodes - first));
      kernels_.normalise(row(first), stride_, rows, G_l_, {largest.data(), at.data(), rest.data()});
      for (int i = 0; i < rows; ++i) log_total[first + i] = largest[i] + std::log2(1.f + rest[i]);
    }
    for (int64_t i = 0; i < of_.nodes; ++i) {
      const int64_t word = of_.words[i];
      const float logit = kernels_.dot(of_.projected + i * R_, of_.G_l + word * R_, R_) + of_.b_G[word];
      log_probs[i] = logit - log_total[i] * LN_2;
    }
  }

  // From the gradient of each log p to those of `projected` (zeros at first), G_l and b_G.
  void backward(const float* log_total, const float* grad, float* grad_projected, float* grad_G_l, float* grad_b) const {
    float* grad_logits = Room::of_thread().floats(Room::GRADIENT, static_cast<size_t>(of_.nodes) * WORDS);
    const int nodes = static_cast<int>(of_.nodes);
    for (int first = 0; first < K_; first += WORDS) {
      const int words = std::min(WORDS, K_ - first);
      for (int column = 0; column < words; column += kernels_.panel)
        training_.grad_logits(rows_, stride_, nodes, G_l_, (first + column) / kernels_.panel, log_total, grad,
                              grad_logits + column, WORDS);
      for (int i = 0; i < nodes; ++i)
        if (of_.words[i] >= first && of_.words[i] < first + words)
          grad_logits[static_cast<size_t>(i) * WORDS + of_.words[i] - first] += grad[i];
      const size_t from = static_cast<size_t>(first) * R_, stride = R_;
      multiply(kernels_, {nodes, words, R_}, {grad_logits, WORDS, false}, {of_.G_l + from, stride, false},
               {grad_projected, stride, false, true});
      multiply(kernels_, {words, nodes, R_}, {grad_logits, WORDS, true}, {of_.projected, stride, false},
               {grad_G_l + from, stride, false, false});
      training_.sum_rows(grad_logits, WORDS, nodes, words, grad_b + first);
    }
  }

 private:
  const void* row(int64_t i) const { return rows_ + static_cast<size_t>(i) * stride_ * kernels_.element; }

  const Kernels& kernels_;
  const TrainingKernels& training_;
  const Softmax of_;
  const int R_, K_;
  std::vector<float> bias_;
  const int stride_;
  char* rows_;
  Packed G_l_;
};

}  // namespace

}  // namespace moses_rnn

// log p of a word of each of `nodes` rows; keeps what the gradient needs in log_total. 0, or 1 if memory ran out.
MOSES_RNN_API int moses_rnn_train_log_probs(int64_t instructions, int64_t precision, int64_t nodes, int64_t R, int64_t K,
                                            const float* projected, const float* G_l, const float* b_G,
                                            const int64_t* words, float* log_probs, float* log_total) {
  try {
    const moses_rnn::Softmax of = {nodes, R, K, projected, G_l, b_G, words};
    moses_rnn::Logits(*moses_rnn::kernels_to_train(instructions, precision), of).forward(log_probs, log_total);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

MOSES_RNN_API int moses_rnn_train_log_probs_back(int64_t instructions, int64_t precision, int64_t nodes, int64_t R,
                                                 int64_t K, const float* projected, const float* G_l, const float* b_G,
                                                 const int64_t* words, const float* log_total, const float* grad,
                                                 float* grad_projected, float* grad_G_l, float* grad_b) {
  try {
    const moses_rnn::Softmax of = {nodes, R, K, projected, G_l, b_G, words};
    moses_rnn::Logits(*moses_rnn::kernels_to_train(instructions, precision), of)
        .backward(log_total, grad, grad_projected, grad_G_l, grad_b);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}
