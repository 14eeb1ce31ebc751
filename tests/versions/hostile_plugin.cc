// A library whose GetPjrtApi does what its file's name says; see the BUILD file.
#include <unistd.h>

extern "C" __attribute__((visibility("default"))) const void* GetPjrtApi() {
#if defined(CRASHING_PLUGIN)
  __builtin_trap();
#elif defined(LEAVING_PLUGIN)
  _exit(0);
#elif defined(HANGING_PLUGIN)
  for (;;) pause();
#endif
  return nullptr;
}
