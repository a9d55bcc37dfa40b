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
#include <lockstep/core/folder.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/data/split.hpp>
#include <lockstep/train/detail/expect_end.hpp>
#include <lockstep/train/detail/row_parts.hpp>
#include <lockstep/train/detail/sorted_rows.hpp>
#include <lockstep/train/detail/start_once.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/prediction/beam_search.hpp>
#include <lockstep/train/prediction/predictor.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Sequence that a model generated for a sample.
struct Generated {
  Index sample = 0;       ///< index in the loader's dataset
  Hypothesis hypothesis;  ///< the best one of the beam
};

namespace detail {

/// Serializes a hypothesis, to send it to other ranks.
std::string to_bytes(Hypothesis const& hypothesis);
Generated generated_from(NumberedLine const& line);

/// Decodes one epoch of a loader over all ranks. Calls receive(rows) on each rank with the hypotheses of each rank, in
/// parts of about a megabyte: lines as NumberedLine::append_to writes them, in the order of the batches.
template <class Trainer, class Model, class Loader, class Next>
void generate_in_parts(Trainer& trainer, Predictor<Model>& predictor, Loader& loader, BeamSearchOptions const& options,
                       Next const& next, ProgressCallback const& on_progress, auto const& receive) {
  if (loader.options().tail != data::Tail::exact)
    throw ConfigError("generate: the loader's tail must be exact, so that each sample is decoded once; leave it so");
  expect_end("generate", loader);
  data::Split const split{.first = trainer.rank(), .count = 1, .all = trainer.ranks()};
  start_once(loader, split);
  RowParts parts;
  std::string own;
  auto const broadcast = [&](std::string rows, int root) { return trainer.broadcast(std::move(rows), root); };
  for (Index step = 0, steps = loader.steps(split); step < steps; ++step) {
    auto const held = loader.next();
    auto const samples = held.samples(0);
    auto const hypotheses = beam_search(predictor, held.batches()[0], options, next);
    if (on_progress) on_progress(step + 1, steps);
    for (std::size_t k = 0; k < samples.size(); ++k) NumberedLine{samples[k], to_bytes(hypotheses[k])}.append_to(own);
    if (parts.ends_with_step(step + 1 == steps))
      parts.exchange(trainer.rank(), trainer.ranks(), std::exchange(own, {}), broadcast, receive);
  }
}

/// Decodes one epoch of a loader over all ranks into the first rank's `sorted`.
template <class Trainer, class Model, class Loader, class Next>
void generate_sorted(Trainer& trainer, Predictor<Model>& predictor, Loader& loader, BeamSearchOptions const& options,
                     Next const& next, ProgressCallback const& on_progress, SortedRows& sorted) {
  generate_in_parts(trainer, predictor, loader, options, next, on_progress, [&](std::string_view rows) {
    if (trainer.rank() == 0) sorted.add(rows);
  });
}

}  // namespace detail

/// Decodes each sample of one epoch of a loader once over all ranks by `beam_search`. Each rank decodes its part of the
/// batches with its own predictor. Every rank returns all results, in the order of the dataset. Samples that the loader
/// skips or would substitute (data::OnFailure) have no result.
/// @param trainer connects the ranks
/// @param predictor has the parameters, equal on all ranks: Predictor{model, trainer.values()}
/// @param loader returns prompts: batches of sequences, which may have unequal lengths
/// @param next like the parameter of `beam_search`
/// @param on_progress called as on_progress(batch, batches) after each of this rank's batches, such as Progress::steps
/// @collective with DistributedDataParallel
/// @throws ConfigError if the loader's tail is not exact, and all that beam_search throws
template <class Trainer, class Model, class Loader, class Next>
[[nodiscard]] std::vector<Generated> generate(Trainer& trainer, Predictor<Model>& predictor, Loader& loader,
                                              BeamSearchOptions const& options, Next const& next,
                                              ProgressCallback const& on_progress = {}) {
  std::vector<Generated> all;
  detail::generate_in_parts(trainer, predictor, loader, options, next, on_progress, [&](std::string_view rows) {
    while (!rows.empty()) all.push_back(detail::generated_from(detail::NumberedLine::take(rows)));
  });
  std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.sample < b.sample; });
  return all;
}

/// Decodes like `generate`, but returns nothing. Instead, after the last batch, it calls receive(generated) on the
/// first rank for each sample, in the order of the dataset. Memory does not grow with the number of samples: results
/// travel in parts of about a megabyte, and more than four megabytes wait in a file of the system's folder for
/// temporary files (TMPDIR). A sample that the loader returns several times is received once.
/// @param receive receive(Generated const&)
/// @collective with DistributedDataParallel
/// @throws DataError, on the first rank, if the temporary file cannot be written; all that `generate` throws
template <class Trainer, class Model, class Loader, class Next, class Receive>
void generate_each(Trainer& trainer, Predictor<Model>& predictor, Loader& loader, BeamSearchOptions const& options,
                   Next const& next, Receive const& receive, ProgressCallback const& on_progress = {}) {
  detail::SortedRows sorted(temporary_folder() + "/lockstep-generated");
  detail::generate_sorted(trainer, predictor, loader, options, next, on_progress, sorted);
  sorted.each([&](detail::NumberedLine const& line) { receive(detail::generated_from(line)); });
}

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/prediction/generate.ipp>
#endif
