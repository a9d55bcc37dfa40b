// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdio>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Deleter of std::unique_ptr<std::FILE>.
struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

}}}  // namespace lockstep::train::detail
