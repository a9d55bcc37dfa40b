// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

namespace detail {
template <class Scalar>
void write_initial_values(ParameterLayout::Entry const& entry, Philox const& random, Scalar* out, Index begin,
                          Index end) {
  auto const scale = entry.initializer.scale;
  for (Index i = begin; i < end; ++i) {
    auto const at = static_cast<std::uint64_t>(i);
    switch (entry.initializer.kind) {
      case Initializer::Kind::constant:
        out[i] = static_cast<Scalar>(scale);
        break;
      case Initializer::Kind::uniform:
        out[i] = static_cast<Scalar>(scale * (2 * uniform(random, at) - 1));
        break;
      case Initializer::Kind::normal:
        out[i] = static_cast<Scalar>(scale * normal(random, at));
        break;
      case Initializer::Kind::given:
        out[i] = static_cast<Scalar>(entry.initializer.values[i]);
        break;
    }
  }
}
}  // namespace detail

/// Writes the initial values of every parameter into a host arena of `layout.size()` elements; leaves padding
/// unchanged. `threads` threads share large arenas.
/// @determinism bitwise, for any number of threads: an element depends only on the seed, the parameter's name and the
/// element's index, not on other parameters
template <class Scalar>
void initialize(ParameterLayout const& layout, std::uint64_t seed, Scalar* values, int threads = 1) {
  constexpr Index grain = Index{1} << 16;
  ThreadPool pool(layout.size() > 16 * grain ? threads : 1);
  for (auto const& entry : layout.entries()) {
    Philox const random(mix(seed, mix(entry.name)));
    pool.for_ranges(entry.size, grain, [&](Index begin, Index end) {
      detail::write_initial_values(entry, random, values + entry.offset, begin, end);
    });
  }
}

/// Returns the initial values of every parameter in a new arena, with zeros as padding.
[[nodiscard]] inline std::vector<float> initial_values(ParameterLayout const& layout, std::uint64_t seed,
                                                       int threads = 1) {
  std::vector<float> values(static_cast<std::size_t>(layout.size()));
  initialize(layout, seed, values.data(), threads);
  return values;
}

/// Writes the initial values of every buffer into a host arena of `layout.buffer_size()` elements. Independent of the
/// seed.
template <class Scalar>
void initialize_buffers(ParameterLayout const& layout, Scalar* buffers) {
  for (auto const& entry : layout.buffers())
    detail::write_initial_values(entry, Philox(mix(entry.name)), buffers + entry.offset, 0, entry.size);
}

}}}  // namespace lockstep::nn
