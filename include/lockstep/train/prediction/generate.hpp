// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/prediction/beam_search.hpp>
#include <lockstep/train/prediction/predictor.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Sequence that a model generated for a sample.
struct Generated {
  Index sample = 0;  ///< index in the loader's dataset
  Hypothesis hypothesis;
};

namespace detail {

/// Serializes hypotheses, to send them to other ranks.
std::string to_bytes(std::vector<Generated> const& all);
void append_from_bytes(std::vector<Generated>& all, std::string_view bytes);

}  // namespace detail

/// Decodes each sample of one epoch of a loader once over all ranks by `beam_search`. Each rank decodes its part of the
/// batches with its own predictor. Every rank returns all results, in the order of the dataset. Samples that the loader
/// skips (data::OnFailure) have no result.
/// @param trainer connects the ranks
/// @param predictor has the parameters, equal on all ranks: Predictor{model, trainer.values()}
/// @param loader returns prompts: batches of sequences of equal length
/// @param next like the parameter of `beam_search`
/// @param on_progress called as on_progress(batch, batches) after each of this rank's batches, such as Progress::steps
/// @collective with DistributedDataParallel
/// @throws ConfigError if the loader's tail is not exact, and all that beam_search throws
template <class Trainer, class Model, class Loader, class Next>
[[nodiscard]] std::vector<Generated> generate(Trainer& trainer, Predictor<Model>& predictor, Loader& loader,
                                              BeamSearchOptions const& options, Next const& next,
                                              ProgressCallback const& on_progress = {}) {
  if (loader.options().tail != data::Tail::exact)
    throw ConfigError("generate: the loader's tail must be exact, so that each sample is decoded once; leave it so");
  data::Split const split{.first = trainer.rank(), .count = 1, .all = trainer.ranks()};
  std::vector<Generated> own, all;
  loader.start(split, 0, 0, 1);
  for (Index step = 0, steps = loader.steps(split); step < steps; ++step) {
    auto const held = loader.next();
    auto const samples = held.samples(0);
    auto hypotheses = beam_search(predictor, held.batches()[0], options, next);
    if (on_progress) on_progress(step + 1, steps);
    for (std::size_t k = 0; k < samples.size(); ++k) own.push_back({samples[k], std::move(hypotheses[k])});
  }
  auto const bytes = detail::to_bytes(own);
  for (int rank = 0; rank < trainer.ranks(); ++rank)
    detail::append_from_bytes(all, trainer.broadcast(rank == trainer.rank() ? bytes : std::string(), rank));
  std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.sample < b.sample; });
  return all;
}

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/prediction/generate.ipp>
#endif
