// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/precision.hpp>

#include <string>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("names equal the flag's words") {
  CHECK(std::string(app::name(app::Precision::fp32)) == "fp32");
  CHECK(std::string(app::name(app::Precision::tf32)) == "tf32");
  CHECK(std::string(app::name(app::Precision::bf16)) == "bf16");
  CHECK(std::string(app::name(app::Precision::fp16)) == "fp16");
}

TEST_CASE("float16 gradients are sent only with the loss scaling of float16 activations") {
  using app::Precision, parallel::WireFormat;
  CHECK_NOTHROW(app::check_wire(WireFormat::float16, Precision::fp16));
  CHECK_NOTHROW(app::check_wire(WireFormat::bfloat16, Precision::fp32));
  for (auto precision : {Precision::fp32, Precision::bf16})
    CHECK_THROWS_WITH_AS(app::check_wire(WireFormat::float16, precision),
                         doctest::Contains((std::string("--gradient-wire fp16 with --precision ") +
                                            app::name(precision) + ": only the loss scale")
                                               .c_str()),
                         ConfigError);
}

TEST_CASE("cuDNN computes attention in 16 bits only") {
  using app::Precision, parallel::AttentionKernels;
  for (auto precision : {Precision::bf16, Precision::fp16})
    CHECK_NOTHROW(app::check_attention(AttentionKernels::cudnn, precision));
  CHECK_NOTHROW(app::check_attention(AttentionKernels::own, Precision::fp32));
  for (auto precision : {Precision::fp32, Precision::tf32})
    CHECK_THROWS_WITH_AS(app::check_attention(AttentionKernels::cudnn, precision),
                         doctest::Contains((std::string("--attention-kernels cudnn with --precision ") +
                                            app::name(precision) + ": cuDNN computes attention in 16 bits only")
                                               .c_str()),
                         ConfigError);
}

TEST_CASE("TF32 needs a GPU") {
  using app::Backend, app::Precision;
  CHECK_NOTHROW(app::check_backend(Backend::cuda, Precision::tf32));
  CHECK_NOTHROW(app::check_backend(Backend::host, Precision::bf16));
  CHECK_THROWS_WITH_AS(app::check_backend(Backend::host, Precision::tf32),
                       doctest::Contains("--precision tf32 with --backend host: only GPUs multiply in TF32"),
                       ConfigError);
}
