// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns the folder for temporary files: TMPDIR, or /tmp if it is unset or empty. The folder may not exist.
[[nodiscard]] std::string temporary_folder();

/// Returns `path` if it exists, or else the nearest of its parents that does: there, mkdir would have to write.
[[nodiscard]] std::string nearest_existing(std::string path);

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/folder.ipp>
#endif
