// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include <lockstep/app/options.hpp>
#include <lockstep/app/synthetic_data.hpp>
#include <lockstep/core/progress.hpp>
#include <lockstep/data/text/token_cache.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

/// Returns where a trainer keeps preprocessed text, by the value of a flag --cache. It is a folder, "none" for the
/// memory of each process, or empty for `cache_folder()`. Then sources below 8 MiB are in memory, and all sources if
/// that folder cannot be written, or belongs to another user. The cores of all ranks of the host preprocess.
/// @param verifies whether an existing cache is compared with its checksums; true in the process that checks the input
[[nodiscard]] data::TokenCacheOptions cache_options(Options const& options, std::string const& flag, bool verifies,
                                                    Progress& progress);

}}}  // namespace lockstep::app

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/app/cache_options.ipp>
#endif
