// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/persistent_objects.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/autograd/activation_arena.hpp>
#include <lockstep/nn/autograd/decoding_cache.hpp>
#include <lockstep/nn/autograd/detail/loss_scale.hpp>
#include <lockstep/nn/autograd/detail/staged.hpp>
#include <lockstep/nn/autograd/detail/tracer.hpp>
#include <lockstep/nn/autograd/parameter_binding.hpp>
#include <lockstep/nn/autograd/random_keys.hpp>
#include <lockstep/nn/autograd/replica_group.hpp>
#include <lockstep/nn/autograd/tape.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

template <class Scalar, class Space>
class Context;

}}}  // namespace lockstep::nn

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// The state of a context, in parts with one job each. Layers call the context; nn::Pass, nn::Staging and the code that
/// records a pass use the parts.
template <class Scalar, class Space>
struct ContextParts {
  memory::Stream<Space> stream;
  Mode mode = Mode::training;
  ParameterBinding<Scalar, Space> parameters{};
  ActivationArena<Space> arena{};
  StagingMemory<Accumulate<Scalar>, Scalar, Space> staging{};
  Tape<Context<Scalar, Space>> tape{};
  RandomKeys<Space> random{};
  DecodingCache<Scalar> cache{};
  InReplicaGroup replicas{};
  LossScale<Scalar> loss_scale{};  ///< factor on the gradients of losses; without members unless Scalar is float16
  PersistentObjects persistent{};
  Tracer<Space> tracer{};

  /// Returns null unless the pass is traced. Operations without a backward report their end to it, by `ended`.
  [[nodiscard]] Tracer<Space>* active_tracer() noexcept { return tracer ? &tracer : nullptr; }
};

}}}  // namespace lockstep::nn::detail
