// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/train/detail/csv_quoted.hpp>
#include <lockstep/train/files/atomic_file.hpp>
#include <lockstep/train/trace/detail/named_spans.hpp>
#include <lockstep/train/trace/trace.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Mean cost of one operation of a model per step.
struct LayerTime {
  std::string layer;                ///< named like parameters, as "encoder.0.attention"; empty for the model itself
  std::string operation;            ///< class of the layer or name of the function: "MultiHeadAttention", "mean_pool"
  double calls = 0;                 ///< per step
  double forward_ms = 0;            ///< milliseconds of all calls of a step
  double backward_ms = 0;           ///< includes recomputation; excludes the start of gradient reductions
  double share = 0;                 ///< of the time of all operations
  double activation_bytes = 0;      ///< allocated in forward; the peak is smaller because memory is reused
  std::size_t parameter_bytes = 0;  ///< of the layer's own parameters
};

/// Returns the mean times over the traced steps, on this rank's first device, in the order of the model's forward pass.
[[nodiscard]] std::vector<LayerTime> layer_times(Trace const& trace, nn::ParameterLayout const& layout);

/// Formats the `most` slowest operations as a table, the slowest first.
[[nodiscard]] std::string layer_table(std::vector<LayerTime> const& times, std::size_t most = 20);

/// Writes all times as CSV with a header row. The file appears complete or not at all.
/// @throws DataError if the file cannot be written
void write_layer_times(std::string const& path, std::vector<LayerTime> const& times);

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trace/layer_times.ipp>
#endif
