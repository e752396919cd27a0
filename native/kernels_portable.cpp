// Kernels for every processor, on vectors of four floats.
#include "kernels_on.h"

namespace moses_rnn {

const Kernels* kernels_portable(Precision precision) {
  return precision == FP32 ? KernelsOn<Fp32<4, 4, 8>>::table() : nullptr;
}

}  // namespace moses_rnn
