// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// The samples of each class that has samples, in the order of classes and samples.
using SamplesByClass = std::vector<std::vector<Index>>;

/// @throws ConfigError, with the caller's name, unless each of `samples` samples has a class that is not negative
[[nodiscard]] SamplesByClass samples_by_class(std::string const& who, std::vector<std::int32_t> const& classes,
                                              Index samples);

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/detail/samples_by_class.ipp>
#endif
