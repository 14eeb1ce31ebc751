// Links relocatable x86-64 ELF objects, as LLVM and GCC write them, into one executable mapping of
// this process.
#ifndef TREADLE_PLUGIN_RUNTIME_ELF_LOADER_H_
#define TREADLE_PLUGIN_RUNTIME_ELF_LOADER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace treadle {

// One mapping: code (RX), read-only data with the GOT (R), writable data (RW), in this order.
class CodeImage {
 public:
  CodeImage() = default;
  ~CodeImage();
  CodeImage(CodeImage&& other) noexcept;
  CodeImage& operator=(CodeImage&& other) noexcept;
  CodeImage(const CodeImage&) = delete;
  CodeImage& operator=(const CodeImage&) = delete;

  // Links `objects`. Of several global definitions of one name the first wins; local symbols stay
  // apart. Undefined symbols are looked up in the closed table of symbols.h and nowhere else.
  // Throws INVALID_ARGUMENT for objects that are damaged or use what this loader does not support,
  // naming it, RESOURCE_EXHAUSTED when memory cannot be mapped.
  static CodeImage Link(std::span<const std::string_view> objects);

  // The address of a global symbol that an object defines, or nullptr.
  void* Find(std::string_view symbol) const;

  // Every function with its size in bytes, for profilers.
  struct Function {
    std::string name;
    uint64_t address;
    uint64_t size;
  };
  const std::vector<Function>& functions() const { return functions_; }

  uint64_t size() const { return size_; }

 private:
  friend class Linker;

  void* base_ = nullptr;
  uint64_t size_ = 0;
  std::unordered_map<std::string, void*> symbols_;
  std::vector<Function> functions_;
};

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_ELF_LOADER_H_
