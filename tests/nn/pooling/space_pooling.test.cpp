// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/pooling/space_pooling.hpp>

#include <doctest/doctest.h>

#include "nn/space_check.hpp"

using namespace space_check;

namespace {
auto const alone = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
struct Nothing {
  void visit(auto&&) {}
};
auto const global = [](auto& context, Nothing const&, auto const& x) { return nn::global_average_pool(context, x); };
auto const largest = [](auto& context, Nothing const&, auto const& x) { return nn::global_max_pool(context, x); };
auto const twice = [](auto& context, Nothing const&, auto const& x) {  // dx is written, then added
  nn::MaxPool2d const first({.kernel = 3, .stride = 1, .padding = 1});
  nn::AvgPool2d const second({.kernel = {3, 5}, .stride = 1, .padding = {1, 2}});
  auto const most = first.forward(context, x), mean = second.forward(context, x);
  auto const joined = context.template variable<4>({2, x.extent(0), x.extent(1) * x.extent(2), x.extent(3)});
  std::copy_n(most.value.data, most.value.size(), joined.value.data);
  std::copy_n(mean.value.data, mean.value.size(), joined.value.data + most.value.size());
  context.on_backward(joined, std::tuple{}, [most, mean, joined](auto& c) {
    auto const* from = joined.gradient().data;
    for (auto const& v : {most, mean}) {
      std::copy_n(from, v.value.size(), c.gradient(v).data);
      from += v.value.size();
    }
  });
  return joined;
};
void ok(nn::GradientCheckResult const& result) {
  CAPTURE(result.where);
  CHECK(result.ok());
}
}  // namespace

TEST_CASE("gradients") {
  ok(trial<double>(nn::MaxPool1d(), Extents<3>{3, 9, 5}, alone).check());
  ok(trial<double>(nn::MaxPool2d({.kernel = 3, .stride = 2, .padding = 1}), Extents<4>{2, 5, 6, 17}, alone).check());
  ok(trial<double>(nn::MaxPool3d({.kernel = {1, 2, 2}, .stride = {1, 2, 2}}), Extents<5>{2, 3, 4, 5, 2}, alone)
         .check());
  ok(trial<double>(nn::AvgPool1d({.kernel = 4, .stride = 3, .padding = 2}), Extents<3>{3, 8, 2}, alone).check());
  ok(trial<double>(nn::AvgPool2d({.kernel = {3, 2}, .stride = 1}), Extents<4>{2, 5, 4, 3}, alone).check());
  ok(trial<double>(nn::AvgPool3d(), Extents<5>{2, 3, 4, 5, 2}, alone).check());
  ok(trial<double>(nn::AvgPool2d({.kernel = 3, .stride = 2, .padding = 1, .ceil_mode = true}), Extents<4>{2, 4, 5, 3},
                   alone)
         .check());
  ok(trial<double>(nn::AvgPool2d({.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false}),
                   Extents<4>{2, 4, 5, 3}, alone)
         .check());
  ok(trial<double>(nn::MaxPool1d({.ceil_mode = true}), Extents<3>{3, 5, 2}, alone).check());
  ok(trial<double>(Nothing{}, Extents<5>{3, 2, 3, 2, 7}, global).check());
  ok(trial<double>(Nothing{}, Extents<3>{1, 1, 1}, global).check());
  ok(trial<double>(Nothing{}, Extents<5>{3, 2, 3, 2, 7}, largest).check());
  ok(trial<double>(Nothing{}, Extents<3>{1, 1, 1}, largest).check());
  ok(trial<double>(Nothing{}, Extents<4>{2, 4, 5, 3}, twice).check());
}

TEST_CASE_TEMPLATE("bits do not depend on threads", T, float, double) {
  auto one = trial<T>(nn::MaxPool3d({.kernel = 3, .stride = 2, .padding = 1}), Extents<5>{5, 6, 7, 8, 20}, alone),
       other = one;
  CHECK(one.run(1) == other.run(4));
  CHECK(same_bits(one.gradients, other.gradients));
  auto mean = trial<T>(Nothing{}, Extents<4>{5, 9, 9, 33}, global), same = mean;
  CHECK(mean.run(1) == same.run(4));
  CHECK(same_bits(mean.gradients, same.gradients));
}

TEST_CASE("a window is by default 2 wide, with a stride of its width") {
  auto default_options = trial<float>(nn::MaxPool2d(), Extents<4>{2, 6, 6, 3}, alone),
       explicit_options =
           trial<float>(nn::MaxPool2d({.kernel = 2, .stride = 2, .padding = 0}), Extents<4>{2, 6, 6, 3}, alone);
  CHECK(default_options.run(1) == explicit_options.run(1));
  CHECK(same_bits(default_options.gradients, explicit_options.gradients));
  auto wide = trial<float>(nn::MaxPool2d({.kernel = 3}), Extents<4>{2, 6, 6, 3}, alone),
       apart = trial<float>(nn::MaxPool2d({.kernel = 3, .stride = 3}), Extents<4>{2, 6, 6, 3}, alone);
  CHECK(wide.run(1) == apart.run(1));
}

TEST_CASE("an empty batch, and evaluation") {
  CHECK(trial<float>(nn::MaxPool2d(), Extents<4>{0, 4, 4, 3}, alone).run(2) == 0);
  CHECK(trial<float>(Nothing{}, Extents<4>{0, 4, 4, 3}, global).run(2) == 0);
  CHECK(trial<float>(Nothing{}, Extents<4>{0, 4, 4, 3}, largest).run(2) == 0);
  auto t = trial<double>(nn::MaxPool2d(), Extents<4>{2, 4, 4, 3}, alone);
  CHECK(t.run(1, 1, nn::Mode::evaluation) == t.run(1));
  auto all = trial<double>(Nothing{}, Extents<4>{2, 4, 4, 3}, largest);
  auto window = trial<double>(nn::MaxPool2d({.kernel = 4}), Extents<4>{2, 4, 4, 3}, alone);
  CHECK(all.run(1) == window.run(1));
  CHECK(same_bits(all.gradients, window.gradients));
  CHECK(all.run(1, 1, nn::Mode::evaluation) == window.run(1));
}

TEST_CASE("ceil_mode adds a last window that begins within the input, also for an input smaller than the kernel") {
  auto const results = [](nn::SpacePoolingOptions<1> options, Index extent) {
    options.ceil_mode = true;
    ThreadPool pool(1);
    nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
    nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
    std::vector<float> const numbers(static_cast<std::size_t>(extent), 2);
    TensorView<float const, 3, HostSpace> const x{numbers.data(), {1, extent, 1}};
    auto const y = nn::AvgPool1d(options).forward(context, context.input(x));
    return std::vector<float>(y.value.data, y.value.data + y.value.size());
  };
  using Numbers = std::vector<float>;
  CHECK(results({.kernel = 2}, 4) == Numbers{2, 2});
  CHECK(results({.kernel = 2}, 5) == Numbers{2, 2, 2});
  CHECK(results({.kernel = 3}, 1) == Numbers{2});
  CHECK(results({.kernel = 1, .stride = 3}, 5) == Numbers{2, 2});  // the third would begin behind the input
  CHECK(results({.kernel = 2, .stride = 2, .padding = 1}, 4) == Numbers{1, 2, 1});
  CHECK(results({.kernel = 2, .stride = 2, .padding = 1}, 5) == Numbers{1, 2, 2});  // the fourth: within the padding
  CHECK_THROWS_AS(results({.kernel = 4, .stride = 2}, 1), ShapeError);
}

TEST_CASE("gradients of adaptive pooling") {
  ok(trial<double>(nn::AdaptiveAvgPool1d(3), Extents<3>{3, 8, 2}, alone).check());
  ok(trial<double>(nn::AdaptiveAvgPool2d({4, 3}), Extents<4>{2, 5, 7, 3}, alone).check());
  ok(trial<double>(nn::AdaptiveAvgPool3d({2, 3, 1}), Extents<5>{2, 3, 4, 5, 2}, alone).check());
  ok(trial<double>(nn::AdaptiveMaxPool1d(7), Extents<3>{3, 5, 2}, alone).check());
  ok(trial<double>(nn::AdaptiveMaxPool2d({4, 3}), Extents<4>{2, 5, 7, 3}, alone).check());
  ok(trial<double>(nn::AdaptiveMaxPool3d(2), Extents<5>{2, 3, 4, 5, 2}, alone).check());
}

TEST_CASE("adaptive pooling equals windows of equal size if they divide the input, and global pooling") {
  auto const equal = [](auto one, auto other) {
    CHECK(one.run(1) == other.run(2));
    CHECK(same_bits(one.gradients, other.gradients));
  };
  Extents<4> const extent{2, 6, 8, 3};
  equal(trial<float>(nn::AdaptiveAvgPool2d({3, 2}), extent, alone),
        trial<float>(nn::AvgPool2d({.kernel = {2, 4}}), extent, alone));
  equal(trial<float>(nn::AdaptiveMaxPool2d{{3, 2}}, extent, alone),
        trial<float>(nn::MaxPool2d({.kernel = {2, 4}}), extent, alone));
  auto one = trial<float>(nn::AdaptiveAvgPool2d{1}, extent, alone);
  auto all = trial<float>(Nothing{}, extent, global);
  CHECK(one.run(1) == all.run(1));
  CHECK(same_bits(one.gradients, all.gradients));
  CHECK(trial<float>(nn::AdaptiveAvgPool2d(7), Extents<4>{0, 4, 4, 3}, alone).run(2) == 0);
}

TEST_CASE("adaptive pooling refuses no windows and an empty input") {
  CHECK_THROWS_WITH_AS(nn::AdaptiveAvgPool2d({7, 0}),
                       "adaptive pooling: [7, 0] windows; there must be at least 1 along each axis", ConfigError);
  CHECK_THROWS_WITH_AS(trial<float>(nn::AdaptiveMaxPool1d(2), Extents<3>{1, 0, 2}, alone).run(1),
                       doctest::Contains("adaptive pooling: x has extent [1, 1, 0] and [1, 1, 2] windows"), ShapeError);
}

TEST_CASE("invalid windows are refused") {
  CHECK_THROWS_AS(nn::MaxPool1d({.kernel = 0}), ConfigError);
  CHECK_THROWS_AS(nn::AvgPool2d({.stride = {1, 0}}), ConfigError);
  CHECK_THROWS_WITH_AS(trial<float>(nn::MaxPool1d({.kernel = 4}), Extents<3>{1, 3, 2}, alone).run(1),
                       doctest::Contains("the window must fit into the padded input"), ShapeError);
  CHECK_THROWS_AS(trial<float>(nn::MaxPool1d({.kernel = 2, .padding = 2}), Extents<3>{1, 3, 2}, alone).run(1),
                  ShapeError);
  CHECK_THROWS_AS(trial<float>(Nothing{}, Extents<3>{1, 0, 2}, largest).run(1), ShapeError);
}
