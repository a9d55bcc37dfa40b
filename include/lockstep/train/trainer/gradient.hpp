// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/train/trainer/detail/own_gradients.hpp>
#include <lockstep/train/trainer/trainer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

namespace detail {
/// Returns the entry of that name.   @throws ConfigError that names the parameters, if there is none
[[nodiscard]] nn::ParameterLayout::Entry const& entry_named(nn::ParameterLayout const& layout, std::string_view name,
                                                            char const* what);
}  // namespace detail

/// Returns a parameter's gradient in the trainer's last step, on the host: the mean over all ranks and devices before
/// clipping, as PyTorch's `p.grad`. Call it after a step of your own loop, or in an observer's `step`. Not collective:
/// a single rank may call it. Zeros before the first step, and for a frozen parameter.
/// @shape returns [product of the parameter's shape], in the order of its elements
/// @cost a copy of this parameter's gradient
/// @throws ConfigError for an unknown name, or if ranks share the optimizer (`shard_optimizer`), as no rank then has
/// all gradients
template <class Model, class Optimizer, class Policy>
[[nodiscard, gnu::cold]] std::vector<float> gradient(Trainer<Model, Optimizer, Policy>& trainer,
                                                     std::string_view name) {
  detail::expect_own_gradients(trainer, "gradient");
  auto& session = trainer.session();
  using Replica = typename std::remove_reference_t<decltype(session)>::DeviceReplica;
  auto const& entry = detail::entry_named(trainer.layout(), name, "gradient");
  std::vector<float> out(static_cast<std::size_t>(entry.size));
  auto const weight = trainer.state().weight;
  if (weight == 0 || entry.frozen) return out;  // a frozen gradient may be this rank's alone
  session.for_each_shard([&](int shard, Replica& replica) {
    if (shard != 0) return;
    kernel::for_written(replica.touched(), entry.offset, entry.offset + entry.size, [&](Index begin, Index end) {
      auto const* const from = replica.gradient_data() + begin;
      std::span const to(out.data() + (begin - entry.offset), static_cast<std::size_t>(end - begin));
      if constexpr (Replica::Space::host_accessible)
        std::copy_n(from, to.size(), to.begin());
      else
        replica.device().read(from, to);
    });
  });
  for (auto& each : out) each = static_cast<float>(static_cast<double>(each) / weight);
  return out;
}

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/gradient.ipp>
#endif
