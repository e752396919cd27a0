// Kernels for AVX2 with fused multiply-add: sixteen registers of eight floats, twelve of them sums.
#include "kernels_on.h"

namespace moses_rnn {

const Kernels* kernels_avx2(Precision precision) {
  return precision == FP32 ? KernelsOn<Fp32<8, 6, 16>>::table() : nullptr;
}

}  // namespace moses_rnn
