// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/convolution.hpp>

#include "convolution_cases.hpp"

using namespace convolution_cases;

TEST_CASE_TEMPLATE("the portable backend follows the definition, overwriting and adding", T, float, double) {
  check_definition<T, Kernel::Plans<T, kernel::detail::PortableConvolution<T>>>();
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  check_bits<T, Kernel::Plans<T, kernel::detail::PortableConvolution<T>>>();
}

TEST_CASE("without samples, gradients are zero") {
  ConvolutionShape const s{.rows = 0, .inputs = 2, .outputs = 3, .extent = {1, 4, 4}, .kernel = {1, 3, 3}};
  Kernel::Plans<float> plans;
  auto const got = run(s, Data<float>(s), plans, 2);
  for (float g : got.dweight) CHECK(g == 0);
  for (float g : got.dbias) CHECK(g == 0);
  auto const added = run(s, Data<float>(s), plans, 1, Write::add);
  CHECK(added.dweight[0] == 1);
  CHECK(added.dbias[0] == 1);
}

TEST_CASE("plans of the least recently used shapes are replaced") {
  Kernel::Plans<double> plans;
  for (Index rows = 1; rows <= 40; ++rows) {
    ConvolutionShape const s{.rows = rows, .inputs = 2, .outputs = 1, .extent = {1, 1, 3}, .kernel = {1, 1, 2}};
    Data<double> const d(s);
    auto const got = run(s, d, plans, 1);
    for (Index r = 0; r < rows; ++r) {
      double sum = d.bias[0];
      for (std::size_t tap = 0; tap < 2; ++tap)
        for (std::size_t i = 0; i < 2; ++i)
          sum += d.weight[i * 2 + tap] * d.x[static_cast<std::size_t>(r) * 6 + tap * 2 + i];
      CHECK(std::abs(got.y[static_cast<std::size_t>(r) * 2] - sum) <= 1e-15);
    }
  }
}

TEST_CASE("sizes that disagree are refused with both sides' numbers") {
  ConvolutionShape s{.rows = 1, .inputs = 2, .outputs = 3, .extent = {1, 1, 4}, .kernel = {1, 1, 3}};
  Data<float> const d(s);
  Kernel::Plans<float> plans;
  s.outputs = 4;
  CHECK_THROWS_WITH_AS(run(s, d, plans, 1),
                       "Convolution: x, weight and y have 8, 18 and 6 elements; the shape needs 8, 24 and 8",
                       ShapeError);
  s.kernel = {1, 1, 5};
  CHECK_THROWS_WITH_AS(run(s, d, plans, 1),
                       "Convolution: x has extent [1, 1, 4], with [0, 0, 0] of padding on either side, and the kernel "
                       "has [1, 1, 5]; the kernel must fit into the padded input",
                       ShapeError);
  s.kernel = {1, 1, 3}, s.dilation = {1, 1, 3}, s.padding_after = {0, 0, 2};
  CHECK_THROWS_WITH_AS(
      run(s, d, plans, 1),
      "Convolution: x has extent [1, 1, 4], with [0, 0, 0] of padding before and [0, 0, 2] after, "
      "and the kernel has [1, 1, 3] with dilation [1, 1, 3]; the kernel must fit into the padded input",
      ShapeError);
  s.groups = 3;
  CHECK_THROWS_WITH_AS(run(s, d, plans, 1),
                       "Convolution: 2 inputs and 4 outputs in 3 groups; the groups must divide both", ShapeError);
}

TEST_CASE("a convolution's bias of another size is refused, and so is its gradient") {
  ConvolutionShape const s{.rows = 1, .inputs = 2, .outputs = 3, .extent = {1, 1, 4}, .kernel = {1, 1, 3}};
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  Data<float> const d(s);
  auto y = d.dy, dweight = d.weight, short_bias = std::vector<float>(2);
  Kernel::Plans<float> plans;
  Kernel::Scratch scratch;
  CHECK_THROWS_WITH_AS(Kernel::forward<float>(stream, s, view(d.x, d.x.size()), view(d.weight, d.weight.size()),
                                              view(std::as_const(short_bias), 2), view(y, y.size()), plans, scratch),
                       "Convolution: the bias has 2 elements; 3 outputs need one each", ShapeError);
  CHECK_THROWS_WITH_AS(Kernel::backward_weight<float>(stream, s, view(d.dy, d.dy.size()), view(d.x, d.x.size()),
                                                      view(dweight, dweight.size()), Write::overwrite,
                                                      view(short_bias, 2), Write::overwrite, plans, scratch),
                       "Convolution: the bias has 2 elements; 3 outputs need one each", ShapeError);
}
