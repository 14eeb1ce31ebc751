// The one exception type of the runtime.
//
// Below the C API everything that goes wrong is thrown as `treadle::Error`; the API's guard turns
// it into a PJRT_Error, and the functions that compiled code calls turn it into a status code. The
// codes have PJRT_Error_Code's values, so that no table translates them.
#ifndef TREADLE_PLUGIN_RUNTIME_ERROR_H_
#define TREADLE_PLUGIN_RUNTIME_ERROR_H_

#include <exception>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace treadle {

// PJRT_Error_Code, without its header: the runtime does not depend on XLA's. plugin/api asserts
// that the values agree.
enum class StatusCode : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

struct Error : public std::exception {
  Error(StatusCode status, std::string message)
      : code(static_cast<int>(status)), text(std::move(message)) {}
  // For codes that came from outside, such as the compiler's or a program's; a value that is no
  // error code becomes UNKNOWN.
  Error(int status, std::string message)
      : code(status >= 1 && status <= 16 ? status : 2), text(std::move(message)) {}

  const char* what() const noexcept override { return text.c_str(); }

  int code;
  std::string text;
  // Key and value, as a caller of the C API attached them; carried along, never read.
  std::vector<std::pair<std::string, std::string>> payloads;
};

// "a", 1, "b" -> "a1b". Only errors are written this way, so speed does not matter.
template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <typename... Parts>
Error InvalidArgument(const Parts&... parts) {
  return Error(StatusCode::kInvalidArgument, StrCat(parts...));
}
template <typename... Parts>
Error FailedPrecondition(const Parts&... parts) {
  return Error(StatusCode::kFailedPrecondition, StrCat(parts...));
}
template <typename... Parts>
Error ResourceExhausted(const Parts&... parts) {
  return Error(StatusCode::kResourceExhausted, StrCat(parts...));
}
template <typename... Parts>
Error Unimplemented(const Parts&... parts) {
  return Error(StatusCode::kUnimplemented, StrCat(parts...));
}
template <typename... Parts>
Error Internal(const Parts&... parts) {
  return Error(StatusCode::kInternal, StrCat(parts...));
}
template <typename... Parts>
Error DataLoss(const Parts&... parts) {
  return Error(StatusCode::kDataLoss, StrCat(parts...));
}

}  // namespace treadle

#endif  // TREADLE_PLUGIN_RUNTIME_ERROR_H_
