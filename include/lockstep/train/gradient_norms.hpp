// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/optim/global_norm.hpp>
#include <lockstep/train/detail/trainer_parts.hpp>
#include <lockstep/train/trainer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// The Euclidean norm of each parameter's gradient in a trainer's last step, by name and in forward order: of the mean
/// over all ranks and devices, before it is clipped. For a loop of one's own, or an observer's `step`; any rank may ask
/// by itself. All are 0 before the first step.
/// @cost a pass over all gradients   @determinism bitwise, for any number of threads
/// @throws ConfigError where ranks share the optimizer (`shard_optimizer`): none of them has all gradients
template <class Model, class Optimizer, class Policy>
[[nodiscard]] std::vector<std::pair<std::string, double>> gradient_norms(Trainer<Model, Optimizer, Policy>& trainer) {
  auto& session = detail::TrainerParts::session(trainer);
  using Replica = typename std::remove_reference_t<decltype(session)>::DeviceReplica;
  using Space = typename Replica::Space;
  static_assert(!Replica::scales_loss,
                "Lockstep: train::gradient_norms is for models in float or nn::InBfloat16: of nn::InFloat16 gradients "
                "have a scale that changes with the step");
  if constexpr (requires { trainer.policy().shard_optimizer; })
    if (trainer.policy().shard_optimizer && trainer.ranks() > 1)
      throw ConfigError(
          "gradient_norms: with shard_optimizer each rank has the gradients of its part alone; leave it out, or have "
          "clip_norm measure the norm of all of them together");
  std::vector<std::pair<std::string, double>> norms;
  auto const weight = detail::TrainerParts::weight(trainer);
  session.each([&](int shard, Replica& replica) {
    if (shard != 0) return;
    for (auto const& entry : trainer.layout().entries()) {
      TensorView<float const, 1, Space> const gradient{replica.gradient_data() + entry.offset, {entry.size}};
      std::vector<kernel::TouchedRows> rows;  // of this parameter, where its gradient goes by rows
      for (auto table : replica.touched())
        if (entry.size > 0 && table.offset == entry.offset) table.offset = 0, rows.push_back(table);
      auto const norm = weight > 0 ? optim::GlobalNorm::of(replica.stream(), gradient, rows).norm() / weight : 0;
      norms.emplace_back(entry.name, norm);
    }
  });
  return norms;
}

}}}  // namespace lockstep::train
