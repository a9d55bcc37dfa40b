// SPDX-License-Identifier: Apache-2.0
// CASE samples: predict takes a batch; for samples in memory, pass data::Collated{data::PadCollate{}, samples}
#include <vector>

#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/train/prediction/predictor.hpp>

using namespace lockstep;

struct Sample {
  float x;
};
struct Model {
  void visit(auto&&) {}
  float predict(auto&, auto const&) const { return 0; }
};

float predict(train::Predictor<Model>& predictor) {
  std::vector<Sample> const samples(3);
#if defined(CASE_samples)
  return predictor.predict(samples);
#else
  return predictor.predict(data::Collated{data::PadCollate{}, samples}.batch());
#endif
}
