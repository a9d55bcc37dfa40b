// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/optim/global_norm.hpp>
#include <lockstep/train/trainer/detail/own_gradients.hpp>
#include <lockstep/train/trainer/trainer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Returns the Euclidean norm of each parameter's gradient in the trainer's last step, by name and in forward order.
/// The gradient is the mean over all ranks and devices before clipping. Call it after a step of your own loop, or in an
/// observer's `step`. Not collective: a single rank may call it. All norms are 0 before the first step, and those of
/// frozen parameters always.
/// @cost a pass over all gradients   @determinism bitwise, for any number of threads
/// @throws ConfigError if ranks share the optimizer (`shard_optimizer`), as no rank then has all gradients
template <class Model, class Optimizer, class Policy>
[[nodiscard]] std::vector<std::pair<std::string, double>> gradient_norms(Trainer<Model, Optimizer, Policy>& trainer) {
  auto& session = trainer.session();
  using Replica = typename std::remove_reference_t<decltype(session)>::DeviceReplica;
  using Space = typename Replica::Space;
  detail::expect_own_gradients(trainer, "gradient_norms");
  std::vector<std::pair<std::string, double>> norms;
  auto const weight = trainer.state().weight;
  session.for_each_shard([&](int shard, Replica& replica) {
    if (shard != 0) return;
    for (auto const& entry : trainer.layout().entries()) {
      TensorView<float const, 1, Space> const gradient{replica.gradient_data() + entry.offset, {entry.size}};
      std::vector<kernel::TouchedRows> rows;  // of this parameter, if its gradient is by rows
      for (auto table : replica.touched())
        if (entry.size > 0 && table.offset == entry.offset) table.offset = 0, rows.push_back(table);
      bool const counts = weight > 0 && !entry.frozen;  // a frozen gradient may be this rank's alone
      auto const norm = counts ? optim::GlobalNorm::of(replica.stream(), gradient, rows).norm() / weight : 0;
      norms.emplace_back(entry.name, norm);
    }
  });
  return norms;
}

}}}  // namespace lockstep::train
