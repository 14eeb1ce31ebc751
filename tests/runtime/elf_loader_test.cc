// The loader of machine code: what it links, what it refuses by name, and that no damage crashes
// it.
#include "plugin/runtime/elf_loader.h"

#include <elf.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "plugin/runtime/program_abi.h"
#include "plugin/runtime/symbols.h"
#include "tests/cc/check.h"
#include "tests/runtime/artifact_builder.h"

namespace treadle {
namespace {

CodeImage Link(const std::vector<std::string>& objects) {
  const std::vector<std::string_view> views(objects.begin(), objects.end());
  return CodeImage::Link(views);
}

constexpr uint64_t kText = SHF_ALLOC | SHF_EXECINSTR;

// `mov $value, %eax; ret`
std::string Returns(int value) {
  std::string code(64, '\xC3');
  code[0] = '\xB8';
  std::memcpy(code.data() + 1, &value, sizeof value);
  return code;
}

int Call(const CodeImage& image, const char* name) {
  return reinterpret_cast<int (*)()>(image.Find(name))();
}

TEST(FirstDefinitionWinsAndLocalsStayApart) {
  std::vector<std::string> objects;
  for (int i = 1; i <= 2; ++i) {
    ObjectBuilder object;
    object.sections.push_back(
        {".text", SHT_PROGBITS, kText, Returns(i) + Returns(10 * i) + Returns(100 * i)});
    object.symbols.push_back({"helper", STT_FUNC, STB_LOCAL, 1, 64, 6});
    object.symbols.push_back({"shared", STT_FUNC, STB_GLOBAL, 1, 0, 6});
    object.symbols.push_back({"own" + std::to_string(i), STT_FUNC, STB_GLOBAL, 1, 128, 6});
    // own: call helper; ret
    object.sections[0].contents[128] = '\xE8';
    object.sections[0].contents[133] = '\xC3';
    object.relocations.push_back({1, 129, R_X86_64_PLT32, 1, -4});
    objects.push_back(object.Build());
  }
  const CodeImage image = Link(objects);
  CHECK_EQ(Call(image, "shared"), 1);
  CHECK_EQ(Call(image, "own1"), 10);
  CHECK_EQ(Call(image, "own2"), 20);
  CHECK(image.Find("helper") == nullptr);
  CHECK(image.Find("absent") == nullptr);
  CHECK_EQ(image.functions().size(), 6u);
}

TEST(ReachesAcrossObjectsAndSections) {
  // Object 1 loads a word of object 2's data through the GOT, adds one of its own read-only data:
  // mov got(%rip), %rax; mov (%rax), %eax; add rodata(%rip), %eax; ret.
  ObjectBuilder first = ObjectBuilder::WithEntry();
  const unsigned char code[] = {0x48, 0x8B, 0x05, 0, 0, 0, 0, 0x8B,
                                0x00, 0x03, 0x05, 0, 0, 0, 0, 0xC3};
  std::memcpy(first.sections[0].contents.data(), code, sizeof code);
  first.sections.push_back({".rodata", SHT_PROGBITS, SHF_ALLOC, std::string("\x05\0\0\0", 4), 64});
  first.symbols.push_back({"word", STT_NOTYPE, STB_GLOBAL, 0});
  first.symbols.push_back({"", STT_SECTION, STB_LOCAL, 2});
  first.relocations.push_back({1, 3, R_X86_64_REX_GOTPCRELX, 2, -4});
  first.relocations.push_back({1, 11, R_X86_64_PC32, 3, -4});
  ObjectBuilder second;
  second.sections.push_back(
      {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, std::string("\x25\0\0\0", 4)});
  second.symbols.push_back({"word", STT_OBJECT, STB_GLOBAL, 1, 0, 4});
  const CodeImage image = Link({first.Build(), second.Build()});
  CHECK_EQ(Call(image, "entry"), 42);
}

TEST(OffersTheClosedTable) {
  CHECK(FindRuntimeSymbol("exp") ==
        reinterpret_cast<void*>(static_cast<double (*)(double)>(&std::exp)));
  CHECK(FindRuntimeSymbol("system") == nullptr);
  CHECK(FindRuntimeSymbol("") == nullptr);
#define CHECK_PRESENT(name) CHECK(FindRuntimeSymbol(#name) != nullptr);
  TREADLE_RUNTIME_SYMBOLS(CHECK_PRESENT)
#undef CHECK_PRESENT
}

TEST(RefusesForeignSymbols) {
  ObjectBuilder object = ObjectBuilder::WithEntry();
  object.symbols.push_back({"system", STT_NOTYPE, STB_GLOBAL, 0});
  object.relocations.push_back({1, 8, R_X86_64_PLT32, 2, -4});
  CHECK_ERROR(Link({object.Build()}), kInvalidArgument,
              "it calls 'system', which the runtime does not offer");
  object.symbols[1] = {"weak_one", STT_NOTYPE, STB_WEAK, 0};
  CHECK_ERROR(Link({object.Build()}), kInvalidArgument, "weak_one");
}

TEST(RefusesUnsupportedFeatures) {
  const auto with = [](auto change) {
    ObjectBuilder object = ObjectBuilder::WithEntry();
    change(object);
    return object.Build();
  };
  const std::string word(8, '\0');
  CHECK_ERROR(
      Link({with([&](auto& o) {
        o.sections.push_back({".tdata", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE | SHF_TLS, word});
      })}),
      kInvalidArgument, "thread-local");
  CHECK_ERROR(Link({with([&](auto& o) {
                o.sections.push_back({".init_array", SHT_INIT_ARRAY, SHF_ALLOC | SHF_WRITE, word});
              })}),
              kInvalidArgument, "constructors");
  CHECK_ERROR(Link({with([&](auto& o) {
                o.sections.push_back({".wx", SHT_PROGBITS, kText | SHF_WRITE, word});
              })}),
              kInvalidArgument, "both code and writable");
  CHECK_ERROR(Link({with([&](auto& o) {
                o.sections.push_back({".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, word, 8192});
              })}),
              kInvalidArgument, "alignment 8192");
  CHECK_ERROR(Link({with([&](auto& o) {
                o.symbols.push_back({"f", STT_GNU_IFUNC, STB_GLOBAL, 1});
              })}),
              kInvalidArgument, "indirect function (symbol f)");
  CHECK_ERROR(Link({with([&](auto& o) {
                o.symbols.push_back({"t", STT_TLS, STB_GLOBAL, 1});
              })}),
              kInvalidArgument, "thread-local data (symbol t)");
  CHECK_ERROR(Link({with([&](auto& o) {
                o.symbols.push_back({"c", STT_OBJECT, STB_GLOBAL, SHN_COMMON});
              })}),
              kInvalidArgument, "common symbol (c)");
  CHECK_ERROR(Link({with([&](auto& o) {
                o.relocations.push_back({1, 0, R_X86_64_TPOFF32, 1, 0});
              })}),
              kInvalidArgument, "relocation type 23 in .text");
}

TEST(RefusesWhatDoesNotFit) {
  ObjectBuilder object = ObjectBuilder::WithEntry();
  object.relocations.push_back({1, 8, R_X86_64_32S, 1, 0});
  // Mappings lie above 4 GB, where position-dependent code cannot reach.
  CHECK_ERROR(Link({object.Build()}), kInvalidArgument, "compile position-independent code");
  object.relocations = {{1, 8, R_X86_64_PC32, 1, int64_t{1} << 40}};
  CHECK_ERROR(Link({object.Build()}), kInvalidArgument, "does not reach");
  object.relocations = {{1, 61, R_X86_64_PC32, 1, 0}};
  CHECK_ERROR(Link({object.Build()}), kInvalidArgument, "relocation lies outside");
  object.relocations = {{1, ~uint64_t{0} - 3, R_X86_64_64, 1, 0}};
  CHECK_ERROR(Link({object.Build()}), kInvalidArgument, "relocation lies outside");
  object.relocations = {{1, 0, R_X86_64_64, 77, 0}};
  CHECK_ERROR(Link({object.Build()}), kInvalidArgument, "names no symbol");
  object.relocations.clear();
  object.symbols[0].value = 60;
  CHECK_ERROR(Link({object.Build()}), kInvalidArgument, "symbol entry lies outside");
}

TEST(RefusesOtherFiles) {
  CHECK_ERROR(Link({""}), kInvalidArgument, "ELF header lies outside");
  CHECK_ERROR(Link({std::string(200, 'x')}), kInvalidArgument, "no ELF object");
  std::string bytes = ObjectBuilder::WithEntry().Build();
  bytes[offsetof(Elf64_Ehdr, e_machine)] = static_cast<char>(EM_AARCH64);
  CHECK_ERROR(Link({bytes}), kInvalidArgument, "not for x86-64");
  bytes = ObjectBuilder::WithEntry().Build();
  bytes[offsetof(Elf64_Ehdr, e_type)] = ET_DYN;
  CHECK_ERROR(Link({bytes}), kInvalidArgument, "not a relocatable object");
  CHECK(Link({}).Find("entry") == nullptr);
}

// Links, never runs, what mutation makes of a real object. Whatever comes of it, it is an image or
// an Error.
TEST(SurvivesMutations) {
  std::mt19937 random(1);
  const std::string original = HandwrittenObject();
  int accepted = 0;
  for (int i = 0; i < 4000; ++i) {
    std::string bytes = original;
    const size_t edits = 1 + random() % 3;
    for (size_t e = 0; e < edits; ++e) {
      // Half of the edits hit the section table, which is at the end, and the header.
      size_t at = random() % bytes.size();
      if (random() % 4 == 0) at = random() % 64;
      if (random() % 4 == 0)
        at = bytes.size() - 1 - random() % std::min<size_t>(bytes.size(), 1500);
      const uint64_t values[] = {
          0, 1, 0x7FFFFFFF, 0xFFFFFFFF, ~uint64_t{0}, uint64_t{1} << 63, random()};
      const uint64_t value = values[random() % 7];
      const size_t widths[] = {1, 2, 4, 8};
      const size_t width = widths[random() % 4];
      if (at + width <= bytes.size()) std::memcpy(bytes.data() + at, &value, width);
    }
    if (random() % 16 == 0) bytes.resize(random() % bytes.size());
    try {
      Link({bytes});
      ++accepted;
    } catch (const Error& error) {
      CHECK(error.code == 3 || error.code == 8);
    }
  }
  CHECK(accepted > 0);
}

}  // namespace
}  // namespace treadle

TEST_MAIN()
