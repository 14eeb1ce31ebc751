#include "plugin/runtime/dot/onednn_matmul.h"

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plugin/runtime/cpu_features.h"
#include "plugin/runtime/onednn_primitive.h"
#include "plugin/runtime/program_abi.h"

namespace treadle {
namespace {

// A call of oneDNN costs about two microseconds.
constexpr int64_t kMinWork = 48 * 48 * 48;

struct Key {
  char kind[8] = "matmul";
  uint32_t in, out;
  DotShape shape;
};

// oneDNN's fast code wants dense rows or dense columns of both factors, and dense rows of the
// result.
bool Dense(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  return (column == 1 && row >= columns) || (row == 1 && column >= rows);
}

bool HasInstructions(ElementType in) {
  const uint64_t features = HostCpuFeatures();
  const auto has = [&](TreadleCpuFeature feature) { return (features >> feature & 1) != 0; };
  return in == ElementType::bf16 ? has(TREADLE_CPU_AVX512BF16) : has(TREADLE_CPU_AVX512FP16);
}

std::shared_ptr<const OneDnnPrimitive> Make(const OneDnn& library, ElementType in, ElementType out,
                                            const DotShape& s) {
  dnnl_data_type_t in_type, out_type;
  if (!OneDnnType(in, &in_type) || !OneDnnType(out, &out_type)) return nullptr;
  const auto desc = [&](dnnl_data_type_t type, int64_t rows, int64_t columns, int64_t row,
                        int64_t column) {
    const std::array<int64_t, 2> dims = {rows, columns}, strides = {row, column};
    return MakeDesc(library, dims, type, strides);
  };
  OneDnnDesc lhs = desc(in_type, s.m, s.k, s.lhs_m, s.lhs_k);
  OneDnnDesc rhs = desc(in_type, s.k, s.n, s.rhs_k, s.rhs_n);
  OneDnnDesc result = desc(out_type, s.m, s.n, s.out_m, s.out_n);
  dnnl_primitive_desc_t primitive = nullptr;
  CheckOneDnn(
      library.matmul_primitive_desc_create(&primitive, library.engine, lhs.get(), rhs.get(),
                                           nullptr, result.get(), MakeAttributes(library).get()),
      "this matrix product");
  std::vector<OneDnnPrimitive::Argument> arguments;
  arguments.push_back({DNNL_ARG_SRC, dnnl_query_src_md, std::move(lhs), false});
  arguments.push_back({DNNL_ARG_WEIGHTS, dnnl_query_weights_md, std::move(rhs), false});
  arguments.push_back({DNNL_ARG_DST, dnnl_query_dst_md, std::move(result), true});
  auto made = std::make_shared<const OneDnnPrimitive>(library, primitive, std::move(arguments));
  // Its reference code is far slower than our own.
  return made->Describe().starts_with("ref") ? nullptr : made;
}

}  // namespace

bool OneDnnMatmul(ElementType in, ElementType out, const DotShape& shape, const void* lhs,
                  const void* rhs, void* result) {
  DotShape s = shape;
  if (s.out_n != 1 && s.out_m == 1) {
    std::swap(lhs, rhs);
    s = {s.n, s.m, s.k, s.rhs_n, s.rhs_k, s.lhs_k, s.lhs_m, s.out_n, s.out_m};
  }
  if (s.m * s.n * s.k < kMinWork || !HasInstructions(in)) return false;
  if (!Dense(s.m, s.k, s.lhs_m, s.lhs_k) || !Dense(s.k, s.n, s.rhs_k, s.rhs_n) || s.out_n != 1 ||
      s.out_m < s.n) {
    return false;
  }
  const OneDnn* library = OneDnn::Get();
  if (library == nullptr) return false;
  const Key key{.in = static_cast<uint32_t>(in), .out = static_cast<uint32_t>(out), .shape = s};
  const auto primitive =
      CachedPrimitive(std::string(reinterpret_cast<const char*>(&key), sizeof key),
                      [&] { return Make(*library, in, out, s); });
  if (primitive == nullptr) return false;
  // oneDNN takes its inputs by pointers to non-const too.
  const std::array<void*, 3> data = {const_cast<void*>(lhs), const_cast<void*>(rhs), result};
  primitive->Run(data);
  return true;
}

}  // namespace treadle
