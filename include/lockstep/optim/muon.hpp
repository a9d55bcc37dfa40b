// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <span>
#include <string_view>

#include <lockstep/core/index.hpp>
#include <lockstep/kernel/optimizer/optimizer_step.hpp>
#include <lockstep/kernel/optimizer/orthogonalize.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/detail/expect_setting.hpp>
#include <lockstep/optim/detail/make_rule.hpp>
#include <lockstep/optim/detail/muon_rule.hpp>
#include <lockstep/optim/rate_rule.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Muon, for the matrices of hidden layers: momentum, orthogonalized. With h the clipped gradient of the mean:
///   m = m + (1 - momentum) (h - m)        d = h + momentum (m - h), or m without Nesterov
///   x = (1 - rate decay) x - rate f orthogonal(d)
///
/// orthogonal(d) is kernel::NewtonSchulz, which moves the singular values of d to about 0.7 to 1.2; f depends on the
/// shape (`adjustment`). A parameter is one matrix, as stored: [outputs, inputs] in nn::Linear. It must have two axes.
/// Train biases, norms, embeddings and heads with another optimizer: see optim::Partitioned.
///
/// Computes in float32; on the CPU in models of bfloat16, products round their factors to it, as those of the layers.
/// PyTorch rounds d and each product to bfloat16. Untouched rows of tables count as rows with a zero gradient. A step
/// needs whole parameters: ranks cannot share the optimizer's state (`shard_optimizer`), and optim::Averaged does not
/// take Muon. A momentum below 1e-29 in float32 counts as zero.
/// @source Jordan and others: Muon, an optimizer for hidden layers in neural networks (2024), with the defaults of
/// PyTorch's torch.optim.Muon
struct Muon {
  /// Kind of momentum.
  enum class Momentum {
    heavy_ball,  ///< orthogonalizes m
    nesterov,    ///< looks one step of m ahead
  };
  /// Factor f on the rate of a matrix [rows, columns].
  enum class Adjustment {
    original,            ///< sqrt(max(1, rows / columns))
    match_rms_adamw,     ///< 0.2 sqrt(max(rows, columns)): steps of AdamW's size, so that both may have one rate
    spectral_unclamped,  ///< sqrt(rows / columns)
  };
  double learning_rate = 1e-3;                                 ///< base rate, which schedules and scaling multiply
  double momentum = 0.95;                                      ///< part of m that a step keeps, in [0, 1)
  double weight_decay = 0.1;                                   ///< decoupled weight decay, at least 0
  Momentum kind = Momentum::nesterov;                          ///< without effect if `momentum` is 0
  Adjustment adjustment = Adjustment::original;                ///< of the rate to the matrix's shape
  std::array<double, 3> coefficients{3.4445, -4.775, 2.0315};  ///< a, b, c of the iteration
  int iterations = 5;                                          ///< Newton-Schulz iterations, from 1 to 99
  double epsilon = 1e-7;                                       ///< least norm that a direction is divided by, above 0
  DecayRule decays = DecayRule::all;  ///< parameters that weight decay applies to, with their factors
  RateRule rates = RateRule::same;    ///< factor on the rate for each parameter

  /// Returns the name in checkpoints and errors.
  [[nodiscard]] static constexpr char const* name() noexcept { return "Muon"; }
  /// Calls each(name, value) for the settings that must be equal on all ranks.
  void describe(auto&& each) const {
    each("momentum", momentum);
    each("kind of momentum", static_cast<Index>(kind));
    each("weight decay", weight_decay);
    each("adjustment", static_cast<Index>(adjustment));
    each("coefficient a", coefficients[0]);
    each("coefficient b", coefficients[1]);
    each("coefficient c", coefficients[2]);
    each("iterations", Index{iterations});
    each("epsilon", epsilon);
  }

  /// Checks the settings.   @throws ConfigError for a setting out of range
  void check() const;
  /// Checks a parameter.   @throws ConfigError unless it has two axes
  static void check_parameter(std::string_view name, std::span<Index const> shape);
  /// Returns the factor f on the rate of a matrix.
  [[nodiscard]] double adjustment_of(Index rows, Index columns) const noexcept;

  static constexpr int states = 1;                ///< m
  static constexpr bool whole_parameters = true;  ///< `step` takes a slice of one whole parameter
  /// Returns the elements of work memory for a parameter: about twice its size; 0 unless it has two axes.
  [[nodiscard]] static Index work_elements(std::span<Index const> shape) noexcept {
    return shape.size() == 2 ? shape[0] * shape[1] + kernel::NewtonSchulz::work_elements(shape[0], shape[1]) : 0;
  }

  /// Updates a matrix in slice.work; allocates nothing on the CPU.
  /// @determinism bitwise, for any number of threads
  /// @throws ConfigError unless the parameter has two axes
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const;
};

// Not inline, so that programs that link the library use its code.
template <class Scalar, class Space>
void Muon::step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const {
  check_parameter(slice.name, slice.shape);
  if (slice.count == 0) return;
  if constexpr (Space::host_accessible)
    if (!scalars->active()) return;
  auto const rows = slice.shape[0], columns = slice.shape[1];
  auto direction = slice;
  direction.values = slice.work;
  direction.half_precision = {};
  kernel::OptimizerStep<Space>::template run<1>(stream, direction, scalars,
                                                detail::MakeRule<detail::MuonDirectionRule<Scalar>, Muon>{*this, 0, 1});
  slice.gradients = kernel::Orthogonalize<Space>::template run<Scalar>(
      stream, {coefficients, iterations, epsilon}, {slice.work, {rows, columns}}, slice.work + rows * columns);
  kernel::OptimizerStep<Space>::template run<0>(
      stream, slice, scalars,
      detail::MakeRule<detail::MuonRule<Scalar>, double>{adjustment_of(rows, columns), weight_decay * slice.decays,
                                                         slice.rate});
}

#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_MUON_STEP(Number, Space)                                                  \
  void Muon::step<Number, Space>(memory::Stream<Space> stream, Slice<Number, Space> slice, \
                                 StepScalars<Space> const* scalars) const
extern template LOCKSTEP_MUON_STEP(float, HostSpace);
extern template LOCKSTEP_MUON_STEP(double, HostSpace);
extern template LOCKSTEP_MUON_STEP(float, CudaSpace);
#endif

}}}  // namespace lockstep::optim

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/optim/muon.ipp>
#endif
