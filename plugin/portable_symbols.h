// Included before every source of the plugin: asks for the versions of C and C++ library symbols
// that a manylinux_2_34 system has, where this machine's libraries have newer ones. The old
// versions stay in every later library. //tests/wheel:contents_test finds what is missing here.
#ifndef TREADLE_PLUGIN_PORTABLE_SYMBOLS_H_
#define TREADLE_PLUGIN_PORTABLE_SYMBOLS_H_

#if defined(__x86_64__) && defined(__linux__)

// glibc 2.35: the first version differs in setting errno.
__asm__(".symver hypot, hypot@GLIBC_2.2.5");
__asm__(".symver hypotf, hypotf@GLIBC_2.2.5");

// GCC 12's libstdc++, std::condition_variable::wait: the first version differs in being noexcept.
__asm__(
    ".symver _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE, "
    "_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE@GLIBCXX_3.4.11");

#endif

#endif  // TREADLE_PLUGIN_PORTABLE_SYMBOLS_H_
