// The 16-bit conversions that LLVM calls by name. libgcc has the bfloat16 ones only since version
// 13 and its shared library the f16 ones only since 12, so all five are here. By the x86-64
// convention a half or bfloat travels in the low 16 bits of an SSE register, where GCC 12 puts a
// _Float16; it is used as a box for bits only, since arithmetic on it would call these very
// functions.
#include "plugin/runtime/float16.h"

#include <bit>
#include <cstdint>

extern "C" {

_Float16 __truncsfbf2(float value) { return std::bit_cast<_Float16>(treadle::Bf16FromF32(value)); }
_Float16 __truncdfbf2(double value) { return std::bit_cast<_Float16>(treadle::Bf16FromF64(value)); }
_Float16 __truncsfhf2(float value) { return std::bit_cast<_Float16>(treadle::F16FromF32(value)); }
_Float16 __truncdfhf2(double value) { return std::bit_cast<_Float16>(treadle::F16FromF64(value)); }
float __extendhfsf2(_Float16 value) { return treadle::F32FromF16(std::bit_cast<uint16_t>(value)); }

}  // extern "C"
