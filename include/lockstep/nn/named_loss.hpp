// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/nn/context.hpp>
#include <lockstep/nn/loss.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {
namespace detail {

/// The losses that a batch's forward pass has named.
template <class Space>
class NamedLosses {
 public:
  void clear() noexcept { losses_.clear(); }
  void add(std::string_view name, Loss<Space> const& loss) {
    auto const at = find(name);
    if (at == losses_.end())
      losses_.emplace_back(name, loss);
    else
      at->second += loss;
  }
  /// @throws ConfigError when there is none of that name
  [[nodiscard]] Loss<Space> const& of(std::string_view name) {
    auto const at = find(name);
    if (at != losses_.end()) return at->second;
    std::string named;
    for (auto const& [other, loss] : losses_) named += (named.empty() ? "\"" : ", \"") + other + "\"";
    throw ConfigError("train::LossPart: the model's loss of a batch has no part \"" + std::string(name) +
                      "\"; it names " + (named.empty() ? "none" : named) +
                      ". A part gets its name where it is made, for every batch: nn::named_loss(context, \"" +
                      std::string(name) + "\", loss)");
  }

 private:
  [[nodiscard]] auto find(std::string_view name) {
    return std::find_if(losses_.begin(), losses_.end(), [&](auto const& named) { return named.first == name; });
  }

  std::vector<std::pair<std::string, Loss<Space>>> losses_;
};

template <class Context>
[[nodiscard]] NamedLosses<typename Context::Space>& named_losses(Context& context) {
  return context.template kept<NamedLosses<typename Context::Space>>(nullptr);
}

}  // namespace detail

/// Gives a part of a model's loss a name, by which a train::LossPart shows it in evaluations:
/// `reconstruction.with_auxiliary(nn::named_loss(context, "kl", kl))`. Losses of the same name add up, as those of
/// other samples do. In training it does nothing.
/// @returns the loss
template <class Context>
LossOf<Context> named_loss(Context& context, std::string_view name, LossOf<Context> const& loss) {
  if (context.mode() == Mode::evaluation) detail::named_losses(context).add(name, loss);
  return loss;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
