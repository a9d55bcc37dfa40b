// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/group_norm.cuh>

#include <doctest/doctest.h>

#include <vector>

#include "group_norm_case.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using Kernel = kernel::GroupNorm<CudaSpace>;

TEST_CASE_TEMPLATE("group normalization on CUDA equals its definition", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::GroupNorm<CudaSpace>")) return;
  for (auto const& c : lockstep_test::GroupNormCase<T>::some()) {
    auto const& s = c.shape;
    std::vector<T> const of_rows(static_cast<std::size_t>(s.rows * s.channels));
    OnDevice<T> const x(c.x), dy(c.dy), weight(c.weight), bias(c.bias), mean(of_rows), reciprocal(of_rows), y(c.x),
        dx(c.before), dweight(c.gradient_before()), dbias(c.gradient_before()),
        partial(std::vector<T>(static_cast<std::size_t>(Kernel::partial_elements(s))));
    auto const at = [](OnDevice<T> const& values) { return values.view(0).data; };
    typename Kernel::template Statistics<T> const statistics{at(mean), at(reciprocal)};
    memory::CudaStream const stream;
    Kernel::forward<T>(stream.view(), s, at(x), 1e-5, statistics, at(weight), at(bias), c.activation, at(y),
                       at(partial));
    Kernel::backward<T>(stream.view(), s, at(dy), at(x), statistics, at(weight), at(bias), c.activation, at(dx),
                        c.write, at(dweight), c.write, at(dbias), c.write, at(partial));
    CHECK(c.off(y.values(), c.y) <= 16);
    CHECK(c.off(dx.values(), c.dx) <= 16);
    CHECK(c.off(dweight.values(), c.dweight) <= 16);
    CHECK(c.off(dbias.values(), c.dbias) <= 16);
  }
}
