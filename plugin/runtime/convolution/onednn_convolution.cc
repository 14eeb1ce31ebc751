#include "plugin/runtime/convolution/onednn_convolution.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plugin/runtime/cpu_features.h"
#include "plugin/runtime/error.h"
#include "plugin/runtime/first_error.h"
#include "plugin/runtime/half_types.h"
#include "plugin/runtime/memory_block.h"
#include "plugin/runtime/onednn_primitive.h"
#include "plugin/runtime/program_abi.h"

namespace treadle {
namespace {

using Form = ConvolutionForm;
using Dims = std::vector<int64_t>;

struct Types {
  ElementType source, weights, destination;
};

struct Key {
  char kind[8] = "conv";
  Types types;
  uint32_t reserved = 0;
  Form form;
};

Dims Join(std::initializer_list<int64_t> head, const int64_t* spatial, int64_t rank) {
  Dims dims(head);
  dims.insert(dims.end(), spatial, spatial + rank);
  return dims;
}

// A layout by strides. oneDNN compares strides even where a dimension has size 1 and they mean
// nothing; those get what a dense array would have: one feature lies innermost, one row or image
// spans what lies inside of it.
OneDnnDesc StridedDesc(const OneDnn& library, const Dims& dims, dnnl_data_type_t type,
                       Dims strides) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1) continue;
    int64_t inside = 1;
    for (size_t j = 0; j < dims.size(); ++j) {
      const bool lies_inside = i == 0 || (i >= 2 && (j > i || (j == 1 && strides[1] == 1)));
      if (dims[j] != 1 && lies_inside) inside = std::max(inside, strides[j] * dims[j]);
    }
    strides[i] = inside;
  }
  return MakeDesc(library, dims, type, strides);
}

struct Layouts {
  Dims source, source_strides, weights, weights_strides, destination, destination_strides;
};

Layouts LayoutsOf(const Form& f) {
  Layouts l;
  l.source = Join({f.batch, f.in}, f.source_size, f.rank);
  l.source_strides.assign(f.source_strides, f.source_strides + 2 + f.rank);
  l.destination = Join({f.batch, f.out}, f.destination_size, f.rank);
  l.destination_strides.assign(f.destination_strides, f.destination_strides + 2 + f.rank);
  l.weights = Join({f.out / f.groups, f.in / f.groups}, f.weights_size, f.rank);
  l.weights_strides.assign(f.weights_strides, f.weights_strides + 2 + f.rank);
  if (f.groups > 1) {
    l.weights.insert(l.weights.begin(), f.groups);
    l.weights_strides.insert(l.weights_strides.begin(), f.weights_group);
  }
  return l;
}

bool IsPointwise(const Form& f) {
  for (int64_t d = 0; d < f.rank; ++d) {
    if (f.weights_size[d] != 1 || f.stride[d] != 1 || f.padding_low[d] != 0 ||
        f.padding_high[d] != 0) {
      return false;
    }
  }
  return true;
}

// Which of the caller's layouts a primitive works on directly.
enum class Choice { kKeepGood, kKeepNone };

std::shared_ptr<const OneDnnPrimitive> TryMake(const OneDnn& library, const Types& types,
                                               const Form& f, Choice choice) {
  dnnl_data_type_t source_type, weights_type, destination_type;
  if (!OneDnnType(types.source, &source_type) || !OneDnnType(types.weights, &weights_type) ||
      !OneDnnType(types.destination, &destination_type)) {
    return nullptr;
  }
  const Layouts l = LayoutsOf(f);
  OneDnnDesc source = StridedDesc(library, l.source, source_type, l.source_strides);
  OneDnnDesc weights = StridedDesc(library, l.weights, weights_type, l.weights_strides);
  OneDnnDesc destination =
      StridedDesc(library, l.destination, destination_type, l.destination_strides);
  const OneDnnDesc any_source = MakeAnyDesc(library, l.source, source_type);
  const OneDnnDesc any_weights = MakeAnyDesc(library, l.weights, weights_type);
  const OneDnnDesc any_destination = MakeAnyDesc(library, l.destination, destination_type);
  // oneDNN is at its best with features innermost, and then best left alone; other arrays it had
  // better rearrange. A product per pixel is fast in any layout.
  const bool pointwise = IsPointwise(f);
  const bool keep_source =
      choice == Choice::kKeepGood && (pointwise || f.in == 1 || f.source_strides[1] == 1);
  const bool keep_destination =
      choice == Choice::kKeepGood && (pointwise || f.out == 1 || f.destination_strides[1] == 1);
  const_dnnl_memory_desc_t s = keep_source ? source.get() : any_source.get();
  const_dnnl_memory_desc_t d = keep_destination ? destination.get() : any_destination.get();
  const_dnnl_memory_desc_t w = any_weights.get();
  Dims strides(f.stride, f.stride + f.rank), dilations, low(f.padding_low, f.padding_low + f.rank),
      high(f.padding_high, f.padding_high + f.rank);
  // oneDNN counts the gaps.
  for (int64_t i = 0; i < f.rank; ++i) dilations.push_back(f.dilation[i] - 1);

  const auto attributes = MakeAttributes(library);
  dnnl_primitive_desc_t desc = nullptr;
  std::vector<OneDnnPrimitive::Argument> arguments;
  switch (f.kind) {
    case Form::Kind::kForward:
      CheckOneDnn(
          library.convolution_forward_primitive_desc_create(
              &desc, library.engine, dnnl_forward_inference, dnnl_convolution_direct, s, w, nullptr,
              d, strides.data(), dilations.data(), low.data(), high.data(), attributes.get()),
          "this convolution");
      arguments.push_back({DNNL_ARG_SRC, dnnl_query_src_md, std::move(source), false});
      arguments.push_back({DNNL_ARG_WEIGHTS, dnnl_query_weights_md, std::move(weights), false});
      arguments.push_back({DNNL_ARG_DST, dnnl_query_dst_md, std::move(destination), true});
      break;
    case Form::Kind::kSourceGradient:
      CheckOneDnn(library.convolution_backward_data_primitive_desc_create(
                      &desc, library.engine, dnnl_convolution_direct, s, w, d, strides.data(),
                      dilations.data(), low.data(), high.data(), nullptr, attributes.get()),
                  "this convolution");
      arguments.push_back({DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, std::move(source), true});
      arguments.push_back({DNNL_ARG_WEIGHTS, dnnl_query_weights_md, std::move(weights), false});
      arguments.push_back(
          {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, std::move(destination), false});
      break;
    case Form::Kind::kWeightGradient:
      CheckOneDnn(
          library.convolution_backward_weights_primitive_desc_create(
              &desc, library.engine, dnnl_convolution_direct, s, w, nullptr, d, strides.data(),
              dilations.data(), low.data(), high.data(), nullptr, attributes.get()),
          "this convolution");
      arguments.push_back({DNNL_ARG_SRC, dnnl_query_src_md, std::move(source), false});
      arguments.push_back(
          {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, std::move(weights), true});
      arguments.push_back(
          {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, std::move(destination), false});
      break;
  }
  auto made = std::make_shared<const OneDnnPrimitive>(library, desc, std::move(arguments));
  // Its reference code is far slower than a product of patches.
  return made->Describe().starts_with("ref") ? nullptr : made;
}

std::shared_ptr<const OneDnnPrimitive> Make(const OneDnn& library, const Types& types,
                                            const Form& form) {
  try {
    if (auto made = TryMake(library, types, form, Choice::kKeepGood)) return made;
  } catch (const Error& error) {
    if (error.code != static_cast<int>(StatusCode::kUnimplemented)) throw;
  }
  return TryMake(library, types, form, Choice::kKeepNone);
}

// A dense copy of the weights, mirrored along the form's flipped dimensions, which the form then no
// longer asks for.
template <typename T>
HostBlock Mirrored(Form& form, const void* weights) {
  const int64_t outs = form.out / form.groups, ins = form.in / form.groups;
  int64_t size[TREADLE_MAX_SPATIAL] = {1, 1, 1}, step[TREADLE_MAX_SPATIAL] = {0, 0, 0};
  for (int64_t d = 0; d < form.rank; ++d) {
    size[d] = form.weights_size[d];
    step[d] = form.weights_strides[2 + d];
  }
  HostBlock block(static_cast<size_t>(form.groups * outs * ins * size[0] * size[1] * size[2]) *
                  sizeof(T));
  T* to = static_cast<T*>(block.data());
  // Spatial positions outermost and outputs innermost, as in arrays with the features last.
  for (int64_t x = 0; x < size[0]; ++x) {
    for (int64_t y = 0; y < size[1]; ++y) {
      for (int64_t z = 0; z < size[2]; ++z) {
        const int64_t at = (form.flip[0] ? size[0] - 1 - x : x) * step[0] +
                           (form.flip[1] ? size[1] - 1 - y : y) * step[1] +
                           (form.flip[2] ? size[2] - 1 - z : z) * step[2];
        for (int64_t g = 0; g < form.groups; ++g) {
          for (int64_t i = 0; i < ins; ++i) {
            const T* from = static_cast<const T*>(weights) + at + g * form.weights_group +
                            i * form.weights_strides[1];
            for (int64_t o = 0; o < outs; ++o) *to++ = from[o * form.weights_strides[0]];
          }
        }
      }
    }
  }
  form.weights_strides[0] = 1;
  form.weights_strides[1] = outs;
  form.weights_group = outs * ins;
  int64_t stride = form.groups * outs * ins;
  for (int64_t d = form.rank; d-- > 0;) {
    form.weights_strides[2 + d] = stride;
    stride *= form.weights_size[d];
    form.flip[d] = 0;
  }
  return block;
}

// The arrays by the parts they play; each as bytes.
struct Arrays {
  char* source;
  char* weights;
  char* destination;
};

int64_t WeightsOf(const Form& form) {
  int64_t elements = form.out * (form.in / form.groups);
  for (int64_t d = 0; d < form.rank; ++d) elements *= form.weights_size[d];
  return elements;
}

// out[i] = the sum of parts[p][i], in the order of p.
template <typename Out>
void AddParts(ThreadPool& pool, const float* parts, int64_t count, int64_t elements, Out* out) {
  pool.ForRange(elements, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float sum = parts[i];
      for (int64_t p = 1; p < count; ++p) sum += parts[p * elements + i];
      out[i] = static_cast<Out>(sum);
    }
  });
}

// The work is cut into parts, each a call of oneDNN on one thread alone. In a gradient to the
// weights every part gives a summand of the result, in memory of its own.
class SplitConvolution {
 public:
  SplitConvolution(ThreadPool& pool, const OneDnn& library, const Form& form, const Types& types)
      : pool_(pool), library_(library), form_(form), result_type_(types.weights), types_(types) {
    Split();
    summands_ = form.kind == Form::Kind::kWeightGradient && parts_.size() > 1;
    if (summands_) types_.weights = ElementType::f32;
  }

  bool Run(const Arrays& arrays) {
    std::vector<std::shared_ptr<const OneDnnPrimitive>> primitives;
    for (const Form& part : parts_) {
      primitives.push_back(PrimitiveFor(part));
      if (primitives.back() == nullptr) return false;
    }
    const int64_t weights = WeightsOf(form_);
    const auto count = static_cast<int64_t>(parts_.size());
    const HostBlock sums(summands_ ? static_cast<size_t>(count * weights) * sizeof(float) : 0);
    FirstError error;
    pool_.ForRange(count, 1, [&](int64_t begin, int64_t end) {
      error.Guard([&] {
        for (int64_t i = begin; i < end; ++i) {
          const Form& part = parts_[static_cast<size_t>(i)];
          void* const own_weights = summands_ ? static_cast<float*>(sums.data()) + i * weights
                                              : static_cast<void*>(arrays.weights);
          const std::array<void*, 3> data = {
              arrays.source + part.source_offset * Bytes(types_.source), own_weights,
              arrays.destination + part.destination_offset * Bytes(types_.destination)};
          primitives[static_cast<size_t>(i)]->Run(data);
        }
      });
    });
    error.Rethrow();
    if (summands_) Add(static_cast<const float*>(sums.data()), weights, arrays.weights);
    return true;
  }

 private:
  static int64_t Bytes(ElementType type) { return static_cast<int64_t>(ElementBytes(type)); }

  void Split() {
    // Multiplications that are worth a thread's while.
    constexpr double kGrain = 1 << 20;
    const auto affordable = static_cast<int64_t>(std::min(WorkOf(form_) / kGrain, 1e6)) + 1;
    const int64_t wanted = std::min<int64_t>(pool_.size(), affordable);
    const auto cut = [](int64_t size, int64_t parts, int64_t part) { return size * part / parts; };
    if (form_.batch >= wanted || form_.kind == Form::Kind::kSourceGradient) {
      const int64_t count = std::min(form_.batch, wanted);
      for (int64_t i = 0; i < count; ++i) {
        parts_.push_back(
            BatchPart(form_, cut(form_.batch, count, i), cut(form_.batch, count, i + 1)));
      }
      return;
    }
    // Fewer images than threads: rows of each image.
    const int64_t rows = form_.destination_size[0];
    const int64_t count = std::min(rows, (wanted - 1) / form_.batch + 1);
    for (int64_t image = 0; image < form_.batch; ++image) {
      const Form whole = BatchPart(form_, image, image + 1);
      for (int64_t i = 0; i < count; ++i) {
        const auto part = RowsPart(whole, cut(rows, count, i), cut(rows, count, i + 1));
        if (!part) {
          // Rows in padding alone: not worth a case of their own.
          parts_ = {form_};
          return;
        }
        parts_.push_back(*part);
      }
    }
  }

  std::shared_ptr<const OneDnnPrimitive> PrimitiveFor(const Form& part) const {
    Key key{.types = types_, .form = part};
    // Where the arrays start does not matter to the code.
    key.form.source_offset = key.form.destination_offset = 0;
    return CachedPrimitive(std::string(reinterpret_cast<const char*>(&key), sizeof key),
                           [&] { return Make(library_, types_, part); });
  }

  void Add(const float* sums, int64_t elements, void* out) {
    const auto count = static_cast<int64_t>(parts_.size());
    if (result_type_ == ElementType::f32) {
      AddParts(pool_, sums, count, elements, static_cast<float*>(out));
    } else if (result_type_ == ElementType::bf16) {
      AddParts(pool_, sums, count, elements, static_cast<Bf16*>(out));
    } else {
      AddParts(pool_, sums, count, elements, static_cast<F16*>(out));
    }
  }

  ThreadPool& pool_;
  const OneDnn& library_;
  const Form form_;
  const ElementType result_type_;  // of the caller's weights, whatever the summands are
  Types types_;
  std::vector<Form> parts_;
  bool summands_;
};

bool Has(TreadleCpuFeature feature) { return (HostCpuFeatures() >> feature & 1) != 0; }

}  // namespace

bool OneDnnConvolves(ElementType type) {
  if (OneDnn::Get() == nullptr) return false;
  return type == ElementType::f32 || (type == ElementType::bf16 && Has(TREADLE_CPU_AVX512BF16)) ||
         (type == ElementType::f16 && Has(TREADLE_CPU_AVX512FP16));
}

bool OneDnnConvolution(ThreadPool& pool, const Form& recognised, ElementType in,
                       ElementType out_type, const void* lhs, const void* rhs, void* out) {
  const OneDnn* library = OneDnn::Get();
  if (library == nullptr) return false;
  Form form = recognised;
  const auto pick = [&](Form::Role role) {
    // oneDNN takes its inputs by pointers to non-const too.
    return static_cast<char*>(role == Form::Role::kLhs   ? const_cast<void*>(lhs)
                              : role == Form::Role::kRhs ? const_cast<void*>(rhs)
                                                         : out);
  };
  const auto type = [&](Form::Role role) { return role == Form::Role::kOut ? out_type : in; };
  Arrays arrays{pick(form.source), pick(form.weights), pick(form.destination)};
  const Types types{type(form.source), type(form.weights), type(form.destination)};
  HostBlock mirrored;
  if (std::any_of(form.flip, form.flip + form.rank, [](int64_t flip) { return flip != 0; })) {
    mirrored = ElementBytes(types.weights) == 4 ? Mirrored<uint32_t>(form, arrays.weights)
                                                : Mirrored<uint16_t>(form, arrays.weights);
    arrays.weights = static_cast<char*>(mirrored.data());
  }
  return SplitConvolution(pool, *library, form, types).Run(arrays);
}

}  // namespace treadle
