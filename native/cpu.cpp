// Which instruction sets there are, asked when the library is loaded.
#include "cpu.h"

#include <string>

#include "core.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#endif

namespace moses_rnn {

#if defined(__x86_64__)
namespace {

bool has_avx512bf16() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
}

// The processor has tiles, and the kernel lets this process use them: it saves their 8 KB on a switch only if asked to.
bool has_amx() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  const bool bf16 = d >> 22 & 1, tile = d >> 24 & 1;
  return bf16 && tile && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
  return false;
#endif
}

}  // namespace

InstructionSet best_instruction_set() {
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx512 && has_avx512bf16()) return has_amx() ? AMX : AVX512_BF16;
  return avx512 ? AVX512 : avx2 ? AVX2 : PORTABLE;
}

#else

InstructionSet best_instruction_set() { return PORTABLE; }

#endif

}  // namespace moses_rnn

// Has to be the number that moses_rnn/native.py expects: raised with every change of this interface.
MOSES_RNN_API int moses_rnn_interface() { return 2; }

// The best instruction set of this machine; see InstructionSet.
MOSES_RNN_API int moses_rnn_instructions() { return moses_rnn::best_instruction_set(); }
