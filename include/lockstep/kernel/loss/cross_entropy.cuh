// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/detail/team.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/kernel/loss/cross_entropy.hpp>
#include <lockstep/kernel/loss/detail/device_weights.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail { inline namespace LOCKSTEP_CUDA_ABI {

/// A team processes one row. `gradient` may be the logits: after all threads have read the label's logit, each
/// overwrites only elements that no other thread reads.
template <class Team, class Scalar, class Label>
LOCKSTEP_CUDA_KERNEL void __launch_bounds__(Team::block)
    cross_entropy_rows(SequenceLayout<CudaSpace> layout, CrossEntropyTerms terms, Scalar const* logits,
                       Label const* labels, float const* factors, double* losses, double* weights, Scalar* gradient,
                       Write write) {
  using Sum = Accumulate<Scalar>;
  using Access = WidestAccess<Scalar>;
  constexpr Index step = Team::size * Access::size;
  auto const classes = terms.classes;
  AccessNumbers<Scalar> values;
  for (auto row = Team::first(); row < layout.slots; row += Team::count()) {
    auto const* const x = logits + row * classes;
    auto* const dx = gradient ? gradient + row * classes : nullptr;
    auto const label = static_cast<Index>(labels[row]);
    if (!layout.is_token(row) || label == terms.ignored) {
      if (Team::member() == 0) losses[row] = weights[row] = 0;
      for (auto& value : values) value = 0;
      for (auto first = Team::member() * Access::size; dx && write == Write::overwrite && first < classes;
           first += step)
        Access(first, classes).put(values, dx);
      continue;
    }
    bool const known = label >= 0 && label < classes;
    auto const at_label = known ? static_cast<Sum>(x[label]) : std::numeric_limits<Sum>::quiet_NaN();
    Sum maximum = -std::numeric_limits<Sum>::infinity();
    for (auto first = Team::member() * Access::size; first < classes; first += step) {
      Access const access(first, classes);
      access.load_as(x, values);
      for (int j = 0; j < access.size; ++j)
        if (access.has(j)) maximum = values[j] > maximum || values[j] != values[j] ? values[j] : maximum;
    }
    maximum = Team::largest(maximum);
    Sum total = 0, spread = 0;
    for (auto first = Team::member() * Access::size; first < classes; first += step) {
      Access const access(first, classes);
      access.load_as(x, values);
      for (int j = 0; j < access.size; ++j) {
        if (!access.has(j)) continue;
        Sum const z = values[j] - maximum;
        total += std::exp(z);
        if (terms.each != 0) spread += terms.class_weights ? static_cast<Sum>(terms.class_weights[first + j]) * z : z;
      }
    }
    total = Team::sum(total);
    if (terms.each != 0) spread = Team::sum(spread);
    auto const of = known ? label : 0;
    double const by = factors ? static_cast<double>(factors[row]) : 1;
    if (Team::member() == 0) {
      weights[row] = terms.weight(of);
      losses[row] =
          by * terms.loss(of, std::log(static_cast<double>(total)),
                          static_cast<double>(at_label) - static_cast<double>(maximum), static_cast<double>(spread));
    }
    if (!dx) continue;
    Team::synchronize();
    auto const scale = known ? static_cast<Sum>(by * terms.total(of)) / total : at_label;
    for (auto first = Team::member() * Access::size; first < classes; first += step) {
      Access const access(first, classes);
      access.load_as(x, values);
      for (int j = 0; j < access.size; ++j) {
        values[j] = std::exp(values[j] - maximum) * scale;
        if (terms.each != 0 && access.has(j)) values[j] -= static_cast<Sum>(by) * terms.template share<Sum>(first + j);
        if (first + j == label) values[j] -= static_cast<Sum>(by * terms.at_label(of));
      }
      access.put(values, dx, write);
    }
  }
}

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace detail

/// CUDA version with the host's shapes and formulas, queued on the stream. Labels are not checked with an exception,
/// which would have to wait for the device. A label outside the classes makes the row's loss and gradient NaN.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct CrossEntropy<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar, class Label>
  static void forward_backward(Stream stream, SequenceLayout<CudaSpace> layout, CrossEntropyOptions const& options,
                               Matrix<Scalar const> logits, Vector<Label> labels, Vector<double> losses,
                               Vector<double> weights, Matrix<Scalar> gradient, Write write,
                               Vector<float const> factors = {}) {
    auto const classes = logits.extent[1];
    expect<ShapeError>(logits.extent[0] == layout.slots && labels.size() == layout.slots, [&] {
      return "cross_entropy: logits are " + to_string(logits.extent) + " and there are " +
             std::to_string(labels.size()) + " labels; each row of logits needs one";
    });
    options.check(classes);
    options.check_factors(factors, logits.extent);
    detail::CrossEntropyTerms terms(options, classes);
    terms.class_weights = stream.persistent<detail::DeviceWeights>().of(options.class_weights);
    auto const run = [&](auto team) {
      using Team = decltype(team);
      detail::launch_teams<Team>("kernel::CrossEntropy", stream, layout.slots,
                                 detail::cross_entropy_rows<Team, Scalar, std::remove_const_t<Label>>, layout, terms,
                                 logits.data, labels.data, factors.data, losses.data, weights.data, gradient.data,
                                 write);
    };
    if (classes <= classes_per_warp)
      run(detail::WarpTeam{});
    else if (classes <= classes_per_block)
      run(detail::BlockTeam{});
    else
      run(detail::TeamOfBlock<768>{});  // two of them fill a multiprocessor
  }

 private:
  /// Limits for the teams. A row is read three times: all rows processed at a time must fit into the caches of a GPU.
  static constexpr Index classes_per_warp = 512, classes_per_block = 8192;
};

}}}  // namespace lockstep::kernel
