// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {
namespace detail {

/// The named losses of one batch's forward pass.
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
  /// @throws ConfigError if no loss has that name
  [[nodiscard]] Loss<Space> const& of(std::string_view name) {
    auto const at = find(name);
    if (at != losses_.end()) return at->second;
    std::string named;
    for (auto const& [other, loss] : losses_) named += (named.empty() ? "\"" : ", \"") + other + "\"";
    throw ConfigError("train::LossPart: the model's loss of a batch has no part \"" + std::string(name) +
                      "\"; it names " + (named.empty() ? "none" : named) +
                      ". Name the part when the loss is computed, for every batch: nn::named_loss(context, \"" +
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
  return context.template persistent<NamedLosses<typename Context::Space>>(nullptr);
}

}  // namespace detail

/// Names a part of a model's loss, so that a train::LossPart can report it in evaluations:
/// `reconstruction.with_auxiliary(nn::named_loss(context, "kl", kl))`. Losses of equal name are added. Has no effect in
/// training.
/// @returns the loss
template <class Context>
LossOf<Context> named_loss(Context& context, std::string_view name, LossOf<Context> const& loss) {
  if (context.mode() == Mode::evaluation) detail::named_losses(context).add(name, loss);
  return loss;
}

}}}  // namespace lockstep::nn
