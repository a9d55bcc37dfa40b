// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution_shape.hpp>

#include <doctest/doctest.h>

using namespace lockstep;
using kernel::ConvolutionShape;

TEST_CASE("the result's extent equals PyTorch's") {
  ConvolutionShape const clip{.rows = 2,
                              .inputs = 3,
                              .outputs = 16,
                              .extent = {17, 256, 255},
                              .kernel = {3, 3, 5},
                              .stride = {1, 2, 3},
                              .padding = {1, 1, 0}};
  CHECK(clip.result() == Extents<3>{17, 128, 84});
  CHECK(clip.input_positions() == 17 * 256 * 255);
  CHECK(clip.output_positions() == 17 * 128 * 84);
  CHECK(clip.taps() == 45);
  CHECK(clip.input_size() == 3 * 17 * 256 * 255);
  CHECK(clip.output_size() == 16 * 17 * 128 * 84);
  CHECK(clip.weight_size() == 3 * 16 * 45);
}

TEST_CASE("dilated kernels reach further, and padding may be on one side only") {
  ConvolutionShape const causal{.inputs = 6,
                                .outputs = 4,
                                .extent = {1, 1, 9},
                                .kernel = {1, 1, 3},
                                .padding = {0, 0, 8},
                                .padding_after = {0, 0, 0},
                                .dilation = {1, 1, 4},
                                .groups = 2};
  CHECK(causal.reach(2) == 9);
  CHECK(causal.result() == Extents<3>{1, 1, 9});
  CHECK(causal.weight_size() == 4 * 3 * 3);
  CHECK(causal.group_inputs() == 3);
  CHECK(causal.group_outputs() == 2);
  CHECK(ConvolutionShape{.padding = {1, 2, 3}}.padding_after == Extents<3>{1, 2, 3});
}

TEST_CASE("a depthwise convolution has one group per channel, and several channels") {
  CHECK(ConvolutionShape{.inputs = 4, .outputs = 4, .groups = 4}.is_depthwise());
  CHECK_FALSE(ConvolutionShape{.inputs = 4, .outputs = 8, .groups = 4}.is_depthwise());
  CHECK_FALSE(ConvolutionShape{.inputs = 4, .outputs = 4, .groups = 2}.is_depthwise());
  CHECK_FALSE(ConvolutionShape{}.is_depthwise());
}

TEST_CASE("a kernel as long as the padded input leaves one position, a longer one none") {
  CHECK(ConvolutionShape{.extent = {1, 1, 3}, .kernel = {1, 1, 5}, .padding = {0, 0, 1}}.result(2) == 1);
  CHECK(ConvolutionShape{.extent = {1, 1, 3}, .kernel = {1, 1, 6}, .stride = {1, 1, 4}, .padding = {0, 0, 1}}.result(
            2) == 0);
  CHECK(ConvolutionShape{.extent = {1, 1, 0}, .kernel = {1, 1, 1}}.output_positions() == 0);
}
