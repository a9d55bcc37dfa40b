// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Arenas of a model with access by name.
template <class Number>
struct NamedTensors {
  nn::ParameterLayout const& layout;
  std::span<Number> values, buffers;

  /// Calls f(entry, elements) for every parameter and buffer.
  template <class Function>
  void each(Function&& f) const {
    auto const all = [&](auto const& entries, std::span<Number> arena) {
      for (auto const& entry : entries)
        f(entry, arena.subspan(static_cast<std::size_t>(entry.offset), static_cast<std::size_t>(entry.size)));
    };
    all(layout.entries(), values);
    all(layout.buffers(), buffers);
  }
};

/// Type with arenas by name: a trainer.
template <class Value>
concept HasNamedTensors = requires(Value const& t) {
  NamedTensors<float const>{t.layout(), t.values(), t.buffers()};
};

/// Interpolates parameters and buffers whose names begin with `prefix` towards those in `from`, where `in_other`
/// replaces the prefix: to += share * (from - to).
/// @throws ConfigError if no name has the prefix, `from` lacks a name, or the share is not in [0, 1]; ShapeError if two
/// shapes differ; `to` changes only if all is valid
void copy_parameters(NamedTensors<float const> const& from, NamedTensors<float> const& to, std::string_view prefix,
                     std::string_view in_other, double share);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/detail/copy_parameters.ipp>
#endif
