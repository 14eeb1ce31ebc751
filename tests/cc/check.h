// The smallest test framework that serves: named tests, checks that say where they failed, a count
// at the end.
//
//   TEST(Adds) { CHECK_EQ(1 + 1, 2); CHECK_ERROR(Parse("x"), kInvalidArgument, "not a program"); }
//
// A file has its main from TEST_MAIN(). `program NAME...` runs the tests whose names contain one of
// the words.
#ifndef TREADLE_TESTS_CC_CHECK_H_
#define TREADLE_TESTS_CC_CHECK_H_

#include <cstdio>
#include <cstring>
#include <exception>
#include <sstream>
#include <string>
#include <vector>

#include "plugin/runtime/error.h"

namespace treadle::check {

struct Test {
  const char* name;
  void (*run)();
};

inline std::vector<Test>& Tests() {
  static std::vector<Test> tests;
  return tests;
}

inline int& Failures() {
  static int failures = 0;
  return failures;
}

inline void Fail(const char* file, int line, const std::string& what) {
  std::fprintf(stderr, "%s:%d: %s\n", file, line, what.c_str());
  ++Failures();
}

struct Registration {
  Registration(const char* name, void (*run)()) { Tests().push_back({name, run}); }
};

template <typename Body>
void ExpectError(const char* file, int line, const char* text, Body&& body, StatusCode code,
                 const std::string& part) {
  try {
    body();
    Fail(file, line, StrCat(text, " succeeds; expected code ", static_cast<int>(code)));
  } catch (const Error& error) {
    if (error.code != static_cast<int>(code) || error.text.find(part) == std::string::npos) {
      Fail(file, line,
           StrCat(text, " throws ", error.code, " \"", error.text, "\"; expected ",
                  static_cast<int>(code), " with \"", part, "\""));
    }
  }
}

inline int Main(int argc, char** argv) {
  int run = 0;
  for (const Test& test : Tests()) {
    bool wanted = argc < 2;
    for (int i = 1; i < argc; ++i) wanted |= std::strstr(test.name, argv[i]) != nullptr;
    if (!wanted) continue;
    const int before = Failures();
    try {
      test.run();
    } catch (const std::exception& error) {
      Fail(test.name, 0, StrCat("unexpected exception: ", error.what()));
    }
    ++run;
    std::printf("%s %s\n", Failures() == before ? "ok    " : "FAILED", test.name);
  }
  std::printf("%d tests, %d failed checks\n", run, Failures());
  return run > 0 && Failures() == 0 ? 0 : 1;
}

}  // namespace treadle::check

#define TEST(name)                                                                \
  static void Test##name();                                                       \
  static const ::treadle::check::Registration register_##name(#name, Test##name); \
  static void Test##name()

#define CHECK(condition)                                                              \
  do {                                                                                \
    if (!(condition)) ::treadle::check::Fail(__FILE__, __LINE__, "not: " #condition); \
  } while (false)

#define CHECK_EQ(actual, expected)                                                    \
  do {                                                                                \
    const auto& actual_value = (actual);                                              \
    const auto& expected_value = (expected);                                          \
    if (!(actual_value == expected_value)) {                                          \
      ::treadle::check::Fail(                                                         \
          __FILE__, __LINE__,                                                         \
          ::treadle::StrCat(#actual " is ", actual_value, ", not ", expected_value)); \
    }                                                                                 \
  } while (false)

// `code` is an enumerator of treadle::StatusCode; `part` is in the error's text.
#define CHECK_ERROR(expression, code, part)                                    \
  ::treadle::check::ExpectError(                                               \
      __FILE__, __LINE__, #expression, [&] { static_cast<void>(expression); }, \
      ::treadle::StatusCode::code, part)

#define TEST_MAIN() \
  int main(int argc, char** argv) { return ::treadle::check::Main(argc, argv); }

#endif  // TREADLE_TESTS_CC_CHECK_H_
