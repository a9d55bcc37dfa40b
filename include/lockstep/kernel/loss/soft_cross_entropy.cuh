// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/team.cuh>
#include <lockstep/kernel/loss/detail/device_weights.cuh>
#include <lockstep/kernel/loss/soft_cross_entropy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// A team processes one row. `gradient` may be the logits: a thread overwrites only elements that no other thread
/// reads.
template <class Team, class Scalar, class Share>
LOCKSTEP_CUDA_KERNEL void soft_cross_entropy_rows(SequenceLayout<CudaSpace> layout, CrossEntropyTerms terms,
                                                  Scalar const* logits, Share const* shares, float const* factors,
                                                  double* losses, double* weights, Scalar* gradient, Write write) {
  using Sum = Accumulate<Scalar>;
  auto const classes = terms.classes;
  for (auto row = Team::first(); row < layout.slots; row += Team::count()) {
    auto const* const x = logits + row * classes;
    auto const* const q = shares + row * classes;
    auto* const dx = gradient ? gradient + row * classes : nullptr;
    if (!layout.is_token(row)) {
      if (Team::member() == 0) losses[row] = weights[row] = 0;
      for (Index c = Team::member(); dx && write == Write::overwrite && c < classes; c += Team::size) dx[c] = Scalar{};
      continue;
    }
    Sum maximum = -std::numeric_limits<Sum>::infinity();
    for (Index c = Team::member(); c < classes; c += Team::size) {
      auto const value = static_cast<Sum>(x[c]);
      maximum = value > maximum || value != value ? value : maximum;
    }
    maximum = Team::largest(maximum);
    Sum total = 0, all = 0, dot = 0;
    for (Index c = Team::member(); c < classes; c += Team::size) {
      Sum const z = static_cast<Sum>(x[c]) - maximum;
      Sum const share = terms.share(c, static_cast<Sum>(q[c]));
      total += std::exp(z);
      all += share;
      dot += share * z;
    }
    total = Team::sum(total);
    all = Team::sum(all);
    dot = Team::sum(dot);
    double const by = factors ? static_cast<double>(factors[row]) : 1;
    if (Team::member() == 0) {
      weights[row] = 1;
      losses[row] = by * (static_cast<double>(all) * std::log(static_cast<double>(total)) - static_cast<double>(dot));
    }
    if (!dx) continue;
    auto const scale = static_cast<Sum>(by) * all / total;
    for (Index c = Team::member(); c < classes; c += Team::size) {
      auto slope = std::exp(static_cast<Sum>(x[c]) - maximum) * scale -
                   static_cast<Sum>(by) * terms.share(c, static_cast<Sum>(q[c]));
      if (write == Write::add) slope += static_cast<Sum>(dx[c]);
      dx[c] = static_cast<Scalar>(slope);
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// CUDA version with the host's shapes and formulas, queued on the stream. Shares are not checked.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct SoftCrossEntropy<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar, class Share>
  static void forward_backward(Stream stream, SequenceLayout<CudaSpace> layout, CrossEntropyOptions const& options,
                               Matrix<Scalar const> logits, Vector<Share const> shares, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write,
                               Vector<float const> factors = {}) {
    check_soft_cross_entropy(layout.slots, options, logits.extent, shares.size(), factors);
    auto const classes = logits.extent[1];
    detail::CrossEntropyTerms terms(options, classes);
    terms.class_weights = stream.persistent<detail::DeviceWeights>().of(options.class_weights);
    auto const run = [&](auto team) {
      using Team = decltype(team);
      detail::launch("kernel::SoftCrossEntropy", stream, layout.slots * Team::size,
                     detail::soft_cross_entropy_rows<Team, Scalar, Share>, layout, terms, logits.data, shares.data,
                     factors.data, losses.data, weights.data, gradient.data, write);
    };
    if (classes <= classes_per_warp)
      run(detail::WarpTeam{});
    else
      run(detail::BlockTeam{});
  }

 private:
  static constexpr Index classes_per_warp = 512;
};

}}}  // namespace lockstep::kernel
