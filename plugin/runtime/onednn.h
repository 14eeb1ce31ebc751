// oneDNN, opened when it is first needed. Without it everything still works, in Treadle's own code.
#ifndef TREADLE_PLUGIN_RUNTIME_ONEDNN_H_
#define TREADLE_PLUGIN_RUNTIME_ONEDNN_H_

#include <memory>
#include <string>

#include "dnnl.h"

namespace treadle {

// Every function of oneDNN that is used, without its prefix.
// clang-format off
#define TREADLE_ONEDNN_FUNCTIONS(X)                                                               \
  X(engine_create) X(engine_destroy) X(stream_create) X(stream_destroy)                           \
  X(memory_desc_create_with_strides) X(memory_desc_create_with_tag) X(memory_desc_destroy)        \
  X(memory_desc_equal) X(memory_desc_get_size) X(memory_create) X(memory_destroy)                 \
  X(primitive_attr_create) X(primitive_attr_destroy) X(primitive_attr_set_scratchpad_mode)        \
  X(primitive_desc_query_md) X(primitive_desc_query) X(primitive_desc_destroy)                    \
  X(primitive_create) X(primitive_execute) X(primitive_destroy) X(matmul_primitive_desc_create)   \
  X(reorder_primitive_desc_create) X(convolution_forward_primitive_desc_create)                   \
  X(convolution_backward_data_primitive_desc_create)                                              \
  X(convolution_backward_weights_primitive_desc_create)
// clang-format on

// The library: its functions, typed by its own header.
class OneDnn {
 public:
  // The library, or nullptr if there is none: TREADLE_ONEDNN_PATH if set ("" or "none": do
  // without), else libdnnl.so.3 beside this library, else wherever the system finds it.
  static const OneDnn* Get();

#define TREADLE_ONEDNN_POINTER(name) decltype(&dnnl_##name) name = nullptr;
  TREADLE_ONEDNN_FUNCTIONS(TREADLE_ONEDNN_POINTER)
#undef TREADLE_ONEDNN_POINTER
  dnnl_engine_t engine = nullptr;

  // Makes oneDNN's OpenMP regions of this thread run on this thread alone, for as long as it lives:
  // the thread budget is ours, and libgomp would start a team for every thread that calls it. What
  // the application set is restored.
  class OneThread {
   public:
    explicit OneThread(const OneDnn& library);
    ~OneThread();
    OneThread(const OneThread&) = delete;
    OneThread& operator=(const OneThread&) = delete;

   private:
    const OneDnn& library_;
    int before_;
  };

  // Opens the library at `path`; nullptr if it is not there or is not one that we know.
  static std::unique_ptr<OneDnn> Open(const std::string& path);

 private:
  int (*get_max_threads_)() = nullptr;
  void (*set_num_threads_)(int) = nullptr;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_ONEDNN_H_
