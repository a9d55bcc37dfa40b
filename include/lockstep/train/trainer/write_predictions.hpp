// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/data/loader/data_loader_options.hpp>
#include <lockstep/nn/autograd/model.hpp>
#include <lockstep/train/detail/expect_end.hpp>
#include <lockstep/train/detail/sorted_rows.hpp>
#include <lockstep/train/files/atomic_file.hpp>
#include <lockstep/train/logs/observer.hpp>
#include <lockstep/train/prediction/predictor.hpp>
#include <lockstep/train/trainer/detail/agreement_of.hpp>
#include <lockstep/train/trainer/detail/averaged_parameters.hpp>
#include <lockstep/train/trainer/detail/start_loader.hpp>
#include <lockstep/train/trainer/detail/table_rows.hpp>
#include <lockstep/train/trainer/detail/with_sample_name.hpp>
#include <lockstep/train/trainer/evaluation.hpp>
#include <lockstep/train/trainer/trainer.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {
namespace detail {
/// Receives the prediction for one batch, like a metric.
template <class Function>
struct PredictionReceiver {
  static constexpr bool ignores_loss = true;
  Function receive;
  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    receive(prediction, batch);
  }
};
template <class Function>
PredictionReceiver(Function) -> PredictionReceiver<Function>;

template <class Loader>
void expect_all_samples(Loader const& loader) {
  expect_end("write_predictions", loader);
  if (loader.options().tail == data::Tail::drop)
    throw ConfigError(
        "write_predictions: the loader's tail is drop, so that the last samples would have no row; leave it at exact");
}
}  // namespace detail

/// Writes a CSV file with a header of `columns` and one row for each sample of one epoch of the loader, in the order of
/// the dataset. Floating-point numbers have the fewest digits that read back as equal bits. The file appears complete
/// or not at all; the first rank writes it, with equal bits for any number of ranks. Ranks send their rows in parts of
/// about a megabyte. Beyond four megabytes, received rows are kept in a temporary file next to the table, so memory
/// does not grow with the table. row(prediction, batch, k) returns the cells of row k of a batch: a number, a string,
/// or a std::tuple, std::array or std::vector of these. It runs on the host, concurrently if there are several devices.
/// The model predicts as in an evaluation, with the averages of an optim::Averaged. It computes no loss, so labels may
/// be anything.
/// @param on_progress called after each batch with the number of finished batches of this process, and their total
/// @param stop ends a wait for the reader, if `path` is a pipe
/// @collective with DistributedDataParallel: each rank predicts its part
/// @throws DataError, on the first rank, if the file cannot be written; ConfigError if a row's number of cells differs
/// from the number of columns, or the loader's tail is drop; all that the model throws
template <class Model, class Optimizer, class Policy, class Loader, class Row>
[[gnu::cold]] void write_predictions(std::string const& path, Trainer<Model, Optimizer, Policy>& trainer,
                                     Loader& loader, std::vector<std::string> const& columns, Row const& row,
                                     ProgressCallback const& on_progress = {}, std::stop_token stop = {}) {
  detail::expect_all_samples(loader);
  auto& session = trainer.session();
  using Session = std::remove_reference_t<decltype(session)>;
  using Replica = typename Session::DeviceReplica;
  static_assert(
      nn::HasPredict<Model, typename Replica::Context, typename Replica::template DeviceBatch<typename Loader::Batch>>,
      "Lockstep: the model has no predict(context, batch) const for this batch type; see docs/reference/model.md");
  auto const split = trainer.split();
  if constexpr (Session::spans_ranks) {
    Evaluation const evaluation{loader};
    detail::check_agreement_and_samples(session, detail::agreement_of(evaluation), split, evaluation);
  }
  detail::PredictionTable table(path, columns, session, split, std::move(stop));
  {
    detail::AveragedParameters const averaged(session, trainer.state().averages_in_place);
    session.synchronize_buffers();
    detail::start_loader<Replica>(loader, split, 0, 0, 1);
    for (Index step = 0, steps = loader.steps(split); step < steps; ++step) {
      auto const held = loader.next();
      detail::with_sample_name(held, [&] {
        session.for_each_shard([&](int number, auto& replica) {
          auto const shard = static_cast<std::size_t>(number);
          detail::PredictionReceiver rows{[&](auto const& prediction, auto const& batch) {
            table.rows(shard).add(held.samples(shard), prediction, batch, row);
          }};
          static_cast<void>(replica.evaluate(held.batches()[shard], rows));
        });
      });
      if (on_progress) on_progress(step + 1, steps);
      table.end_step(step + 1 == steps);
    }
  }
  table.commit();
}

/// Writes the predictions of a predictor, in this process only.
template <class Model, class Loader, class Row>
[[gnu::cold]] void write_predictions(std::string const& path, Predictor<Model>& predictor, Loader& loader,
                                     std::vector<std::string> const& columns, Row const& row) {
  detail::expect_all_samples(loader);
  AtomicFile file(path);
  detail::TableRows rows(columns);
  detail::SortedRows table(path);
  loader.start({}, 0, 0, 1);
  for (Index step = 0, steps = loader.steps(); step < steps; ++step) {
    auto const held = loader.next();
    auto const& batch = held.batches()[0];
    detail::with_sample_name(held, [&] { rows.add(held.samples(0), predictor.predict(batch), batch, row); });
    table.add(rows.take());
  }
  file.write(detail::TableRows::header(columns) + "\n");
  table.write_to(file);
  file.commit();
}

}}}  // namespace lockstep::train
