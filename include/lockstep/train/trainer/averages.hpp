// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/train/detail/expect_end.hpp>
#include <lockstep/train/trainer/detail/averaged_parameters.hpp>
#include <lockstep/train/trainer/detail/start_loader.hpp>
#include <lockstep/train/trainer/detail/with_sample_name.hpp>
#include <lockstep/train/trainer/trainer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Returns the moving average of the parameters, in the order of `trainer.values()`, for a Predictor or
/// train::save_parameters. The trainer's optimizer is an optim::Averaged.
/// @collective with DistributedDataParallel
template <class Model, class Optimizer, class Policy>
[[nodiscard]] std::vector<float> averages(Trainer<Model, Optimizer, Policy>& trainer) {
  static_assert(optim::averages<Optimizer>,
                "Lockstep: train::averages needs a trainer whose optimizer keeps averages, such as "
                "optim::Averaged{optim::AdamW{}, 0.999}");
  if (trainer.state().averages_in_place) {
    auto const values = trainer.values();
    return {values.begin(), values.end()};
  }
  return detail::averaged_values(trainer.session());
}

namespace detail {

/// Statistics of batches that running statistics have followed: after a batch, a running statistic is
/// (1 - momentum) * before + momentum * statistic.
class BatchStatistics {
 public:
  /// Finds the momentum of each buffer of the layout from three passes over one batch, which started with `own`, with
  /// zeros, and with the result of zeros. A buffer that does not follow batches in this way has none.
  BatchStatistics(nn::ParameterLayout const& layout, std::span<float const> own, std::span<float const> from_own,
                  std::span<float const> from_zero, std::span<float const> again);
  /// Adds the buffers after a batch that started with zeros. If none has changed, the batch had too few samples.
  /// @param totals [2 * buffers]: sums, and numbers of batches
  void add(std::span<float const> from_zero, std::span<double> totals) const;

 private:
  std::vector<double> momentum_;
};

/// Guard that sets the buffers of all replicas at its end.
class KeptBuffers {
 public:
  KeptBuffers(parallel::AnySession& session, std::span<float const> buffers);
  KeptBuffers(KeptBuffers const&) = delete;
  KeptBuffers& operator=(KeptBuffers const&) = delete;
  ~KeptBuffers();
  [[nodiscard]] std::vector<float> const& buffers() const noexcept { return buffers_; }

 private:
  parallel::AnySession& session_;
  std::vector<float> buffers_;
};

}  // namespace detail

/// Returns the model's buffers for the averages of its parameters: the statistics of batch norm by the averages, where
/// those of training are by the parameters. Each is the mean over the batches of one epoch of `loader`, in training
/// mode, as of PyTorch's update_bn. Buffers that do not follow the statistics of batches keep their values. The
/// trainer's parameters do not change; its buffers become equal on all replicas, as for an evaluation. Save the result
/// by train::save_parameters(path, trainer.layout(), averages(trainer), metadata, averaged_buffers(trainer, loader)),
/// or pass it to a Predictor.
/// @param loader a loader of training batches; one batch should have enough samples for its statistics
/// @collective with DistributedDataParallel
/// @throws ConfigError within an evaluation by the averages, and all that the loader and the model throw
template <class Model, class Optimizer, class Policy, class Loader>
[[nodiscard]] std::vector<float> averaged_buffers(Trainer<Model, Optimizer, Policy>& trainer, Loader& loader) {
  static_assert(optim::averages<Optimizer>,
                "Lockstep: train::averaged_buffers needs a trainer whose optimizer keeps averages, such as "
                "optim::Averaged{optim::AdamW{}, 0.999}");
  auto& state = trainer.state();
  state.expect_parameters("averaged_buffers");
  auto& session = trainer.session();
  using Replica = typename std::remove_reference_t<decltype(session)>::DeviceReplica;
  auto const split = trainer.split();
  detail::expect_end("averaged_buffers", loader);
  session.synchronize_buffers();
  detail::start_loader<Replica>(loader, split, 0, 0, 1);
  detail::KeptBuffers const own(session, trainer.buffers());
  auto const count = own.buffers().size();
  std::vector<double> totals(2 * count);
  {
    detail::AveragedParameters const averaged(session, state.averages_in_place);
    std::optional<detail::BatchStatistics> statistics;
    for (Index step = 0, steps = count == 0 ? 0 : loader.steps(split); step < steps; ++step) {
      auto const held = loader.next();
      auto const key = mix(state.seed, static_cast<std::uint64_t>(step));
      auto const pass = [&](std::vector<float> const& from) {  // returns each shard's buffers
        session.set_buffers(from);
        detail::with_sample_name(held, [&] { session.micro_step(held.batches(), {key, true, false, false}); });
        std::vector<std::vector<float>> after(static_cast<std::size_t>(split.count));
        session.for_each_shard([&](int shard, auto& replica) {
          auto const buffers = replica.buffers();
          after[static_cast<std::size_t>(shard)].assign(buffers.begin(), buffers.end());
        });
        return after;
      };
      auto const from_zero = pass(std::vector<float>(count));
      if (!statistics) {
        auto const from_own = pass(own.buffers()), again = pass(from_zero[0]);
        statistics.emplace(trainer.layout(), own.buffers(), from_own[0], from_zero[0], again[0]);
      }
      for (auto const& buffers : from_zero) statistics->add(buffers, totals);
    }
  }
  session.all_reduce(totals);
  auto out = own.buffers();
  for (std::size_t i = 0; i < count; ++i)
    if (totals[count + i] > 0) out[i] = static_cast<float>(totals[i] / totals[count + i]);
  return out;
}

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/averages.ipp>
#endif
