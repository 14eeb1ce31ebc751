"""A small set of headers in XLA's style, to be changed by the tests."""

from __future__ import annotations

from tools.version_sync.header import Header, parse

PJRT_FILE = "pjrt/c/pjrt_c_api.h"

SMALL = r"""
/* A block comment; with "quotes", and struct Wrong { int x; }; */
#ifndef SMALL_H_
#define SMALL_H_
#include <stddef.h>
#define PJRT_STRUCT_SIZE(struct_type, last_field) \
  offsetof(struct_type, last_field) + sizeof(((struct_type*)0)->last_field)
#define PJRT_DEFINE_STRUCT_TRAITS(sname, last_field) \
  typedef struct sname sname;                        \
  enum { sname##_STRUCT_SIZE = PJRT_STRUCT_SIZE(sname, last_field) }
#if defined(__cplusplus) && defined(__clang__)
#define PJRT_NO_DISCARD [[nodiscard]]
#else
#define PJRT_NO_DISCARD
#endif
#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  PJRT_Extension_Type_First = 0,
  PJRT_Extension_Type_Second,  // = 1; struct Commented { int x; };
} PJRT_Extension_Type;

typedef struct PJRT_Extension_Base {
  size_t struct_size;
  PJRT_Extension_Type type;
  struct PJRT_Extension_Base* next;
} PJRT_Extension_Base;
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Extension_Base, next);

#define PJRT_API_MAJOR 0
#define PJRT_API_MINOR 50

struct PJRT_Api_Version {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  int major_version;  // out
  int minor_version;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Api_Version, minor_version);

typedef struct PJRT_Error PJRT_Error;
typedef enum { COLOUR_RED = 1, COLOUR_GREEN = 1 << 2, COLOUR_BLUE } Colour;

struct PJRT_Value {
  size_t struct_size;
  const char* name;
  union {
    int64_t number;
    const char* text;
    bool flag;
  };
  char tag[3];
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Value, tag);

typedef void (*PJRT_Deleter)(char* value);
struct PJRT_One_Args {
  size_t struct_size;
  const PJRT_Value* values;
  size_t num_values;
  PJRT_Deleter deleter;
  void (*done)(PJRT_Error* error, void* user_arg);
  bool ready;  // out
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_One_Args, ready);
typedef PJRT_Error* PJRT_One(PJRT_One_Args* args);

struct PJRT_Two_Args {
  size_t struct_size;
  PJRT_Api_Version version;
  Colour colour;
};
PJRT_DEFINE_STRUCT_TRAITS(PJRT_Two_Args,
                          colour);
typedef void PJRT_Two(PJRT_Two_Args* args);

#define _PJRT_API_STRUCT_FIELD(fn_type) fn_type* fn_type
typedef struct PJRT_Api {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Api_Version pjrt_api_version;
  _PJRT_API_STRUCT_FIELD(PJRT_Two);
  PJRT_NO_DISCARD _PJRT_API_STRUCT_FIELD(
      PJRT_One);
} PJRT_Api;
enum { PJRT_Api_STRUCT_SIZE = PJRT_STRUCT_SIZE(PJRT_Api, PJRT_One) };
#undef _PJRT_API_STRUCT_FIELD
#ifdef __cplusplus
}
#endif
#endif
"""


def small(*edits: tuple[str, str]) -> Header:
    """SMALL with each first text of `edits` replaced by the second."""
    text = SMALL
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    header = Header()
    parse(text, header, PJRT_FILE)
    return header
