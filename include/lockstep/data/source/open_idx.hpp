// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/data/source/file_array.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Opens the array of an IDX file, such as MNIST's (decompressed).
/// @throws DataError if the file is damaged
/// @source the description of the format on the MNIST page: magic number, extents, data, high bytes first
[[nodiscard]] FileArray open_idx(std::string const& path);

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/open_idx.ipp>
#endif
