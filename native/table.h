// What the files of phrase tables share. Text is bytes as they stand in the table, spans are bytes from its beginning.
#pragma once

#include <cstdint>
#include <cstring>

namespace moses_rnn {

using Byte = unsigned char;
using Int = std::int64_t;

// Of a line: source, its end, target, its end, the scores' end, field 4, its end, the line's end.
constexpr Int SPANS = 8, SCORES_END = 4, LINE_END = 7;

constexpr Byte BLANK = ' ', TAB = '\t', NEWLINE = '\n', PIPE = '|';

inline bool is_blank(Byte byte) { return byte == BLANK || byte == TAB; }

inline bool is_digit(Byte byte) { return static_cast<Byte>(byte - '0') < 10; }

// The first such byte from `at` on; `end` if there is none.
inline const Byte* find(const Byte* at, const Byte* end, Byte wanted) {
  const void* place = at == end ? nullptr : std::memchr(at, wanted, static_cast<std::size_t>(end - at));
  return place ? static_cast<const Byte*>(place) : end;
}

}  // namespace moses_rnn
