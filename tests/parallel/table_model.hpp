// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/loss.hpp>

/// A table with rows looked up by each batch, small enough that its gradient is known: for row-sparse gradients, and
/// for equal dense ones.
namespace table_model {
using lockstep::Index;
namespace nn = lockstep::nn;

inline constexpr Index width = 5;

struct Batch {
  std::vector<std::int32_t> ids;
  bool whole = false;  ///< also uses the whole table, as a tied output layer would
  [[nodiscard]] Index rows() const { return static_cast<Index>(ids.size()); }
};

/// out[i] = table[ids[i]]
template <class Context>
auto look_up(Context& context, nn::Parameter const& table, Batch const& batch) {
  auto const out = context.template variable<2>({batch.rows(), width});
  auto const values = context.template value<2>(table);
  for (Index i = 0; i < batch.rows(); ++i)
    for (Index j = 0; j < width; ++j) out.value(i, j) = values(batch.ids[static_cast<std::size_t>(i)], j);
  context.on_backward(out, std::tie(table), [&table, &batch, out](Context& c) {
    auto const target = c.gradient_by_rows(table);
    if (target.touched.words == nullptr && target.write == lockstep::Write::overwrite)
      std::fill_n(target.data, table.size(), typename Context::Scalar(0));
    for (Index i = 0; i < batch.rows(); ++i) {
      auto const id = static_cast<Index>(batch.ids[static_cast<std::size_t>(i)]);
      bool const add = target.touched.words == nullptr || target.touched.contains(id);
      if (!add) target.touched.insert(id);
      for (Index j = 0; j < width; ++j) {
        auto& to = target.data[id * width + j];
        to = (add ? to : 0) + out.gradient()(i, j);
      }
    }
  });
  return out;
}

/// out = table
template <class Context>
auto whole(Context& context, nn::Parameter const& table) {
  auto const out = context.template variable<2>({table.shape[0], width});
  auto const values = context.template value<2>(table);
  std::copy_n(values.data, values.size(), out.value.data);
  context.on_backward(out, std::tie(table), [&table, out](Context& c) {
    auto const target = c.gradient(table);
    for (Index i = 0; i < table.size(); ++i)
      target.data[i] = (target.write == lockstep::Write::add ? target.data[i] : 0) + out.gradient().data[i];
  });
  return out;
}

/// Loss: the sum over all outputs of (output - 1)^2 / 2. The weight is the number of rows.
class Model {
 public:
  Model(Index rows, nn::GradientForm form)
      : table_{.shape = {rows, width}, .initializer = nn::Initializer::normal(1), .gradient_form = form},
        second_{.shape = {rows + 1, width}, .initializer = nn::Initializer::normal(1), .gradient_form = form} {}
  void visit(auto&& each) {
    each("table", table_);
    each("between", between_);
    each("second", second_);
    each("unused", unused_);
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, Batch const& batch) const {
    double sum = 0;
    auto const add = [&](auto const& out) {
      auto const target = context.gradient(out);
      for (Index i = 0; i < out.value.size(); ++i) {
        auto const off = out.value.data[i] - 1;
        sum += static_cast<double>(off * off) / 2;
        if (target) target.data[i] = off;
      }
    };
    if (!batch.ids.empty()) add(look_up(context, table_, batch));
    if (batch.ids.size() > 2) add(look_up(context, second_, batch));
    if (batch.whole) add(whole(context, table_));
    if (!batch.ids.empty()) add(look_up(context, table_, batch));
    return {sum, static_cast<double>(batch.rows())};
  }

 private:
  nn::Parameter table_, second_, between_{{7}, nn::Initializer::constant(3)},
      unused_{.shape = {9, width}, .initializer = {}, .gradient_form = nn::GradientForm::by_rows};
};

}  // namespace table_model
