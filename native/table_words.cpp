// The ids of words: a vocabulary as a hash table of its bytes, and the words of phrases looked up in it.
#include <vector>

#include "core.h"
#include "table.h"

namespace moses_rnn {
namespace {

constexpr Int UNKNOWN = 0;  // id of <unk>

using Hash = std::uint64_t;
constexpr Hash FNV_OFFSET = 0xcbf29ce484222325u, FNV_PRIME = 0x100000001b3u;

// A step of FNV-1a, taken while the end of the word is looked for.
Hash hashed(Hash hash, Byte byte) { return (hash ^ byte) * FNV_PRIME; }

}  // namespace

// Words by their bytes: open addressing with linear probing, at most half full. It never changes: any number of threads
// may look words up.
class WordTable {
 public:
  // The words lie end to end in `text`; ends and ids: count.
  WordTable(const Byte* text, const Int* ends, const Int* ids, Int count)
      : text_(text, text + (count ? ends[count - 1] : 0)) {
    std::size_t size = 2;
    while (size < 2 * static_cast<std::size_t>(count)) size *= 2;
    slots_.resize(size);
    for (Int i = 0; i < count; ++i) add(i ? ends[i - 1] : 0, ends[i], ids[i]);
  }

  Int id_of(const Byte* word, std::size_t length, Hash hash) const {
    for (std::size_t at = place(hash);; at = (at + 1) & (slots_.size() - 1)) {
      const Slot& slot = slots_[at];
      if (!slot.used) return UNKNOWN;
      if (slot.hash == hash && slot.length == length && !std::memcmp(text_.data() + slot.begin, word, length))
        return slot.id;
    }
  }

 private:
  struct Slot {
    Hash hash = 0;
    std::size_t begin = 0, length = 0;
    Int id = UNKNOWN;
    bool used = false;
  };

  // The upper bits are the better mixed ones.
  std::size_t place(Hash hash) const { return (hash ^ hash >> 32) & (slots_.size() - 1); }

  void add(Int begin, Int end, Int id) {
    Hash hash = FNV_OFFSET;
    for (Int i = begin; i < end; ++i) hash = hashed(hash, text_[static_cast<std::size_t>(i)]);
    std::size_t at = place(hash);
    while (slots_[at].used) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = Slot{hash, static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin), id, true};
  }

  std::vector<Byte> text_;
  std::vector<Slot> slots_;
};

namespace {

// Writes the ids of a phrase's words, which blanks and tabs part; behind the last id, or null: a word is a line end.
Int* write_ids(const WordTable& table, const Byte* at, const Byte* end, Int* ids) {
  while (true) {
    while (at < end && is_blank(*at)) ++at;
    if (at == end) return ids;
    const Byte* word = at;
    Hash hash = FNV_OFFSET;
    for (; at < end && !is_blank(*at); ++at) hash = hashed(hash, *at);
    if (at - word == 1 && *word == NEWLINE) return nullptr;
    *ids++ = table.id_of(word, static_cast<std::size_t>(at - word), hash);
  }
}

}  // namespace
}  // namespace moses_rnn

using moses_rnn::Byte;
using moses_rnn::Int;
using moses_rnn::WordTable;

// A table of words that lie end to end, none twice; ends, ids: count. Null: there is no memory.
MOSES_RNN_API WordTable* moses_rnn_new_words(const Byte* text, const Int* ends, const Int* ids, Int count) {
  try {
    return new WordTable(text, ends, ids, count);
  } catch (...) {
    return nullptr;
  }
}

MOSES_RNN_API void moses_rnn_delete_words(WordTable* table) { delete table; }

// The ids of all words of phrases, end to end.
//   begins, ends: of the phrases in the text; phrases
//   ids: room for (end - begin + 1) / 2 of each phrase
//   lengths: words of each phrase; phrases
// Returns how many words there are; -1: places outside the text; -2: a word is a line end.
MOSES_RNN_API Int moses_rnn_word_ids(const WordTable* table, const Byte* text, Int size, const Int* begins,
                                     const Int* ends, Int phrases, Int* ids, Int* lengths) {
  Int* next = ids;
  for (Int i = 0; i < phrases; ++i) {
    if (begins[i] < 0 || ends[i] < begins[i] || ends[i] > size) return -1;
    Int* behind = moses_rnn::write_ids(*table, text + begins[i], text + ends[i], next);
    if (!behind) return -2;
    lengths[i] = behind - next;
    next = behind;
  }
  return next - ids;
}
