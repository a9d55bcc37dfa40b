// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Opens /dev/null for each standard stream that is closed. Otherwise the next file would become that stream, and
/// output would be written into it.
inline void open_standard_streams() noexcept {
  for (int stream = 0; stream <= 2; ++stream)
    if (::fcntl(stream, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));  // takes the lowest number
}

}}}  // namespace lockstep::launch::detail
