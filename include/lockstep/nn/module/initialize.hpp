// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

namespace detail {
template <class Scalar>
void write_initial_values(ParameterLayout::Entry const& entry, Philox const& random, Scalar* out, Index begin,
                          Index end);
}  // namespace detail

/// Writes the initial values of every parameter into a host arena of `layout.size()` elements; leaves padding
/// unchanged. `threads` threads share large arenas.
/// @determinism bitwise, for any number of threads: an element depends only on the seed, the parameter's name and the
/// element's index, not on other parameters
template <class Scalar>
void initialize(ParameterLayout const& layout, std::uint64_t seed, Scalar* values, int threads = 1);

/// Returns the initial values of every parameter in a new arena, with zeros as padding.
[[nodiscard]] std::vector<float> initial_values(ParameterLayout const& layout, std::uint64_t seed, int threads = 1);

/// Writes the initial values of every buffer into a host arena of `layout.buffer_size()` elements. Independent of the
/// seed.
template <class Scalar>
void initialize_buffers(ParameterLayout const& layout, Scalar* buffers) {
  for (auto const& entry : layout.buffers())
    detail::write_initial_values(entry, Philox(mix(entry.name)), buffers + entry.offset, 0, entry.size);
}

}}}  // namespace lockstep::nn

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/nn/module/initialize.ipp>
#endif
