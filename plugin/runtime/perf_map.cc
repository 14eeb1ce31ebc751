#include "plugin/runtime/perf_map.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>
#include <string>

namespace treadle {

void WritePerfMap(const std::vector<CodeImage::Function>& functions) {
  const char* wanted = std::getenv("TREADLE_PERF_MAP");
  if (wanted == nullptr || std::string(wanted).empty() || std::string(wanted) == "0") return;
  std::ostringstream lines;
  lines << std::hex;
  for (const CodeImage::Function& function : functions) {
    lines << function.address << ' ' << function.size << ' ' << function.name << '\n';
  }
  // The folder is everybody's: do not follow a link that somebody else put there.
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return;
  const std::string text = lines.str();
  // One write, so that programs loaded at the same time do not mix their lines.
  [[maybe_unused]] const ssize_t written = write(file, text.data(), text.size());
  close(file);
}

}  // namespace treadle
