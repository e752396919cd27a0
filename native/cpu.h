// Instruction sets, from the least to the most.
#pragma once

namespace moses_rnn {

enum InstructionSet { PORTABLE, AVX2, AVX512, AVX512_BF16, AMX };

InstructionSet best_instruction_set();

}  // namespace moses_rnn
