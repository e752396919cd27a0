// The best kernels of a machine.
#include "kernels.h"

namespace moses_rnn {

const Kernels* kernels_for(InstructionSet best, Precision precision) {
#if defined(__x86_64__)
  switch (best) {
    case AMX: return kernels_amx(precision);
    case AVX512_BF16: return kernels_avx512bf16(precision);
    case AVX512: return kernels_avx512(precision);
    case AVX2: return kernels_avx2(precision);
    default: break;
  }
#endif
  static_cast<void>(best);
  return kernels_portable(precision);
}

}  // namespace moses_rnn
