// The one place that knows which PJRT header the plugin is built with, for code that needs
// something newer than the oldest header that is supported.
//
// TREADLE_SINCE_0_N(...) is its argument when the header is of minor version N or newer, and
// nothing otherwise. What a *caller* knows is another question, asked at run time: TREADLE_HAS in
// guard.h. New functions of PJRT_Api need neither: slots.inc comes from the header, and what
// nothing is bound to answers UNIMPLEMENTED.
//
// To support a new header: `version_sync diff OLD NEW` lists what it added; whatever of that the
// plugin uses gets a macro here. To drop an old one: raise kOldest, and the macros below it go.
#ifndef TREADLE_PLUGIN_API_HEADER_VERSION_H_
#define TREADLE_PLUGIN_API_HEADER_VERSION_H_

#include "xla/pjrt/c/pjrt_c_api.h"

namespace treadle::api {

inline constexpr int kOldestHeaderMinor = 112;

static_assert(
    PJRT_API_MAJOR == 0,
    "another major version of the PJRT C API: every struct and function may be different");
static_assert(PJRT_API_MINOR >= kOldestHeaderMinor,
              "the plugin needs the header of PJRT 0.112 or newer; see --override_repository in "
              "third_party/xla_headers/xla_headers.bzl");

}  // namespace treadle::api

// 0.113: PJRT_Device_MemoryStats_Args.peak_allocated_bytes.
#if PJRT_API_MINOR >= 113
#define TREADLE_SINCE_0_113(...) __VA_ARGS__
#else
#define TREADLE_SINCE_0_113(...)
#endif

// 0.114: the buffer types F6E2M3FN and F6E3M2FN.
#if PJRT_API_MINOR >= 114
#define TREADLE_SINCE_0_114(...) __VA_ARGS__
#else
#define TREADLE_SINCE_0_114(...)
#endif

#endif  // TREADLE_PLUGIN_API_HEADER_VERSION_H_
