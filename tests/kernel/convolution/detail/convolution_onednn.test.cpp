// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/detail/convolution_onednn.hpp>

#include <thread>
#include <type_traits>

#include "kernel/convolution/convolution_cases.hpp"

using namespace convolution_cases;
using kernel::detail::OneDnnConvolution;
using kernel::detail::OneOpenmpThread;

TEST_CASE("the backend follows the definition, overwriting and adding") {
  check_definition<float, Kernel::Plans<float, OneDnnConvolution>>();
}

TEST_CASE("bits do not depend on threads or repetition") {
  check_bits<float, Kernel::Plans<float, OneDnnConvolution>>();
}

TEST_CASE("oneDNN serves float; double uses the portable backend") {
  static_assert(std::is_same_v<Kernel::Plans<float>, Kernel::Plans<float, OneDnnConvolution>>);
  static_assert(
      std::is_same_v<Kernel::Plans<double>, Kernel::Plans<double, kernel::detail::PortableConvolution<double>>>);
}

TEST_CASE("depthwise convolutions over three axes are the portable backend's, bit-identically") {
  ConvolutionShape const s{.rows = 3,
                           .inputs = 20,
                           .outputs = 20,
                           .extent = {3, 5, 6},
                           .kernel = {2, 3, 3},
                           .padding = {0, 1, 1},
                           .groups = 20};
  Data<float> const d(s);
  Kernel::Plans<float, OneDnnConvolution> plans;
  Kernel::Plans<float, kernel::detail::PortableConvolution<float>> portable;
  CHECK(run(s, d, plans, 2) == run(s, d, portable, 1));
}

TEST_CASE("the caller's number of OpenMP threads is restored") {
  kernel::detail::lockstep_omp_set_num_threads(3);  // this thread's
  {
    OneOpenmpThread const alone;
    int elsewhere = 0;
    std::thread([&] {
      kernel::detail::lockstep_omp_set_num_threads(5);
      static_cast<void>(OneOpenmpThread{});
      elsewhere = kernel::detail::lockstep_omp_get_max_threads();
    }).join();
    CHECK(elsewhere == 5);
    CHECK(kernel::detail::lockstep_omp_get_max_threads() == 1);
  }
  CHECK(kernel::detail::lockstep_omp_get_max_threads() == 3);
}
