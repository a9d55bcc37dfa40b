// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/nn/module/initialize.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

namespace detail {
template <class Scalar>
LOCKSTEP_INLINE void write_initial_values(ParameterLayout::Entry const& entry, Philox const& random, Scalar* out,
                                          Index begin, Index end) {
  auto const scale = entry.initializer.scale;
  for (Index i = begin; i < end; ++i) {
    auto const at = static_cast<std::uint64_t>(i);
    switch (entry.initializer.kind) {
      case Initializer::Kind::constant:
        out[i] = static_cast<Scalar>(scale);
        break;
      case Initializer::Kind::uniform:
        out[i] = static_cast<Scalar>(scale * static_cast<double>(2 * uniform(random, at) - 1));
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

template <class Scalar>
LOCKSTEP_INLINE void initialize(ParameterLayout const& layout, std::uint64_t seed, Scalar* values, int threads) {
  constexpr Index grain = Index{1} << 16;
  ThreadPool pool(layout.size() > 16 * grain ? threads : 1);
  for (auto const& entry : layout.entries()) {
    Philox const random(mix(seed, mix(entry.name)));
    pool.for_ranges(entry.size, grain, [&](Index begin, Index end) {
      detail::write_initial_values(entry, random, values + entry.offset, begin, end);
    });
  }
}

LOCKSTEP_INLINE std::vector<float> initial_values(ParameterLayout const& layout, std::uint64_t seed, int threads) {
  std::vector<float> values(static_cast<std::size_t>(layout.size()));
  initialize(layout, seed, values.data(), threads);
  return values;
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
template void detail::write_initial_values<float>(ParameterLayout::Entry const& entry, Philox const& random, float* out,
                                                  Index begin, Index end);
template void detail::write_initial_values<double>(ParameterLayout::Entry const& entry, Philox const& random,
                                                   double* out, Index begin, Index end);
template void initialize<float>(ParameterLayout const& layout, std::uint64_t seed, float* values, int threads);
template void initialize<double>(ParameterLayout const& layout, std::uint64_t seed, double* values, int threads);
#endif

}}}  // namespace lockstep::nn
