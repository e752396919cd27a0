// Kernels for AVX-512: thirty-two registers of sixteen floats, twenty-four of them sums.
#include "kernels_on.h"

namespace moses_rnn {

const Kernels* kernels_avx512(Precision precision) {
  return precision == FP32 ? KernelsOn<Fp32<16, 12, 32>>::table() : nullptr;
}

}  // namespace moses_rnn
