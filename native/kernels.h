// The interface between the network (network.cpp, compiled for every processor) and its kernels (compiled once for each
// instruction set, from kernels_on.h). Plain data and pointers to functions only: nothing that the linker could merge
// between files of different instruction sets.
//
// All kernels work on a block of at most BLOCK_ROWS rows (states of the network), in this thread alone. Letters are the
// paper's (Cho et al. 2014): H hidden units, E embedding dimensions, M maxout units, R output rank, K words. An operand
// is a row of what a product multiplies, [e | h]: the embedding first, since states are written in whole panels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu.h"

namespace moses_rnn {

constexpr int BLOCK_ROWS = 192;  // a multiple of every kernel's tile
constexpr int UNITS = 32;        // hidden units, maxout units and ranks are stored in multiples of this
constexpr int CACHE_LINE = 64;

enum Precision { FP32, BF16 };  // of products; states, gates and sums are float32 in all of them

// A matrix for products, packed in panels of columns; `bias` (or null) is added to each row of the product.
struct Packed {
  void* data;
  const float* bias;
  int inner;    // elements of a column, as it is stored
  int columns;  // a multiple of the panel
};

// What the terms of a source are, in one row of floats; see Terms in moses_rnn/networks/encdec.py. Null without terms.
struct TermRows {
  const float* data;
  size_t stride;
  const int32_t* sources;  // the row of each state of the block; rows
  int gates_z, gates_r, Cc, O_cc;  // places in a row
};

// One step of a gated hidden unit: h_t from h_{t-1} and e(x_t).
struct Step {
  int rows, H;          // H as it is stored
  int state_stride;     // floats from one row of states, or of z, to the next
  const void* operand;  // [e | h]; rows × operand_stride elements
  void* next;           // [e | h_t], for the read-out, and the second operand while the reset gate acts before U
  int operand_stride, e_inner;
  const float* states;  // of the level above
  const int32_t* parents;  // the row of each state there; rows
  float* new_states;    // rows × state_stride
  float* z;             // room for rows × state_stride
  TermRows terms;
};

struct Gates {
  Packed z, r;          // W_z | U_z and W_r | U_r
  Packed candidate;     // W | U, where the reset gate acts before the product
  Packed W, U;          // apart, where it acts after it
};

struct Normaliser {
  float* largest;   // the largest logit, in base 2
  int32_t* at;      // its word
  float* rest;      // the sum of the others' 2^(logit - largest)
};

struct TrainingKernels;  // see training.h

struct Kernels {
  int panel;    // columns of a panel
  int element;  // bytes of an operand's element
  int pad;      // inner sizes are multiples of this

  // One part of a packed matrix: W is columns × size, a row for each column of the product.
  void (*pack)(const float* W, int columns, int size, const Packed& to, int offset);
  // A row of floats as an operand's part; `size` floats, and zeros up to its inner size or the end of a vector, which may
  // reach into the part behind it: that is written later.
  void (*write_part)(const float* from, int size, void* operand);
  // To be called before the others: torch may have used this thread's tiles since the last call.
  void (*prepare)();
  void (*step_reset_before)(const Step&, const Gates&);
  void (*step_reset_after)(const Step&, const Gates&);
  // out = A W + bias, or its tanh; rows × out_stride floats
  void (*affine)(const void* A, int stride, int rows, const Packed& W, bool with_tanh, float* out, size_t out_stride);
  // s_i = max(s'_{2i-1}, s'_{2i}), s' = O [e | h] + O_c c + b_O, as an operand; a panel holds odd units, then even ones
  void (*maxout)(const void* A, int stride, int rows, const Packed& O, const TermRows& terms, void* s,
                 int s_stride);
  void (*normalise)(const void* A, int stride, int rows, const Packed& G_l, const Normaliser& to);
  float (*dot)(const float* a, const float* b, int size);
  const TrainingKernels& (*training)();
};

// Null where there are none: bf16 without instructions for it, or another family of processors.
const Kernels* kernels_portable(Precision precision);
const Kernels* kernels_avx2(Precision precision);
const Kernels* kernels_avx512(Precision precision);
const Kernels* kernels_avx512bf16(Precision precision);
const Kernels* kernels_amx(Precision precision);
const Kernels* kernels_for(InstructionSet best, Precision precision);

}  // namespace moses_rnn
