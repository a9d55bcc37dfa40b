// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>

#include "nn/toy.hpp"

/// Fits a line through the origin: the smallest possible training.
namespace line {
using namespace lockstep;

struct Point {
  float x, y;
  int label;  // 1 if y is above 1
};

/// y = 2 x at `count` points in (0, 1].
inline std::vector<Point> points(Index count) {
  std::vector<Point> all;
  for (Index i = 1; i <= count; ++i) {
    auto const x = static_cast<float>(i) / static_cast<float>(count);
    all.push_back({x, 2 * x, 2 * x > 1 ? 1 : 0});
  }
  return all;
}

/// y = slope * x, by squared error.
class Model {
 public:
  void visit(auto&& each) { each("slope", slope_); }
  template <class Context>
  auto line(Context& context, auto const& batch) const {
    return toy::multiply(context, slope_, context.input(batch[&Point::x].values));
  }
  /// Two logits: 1 against y.
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const y = line(context, batch);
    auto logits = context.template variable<2>({y.extent(0), 2});
    for (Index i = 0; i < y.extent(0); ++i) logits.value(i, 0) = 1, logits.value(i, 1) = y.value(i);
    return logits;
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const targets = batch[&Point::y].values.span();
    return toy::squared_error(context, line(context, batch), std::vector<double>(targets.begin(), targets.end()));
  }

 private:
  nn::Parameter slope_{{1}, nn::Initializer::constant(0)};
};

inline auto loader(Index samples, Index batch_size, int workers = 1) {
  return data::DataLoader{data::InMemoryDataset{points(samples)},
                          data::ShuffledSampler{.seed = 1},
                          data::PadCollate{},
                          {.batch_size = batch_size, .workers = workers}};
}

}  // namespace line
