// Kernels for AMX: 32 × 32 sums in four tiles, 32 inner elements at a time.
#include "bf16.h"
#include "amx_tiles.h"

namespace {

struct Amx : Bf16Operand<32> {
  static constexpr int TILE_ROWS = 32;

  // Rows of 64 bytes each: tiles 0 to 3 are sums, 4 and 5 rows of A, 6 and 7 columns of the panel.
  static void configure() {
    struct alignas(64) {
      uint8_t palette = 1, start = 0, reserved[14] = {};
      uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } shape;
    tiles::configure(&shape);
  }

  // Before tiles are used where torch may have used them with another shape since, in this thread.
  static void prepare() {
    tiles::forget();
    configure();
  }

  __attribute__((noinline)) static void tile(const uint16_t* A, int stride, const uint16_t* panel, int inner, const float* bias, float* out) {
    alignas(64) static const float nothing[32] = {};
    const float* b = bias ? bias : nothing;
    configure();
    tiles::load<0>(b, 0), tiles::load<1>(b + 16, 0), tiles::load<2>(b, 0), tiles::load<3>(b + 16, 0);
    const size_t row = static_cast<size_t>(stride) * sizeof *A;
    for (int k = 0; k < inner; k += 32, panel += 32 * 32) {
      tiles::load<4>(A + k, row);
      tiles::load<6>(panel, 128);
      tiles::dot<0, 4, 6>();
      tiles::load<7>(panel + 32, 128);
      tiles::dot<1, 4, 7>();
      tiles::load<5>(A + static_cast<size_t>(16) * stride + k, row);
      tiles::dot<2, 5, 6>();
      tiles::dot<3, 5, 7>();
    }
    tiles::store<0>(out, 128), tiles::store<1>(out + 16, 128);
    tiles::store<2>(out + 16 * 32, 128), tiles::store<3>(out + 16 * 32 + 16, 128);
  }
};

}  // namespace

namespace moses_rnn {

const Kernels* kernels_amx(Precision precision) {
  return precision == BF16 ? KernelsOn<Amx>::table() : kernels_avx512(precision);
}

}  // namespace moses_rnn
