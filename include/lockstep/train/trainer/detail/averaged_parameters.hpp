// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/session.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the averages that a session's optimizer keeps.   @collective if the optimizer is sharded
[[nodiscard]] std::vector<float> averaged_values(parallel::AnySession& session);

/// Restarts the averages of those parameters that differ from `values`, before the session takes these values.
/// @collective if the optimizer is sharded
void restart_averages(parallel::AnySession& session, nn::ParameterLayout const& layout, std::span<float const> values);

/// Sets the values and buffers of all replicas.   @collective if the optimizer keeps averages
void set_values_and_buffers(parallel::AnySession& session, nn::ParameterLayout const& layout,
                            std::span<float const> values, std::span<float const> buffers);

/// Guard that replaces the parameters of all replicas with their averages, if the optimizer keeps any. It sets
/// `in_place`, so that an evaluation by an observer within an evaluation does not replace them twice.
/// @collective if the optimizer is sharded
class AveragedParameters {
 public:
  AveragedParameters(parallel::AnySession& session, bool& in_place);
  ~AveragedParameters();
  AveragedParameters(AveragedParameters const&) = delete;
  AveragedParameters& operator=(AveragedParameters const&) = delete;

 private:
  parallel::AnySession& session_;
  bool& in_place_;
  bool active_;
  std::vector<float> values_;
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/averaged_parameters.ipp>
#endif
