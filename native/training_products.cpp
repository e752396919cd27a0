// Products of training: both operands change with every step, so they are packed as they are needed.
#include <algorithm>
#include <new>

#include "core.h"
#include "training.h"

namespace moses_rnn {

namespace {

constexpr int ROWS = BLOCK_ROWS;  // of A that stay in a core's cache while panels of B go by

const TrainingKernels& training(const Kernels& kernels) { return kernels.training(); }

// Rows of A as operands; whole tiles, the last ones' further rows are whatever was there.
struct Operand {
  char* data;
  int stride;

  Operand(const Kernels& kernels, int rows, int inner)
      : data(nullptr), stride(up_to_multiple(inner, std::max<int>(kernels.pad, CACHE_LINE / kernels.element))) {
    if (stride * kernels.element / CACHE_LINE % 2 == 0) stride += CACHE_LINE / kernels.element;  // no shared cache sets
    const size_t whole = up_to_multiple(rows, training(kernels).tile_rows);
    data = static_cast<char*>(Room::of_thread().bytes(Room::OPERAND, whole * stride * kernels.element));
  }

  void fill(const Kernels& kernels, const Matrix& A, int first, int rows, int inner) const {
    if (A.transposed) training(kernels).write_columns(A.data + first, A.stride, rows, inner, data, stride);
    else training(kernels).write_rows(A.data + first * A.stride, A.stride, rows, inner, data, stride);
  }
};

}  // namespace

void* Room::bytes(Use use, size_t count) {
  std::vector<char>& place = places_[use];
  if (place.size() < count + CACHE_LINE) {
    place.clear();
    place.resize(count + count / 4 + CACHE_LINE);
  }
  const uintptr_t address = reinterpret_cast<uintptr_t>(place.data());
  return reinterpret_cast<void*>((address + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE);
}

Room& Room::of_thread() {
  static thread_local Room room;
  return room;
}

size_t Panels::size(const Kernels& kernels, int inner, int columns) {
  const size_t padded = up_to_multiple(inner, kernels.pad);
  return padded * up_to_multiple(columns, kernels.panel) * kernels.element;
}

const void* Panels::at(int column) const { return data + size(kernels, inner, column); }

void Panels::fill(const Matrix& B, int first, int count) const {
  const int panel = kernels.panel;
  for (int column = 0; column < count; column += panel) {
    char* to = const_cast<char*>(static_cast<const char*>(at(first + column)));
    const int wide = std::min(panel, count - column);
    if (B.transposed) training(kernels).pack_columns(B.data + column * B.stride, B.stride, inner, wide, to);
    else training(kernels).pack_rows(B.data + column, B.stride, inner, wide, to);
  }
}

namespace {

void multiply_panel(const Panels& B, const Operand& A, int rows, int column, const void* panel, const Place& out) {
  const int wide = std::min(B.kernels.panel, B.columns - column), inner = up_to_multiple(B.inner, B.kernels.pad);
  const Place place = {out.data + (out.turned ? column * out.stride : column), out.stride, out.turned, out.add};
  training(B.kernels).multiply(A.data, A.stride, rows, panel, inner, place, wide);
}

Matrix from_column(const Matrix& B, int column) {
  return {B.data + (B.transposed ? column * B.stride : column), B.stride, B.transposed};
}

}  // namespace

void multiply(const Kernels& kernels, const Product& sizes, const Matrix& A, const Matrix& B, const Place& out) {
  if (A.transposed && !B.transposed && 2 * sizes.columns <= sizes.rows)  // turn over the smaller one: out^T = B^T A^T
    return multiply(kernels, {sizes.columns, sizes.inner, sizes.rows}, {B.data, B.stride, true},
                    {A.data, A.stride, false}, {out.data, out.stride, !out.turned, out.add});
  const int block = std::min(ROWS, sizes.rows), panel = kernels.panel;
  const bool once = sizes.rows <= ROWS;  // each panel is used while it is in the cache, and forgotten
  const size_t room = Panels::size(kernels, sizes.inner, once ? panel : sizes.columns);
  const Panels packed = {kernels, static_cast<char*>(Room::of_thread().bytes(Room::PANELS, room)), sizes.inner,
                         sizes.columns};
  const Operand operand(kernels, block, sizes.inner);
  if (!once) packed.fill(B, 0, sizes.columns);
  for (int row = 0; row < sizes.rows; row += block) {
    const int rows = std::min(block, sizes.rows - row);
    operand.fill(kernels, A, row, rows, sizes.inner);
    const Place place = {out.data + row * (out.turned ? 1 : out.stride), out.stride, out.turned, out.add};
    for (int column = 0; column < sizes.columns; column += panel) {
      if (once) packed.fill(from_column(B, column), 0, std::min(panel, sizes.columns - column));
      multiply_panel(packed, operand, rows, column, packed.at(once ? 0 : column), place);
    }
  }
}

void multiply_packed(const Panels& B, int rows, const float* A, size_t stride, const Place& out) {
  const Operand operand(B.kernels, rows, B.inner);
  operand.fill(B.kernels, {A, stride, false}, 0, rows, B.inner);
  for (int column = 0; column < B.columns; column += B.kernels.panel)
    multiply_panel(B, operand, rows, column, B.at(column), out);
}

const Kernels* kernels_to_train(int64_t instructions, int64_t precision) {
  return kernels_for(static_cast<InstructionSet>(instructions), static_cast<Precision>(precision));
}

}  // namespace moses_rnn

// out (rows × columns) = A B, of float32 matrices row by row; each may stand there transposed. 0, or 1 without memory.
MOSES_RNN_API int moses_rnn_train_product(int64_t instructions, int64_t precision, const float* A, int64_t A_stride,
                                          int64_t A_transposed, const float* B, int64_t B_stride, int64_t B_transposed,
                                          float* out, int64_t rows, int64_t inner, int64_t columns) {
  try {
    const moses_rnn::Product sizes = {static_cast<int>(rows), static_cast<int>(inner), static_cast<int>(columns)};
    moses_rnn::multiply(*moses_rnn::kernels_to_train(instructions, precision), sizes,
                        {A, static_cast<size_t>(A_stride), A_transposed != 0},
                        {B, static_cast<size_t>(B_stride), B_transposed != 0},
                        {out, static_cast<size_t>(columns), false, false});
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}
