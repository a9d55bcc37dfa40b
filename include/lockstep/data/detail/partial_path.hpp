// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/random_suffix.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns a temporary path to write a file to, before it is renamed to `path`. It cannot be predicted, and is unique
/// among threads and processes, including processes of other containers with equal ids. Open it with "x", or with
/// O_EXCL.
inline std::string partial_path(std::string const& path) { return path + "." + random_suffix(); }

}}}  // namespace lockstep::data::detail
