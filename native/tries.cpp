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
  if (k == length(a) || k == length(b)) return k == length(a) ? -1 : 1;  // a beginning comes before what goes on
  return word(a, k) < word(b, k) ? -1 : 1;
}

namespace {

// The first words of a phrase as one number, in the phrases' order; 0 stands behind the last word.
uint64_t first_words(const Phrases& phrases, int64_t phrase) {
  constexpr int WORDS = 3, BITS = 21;
  uint64_t key = 0;
  for (int k = 0; k < WORDS; ++k) {
    const bool there = k < phrases.length(phrase);
    const int64_t most = (int64_t{1} << BITS) - 1;
    key = key << BITS | (there ? std::min(phrases.ids[phrases.begins[phrase] + k] + 1, most) : 0);
    if (!there || phrases.ids[phrases.begins[phrase] + k] + 1 >= most) return key << BITS * (WORDS - 1 - k);
  }
  return key;
}

}  // namespace

std::vector<int64_t> sorted_pairs(const Phrases& sources, const Phrases& targets) {
  struct Item {
    uint64_t source, target;
    int64_t pair;
  };
  std::vector<Item> items(sources.begins.size() - 1);
  for (size_t i = 0; i < items.size(); ++i) {
    const int64_t pair = static_cast<int64_t>(i);
    items[i] = {first_words(sources, pair), first_words(targets, pair), pair};
  }
  std::sort(items.begin(), items.end(), [&](const Item& a, const Item& b) {
    if (a.source != b.source) return a.source < b.source;
    if (const int by_source = sources.compare(a.pair, b.pair)) return by_source < 0;
    if (a.target != b.target) return a.target < b.target;
    return targets.compare(a.pair, b.pair) < 0;
  });
  std::vector<int64_t> order(items.size());
  std::transform(items.begin(), items.end(), order.begin(), [](const Item& item) { return item.pair; });
  return order;
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
