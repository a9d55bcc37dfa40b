// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/json.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/train/files/safetensors.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {
namespace detail {

/// Returns the optimizer's name in the saved state of a run or trainer, or "" for any other file.
[[nodiscard]] std::string optimizer_of(SafetensorsFile const& file, std::string const& path);

}  // namespace detail

/// Reads the parameter averages of an optim::Averaged, which evaluations used, from a checkpoint or a file of
/// train::save_state. `load_parameters` reads the parameters that training continues with instead. Reads the buffers
/// and returns the metadata like `load_parameters`.
/// @shape values [layout.size()]   @shape buffers [layout.buffer_size()]; both change only if all is valid
/// @throws DataError if the file has no averages, or like load_parameters; ShapeError if an arena's size differs from
/// the layout's
Metadata load_averages(std::string const& path, nn::ParameterLayout const& layout, std::span<float> values,
                       std::span<float> buffers = {});

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/checkpoint/load_averages.ipp>
#endif
