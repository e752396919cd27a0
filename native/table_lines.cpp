// The regular lines of a phrase table: single blanks, plain numbers, nothing odd. What is regular, and where its fields
// stand, is decided as by the regular expression of moses_rnn/table/table_blocks.py, which is the reference.
#include <algorithm>

#include "core.h"
#include "table.h"

namespace moses_rnn {
namespace {

// ---- what a block has anywhere ------------------------------------------------------------------------------------

// Bytes of the character at `at`, of which `left` are there; 0 if it is not strict UTF-8 (Unicode 15.0, table 3-7).
Int character_bytes(const Byte* at, Int left) {
  const Byte lead = at[0];
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const Int bytes = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (left < bytes) return 0;
  const Byte least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;  // below: a longer form than need be
  const Byte most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;   // above: surrogates, beyond U+10FFFF
  if (at[1] < least || at[1] > most) return 0;
  for (Int i = 2; i < bytes; ++i)
    if ((at[i] & 0xc0) != 0x80) return 0;
  return bytes;
}

bool is_ascii(const Byte* eight) {
  std::uint64_t word;
  std::memcpy(&word, eight, sizeof word);
  return !(word & 0x8080808080808080u);
}

bool is_utf8(const Byte* at, const Byte* end) {
  while (at < end) {
    if (end - at >= 8 && is_ascii(at)) {
      at += 8;
      continue;
    }
    const Int bytes = character_bytes(at, end - at);
    if (!bytes) return false;
    at += bytes;
  }
  return true;
}

bool is_unwanted(Byte byte) { return byte == '\0' || byte == '\r' || byte == ']'; }

// Which bytes make a line irregular wherever they stand in it.
struct Block {
  const Byte *text, *end;
  bool has_unwanted, is_text;

  Block(const Byte* begin, Int size)
      : text(begin),
        end(begin + size),
        has_unwanted(find(text, end, '\0') != end || find(text, end, '\r') != end || find(text, end, ']') != end),
        is_text(is_utf8(text, end)) {}

  bool is_odd(const Byte* line, const Byte* line_end) const {
    if (has_unwanted && std::any_of(line, line_end, is_unwanted)) return true;
    return !is_text && std::any_of(line, line_end, [](Byte byte) { return byte >= 0x80; });
  }
};

// ---- a line, which ends with a newline: no step goes past a byte that it has not seen to be another one -------------

const Byte* skip_digits(const Byte* at) {
  while (is_digit(*at)) ++at;
  return at;
}

// Behind 0\.0{0,5}+[1-9]; null if it does not stand there.
const Byte* skip_fraction(const Byte* at) {
  if (at[0] != '0' || at[1] != '.') return nullptr;
  const Byte* first = at + 2;
  while (*first == '0' && first - at < 7) ++first;
  return is_digit(*first) && *first != '0' ? first + 1 : nullptr;
}

// Behind [1-9][0-9]{0,14}+(?![0-9])\.?+; null if it does not stand there.
const Byte* skip_whole(const Byte* at) {
  if (!is_digit(*at) || *at == '0') return nullptr;
  const Byte* behind = skip_digits(at);
  return behind - at > 15 ? nullptr : behind + (*behind == '.');
}

// Behind (?:e-[0-3]?+[0-9])?+, where nothing is given back: of e-3 nothing is taken.
const Byte* skip_exponent(const Byte* at) {
  if (at[0] != 'e' || at[1] != '-') return at;
  const Byte* digit = at + 2;
  if (*digit >= '0' && *digit <= '3') ++digit;
  return is_digit(*digit) ? digit + 1 : at;
}

// Behind a PLAIN_NUMBER; null if none stands there.
const Byte* skip_number(const Byte* at) {
  const Byte* behind = *at == '0' ? skip_fraction(at) : skip_whole(at);
  return behind ? skip_exponent(skip_digits(behind)) : nullptr;
}

bool is_separator(const Byte* at) { return at[0] == PIPE && at[1] == PIPE && at[2] == PIPE; }

// Whether words stand there, with no blank around them but a single one behind.
bool is_phrase(const Byte* begin, const Byte* bar) {
  return bar - begin > 1 && bar[-1] == BLANK && !is_blank(*begin) && !is_blank(bar[-2]);
}

// Behind so many numbers, a blank before each, that are followed by another field or the line's end; or null.
const Byte* skip_scores(const Byte* at, Int columns) {
  for (Int i = 0; i < columns; ++i)
    if (*at != BLANK || !(at = skip_number(at + 1))) return nullptr;
  return *at == NEWLINE || (*at == BLANK && is_separator(at + 1)) ? at : nullptr;
}

bool is_line_blank(Byte byte) { return is_blank(byte) || byte == '\r' || byte == NEWLINE; }

// The first separator from `at` on; `end` if there is none.
const Byte* find_separator(const Byte* at, const Byte* end) {
  while ((at = find(at, end, PIPE)) != end && !(end - at >= 3 && is_separator(at))) ++at;
  return at;
}

// Writes the spans of a regular line's fields, all but its end; false: it is not regular, nothing is written.
bool find_fields(const Byte* text, const Byte* line, const Byte* end, Int columns, Int* spans) {
  if (line == end || end[-1] != NEWLINE) return false;
  const Byte* first = find(line, end, PIPE);
  if (first == end || !is_separator(first) || !is_phrase(line, first) || first[3] != BLANK) return false;
  const Byte* target = first + 4;
  const Byte* second = find(target, end, PIPE);
  if (second == end || !is_separator(second) || !is_phrase(target, second)) return false;
  const Byte* scores_end = skip_scores(second + 3, columns);
  if (!scores_end) return false;
  const Byte *field = scores_end, *field_end = scores_end;
  if (*scores_end == BLANK) {
    field += 4;
    field_end = find_separator(field, end);
    while (field_end > field && is_line_blank(field_end[-1])) --field_end;
    while (field < field_end && is_line_blank(*field)) ++field;
  }
  const Byte* fields[] = {line, first - 1, target, second - 1, scores_end, field, field_end};
  for (Int i = 0; i < LINE_END; ++i) spans[i] = fields[i] - text;
  return true;
}

}  // namespace
}  // namespace moses_rnn

using moses_rnn::Byte;
using moses_rnn::Int;

// Finds the regular lines of a text.
//   spans: the last of each is the line's end; the others of regular lines are written; lines × SPANS
//   regular: 1 for these; lines
// Returns 0, or -1 if the ends are not those of lines of this text.
MOSES_RNN_API int moses_rnn_find_regular(const Byte* text, Int size, Int* spans, Int lines, Int columns,
                                         Byte* regular) {
  const moses_rnn::Block block(text, size);
  Int begin = 0;
  for (Int i = 0; i < lines; ++i, spans += moses_rnn::SPANS) {
    const Int behind = spans[moses_rnn::LINE_END];
    if (behind <= begin || behind > size) return -1;
    const Byte *line = text + begin, *end = text + behind;
    regular[i] = !block.is_odd(line, end) && moses_rnn::find_fields(text, line, end, columns, spans);
    begin = behind;
  }
  return 0;
}
