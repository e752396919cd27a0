#include "tries.h"

#include <algorithm>

namespace moses_rnn {

Phrases::Phrases(const int64_t* all, const int64_t* lengths, int64_t count) : ids(all), begins(count + 1, 0) {
  for (int64_t i = 0; i < count; ++i) begins[i + 1] = begins[i] + lengths[i];
}

int64_t Phrases::shared(int64_t a, int64_t b) const {
  const int64_t most = std::min(length(a), length(b));
  int64_t k = 0;
  while (k < most && ids[begins[a] + k] == ids[begins[b] + k]) ++k;
  return k + (k == length(a) && k == length(b));
}

int Phrases::compare(int64_t a, int64_t b) const {
  const int64_t k = shared(a, b);
  if (k > length(a)) return 0;
  const int64_t left = word(a, k), right = word(b, k);
  return left < right ? -1 : 1;
}

Trie::Trie(const Phrases& phrases, const std::vector<int64_t>& sorted, const std::vector<int32_t>& roots) {
  std::vector<int32_t> path;  // the node of each depth that the last phrase went through
  places.reserve(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    const int64_t phrase = sorted[i], depth = phrases.length(phrase);
    const bool beside = i && roots[i] == roots[i - 1];
    if (static_cast<int64_t>(levels.size()) <= depth) levels.resize(depth + 1);
    path.resize(depth + 1);
    for (int64_t k = beside ? phrases.shared(phrase, sorted[i - 1]) : 0; k <= depth; ++k) {
      Level& level = levels[k];
      level.words.push_back(static_cast<int32_t>(phrases.word(phrase, k)));
      level.parents.push_back(k ? path[k - 1] : roots[i]);
      level.ends.push_back(k == depth);
      path[k] = static_cast<int32_t>(level.words.size()) - 1;
    }
    places.push_back({static_cast<int32_t>(depth), path[depth]});
  }
}

}  // namespace moses_rnn
