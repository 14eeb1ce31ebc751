#include "plugin/runtime/convolution/convolution.h"

#include <optional>

#include "plugin/runtime/convolution/form.h"
#include "plugin/runtime/convolution/geometry.h"
#include "plugin/runtime/convolution/onednn_convolution.h"
#include "plugin/runtime/convolution/patches.h"
#include "plugin/runtime/convolution/widened.h"
#include "plugin/runtime/element_type.h"
#include "plugin/runtime/run.h"

namespace treadle {
namespace {

// Fewer multiplications than this are done before oneDNN has looked at its arguments.
constexpr double kMinOneDnnWork = 1 << 15;

bool Empty(const TreadleConvolution& c) {
  return c.batch == 0 || c.in_features == 0 || c.out_features == 0 ||
         SpatialSize(c, c.lhs_spatial) == 0 || SpatialSize(c, c.rhs_spatial) == 0 ||
         SpatialSize(c, c.out_spatial) == 0;
}

}  // namespace

void Convolve(ThreadPool& pool, const TreadleConvolution& convolution, const void* lhs,
              const void* rhs, void* out) {
  const TreadleConvolution c = CheckedConvolution(convolution);
  const auto form = Empty(c) ? std::nullopt : RecogniseForm(c);
  if (form && WorkOf(*form) >= kMinOneDnnWork && c.lhs_type == c.rhs_type) {
    const auto in = static_cast<ElementType>(c.lhs_type), to = static_cast<ElementType>(c.out_type);
    if (OneDnnConvolves(in)) {
      if (OneDnnConvolution(pool, *form, in, to, lhs, rhs, out)) return;
    } else if ((in == ElementType::bf16 || in == ElementType::f16) &&
               (to == in || to == ElementType::f32) && OneDnnConvolves(ElementType::f32)) {
      const WidenedConvolution wide(c, lhs, rhs);
      Convolve(pool, wide.convolution(), wide.lhs(), wide.rhs(), wide.out());
      wide.Finish(out);
      return;
    }
  }
  PatchesConvolution(pool, c, lhs, rhs, out);
}

}  // namespace treadle

extern "C" int32_t treadle_convolution(TreadleRun* run, const TreadleConvolution* convolution,
                                       const void* lhs, const void* rhs, void* out) {
  return treadle::Guarded(run, "convolution",
                          [&] { treadle::Convolve(run->pool, *convolution, lhs, rhs, out); });
}
