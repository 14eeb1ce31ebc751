// What matrix products and convolutions share in their use of oneDNN: owned handles, layouts,
// primitives and a cache of them.
#ifndef TREADLE_PLUGIN_RUNTIME_ONEDNN_PRIMITIVE_H_
#define TREADLE_PLUGIN_RUNTIME_ONEDNN_PRIMITIVE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "dnnl.h"
#include "plugin/runtime/element_type.h"
#include "plugin/runtime/onednn.h"

namespace treadle {

// Throws INTERNAL naming `what` unless `status` is success; UNIMPLEMENTED if that is what oneDNN
// says.
void CheckOneDnn(dnnl_status_t status, const char* what);

// Whether oneDNN can compute in this type; sets `out`.
bool OneDnnType(ElementType type, dnnl_data_type_t* out);

template <typename Handle>
using OneDnnOwned = std::unique_ptr<std::remove_pointer_t<Handle>, dnnl_status_t (*)(Handle)>;
using OneDnnDesc = OneDnnOwned<dnnl_memory_desc_t>;

OneDnnDesc MakeDesc(const OneDnn& library, std::span<const int64_t> dims, dnnl_data_type_t type,
                    std::span<const int64_t> strides);
// A descriptor whose layout oneDNN chooses.
OneDnnDesc MakeAnyDesc(const OneDnn& library, std::span<const int64_t> dims, dnnl_data_type_t type);

// Attributes that leave scratch memory to us: oneDNN's own would tie a primitive to the thread that
// made it.
OneDnnOwned<dnnl_primitive_attr_t> MakeAttributes(const OneDnn& library);

// A primitive, ready to run on any thread. Arguments whose layout oneDNN chose differently from the
// caller's are reordered around it.
class OneDnnPrimitive {
 public:
  struct Argument {
    int id;              // DNNL_ARG_*
    dnnl_query_t query;  // which descriptor of the primitive this is
    OneDnnDesc user;     // the caller's layout
    bool output;
  };

  // Takes over `desc`. Throws what CheckOneDnn throws.
  OneDnnPrimitive(const OneDnn& library, dnnl_primitive_desc_t desc,
                  std::vector<Argument> arguments);

  // `data` in the order of the arguments. May throw RESOURCE_EXHAUSTED.
  void Run(std::span<void* const> data) const;

  // The implementation's name and how many arguments it reorders, for tests and debugging.
  std::string Describe() const;

 private:
  struct Stage {
    OneDnnOwned<dnnl_primitive_desc_t> desc;
    OneDnnOwned<dnnl_primitive_t> primitive;
    const_dnnl_memory_desc_t scratch;  // nullptr if it needs none
    size_t scratch_bytes;
  };

  Stage MakeStage(dnnl_primitive_desc_t desc) const;
  Stage MakeReorder(const_dnnl_memory_desc_t from, const_dnnl_memory_desc_t to) const;
  const_dnnl_memory_desc_t OwnDesc(const Argument& argument) const;

  const OneDnn& library_;
  const std::vector<Argument> arguments_;
  const Stage main_;
  std::vector<std::unique_ptr<Stage>> reorders_;  // per argument; nullptr: the layouts agree
};

// The primitive for `key`, made by `make` the first time; nullptr, which is remembered too, if
// `make` throws UNIMPLEMENTED. Bounded; any thread may call. `key` is any bytes that determine the
// primitive.
std::shared_ptr<const OneDnnPrimitive> CachedPrimitive(
    const std::string& key, const std::function<std::shared_ptr<const OneDnnPrimitive>()>& make);

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_ONEDNN_PRIMITIVE_H_
