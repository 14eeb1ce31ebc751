#include "plugin/runtime/python.h"

#include <dlfcn.h>

#include <string>

#include "plugin/runtime/error.h"

namespace treadle {

namespace {

constexpr char kModule[] = "treadle.compile_hook";
constexpr char kFunction[] = "compile_address";

constexpr char kHowTo[] =
    "; run the plugin in a Python process in which the treadle package can be imported, or pass "
    "the "
    "create option compile_fn";

template <typename Function>
Function* Find(const char* name) {
  void* const symbol = dlsym(RTLD_DEFAULT, name);
  if (symbol == nullptr) {
    throw FailedPrecondition("there is no compiler: this process has no Python (no ", name, ")",
                             kHowTo);
  }
  return reinterpret_cast<Function*>(symbol);
}

// The part of the C API used here; all of it is in the stable ABI. PyObject* is void*.
struct PythonApi {
  int (*is_initialized)() = Find<int()>("Py_IsInitialized");
  int (*gil_ensure)() = Find<int()>("PyGILState_Ensure");
  void (*gil_release)(int) = Find<void(int)>("PyGILState_Release");
  void* (*import_module)(const char*) = Find<void*(const char*)>("PyImport_ImportModule");
  void* (*get_attribute)(void*,
                         const char*) = Find<void*(void*, const char*)>("PyObject_GetAttrString");
  void* (*call)(void*, void*) = Find<void*(void*, void*)>("PyObject_CallObject");
  void* (*as_address)(void*) = Find<void*(void*)>("PyLong_AsVoidPtr");
  void* (*to_string)(void*) = Find<void*(void*)>("PyObject_Str");
  const char* (*utf8)(void*,
                      intptr_t*) = Find<const char*(void*, intptr_t*)>("PyUnicode_AsUTF8AndSize");
  void (*fetch_error)(void**, void**, void**) = Find<void(void**, void**, void**)>("PyErr_Fetch");
  void (*clear_error)() = Find<void()>("PyErr_Clear");
  void (*decref)(void*) = Find<void(void*)>("Py_DecRef");  // accepts null
};

class Gil {
 public:
  explicit Gil(const PythonApi& python) : python_(python), state_(python.gil_ensure()) {}
  ~Gil() { python_.gil_release(state_); }
  Gil(const Gil&) = delete;
  Gil& operator=(const Gil&) = delete;

 private:
  const PythonApi& python_;
  const int state_;
};

std::string TakeError(const PythonApi& python) {
  void *type = nullptr, *value = nullptr, *traceback = nullptr;
  python.fetch_error(&type, &value, &traceback);
  void* const text = value == nullptr ? nullptr : python.to_string(value);
  intptr_t size = 0;
  const char* const utf8 = text == nullptr ? nullptr : python.utf8(text, &size);
  std::string message =
      utf8 == nullptr ? "unknown Python error" : std::string(utf8, static_cast<size_t>(size));
  python.clear_error();
  for (void* object : {text, type, value, traceback}) python.decref(object);
  return message;
}

}  // namespace

uintptr_t CompileFunctionFromPython() {
  const PythonApi python;
  if (python.is_initialized() == 0) {
    throw FailedPrecondition("there is no compiler: this process's Python is not running", kHowTo);
  }
  const Gil gil(python);
  void* const module = python.import_module(kModule);
  void* const function = module == nullptr ? nullptr : python.get_attribute(module, kFunction);
  void* const result = function == nullptr ? nullptr : python.call(function, nullptr);
  const auto address =
      result == nullptr ? uintptr_t{0} : reinterpret_cast<uintptr_t>(python.as_address(result));
  const std::string error = address == 0 ? TakeError(python) : std::string();
  for (void* object : {result, function, module}) python.decref(object);
  if (address == 0) {
    throw FailedPrecondition("there is no compiler: importing ", kModule, " failed: ", error,
                             kHowTo);
  }
  return address;
}

}  // namespace treadle
