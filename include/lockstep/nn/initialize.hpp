// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>

#include <lockstep/core/mix.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/nn/parameter_layout.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// Writes the start of every parameter into a host arena of `layout.size()` elements; padding stays as it is.
/// @determinism bitwise: an element depends on seed, parameter name and its index only, whatever else the model holds
template <class Scalar>
void initialize(ParameterLayout const& layout, std::uint64_t seed, Scalar* values) {
  for (auto const& entry : layout.entries()) {
    Philox const random(mix(seed, mix(entry.name)));
    auto* out = values + entry.offset;
    for (Index i = 0; i < entry.size; ++i) {
      switch (entry.initializer.kind) {
        case Initializer::Kind::constant:
          out[i] = static_cast<Scalar>(entry.initializer.scale);
          break;
        case Initializer::Kind::uniform:
          out[i] =
              static_cast<Scalar>(entry.initializer.scale * (2 * uniform(random, static_cast<std::uint64_t>(i)) - 1));
          break;
        case Initializer::Kind::normal:
          out[i] = static_cast<Scalar>(entry.initializer.scale * normal(random, static_cast<std::uint64_t>(i)));
          break;
      }
    }
  }
}

/// Writes the start of every buffer into a host arena of `layout.buffer_size()` elements.
template <class Scalar>
void initialize_buffers(ParameterLayout const& layout, Scalar* buffers) {
  for (auto const& entry : layout.buffers())
    for (Index i = 0; i < entry.size; ++i) buffers[entry.offset + i] = static_cast<Scalar>(entry.initializer.scale);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
