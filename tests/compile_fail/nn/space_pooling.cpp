// SPDX-License-Identifier: Apache-2.0
// CASE kernel: Lockstep: what a convolution calls .kernel is .window here: nn::AveragePool2d{{.window = 2}}
// CASE kernel_and_stride: Lockstep: what a convolution calls .kernel is .window here: nn::AveragePool2d{{.window = 2}}
#include <lockstep/nn/space_pooling.hpp>

using namespace lockstep;

nn::MaxPool2d const by_default, three{{.window = 3}}, wide{{.window = {1, 2}, .stride = {1, 2}}}, apart{{.stride = 1}},
    in_brackets({.window = 3, .padding = 1}), in_order({3, 1});
nn::AveragePool1d const as_it_is{nn::AveragePool1d::Options{}}, copied = as_it_is;
#if defined(CASE_kernel)
nn::AveragePool2d const wrong{{.kernel = 2}};
#elif defined(CASE_kernel_and_stride)
nn::MaxPool3d const wrong({.kernel = 3, .stride = 1, .padding = 1});
#endif
