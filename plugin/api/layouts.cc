#include "plugin/api/layouts.h"

#include <array>
#include <cstdint>
#include <string>

#include "plugin/api/executable.h"
#include "plugin/api/guard.h"
#include "plugin/api/handles.h"
#include "plugin/api/layout.h"
#include "plugin/runtime/error.h"

// A layout is the text by which XLA writes it: "{1,0}" for a row-major matrix.
struct PJRT_Layouts_MemoryLayout {
  std::string text;
};

namespace treadle::api {

namespace {

std::array<PJRT_Layouts_MemoryLayout, kMaxRank + 1> TextsOfRowMajor() {
  std::array<PJRT_Layouts_MemoryLayout, kMaxRank + 1> layouts;
  for (size_t rank = 0; rank < layouts.size(); ++rank) {
    std::string& text = layouts[rank].text;
    text = "{";
    for (size_t dim = rank; dim-- > 0;) text += std::to_string(dim) + (dim > 0 ? "," : "");
    text += "}";
  }
  return layouts;
}

PJRT_Layouts_MemoryLayout& Unwrap(PJRT_Layouts_MemoryLayout* handle) {
  return NotNull(handle, "PJRT_Layouts_MemoryLayout");
}

// Nobody owns a layout.
void Destroy(PJRT_Layouts_MemoryLayout_Destroy_Args&) {}

void Serialize(PJRT_Layouts_MemoryLayout_Serialize_Args& args) {
  const std::string& text = Unwrap(args.layout).text;
  args.serialized_bytes = text.data();
  args.serialized_bytes_size = text.size();
  args.serialized_layout = nullptr;  // the text belongs to the layout
  args.serialized_layout_deleter = [](PJRT_Layouts_SerializedLayout*) {};
}

void OfBuffer(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args& args) {
  args.layout = RowMajorLayoutHandle(api::Unwrap(args.buffer).dims().size());
}

void DefaultOfClient(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args& args) {
  args.layout = RowMajorLayoutHandle(args.num_dims);
}

void DefaultOfTopology(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args& args) {
  args.layout = RowMajorLayoutHandle(args.num_dims);
}

// The C API wants a pointer to pointers that a caller could write through; the list is never
// written.
PJRT_Layouts_MemoryLayout** ListOf(const PJRT_Executable::List& list) {
  return const_cast<PJRT_Layouts_MemoryLayout**>(list.layouts.data());
}

void OfOutputs(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args& args) {
  const PJRT_Executable::List& list = api::Unwrap(args.executable).outputs;
  args.num_outputs = list.layouts.size();
  args.layouts = ListOf(list);
}

void OfParameters(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args& args) {
  const PJRT_Executable::List& list = api::Unwrap(args.executable).inputs;
  args.num_parameters = list.layouts.size();
  args.layouts = ListOf(list);
}

}  // namespace

PJRT_Layouts_MemoryLayout* RowMajorLayoutHandle(size_t rank) {
  static auto* const layouts = new auto(TextsOfRowMajor());
  if (rank > kMaxRank) throw Unimplemented("the layout of an array of ", rank, " dimensions");
  return &(*layouts)[rank];
}

PJRT_Extension_Base* LayoutsExtension(PJRT_Extension_Base* next) {
  static PJRT_Layouts_Extension extension = [] {
    PJRT_Layouts_Extension e{};
    e.base = {PJRT_Layouts_Extension_STRUCT_SIZE, PJRT_Extension_Type_Layouts, nullptr};
    TREADLE_BIND(e, PJRT_Layouts_MemoryLayout_Destroy, Destroy, layout);
    TREADLE_BIND(e, PJRT_Layouts_MemoryLayout_Serialize, Serialize, serialized_layout_deleter);
    TREADLE_BIND(e, PJRT_Layouts_PJRT_Client_GetDefaultLayout, DefaultOfClient, layout);
    TREADLE_BIND(e, PJRT_Layouts_PJRT_Buffer_MemoryLayout, OfBuffer, layout);
    TREADLE_BIND(e, PJRT_Layouts_PJRT_Topology_GetDefaultLayout, DefaultOfTopology, layout);
    TREADLE_BIND(e, PJRT_Layouts_PJRT_Executable_GetOutputLayouts, OfOutputs, layouts);
    TREADLE_BIND(e, PJRT_Layouts_PJRT_Executable_GetParameterLayouts, OfParameters, layouts);
    return e;
  }();
  extension.base.next = next;
  return &extension.base;
}

}  // namespace treadle::api
