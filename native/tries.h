// Phrases as tries: every distinct prefix once, level by level, as moses_rnn/networks/tries.py.
#pragma once

#include <cstdint>
#include <vector>

namespace moses_rnn {

constexpr int64_t END = 1;  // the id of </s>

// Phrases laid end to end, without end symbols.
struct Phrases {
  const int64_t* ids;
  std::vector<int64_t> begins;  // of each phrase, and the end of the last

  Phrases(const int64_t* ids, const int64_t* lengths, int64_t count);

  int64_t length(int64_t phrase) const { return begins[phrase + 1] - begins[phrase]; }
  // The k-th word, or </s> behind the last.
  int64_t word(int64_t phrase, int64_t k) const { return k < length(phrase) ? ids[begins[phrase] + k] : END; }
  // Words in front that two phrases share, </s> included.
  int64_t shared(int64_t a, int64_t b) const;
  // Negative, 0 or positive, word by word.
  int compare(int64_t a, int64_t b) const;
};

// Pairs by source and then by target.
std::vector<int64_t> sorted_pairs(const Phrases& sources, const Phrases& targets);

struct Trie {
  struct Level {
    std::vector<int32_t> words;
    std::vector<int32_t> parents;  // node of the level above, or root
    std::vector<char> ends;        // whether the word is </s>
  };
  struct Place {
    int32_t level, node;
  };
  std::vector<Level> levels;
  std::vector<Place> places;  // of the leaf of each phrase

  // Of phrases in sorted order, those of a root beside each other.
  Trie(const Phrases& phrases, const std::vector<int64_t>& sorted, const std::vector<int32_t>& roots);
};

}  // namespace moses_rnn
