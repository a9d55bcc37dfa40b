// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/where_not_finite.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE std::string where_not_finite(parallel::AnySession& session, int rank, int ranks, int devices) {
  std::vector<double> bad(static_cast<std::size_t>(devices));
  session.mark_not_finite(bad);
  if (ranks > 1) {
    auto const own = *std::max_element(bad.begin(), bad.end());
    bad.assign(static_cast<std::size_t>(ranks), 0);
    bad[static_cast<std::size_t>(rank)] = own;
    session.all_reduce(bad);
  }
  auto const count = bad.size();
  std::string names;
  std::size_t affected = 0;
  for (std::size_t index = 0; index < count; ++index)
    if (bad[index] != 0) names += (affected++ == 0 ? "" : ", ") + std::to_string(index);
  if (affected == 0 || affected == count) return "";
  return (ranks > 1 ? " on rank" : " on device") + std::string(affected == 1 ? " " : "s ") + names;
}

LOCKSTEP_INLINE void check_gradient(parallel::AnySession& session, nn::Loss<HostSpace> const& loss, Index step,
                                    double clip_norm) {
  if (session.kind().scales_loss || clip_norm == 0 || loss.weight == 0 || !session.skipped()) return;
  throw Error("training: the gradient of step " + std::to_string(step) + " is not finite, although the loss is " +
              std::to_string(loss.mean()) +
              ", so it cannot be clipped, and nothing was learned from it; look for a division by 0, or a root or "
              "logarithm of it, in layers of your own, lower the learning rate, or check samples by data::FiniteCheck");
}

LOCKSTEP_INLINE void check_finite(parallel::AnySession& session, nn::Loss<HostSpace> const& loss, Index step,
                                  double clip_norm, int rank, int ranks, int devices) {
  if (std::isfinite(loss.sum)) return check_gradient(session, loss, step, clip_norm);
  auto const where = where_not_finite(session, rank, ranks, devices);
  throw Error("training: the loss of step " + std::to_string(step) + " is " + std::to_string(loss.sum) + where +
              (where.empty() ? "; " : " and nowhere else; look at the samples there, ") +
              "lower the learning rate, warm it up, clip the gradient, or check samples by data::FiniteCheck" +
              (session.kind().scales_loss ? ", or store activations as bfloat16: float16 ends at 65504" : ""));
}

}}}  // namespace lockstep::train::detail
