// The chain of extensions. An extension is a file of its own that offers one struct; this one links
// them.
#include "plugin/api/bind.h"
#include "plugin/api/layouts.h"
#include "plugin/api/shardings.h"

namespace treadle::api {

PJRT_Extension_Base* Extensions() {
  // In the order in which callers find them. The FFI extension (custom calls, LAPACK, Python
  // callbacks) goes here too once there is one.
  return LayoutsExtension(ShardingsExtension(nullptr));
}

}  // namespace treadle::api
