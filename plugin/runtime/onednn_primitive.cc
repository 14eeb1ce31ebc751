#include "plugin/runtime/onednn_primitive.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "plugin/runtime/error.h"
#include "plugin/runtime/memory_block.h"
#include "plugin/runtime/thread_scratch.h"

namespace treadle {
namespace {

// More than any program has different products and convolutions; a primitive takes some 100 KB.
constexpr size_t kMaxPrimitives = 512;

size_t RoundUp(size_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }

thread_local ThreadScratch thread_scratch;

// One stream per thread: streams hold no work on a CPU, but nothing promises that they can be
// shared.
dnnl_stream_t ThreadStream(const OneDnn& library) {
  struct Owner {
    const OneDnn* library = nullptr;
    dnnl_stream_t stream = nullptr;
    ~Owner() {
      if (stream != nullptr) library->stream_destroy(stream);
    }
  };
  thread_local Owner owner;
  if (owner.stream == nullptr) {
    owner.library = &library;
    CheckOneDnn(library.stream_create(&owner.stream, library.engine, dnnl_stream_default_flags),
                "making a stream");
  }
  return owner.stream;
}

// The arguments of one execution, destroyed after it.
class Memories {
 public:
  explicit Memories(const OneDnn& library) : library_(library) {}
  ~Memories() {
    for (const dnnl_exec_arg_t& argument : arguments_) library_.memory_destroy(argument.memory);
  }
  Memories(const Memories&) = delete;
  Memories& operator=(const Memories&) = delete;

  void Add(int id, const_dnnl_memory_desc_t desc, void* data) {
    dnnl_memory_t memory = nullptr;
    CheckOneDnn(library_.memory_create(&memory, desc, library_.engine, data), "making a memory");
    arguments_.push_back({id, memory});
  }
  void Execute(dnnl_primitive_t primitive) {
    CheckOneDnn(library_.primitive_execute(primitive, ThreadStream(library_),
                                           static_cast<int>(arguments_.size()), arguments_.data()),
                "running");
  }

 private:
  const OneDnn& library_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

}  // namespace

void CheckOneDnn(dnnl_status_t status, const char* what) {
  if (status == dnnl_success) return;
  if (status == dnnl_out_of_memory) throw ResourceExhausted("oneDNN has no memory for ", what, ".");
  if (status == dnnl_unimplemented) throw Unimplemented("oneDNN does not offer ", what, ".");
  throw Internal("oneDNN fails at ", what, " (status ", static_cast<int>(status), ").");
}

bool OneDnnType(ElementType type, dnnl_data_type_t* out) {
  switch (type) {
    case ElementType::f32:
      *out = dnnl_f32;
      return true;
    case ElementType::bf16:
      *out = dnnl_bf16;
      return true;
    case ElementType::f16:
      *out = dnnl_f16;
      return true;
    default:
      return false;
  }
}

OneDnnDesc MakeDesc(const OneDnn& library, std::span<const int64_t> dims, dnnl_data_type_t type,
                    std::span<const int64_t> strides) {
  dnnl_memory_desc_t desc = nullptr;
  CheckOneDnn(library.memory_desc_create_with_strides(&desc, static_cast<int>(dims.size()),
                                                      dims.data(), type, strides.data()),
              "a layout by strides");
  return OneDnnDesc(desc, library.memory_desc_destroy);
}

OneDnnDesc MakeAnyDesc(const OneDnn& library, std::span<const int64_t> dims,
                       dnnl_data_type_t type) {
  dnnl_memory_desc_t desc = nullptr;
  CheckOneDnn(library.memory_desc_create_with_tag(&desc, static_cast<int>(dims.size()), dims.data(),
                                                  type, dnnl_format_tag_any),
              "a layout of its choice");
  return OneDnnDesc(desc, library.memory_desc_destroy);
}

OneDnnOwned<dnnl_primitive_attr_t> MakeAttributes(const OneDnn& library) {
  dnnl_primitive_attr_t attributes = nullptr;
  CheckOneDnn(library.primitive_attr_create(&attributes), "making attributes");
  OneDnnOwned<dnnl_primitive_attr_t> owned(attributes, library.primitive_attr_destroy);
  CheckOneDnn(library.primitive_attr_set_scratchpad_mode(attributes, dnnl_scratchpad_mode_user),
              "setting attributes");
  return owned;
}

OneDnnPrimitive::OneDnnPrimitive(const OneDnn& library, dnnl_primitive_desc_t desc,
                                 std::vector<Argument> arguments)
    : library_(library), arguments_(std::move(arguments)), main_(MakeStage(desc)) {
  for (const Argument& argument : arguments_) {
    const const_dnnl_memory_desc_t own = OwnDesc(argument), user = argument.user.get();
    if (library_.memory_desc_equal(own, user)) {
      reorders_.push_back(nullptr);
    } else {
      reorders_.push_back(std::make_unique<Stage>(argument.output ? MakeReorder(own, user)
                                                                  : MakeReorder(user, own)));
    }
  }
}

const_dnnl_memory_desc_t OneDnnPrimitive::OwnDesc(const Argument& argument) const {
  return library_.primitive_desc_query_md(main_.desc.get(), argument.query, 0);
}

OneDnnPrimitive::Stage OneDnnPrimitive::MakeStage(dnnl_primitive_desc_t desc) const {
  Stage stage{
      {desc, library_.primitive_desc_destroy}, {nullptr, library_.primitive_destroy}, nullptr, 0};
  stage.scratch = library_.primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
  if (stage.scratch != nullptr) stage.scratch_bytes = library_.memory_desc_get_size(stage.scratch);
  dnnl_primitive_t primitive = nullptr;
  CheckOneDnn(library_.primitive_create(&primitive, desc), "generating code");
  stage.primitive.reset(primitive);
  return stage;
}

OneDnnPrimitive::Stage OneDnnPrimitive::MakeReorder(const_dnnl_memory_desc_t from,
                                                    const_dnnl_memory_desc_t to) const {
  dnnl_primitive_desc_t desc = nullptr;
  CheckOneDnn(
      library_.reorder_primitive_desc_create(&desc, from, library_.engine, to, library_.engine,
                                             MakeAttributes(library_).get()),
      "changing a layout");
  return MakeStage(desc);
}

void OneDnnPrimitive::Run(std::span<void* const> data) const {
  const OneDnn::OneThread one_thread(library_);
  // One block holds the scratch memory, shared by the stages, and the reordered arguments.
  size_t scratch_bytes = main_.scratch_bytes;
  for (const auto& reorder : reorders_) {
    if (reorder) scratch_bytes = std::max(scratch_bytes, reorder->scratch_bytes);
  }
  size_t total = RoundUp(scratch_bytes);
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (reorders_[i]) total += RoundUp(library_.memory_desc_get_size(OwnDesc(arguments_[i])));
  }
  char* const scratch = static_cast<char*>(thread_scratch.Get(total));
  const auto add_scratch = [&](Memories& memories, const Stage& stage) {
    if (stage.scratch_bytes > 0) memories.Add(DNNL_ARG_SCRATCHPAD, stage.scratch, scratch);
  };
  const auto reorder = [&](const Stage& stage, const_dnnl_memory_desc_t from_desc, void* from,
                           const_dnnl_memory_desc_t to_desc, void* to) {
    Memories memories(library_);
    memories.Add(DNNL_ARG_FROM, from_desc, from);
    memories.Add(DNNL_ARG_TO, to_desc, to);
    add_scratch(memories, stage);
    memories.Execute(stage.primitive.get());
  };

  std::vector<void*> own(data.begin(), data.end());
  char* next = scratch + RoundUp(scratch_bytes);
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (!reorders_[i]) continue;
    own[i] = next;
    next += RoundUp(library_.memory_desc_get_size(OwnDesc(arguments_[i])));
    if (!arguments_[i].output) {
      reorder(*reorders_[i], arguments_[i].user.get(), data[i], OwnDesc(arguments_[i]), own[i]);
    }
  }
  {
    Memories memories(library_);
    for (size_t i = 0; i < arguments_.size(); ++i) {
      memories.Add(arguments_[i].id, OwnDesc(arguments_[i]), own[i]);
    }
    add_scratch(memories, main_);
    memories.Execute(main_.primitive.get());
  }
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (reorders_[i] && arguments_[i].output) {
      reorder(*reorders_[i], OwnDesc(arguments_[i]), own[i], arguments_[i].user.get(), data[i]);
    }
  }
  thread_scratch.Trim();
}

std::string OneDnnPrimitive::Describe() const {
  const char* name = nullptr;
  library_.primitive_desc_query(main_.desc.get(), dnnl_query_impl_info_str, 0, &name);
  const auto reordered =
      std::count_if(reorders_.begin(), reorders_.end(), [](const auto& r) { return r != nullptr; });
  return StrCat(name == nullptr ? "?" : name, ", ", reordered, " of ", arguments_.size(),
                " arguments reordered");
}

std::shared_ptr<const OneDnnPrimitive> CachedPrimitive(
    const std::string& key, const std::function<std::shared_ptr<const OneDnnPrimitive>()>& make) {
  struct Cache {
    std::mutex mutex;
    std::unordered_map<std::string, std::shared_ptr<const OneDnnPrimitive>> primitives;
  };
  // Not destroyed at exit: other threads may still be computing.
  static Cache& cache = *new Cache;
  {
    std::lock_guard lock(cache.mutex);
    if (const auto found = cache.primitives.find(key); found != cache.primitives.end())
      return found->second;
  }
  // Without the lock: generating code takes milliseconds. Two threads may both do it; one result is
  // kept.
  std::shared_ptr<const OneDnnPrimitive> made;
  try {
    // oneDNN fixes a primitive's number of threads when it makes it.
    const OneDnn::OneThread one_thread(*OneDnn::Get());
    made = make();
  } catch (const Error& error) {
    if (error.code != static_cast<int>(StatusCode::kUnimplemented)) throw;
  }
  std::lock_guard lock(cache.mutex);
  // A program rarely comes near the limit; what is thrown away is made again when needed.
  if (cache.primitives.size() >= kMaxPrimitives) cache.primitives.clear();
  return cache.primitives.try_emplace(key, made).first->second;
}

}  // namespace treadle
