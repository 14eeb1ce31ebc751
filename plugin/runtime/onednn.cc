#include "plugin/runtime/onednn.h"

#include <dlfcn.h>

#include <cstdlib>

namespace treadle {
namespace {

// The folder of the shared library that holds this function, with a slash.
std::string OwnFolder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&OwnFolder), &info) == 0 || info.dli_fname == nullptr)
    return "";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash + 1);
}

std::unique_ptr<OneDnn> Find() {
  if (const char* path = std::getenv("TREADLE_ONEDNN_PATH")) {
    const std::string wanted = path;
    return wanted.empty() || wanted == "none" ? nullptr : OneDnn::Open(wanted);
  }
  const std::string folder = OwnFolder();
  if (!folder.empty()) {
    // libdnnl needs libgomp by name, and not every system has one: the wheel's lies beside it.
    if (dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD) == nullptr)
      dlopen((folder + "libgomp.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (auto found = OneDnn::Open(folder + "libdnnl.so.3")) return found;
  }
  return OneDnn::Open("libdnnl.so.3");
}

}  // namespace

std::unique_ptr<OneDnn> OneDnn::Open(const std::string& path) {
  // RTLD_LOCAL: the application may have another oneDNN.
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto library = std::make_unique<OneDnn>();
  bool complete = true;
#define TREADLE_ONEDNN_LOOK_UP(name)                                                      \
  library->name = reinterpret_cast<decltype(&dnnl_##name)>(dlsym(handle, "dnnl_" #name)); \
  complete &= library->name != nullptr;
  TREADLE_ONEDNN_FUNCTIONS(TREADLE_ONEDNN_LOOK_UP)
#undef TREADLE_ONEDNN_LOOK_UP
  library->get_max_threads_ = reinterpret_cast<int (*)()>(dlsym(handle, "omp_get_max_threads"));
  library->set_num_threads_ = reinterpret_cast<void (*)(int)>(dlsym(handle, "omp_set_num_threads"));
  // Never closed, even if it does not fit: its threads and caches may outlive any use of it.
  if (!complete || library->engine_create(&library->engine, dnnl_cpu, 0) != dnnl_success)
    return nullptr;
  return library;
}

const OneDnn* OneDnn::Get() {
  // Not destroyed at exit: other threads may still be computing.
  static const OneDnn* library = Find().release();
  return library;
}

OneDnn::OneThread::OneThread(const OneDnn& library)
    : library_(library), before_(library.get_max_threads_ ? library.get_max_threads_() : 1) {
  if (before_ != 1 && library_.set_num_threads_) library_.set_num_threads_(1);
}

OneDnn::OneThread::~OneThread() {
  if (before_ != 1 && library_.set_num_threads_) library_.set_num_threads_(before_);
}

}  // namespace treadle
