// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

// Declared here under names of our own: an OpenMP header needs no OpenMP compiler, but some compilers do not install
// it.
extern "C" int lockstep_omp_get_max_threads() __asm__("omp_get_max_threads");
extern "C" void lockstep_omp_set_num_threads(int threads) __asm__("omp_set_num_threads");

/// While it exists, a library that uses OpenMP works on the calling thread only and opens no parallel region. The
/// setting belongs to the calling thread, not to the process. Other threads keep their own, and the destructor restores
/// the caller's.
class [[nodiscard]] OneOpenmpThread {
 public:
  OneOpenmpThread() noexcept : before_(lockstep_omp_get_max_threads()) { lockstep_omp_set_num_threads(1); }
  ~OneOpenmpThread() { lockstep_omp_set_num_threads(before_); }
  OneOpenmpThread(OneOpenmpThread const&) = delete;
  OneOpenmpThread& operator=(OneOpenmpThread const&) = delete;

 private:
  int before_;
};

}}}  // namespace lockstep::kernel::detail
