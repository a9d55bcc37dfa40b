// SPDX-License-Identifier: Apache-2.0
// CASE accuracy: Lockstep: metrics of labels read logits: predict returns a Variable or a Sequence
// CASE top: Lockstep: metrics of labels read logits: predict returns a Variable or a Sequence
// CASE auc: Lockstep: metrics of labels read logits: predict returns a Variable or a Sequence
// CASE error_rate: Lockstep: CtcErrorRate reads logits: predict returns a Sequence
// CASE entity_f1: Lockstep: EntityF1 reads logits of tokens: predict returns a Sequence
// CASE text: Lockstep: a metric's label is a number, and this member of the sample is text or a struct
// CASE neighbors: Lockstep: NeighborRecall needs a model whose predict returns one row per sample
// CASE array: Lockstep: predict returns logits [rows, classes], with one label for each row
#include <array>
#include <string>
#include <vector>

#include <lockstep/data/columns.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/metrics/auc.hpp>
#include <lockstep/train/metrics/ctc_error_rate.hpp>
#include <lockstep/train/metrics/entity_f1.hpp>
#include <lockstep/train/metrics/neighbor_recall.hpp>
#include <lockstep/train/metrics/top_k_accuracy.hpp>

using namespace lockstep;

struct Sample {
  int label;
  std::vector<std::int32_t> words;
  std::string name;
  std::array<float, 2> at;
};
struct Both {
  nn::Variable<float, 2, HostSpace> animal, weather;
};

void count(nn::Variable<float, 2, HostSpace> const& logits, [[maybe_unused]] Both const& both,
           data::Columns<Sample> const& batch) {
  train::Accuracy{&Sample::label}.add(logits, batch);
  train::NeighborRecall{&Sample::label}.add(logits, batch);
#if defined(CASE_accuracy)
  train::Accuracy{&Sample::label}.add(both, batch);
#elif defined(CASE_top)
  train::TopKAccuracy{&Sample::label, 5}.add(both, batch);
#elif defined(CASE_auc)
  train::Auc{&Sample::label}.add(both, batch);
#elif defined(CASE_text)
  train::Accuracy{&Sample::name}.add(logits, batch);
#elif defined(CASE_neighbors)
  train::NeighborRecall{&Sample::label}.add(both, batch);
#elif defined(CASE_array)
  train::Accuracy{&Sample::at}.add(logits, batch);
#elif defined(CASE_error_rate)
  train::CtcErrorRate{&Sample::words}.add(both, batch);
#elif defined(CASE_entity_f1)
  train::EntityF1{&Sample::words, {"O"}}.add(both, batch);
#endif
}
