// Numbers as C's %.9g writes them in the C locale, behind the scores of a table's lines.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core.h"
#include "table.h"

namespace moses_rnn {
namespace {

constexpr int DIGITS = 9;
constexpr int LEAST_EXPONENT = -99, MOST_EXPONENT = DIGITS - 1;  // of ten, of the numbers that need no printf
constexpr int LEAST_PLAIN_EXPONENT = -4;                        // below it, C writes 1.2e-05
constexpr Int WIDTH = 24;                                       // bytes at most, with the blank before

// 10^0, 10^1, … to the highest factor needed; each product rounds once: wrong by 108 × 2^-53 of itself at most.
constexpr int POWERS = MOST_EXPONENT - LEAST_EXPONENT + 1;
constexpr std::array<double, POWERS> powers_of_ten() {
  std::array<double, POWERS> powers{};
  double power = 1;
  for (int i = 0; i < POWERS; ++i, power *= 10) powers[static_cast<std::size_t>(i)] = power;
  return powers;
}
constexpr auto POWER = powers_of_ten();
constexpr double MARGIN = 1e-4;  // from the middle between two numbers of 9 digits; 10^9 × 108 × 2^-53 is 1.2e-5

// A number as digits: whole × 10^(exponent - 8), where whole has 9 digits.
struct Decimal {
  std::uint32_t whole;
  int exponent;
};

// Rounds a number from 1e-99 to 1e9; false: it is another one, or too near the middle between two for this arithmetic.
bool to_decimal(double value, Decimal& decimal) {
  if (!(value >= 1e-99 && value < 1e9)) return false;
  // Of 2^b ≤ value < 2^(b+1) the exponent of ten is floor(b log10 2), or one more
  decimal.exponent = std::max(static_cast<int>(std::floor(std::ilogb(value) * 0.30102999566398120)), LEAST_EXPONENT);
  double scaled = value * POWER[static_cast<std::size_t>(MOST_EXPONENT - decimal.exponent)];
  if (scaled >= 1e9 && decimal.exponent < MOST_EXPONENT)
    scaled = value * POWER[static_cast<std::size_t>(MOST_EXPONENT - ++decimal.exponent)];
  decimal.whole = static_cast<std::uint32_t>(scaled + 0.5);
  const bool is_clear = std::abs(scaled - decimal.whole) < 0.5 - MARGIN;
  return is_clear && decimal.whole >= 100000000 && decimal.whole < 1000000000;
}

// Writes the digits without the zeros at their end, which C leaves out; their number.
int write_digits(std::uint32_t whole, char* digits) {
  for (int i = DIGITS; i-- > 0; whole /= 10) digits[i] = static_cast<char>('0' + whole % 10);
  int count = DIGITS;
  while (count > 1 && digits[count - 1] == '0') --count;
  return count;
}

// 1.2e-05
char* write_scientific(const char* digits, int count, int exponent, char* out) {
  *out++ = digits[0];
  if (count > 1) {
    *out++ = '.';
    out = std::copy(digits + 1, digits + count, out);
  }
  *out++ = 'e';
  *out++ = '-';
  *out++ = static_cast<char>('0' - exponent / 10);
  *out++ = static_cast<char>('0' + -exponent % 10);
  return out;
}

// 0.0012, 1.2, 12
char* write_plain(const char* digits, int count, int exponent, char* out) {
  if (exponent < 0) {
    *out++ = '0';
    *out++ = '.';
    out = std::fill_n(out, -exponent - 1, '0');
    return std::copy(digits, digits + count, out);
  }
  const int before_point = exponent + 1;
  out = std::copy(digits, digits + before_point, out);  // all nine are there, zeros too
  if (count <= before_point) return out;
  *out++ = '.';
  return std::copy(digits + before_point, digits + count, out);
}

// What printf writes, with a point even where LC_NUMERIC has another character, of one or several bytes.
char* write_by_printf(double value, char* out) {
  if (std::isnan(value)) return std::copy_n("nan", 3, out);
  char text[40];
  const int length = std::snprintf(text, sizeof text, "%.9g", value);
  const auto is_of_number = [](char c) { return is_digit(static_cast<Byte>(c)) || std::strchr("+-einf", c); };
  char *end = text + length, *point = std::find_if_not(text, end, is_of_number);
  out = std::copy(text, point, out);
  if (point == end) return out;
  *out++ = '.';
  return std::copy(std::find_if(point, end, is_of_number), end, out);
}

char* write_number(double value, char* out) {
  Decimal decimal;
  if (!to_decimal(std::abs(value), decimal)) return write_by_printf(value, out);
  if (value < 0) *out++ = '-';
  char digits[DIGITS];
  const int count = write_digits(decimal.whole, digits);
  const auto write = decimal.exponent < LEAST_PLAIN_EXPONENT ? write_scientific : write_plain;
  return write(digits, count, decimal.exponent, out);
}

}  // namespace
}  // namespace moses_rnn

using moses_rnn::Byte;
using moses_rnn::Int;

// Copies a text with numbers added behind the scores of each line, a blank before each.
//   spans: lines × SPANS
//   values: lines × columns
//   out: of `room` bytes, at least size + lines × columns × WIDTH
// Returns how many bytes were written; -1: there is too little room, or the spans are not those of this text.
MOSES_RNN_API Int moses_rnn_add_numbers(const Byte* text, Int size, const Int* spans, Int lines, const double* values,
                                        Int columns, char* out, Int room) {
  if (room < size + lines * columns * moses_rnn::WIDTH) return -1;
  char* at = out;
  Int done = 0;
  for (Int i = 0; i < lines; ++i) {
    const Int cut = spans[i * moses_rnn::SPANS + moses_rnn::SCORES_END];
    if (cut < done || cut > size) return -1;
    at = std::copy(text + done, text + cut, at);
    done = cut;
    for (Int column = 0; column < columns; ++column) {
      *at++ = ' ';
      at = moses_rnn::write_number(values[i * columns + column], at);
    }
  }
  return std::copy(text + done, text + size, at) - out;
}
