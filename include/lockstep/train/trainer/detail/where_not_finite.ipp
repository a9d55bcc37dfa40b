// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/shortest.hpp>
#include <lockstep/train/trainer/detail/where_not_finite.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::pair<std::string, bool> where_not_finite(parallel::AnySession& session, int rank, int ranks,
                                                                   int devices) {
  std::vector<double> bad(static_cast<std::size_t>(devices));
  session.mark_not_finite(bad);
  auto const own = *std::max_element(bad.begin(), bad.end());
  if (ranks > 1) {
    bad.assign(static_cast<std::size_t>(ranks), 0);
    bad[static_cast<std::size_t>(rank)] = own;
    session.all_reduce(bad);
  }
  auto const count = bad.size();
  std::string names;
  std::size_t affected = 0;
  for (std::size_t index = 0; index < count; ++index)
    if (bad[index] != 0) names += (affected++ == 0 ? "" : ", ") + std::to_string(index);
  if (affected == 0) return {"", true};
  if (affected == count) return {"", own != 0};
  return {(ranks > 1 ? " on rank" : " on device") + std::string(affected == 1 ? " " : "s ") + names, own != 0};
}

LOCKSTEP_COLD_INLINE std::string first_found(parallel::AnySession& session, std::string found, int rank, int ranks) {
  if (ranks == 1) return found;
  std::vector<double> has(static_cast<std::size_t>(ranks));
  has[static_cast<std::size_t>(rank)] = found.empty() ? 0 : 1;
  session.all_reduce(has);
  auto const first = std::find(has.begin(), has.end(), 1.0);
  if (first == has.end()) return {};
  session.broadcast(found, static_cast<int>(first - has.begin()));
  return found;
}

LOCKSTEP_INLINE void check_gradient(parallel::AnySession& session, nn::Loss<HostSpace> const& loss, Index step,
                                    double clip_norm) {
  if (session.kind().scales_loss || clip_norm == 0 || loss.weight == 0 || !session.skipped()) return;
  throw Error("training: the gradient of step " + std::to_string(step) + " is not finite, although the loss is " +
              shortest(loss.mean()) +
              ", so it cannot be clipped, and nothing was learned from it; look for a division by 0, or a root or "
              "logarithm of it, in layers of your own, lower the learning rate, or check samples by data::FiniteCheck");
}

LOCKSTEP_INLINE void check_finite(parallel::AnySession& session, nn::Loss<HostSpace> const& loss, Index step,
                                  double clip_norm, int rank, int ranks, int devices,
                                  std::function<std::string()> const& find_sample) {
  if (std::isfinite(loss.sum)) return check_gradient(session, loss, step, clip_norm);
  auto const [where, here] = where_not_finite(session, rank, ranks, devices);
  std::string sample;
  if (find_sample) sample = first_found(session, here ? find_sample() : "", rank, ranks);
  std::string message = "training: the loss of step " + std::to_string(step) + " is " +
                        (std::isnan(loss.sum) ? "nan" : shortest(loss.sum)) + where +
                        (where.empty() ? "; " : " and nowhere else; ");
  if (!sample.empty())
    throw Error(message + sample +
                "; correct the data, or let the loader skip such samples by data::FiniteCheck and "
                "DataLoaderOptions::on_failure");
  throw Error(message + (where.empty() ? "" : "look at the samples there, ") +
              "lower the learning rate, warm it up, clip the gradient, or check samples by data::FiniteCheck" +
              (session.kind().scales_loss ? ", or store activations as bfloat16: float16 ends at 65504" : ""));
}

}}}  // namespace lockstep::train::detail
