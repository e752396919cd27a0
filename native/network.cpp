#include "network.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>

#include "core.h"

namespace moses_rnn {

namespace {

constexpr int64_t PART = 4096;  // pairs whose tries are worked off together: enough rows a level, little memory
constexpr double LOG2_E = 1.4426950408889634;
constexpr float NEVER = -1e30f;  // the logit of a column that is no word
constexpr int32_t NO_WORD = -1;  // e = 0

int64_t up_to(int64_t size, int64_t multiple) { return (size + multiple - 1) / multiple * multiple; }

void* aligned(size_t bytes) {
  void* place = std::aligned_alloc(CACHE_LINE, up_to(std::max<size_t>(bytes, 1), CACHE_LINE));
  if (!place) throw std::bad_alloc();
  std::memset(place, 0, bytes);
  return place;
}

// Rows of an odd number of cache lines do not fall on each other's places in a cache.
int spread(int64_t elements, int bytes) {
  const int64_t lines = up_to(elements * bytes, CACHE_LINE) / CACHE_LINE;
  return static_cast<int>((lines | 1) * CACHE_LINE / bytes);
}

}  // namespace

// What a thread needs for one block of rows.
struct Network::Workspace {
  using Block = std::unique_ptr<void, void (*)(void*)>;
  Block operand, next, s, p;
  std::vector<float> z, projected, largest, rest;
  std::vector<int32_t> at, parents, sources;

  static Block block(int64_t elements, int bytes) { return Block(aligned(elements * bytes * BLOCK_ROWS), std::free); }

  explicit Workspace(const Network& network)
      : operand(block(network.stride_, network.kernels_.element)),
        next(block(network.stride_, network.kernels_.element)),
        s(block(network.s_stride_, network.kernels_.element)),
        p(block(network.p_stride_, network.kernels_.element)),
        z(static_cast<size_t>(network.state_stride_) * BLOCK_ROWS),
        projected(static_cast<size_t>(network.R_) * BLOCK_ROWS),
        largest(BLOCK_ROWS), rest(BLOCK_ROWS), at(BLOCK_ROWS), parents(BLOCK_ROWS), sources(BLOCK_ROWS) {}
};

// Beginnings of targets that go on, a row each.
struct Network::Prefixes {
  std::vector<int32_t> words, parents, sources;  // last word, row of the states above, source
  std::vector<int32_t> children;                 // first node of the next level below each, and the end of the last's

  size_t size() const { return words.size(); }

  // Children are in the order of their parents; `row_of` is the row of a node's parent.
  template <class RowOf>
  void find_children(const Trie::Level* level, RowOf row_of) {
    children.assign(size() + 1, 0);
    if (!level) return;
    for (int32_t parent : level->parents) ++children[row_of(parent) + 1];
    std::partial_sum(children.begin(), children.end(), children.begin());
  }
};

int Network::inner(int64_t size) const { return static_cast<int>(up_to(size, kernels_.pad)); }

int Network::stored(int64_t size) const { return static_cast<int>(up_to(size, UNITS)); }

Network::Network(const Sizes& sizes, const Weights& weights, const Kernels& kernels)
    : sizes_(sizes), kernels_(kernels),
      read_(weights.encoder.embedding, weights.encoder.embedding + sizes.source_words * sizes.E),
      written_(weights.decoder.embedding, weights.decoder.embedding + sizes.target_words * sizes.E),
      G_l_rows_(weights.G_l, weights.G_l + sizes.target_words * sizes.R),
      b_G_(weights.b_G, weights.b_G + sizes.target_words), H_(stored(sizes.H)), M_(stored(sizes.M)), R_(stored(sizes.R)),
      e_inner_(inner(sizes.E)), h_inner_(inner(sizes.H)), s_inner_(inner(sizes.M)), p_inner_(inner(sizes.R)) {
  stride_ = spread(e_inner_ + std::max(h_inner_, H_), kernels.element);
  s_stride_ = spread(std::max(s_inner_, M_), kernels.element);
  p_stride_ = spread(std::max(p_inner_, R_), kernels.element);
  terms_ = 4 * H_ + 2 * M_;
  state_stride_ = spread(H_, sizeof(float));
  terms_stride_ = spread(terms_, sizeof(float));
  pack_cell(weights.encoder, true, false, encoder_);
  if (sizes.has_summary) {
    summary_ = pack(sizes.H, h_inner_, {weights.b_V, weights.b_V + sizes.H});
    fill(summary_, weights.V, sizes.H, sizes.H, 0);
  }
  pack_cell(weights.decoder, false, sizes.reset_after, decoder_);
  pack_decoder(weights);
}

// Room for a packed matrix, with a bias for each column.
Packed Network::pack(int64_t columns, int inner, std::vector<float> bias) {
  const int wide = stored(columns);
  blocks_.emplace_back(aligned(static_cast<size_t>(wide) * inner * kernels_.element), std::free);
  if (bias.empty()) return {blocks_.back().get(), nullptr, inner, wide};
  biases_.emplace_back(new float[wide]());
  std::copy(bias.begin(), bias.end(), biases_.back().get());
  return {blocks_.back().get(), biases_.back().get(), inner, wide};
}

void Network::fill(const Packed& packed, const float* W, int64_t columns, int64_t size, int offset) const {
  kernels_.pack(W, static_cast<int>(columns), static_cast<int>(size), packed, offset);
}

// A decoder's biases of gates are among the terms of c.
void Network::pack_cell(const Weights::Cell& cell, bool with_biases, bool reset_after, Gates& gates) {
  const int64_t H = sizes_.H, E = sizes_.E;
  const auto bias = [&](const float* b, bool wanted) {
    return wanted ? std::vector<float>(b, b + H) : std::vector<float>();
  };
  const auto beside = [&](const float* W, const float* U, std::vector<float> b) {
    const Packed packed = pack(H, e_inner_ + h_inner_, std::move(b));
    fill(packed, W, H, E, 0);
    fill(packed, U, H, H, e_inner_);
    return packed;
  };
  gates.z = beside(cell.W_z, cell.U_z, bias(cell.b_z, with_biases));
  gates.r = beside(cell.W_r, cell.U_r, bias(cell.b_r, with_biases));
  if (!reset_after) {
    gates.candidate = beside(cell.W, cell.U, bias(cell.b, true));
    return;
  }
  gates.W = pack(H, e_inner_, bias(cell.b, true));
  fill(gates.W, cell.W, H, E, 0);
  gates.U = pack(H, h_inner_);
  fill(gates.U, cell.U, H, H, 0);
}

// Rows 2u and 2u + 1 of a maxout matrix to the two halves of a panel; 2 M_ rows of that size.
std::vector<float> Network::by_panels(const float* O, int64_t size) const {
  const int half = kernels_.panel / 2;
  std::vector<float> rows(static_cast<size_t>(2) * M_ * size, 0.f);
  for (int64_t u = 0; u < sizes_.M; ++u)
    for (int64_t which = 0; which < 2; ++which) {
      const int64_t to = u / half * kernels_.panel + which * half + u % half;
      std::copy_n(O + (2 * u + which) * size, size, rows.begin() + to * size);
    }
  return rows;
}

void Network::pack_decoder(const Weights& w) {
  const int64_t H = sizes_.H, E = sizes_.E, K = sizes_.target_words;
  h_0_ = pack(H, h_inner_, {w.b_h0, w.b_h0 + H});
  fill(h_0_, w.V_h0, H, H, 0);
  // C_z, C_r, C and O_c below each other, each at its place among the terms
  std::vector<float> C(static_cast<size_t>(terms_ - H_) * H, 0.f), b(terms_ - H_, 0.f);
  std::copy_n(w.C_z, H * H, C.begin());
  std::copy_n(w.C_r, H * H, C.begin() + H_ * H);
  std::copy_n(w.C, H * H, C.begin() + 2 * H_ * H);
  const std::vector<float> O_c = by_panels(w.O_c, H), b_O = by_panels(w.b_O, 1);
  std::copy(O_c.begin(), O_c.end(), C.begin() + 3 * H_ * H);
  std::copy_n(w.decoder.b_z, H, b.begin());
  std::copy_n(w.decoder.b_r, H, b.begin() + H_);
  std::copy(b_O.begin(), b_O.end(), b.begin() + 3 * H_);
  C_ = pack(terms_ - H_, h_inner_, std::move(b));
  fill(C_, C.data(), terms_ - H_, H, 0);
  O_ = pack(2 * M_, e_inner_ + h_inner_);
  fill(O_, by_panels(w.O_y, E).data(), 2 * M_, E, 0);
  fill(O_, by_panels(w.O_h, H).data(), 2 * M_, H, e_inner_);
  G_r_ = pack(sizes_.R, s_inner_);
  fill(G_r_, w.G_r, sizes_.R, sizes_.M, 0);
  std::vector<float> b_G(stored(K), NEVER);
  std::transform(w.b_G, w.b_G + K, b_G.begin(), [](float x) { return static_cast<float>(x * LOG2_E); });
  G_l_ = pack(K, p_inner_, std::move(b_G));
  fill(G_l_, w.G_l, K, sizes_.R, 0);
}

// The terms of all distinct sources; `terms_stride_` floats each.
std::vector<float> Network::read(const Phrases& phrases, const std::vector<int64_t>& distinct, Workspace& room) const {
  const Trie trie(phrases, distinct, std::vector<int32_t>(distinct.size(), 0));
  std::vector<float> terms(distinct.size() * terms_stride_), states(H_, 0.f), above;  // h_0 = 0
  std::vector<std::vector<int32_t>> rows(trie.levels.size()), sources(trie.levels.size());
  for (size_t i = 0; i < distinct.size(); ++i) {
    rows[trie.places[i].level].push_back(trie.places[i].node);
    sources[trie.places[i].level].push_back(static_cast<int32_t>(i));
  }
  for (size_t depth = 0; depth < trie.levels.size(); ++depth) {
    const Trie::Level& level = trie.levels[depth];
    const int nodes = static_cast<int>(level.words.size());
    above.swap(states);
    states.resize(static_cast<size_t>(nodes) * state_stride_);
    for (int first = 0; first < nodes; first += BLOCK_ROWS) {
      const int count = std::min(BLOCK_ROWS, nodes - first);
      for (int i = 0; i < count; ++i) {
        void* row = at(room.operand.get(), static_cast<int64_t>(i) * stride_);
        void* next = at(room.next.get(), static_cast<int64_t>(i) * stride_);
        const float* e = read_.data() + level.words[first + i] * sizes_.E;
        kernels_.write_part(e, static_cast<int>(sizes_.E), row);
        kernels_.write_part(e, static_cast<int>(sizes_.E), next);
        const float* h = above.data() + static_cast<size_t>(level.parents[first + i]) * state_stride_;
        kernels_.write_part(h, H_, at(row, e_inner_));
      }
      const Step step = {count, H_, state_stride_, room.operand.get(), room.next.get(), stride_, e_inner_, above.data(),
                         level.parents.data() + first, states.data() + static_cast<size_t>(first) * state_stride_, room.z.data(),
                         {}};
      kernels_.step_reset_before(step, encoder_);
    }
    add_terms(states, rows[depth], sources[depth], terms, room);
  }
  return terms;
}

// c = tanh(V h_N + b_V), h'_0 = tanh(V' c + b_V'), and C_z c + b'_z, C_r c + b'_r, C c, O_c c + b_O of some sources.
void Network::add_terms(const std::vector<float>& states, const std::vector<int32_t>& rows,
                        const std::vector<int32_t>& sources, std::vector<float>& terms, Workspace& room) const {
  std::vector<float> summaries(static_cast<size_t>(BLOCK_ROWS) * state_stride_), out(static_cast<size_t>(BLOCK_ROWS) * terms_stride_);
  for (size_t first = 0; first < rows.size(); first += BLOCK_ROWS) {
    const int count = static_cast<int>(std::min<size_t>(BLOCK_ROWS, rows.size() - first));
    const auto row = [&](int i) { return at(room.operand.get(), static_cast<int64_t>(i) * stride_); };
    for (int i = 0; i < count; ++i)
      kernels_.write_part(states.data() + static_cast<size_t>(rows[first + i]) * state_stride_, H_, row(i));
    if (sizes_.has_summary) {
      kernels_.affine(room.operand.get(), stride_, count, summary_, true, summaries.data(), state_stride_);
      for (int i = 0; i < count; ++i) kernels_.write_part(summaries.data() + static_cast<size_t>(i) * state_stride_, H_, row(i));
    }
    kernels_.affine(room.operand.get(), stride_, count, h_0_, true, out.data(), terms_stride_);
    kernels_.affine(room.operand.get(), stride_, count, C_, false, out.data() + H_, terms_stride_);
    for (int i = 0; i < count; ++i)
      std::copy_n(out.begin() + static_cast<size_t>(i) * terms_stride_, terms_,
                  terms.begin() + static_cast<size_t>(sources[first + i]) * terms_stride_);
  }
}

// States of a block of prefixes, and [e | h'_t] for their read-out; before the first word perhaps h'_0 itself.
void Network::step_block(const Prefixes& prefixes, int first, int rows, const float* states, const TermRows& terms,
                         float* new_states, Workspace& room) const {
  const std::vector<float> nothing(sizes_.E, 0.f);
  const bool steps = sizes_.steps_first || prefixes.words[first] != NO_WORD;
  for (int i = 0; i < rows; ++i) {
    void* row = at(room.operand.get(), static_cast<int64_t>(i) * stride_);
    void* next = at(room.next.get(), static_cast<int64_t>(i) * stride_);
    const int32_t word = prefixes.words[first + i];
    const float* e = word == NO_WORD ? nothing.data() : written_.data() + word * sizes_.E;
    const float* h = states + static_cast<size_t>(prefixes.parents[first + i]) * state_stride_;
    kernels_.write_part(e, static_cast<int>(sizes_.E), next);
    if (!steps) {
      kernels_.write_part(h, H_, at(next, e_inner_));
      std::copy_n(h, H_, new_states + static_cast<size_t>(i) * state_stride_);
      continue;
    }
    kernels_.write_part(e, static_cast<int>(sizes_.E), row);
    kernels_.write_part(h, H_, at(row, e_inner_));
  }
  if (!steps) return;
  const Step step = {rows, H_, state_stride_, room.operand.get(), room.next.get(), stride_, e_inner_, states,
                     prefixes.parents.data() + first, new_states, room.z.data(), terms};
  (sizes_.reset_after ? kernels_.step_reset_after : kernels_.step_reset_before)(step, decoder_);
}

// s_t, G_r s_t, and the normaliser over all words of the next word's logits G_l G_r s_t + b_G.
void Network::read_out(int rows, const TermRows& terms, Workspace& room) const {
  kernels_.maxout(room.next.get(), stride_, rows, O_, terms, room.s.get(), s_stride_);
  kernels_.affine(room.s.get(), s_stride_, rows, G_r_, false, room.projected.data(), R_);
  std::vector<float> in_base_2(R_);
  for (int i = 0; i < rows; ++i) {
    const float* projected = room.projected.data() + static_cast<size_t>(i) * R_;
    std::transform(projected, projected + R_, in_base_2.begin(), [](float x) { return static_cast<float>(x * LOG2_E); });
    kernels_.write_part(in_base_2.data(), R_, at(room.p.get(), static_cast<int64_t>(i) * p_stride_));
  }
  kernels_.normalise(room.p.get(), p_stride_, rows, G_l_, {room.largest.data(), room.at.data(), room.rest.data()});
}

// log p of the words behind a block of prefixes, added to the prefixes' own. Rounded products would show in the logits
// of the word and of the likeliest one, which are therefore computed in float32; over the others their errors cancel.
void Network::score_children(const Prefixes& prefixes, int first, int rows, const Trie::Level& level,
                             const std::vector<double>& totals, std::vector<double>& next, Workspace& room) const {
  const int R = static_cast<int>(sizes_.R);
  for (int i = 0; i < rows; ++i) {
    const float* projected = room.projected.data() + static_cast<size_t>(i) * R_;
    const auto logit = [&](int64_t word) {
      return static_cast<double>(kernels_.dot(projected, G_l_rows_.data() + word * R, R)) + b_G_[word];
    };
    const double largest = logit(room.at[i]);
    const double rest = room.rest[i] * std::exp(room.largest[i] / LOG2_E - largest);
    const double log_norm = largest + std::log1p(rest);
    for (int32_t node = prefixes.children[first + i]; node < prefixes.children[first + i + 1]; ++node)
      next[node] = totals[first + i] + (logit(level.words[node]) - log_norm);
  }
}

void Network::score_part(const Phrases& sources, const Phrases& targets, const int64_t* pairs, int64_t count,
                         double* log_probs) const {
  Workspace room(*this);
  const std::vector<int64_t> sorted(pairs, pairs + count);
  std::vector<int32_t> source_of(count);
  std::vector<int64_t> distinct;
  for (int64_t i = 0; i < count; ++i) {
    if (!i || sources.compare(sorted[i - 1], sorted[i])) distinct.push_back(sorted[i]);
    source_of[i] = static_cast<int32_t>(distinct.size()) - 1;
  }
  const std::vector<float> terms = read(sources, distinct, room);
  const Trie trie(targets, sorted, source_of);

  Prefixes prefixes;  // before the first word: one for each source, whose state above is its h'_0
  prefixes.words.assign(distinct.size(), NO_WORD);
  prefixes.sources.resize(distinct.size());
  std::iota(prefixes.sources.begin(), prefixes.sources.end(), 0);
  prefixes.parents = prefixes.sources;
  prefixes.find_children(&trie.levels[0], [](int32_t root) { return root; });
  std::vector<float> states(distinct.size() * state_stride_), above;
  for (size_t i = 0; i < distinct.size(); ++i) std::copy_n(terms.data() + i * terms_stride_, H_, states.data() + i * state_stride_);
  std::vector<double> totals(distinct.size(), 0.0);
  std::vector<std::vector<double>> of_nodes(trie.levels.size());

  for (size_t depth = 0; depth < trie.levels.size(); ++depth) {
    const Trie::Level& level = trie.levels[depth];
    above.swap(states);
    states.resize(prefixes.size() * state_stride_);
    of_nodes[depth].resize(level.words.size());
    for (size_t first = 0; first < prefixes.size(); first += BLOCK_ROWS) {
      const int rows = static_cast<int>(std::min<size_t>(BLOCK_ROWS, prefixes.size() - first));
      const TermRows rows_terms = {terms.data(), static_cast<size_t>(terms_stride_), prefixes.sources.data() + first,
                                   H_, 2 * H_, 3 * H_, 4 * H_};
      step_block(prefixes, static_cast<int>(first), rows, above.data(), rows_terms, states.data() + first * state_stride_, room);
      read_out(rows, rows_terms, room);
      score_children(prefixes, static_cast<int>(first), rows, level, totals, of_nodes[depth], room);
    }
    // the nodes that go on are the next prefixes; the row of their parent's state is that of its prefix
    Prefixes next;
    std::vector<double> next_totals;
    std::vector<int32_t> row_of(level.words.size(), -1);
    for (size_t row = 0; row < prefixes.size(); ++row)
      for (int32_t node = prefixes.children[row]; node < prefixes.children[row + 1]; ++node) {
        if (level.ends[node]) continue;
        row_of[node] = static_cast<int32_t>(next.size());
        next.words.push_back(level.words[node]);
        next.parents.push_back(static_cast<int32_t>(row));
        next.sources.push_back(prefixes.sources[row]);
        next_totals.push_back(of_nodes[depth][node]);
      }
    const bool more = depth + 1 < trie.levels.size();
    next.find_children(more ? &trie.levels[depth + 1] : nullptr, [&](int32_t node) { return row_of[node]; });
    prefixes = std::move(next);
    totals = std::move(next_totals);
  }
  for (int64_t i = 0; i < count; ++i) log_probs[sorted[i]] = of_nodes[trie.places[i].level][trie.places[i].node];
}

void Network::score(const Phrases& sources, const Phrases& targets, double* log_probs) const {
  kernels_.prepare();
  const int64_t count = static_cast<int64_t>(sources.begins.size()) - 1;
  const std::vector<int64_t> order = sorted_pairs(sources, targets);
  for (int64_t first = 0, last; first < count; first = last) {
    last = std::min(first + PART, count);
    while (last < count && !sources.compare(order[last - 1], order[last])) ++last;
    score_part(sources, targets, order.data() + first, last - first, log_probs);
  }
}

}  // namespace moses_rnn

using moses_rnn::Network;

// A network, or null: the precision is not there for these instructions (see InstructionSet), or memory ran out.
MOSES_RNN_API void* moses_rnn_network_new(const int64_t* sizes, const float* const* weights, int instructions,
                                          int precision) {
  moses_rnn::Sizes of_network;
  moses_rnn::Weights of_weights;
  static_assert(sizeof of_weights % sizeof *weights == 0);
  std::memcpy(&of_network, sizes, sizeof of_network);
  std::memcpy(&of_weights, weights, sizeof of_weights);
  const moses_rnn::Kernels* kernels = moses_rnn::kernels_for(static_cast<moses_rnn::InstructionSet>(instructions),
                                                             static_cast<moses_rnn::Precision>(precision));
  if (!kernels) return nullptr;
  try {
    return new Network(of_network, of_weights, *kernels);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

MOSES_RNN_API void moses_rnn_network_free(void* network) { delete static_cast<Network*>(network); }

// Ids of `count` sources and targets laid end to end, without end symbols. 0, or 1 if memory ran out.
MOSES_RNN_API int moses_rnn_network_score(const void* network, const int64_t* source_ids, const int64_t* source_lengths,
                                          const int64_t* target_ids, const int64_t* target_lengths, int64_t count,
                                          double* log_probs) {
  try {
    const moses_rnn::Phrases sources(source_ids, source_lengths, count), targets(target_ids, target_lengths, count);
    static_cast<const Network*>(network)->score(sources, targets, log_probs);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}
