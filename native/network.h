// The RNN Encoder-Decoder, arranged for scoring: weights packed once, phrase pairs in, log-probabilities out.
#pragma once

#include <memory>
#include <vector>

#include "kernels.h"
#include "tries.h"

namespace moses_rnn {

// Sizes and switches, in the order in which Python hands them over.
struct Sizes {
  int64_t H, E, M, R, source_words, target_words;
  int64_t has_summary;   // c = tanh(V h_N + b_V), else h_N
  int64_t steps_first;   // y_1 is predicted after a step with e(y_0) = 0, else from h'_0
  int64_t reset_after;   // the decoder's reset gate acts after the product with U'
};

// Float32 matrices, row by row, in the order in which Python hands them over; the network copies what it needs.
struct Weights {
  struct Cell {
    const float *embedding, *W, *W_z, *W_r, *U, *U_z, *U_r, *b, *b_z, *b_r;
  };
  Cell encoder;
  const float *V, *b_V;  // of the summary, or null
  Cell decoder;
  const float *V_h0, *b_h0, *C, *C_z, *C_r, *O_h, *O_c, *O_y, *b_O, *G_r, *G_l, *b_G;
};

class Network {
 public:
  Network(const Sizes& sizes, const Weights& weights, const Kernels& kernels);

  // log p(target | source) of pairs, natural, both </s> included.
  void score(const Phrases& sources, const Phrases& targets, double* log_probs) const;

 private:
  struct Workspace;
  struct Prefixes;

  void pack_cell(const Weights::Cell& cell, bool with_biases, bool reset_after, Gates& gates);
  void pack_decoder(const Weights& w);
  Packed pack(int64_t columns, int inner, std::vector<float> bias = {});
  void fill(const Packed& packed, const float* W, int64_t columns, int64_t size, int offset) const;
  std::vector<float> by_panels(const float* O, int64_t size) const;

  void score_part(const Phrases& sources, const Phrases& targets, const int64_t* pairs, int64_t count,
                  double* log_probs) const;
  std::vector<float> read(const Phrases& phrases, const std::vector<int64_t>& distinct, Workspace& room) const;
  void add_terms(const std::vector<float>& states, const std::vector<int32_t>& rows,
                 const std::vector<int32_t>& sources, std::vector<float>& terms, Workspace& room) const;
  void step_block(const Prefixes& prefixes, int first, int rows, const float* states, const TermRows& terms,
                  float* new_states, Workspace& room) const;
  void read_out(int rows, const TermRows& terms, Workspace& room) const;
  void score_children(const Prefixes& prefixes, int first, int rows, const Trie::Level& level,
                      const std::vector<double>& totals, std::vector<double>& next, Workspace& room) const;

  int inner(int64_t size) const;   // elements of an operand's part
  int stored(int64_t size) const;  // floats of a row of states
  void* at(void* operand, int64_t element) const { return static_cast<char*>(operand) + element * kernels_.element; }

  Sizes sizes_;
  const Kernels& kernels_;
  std::vector<float> read_, written_, G_l_rows_, b_G_;  // embeddings of both sides and the output layer, row by row
  int H_, M_, R_;                       // as they are stored
  int state_stride_, terms_stride_;     // floats from a row to the next
  int e_inner_, h_inner_, stride_;      // of the operand [e | h]
  int s_inner_, s_stride_, p_inner_, p_stride_;
  int terms_;                           // floats of a source's terms: h'_0, C_z c, C_r c, C c, O_c c
  Gates encoder_, decoder_;
  Packed summary_, h_0_, C_, O_, G_r_, G_l_;
  std::vector<std::unique_ptr<void, void (*)(void*)>> blocks_;
  std::vector<std::unique_ptr<float[]>> biases_;
};

}  // namespace moses_rnn
