// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/attention.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernel/attention/cuda_attention.cuh"

using namespace attention_on_cuda;

namespace {

/// The largest error, in units of epsilon.
template <class T>
double worst(std::vector<T> const& got, std::vector<double> const& exact) {
  double most = got.size() == exact.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (std::isnan(exact[i]) && std::isnan(got[i])) continue;  // untouched
    double const error = std::abs(static_cast<double>(got[i]) - exact[i]);
    if (!(error <= most)) most = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return most / static_cast<double>(std::numeric_limits<T>::epsilon());
}

std::vector<Setting> settings() {
  using enum TwinLayout::Kind;
  std::vector<std::int32_t> const lengths{35, 0, 1, 32, 7};
  return {{padded, {}, {}, 2, 8},
          {ragged, {0}, {0}, 1, 1},
          {padded, {1}, {1}, 1, 3},
          {padded, lengths, lengths, 2, 8, false, false, 0.3},
          {ragged, lengths, lengths, 2, 32, true, true, 0.2},
          {padded, lengths, lengths, 1, 5, true, true},
          {ragged, {33, 2, 0}, {1, 70, 4}, 2, 7, false, true, 0.1},
          {padded, {3, 40}, {40, 0}, 1, 8, true},
          {padded, lengths, lengths, 4, 8, true, true, 0.2, 2},
          {ragged, {33, 2, 0}, {1, 70, 4}, 3, 5, false, false, 0.1, 3}};
}

/// Heads of more than 32 channels. In float, more than 64 take two warps.
template <class T>
std::vector<Setting> wide_settings() {
  using enum TwinLayout::Kind;
  std::vector<Setting> all{{padded, {33, 5}, {33, 5}, 1, 64, true, true, 0.1}};
  if constexpr (std::is_same_v<T, float>) {
    all.push_back({ragged, {33, 3}, {34, 5}, 2, 128, false, true, 0.1, 2});
    all.push_back({padded, {66}, {66}, 1, 96, true});
    all.push_back({ragged, {40}, {40}, 1, 72, true, false, 0.1});
    all.push_back({padded, {5, 1}, {33, 7}, 1, 65, false, false, 0.1});
  }
  return all;
}

/// In epsilons, for each head's part of a gradient if heads share keys, for head width d <= 128, at most 70 keys,
/// |query|, |key|, |value|, |dout| <= 2, |bias| <= 1, scale 0.3, and errors of random sign. A score is a sum of d
/// products up to 4, with an error of up to 40 sqrt(d + 2) with all its terms' roundings; a probability has that
/// relative error, and some 20 roundings of the exponential and the sums. An output averages values up to 2.9,
/// including dropout. A gradient sums, with weights that add up to 1, products that are sqrt(d) times as large.
double output_bound(Setting const& s) { return 40 * std::sqrt(static_cast<double>(s.head_width) + 2) + 30; }
double gradient_bound(Setting const& s) {
  return static_cast<double>(s.heads_per_key_head) * output_bound(s) *
         (2 + std::sqrt(static_cast<double>(s.head_width)));
}

/// Head widths for each number of channels of the kernels; more than one tile of queries, of keys, or of both.
template <class T>
std::vector<Setting> tensor_core_settings() {
  using enum TwinLayout::Kind;
  if constexpr (std::is_same_v<T, float16>) {
    auto all = settings();
    all.erase(all.begin() + 5, all.begin() + 7);  // the cases in float use this code
    all.push_back({padded, {129}, {129}, 1, 64, true, false, 0.1});
    all.push_back({padded, {260, 7}, {70, 9}, 1, 64, false, true, 0.1});  // blocks of 128 queries
    all.push_back({ragged, {65, 3}, {40, 70}, 2, 128, false, false, 0.1, 2});
    all.push_back({padded, {515}, {9}, 1, 40});  // in backward, too
    all.push_back({padded, {9}, {515}, 1, 24});  // blocks of 128 keys
    return all;
  } else {
    return {{padded, {130, 64, 1}, {130, 64, 1}, 2, 32, false, false, 0.1},
            {ragged, {65, 129}, {65, 129}, 1, 32, true},
            {padded, {70, 128}, {130, 3}, 2, 64, false, true, 0.2},
            {padded, {33, 66}, {33, 66}, 1, 80, true, true, 0.1}};
  }
}

/// Checks the output and the gradients of queries, keys and values.
void check_bounds(auto const& got, auto const& exact, Setting const& setting) {
  CHECK(worst(got.out, exact.out) <= output_bound(setting));
  CHECK(worst(got.dquery, exact.dquery) <= gradient_bound(setting));
  CHECK(worst(got.dkey, exact.dkey) <= gradient_bound(setting));
  CHECK(worst(got.dvalue, exact.dvalue) <= gradient_bound(setting));
}

}  // namespace

TEST_CASE_TEMPLATE("attention on tensor cores equals the host's within rounding", T, bfloat16, float16) {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  auto write = Write::overwrite;
  for (auto const& setting : tensor_core_settings<T>()) {
    Case<T> const c{setting};
    auto const got = c.on_device(stream, write);
    auto const exact = Case<double, T>{setting}.on_host(write);
    CAPTURE(setting.heads);
    CAPTURE(setting.head_width);
    CAPTURE(setting.causal);
    CAPTURE(setting.biased);
    CAPTURE(setting.dropout);
    CAPTURE(write == Write::add);
    check_close(got, exact);
    if (write == Write::add) CHECK(c.on_device(stream, write).dkey == got.dkey);
    write = write == Write::overwrite ? Write::add : Write::overwrite;
  }
}

TEST_CASE_TEMPLATE("attention on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  auto write = Write::overwrite;
  auto all = settings();
  for (auto const& setting : wide_settings<T>()) all.push_back(setting);
  for (auto const& setting : all) {
    Case<T> const c{setting};
    auto const got = c.on_device(stream, write);
    auto const exact = Case<double>{setting}.on_host(write);
    CAPTURE(setting.heads);
    CAPTURE(setting.head_width);
    check_bounds(got, exact, setting);
    CHECK(worst(got.dbias, exact.dbias) <= gradient_bound(setting));
    if (write == Write::add) CHECK(c.on_device(stream, write).dkey == got.dkey);
    write = write == Write::overwrite ? Write::add : Write::overwrite;
  }
}

#ifndef __CUDACC__  // the emulated device may be of any generation
TEST_CASE_TEMPLATE("attention on a GPU without tensor cores", T, float, bfloat16) {
  memory::CudaStream const stream;
  Setting const setting{TwinLayout::Kind::ragged, {33, 2, 0}, {1, 70, 4}, 2, 40, false, true, 0.1};
  Case<T> const c{setting};
  cuda_emulation::compute_capability = 7;
  auto const old = c.on_device(stream, Write::overwrite);
  cuda_emulation::compute_capability = 9;
  auto const recent = c.on_device(stream, Write::overwrite);
  CHECK(old.out != recent.out);  // other kernels
  auto const exact = Case<double, T>{setting}.on_host(Write::overwrite);
  double const unit = std::is_same_v<T, float> ? 0x1p-9 : 1;  // unit of a 16-bit type's rounding
  auto const error = [&](auto const& got, auto const& right) { return Errors<T>(got, right).norm / unit; };
  CHECK(error(old.out, exact.out) <= 2);
  CHECK(error(old.dquery, exact.dquery) <= 12);
  CHECK(error(old.dkey, exact.dkey) <= 12);
  CHECK(error(old.dvalue, exact.dvalue) <= 2);
  CHECK(error(old.dbias, exact.dbias) <= 12);
}
#endif

TEST_CASE_TEMPLATE("attention on CUDA: a bias of minus infinity may exclude whole tiles of keys", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (bool const causal : {false, true}) {
    Setting const setting{TwinLayout::Kind::padded, {70}, {70}, 1, 8, causal, true};
    Case<T> c{setting};
    Case<double> exact{setting};
    auto const nowhere = -std::numeric_limits<double>::infinity();
    for (Index i = 0; i < c.distances; ++i)
      if (i - 69 < -8) {  // keys more than 8 places before the query
        c.bias[static_cast<std::size_t>(i)] = static_cast<T>(nowhere);
        exact.bias[static_cast<std::size_t>(i)] = nowhere;
      }
    auto const got = c.on_device(stream, Write::overwrite);
    auto const right = exact.on_host(Write::overwrite);
    check_bounds(got, right, setting);
  }
}

TEST_CASE("attention on CUDA: scores may grow from tile to tile, or shrink") {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (double const slope : {-0.25, 0.25}) {
    Setting const setting{TwinLayout::Kind::padded, {130}, {130}, 1, 8, false, true};
    Case<float> c{setting};
    Case<double> exact{setting};
    for (Index i = 0; i < c.distances; ++i) {
      auto const distance = static_cast<double>(i - 129);
      c.bias[static_cast<std::size_t>(i)] = static_cast<float>(slope * distance);
      exact.bias[static_cast<std::size_t>(i)] = slope * distance;
    }
    auto const got = c.on_device(stream, Write::overwrite);
    auto const right = exact.on_host(Write::overwrite);
    check_bounds(got, right, setting);
  }
}

TEST_CASE("attention on CUDA: the stream counts two GEMMs forward and five backward, half of them if causal") {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  auto const queued = [&](auto kind, bool causal) {
    auto const before = stream.view().queued();
    Setting const setting{TwinLayout::Kind::padded, {5, 3}, {5, 3}, 2, 8, causal, false};
    static_cast<void>(Case<decltype(kind)>{setting}.on_device(stream, Write::overwrite));
    return stream.view().queued().since(before);
  };
  constexpr double all = 2 * 7 * (2 * 16) * 25;  // two rows of 16 channels, 25 pairs of positions
  CHECK(queued(bfloat16{}, false).half_operations == all);
  CHECK(queued(bfloat16{}, true).half_operations == all / 2);
  CHECK(queued(double{}, false).operations == 2 * all);
  CHECK(queued(double{}, false).half_operations == 0);
}

TEST_CASE("attention on CUDA: too wide heads are refused") {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  auto const check_refused = [&](auto kind, Index width, char const* message) {
    Setting const setting{TwinLayout::Kind::padded, {3}, {3}, 1, width};
    CHECK_THROWS_WITH_AS(static_cast<void>(Case<decltype(kind)>{setting}.on_device(stream, Write::overwrite)), message,
                         ShapeError);
  };
  auto const message = "Attention: a head is 129 channels wide, but CUDA supports at most 128; use more heads";
  check_refused(bfloat16{}, 129, message);
  check_refused(float{}, 129, message);
  check_refused(double{}, 65, "Attention: a head is 65 channels wide, but CUDA supports at most 64; use more heads");
}

#if defined(LOCKSTEP_CUDNN)
namespace {

/// An unbiased case without dropout, with finite padding: cuDNN may multiply it by zero.
Setting const plain{.kind = TwinLayout::Kind::padded,
                    .queries = {17, 9},
                    .keys = {17, 9},
                    .heads = 2,
                    .head_width = 16,
                    .causal = true,
                    .padding = 3};

/// Returns whether cuDNN computes backward on this GPU.
bool cudnn_computes_backward() {
  int major = 0;
  memory::check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
  return major < 10;
}

}  // namespace

TEST_CASE("attention on CUDA: either pass may use cuDNN, and none does by default") {
  if (!lockstep_test::has_gpu("attention by cuDNN")) return;
  using Kernel = kernel::Attention<CudaSpace>;
  using kernel::detail::AttentionPass;
  memory::CudaStream const stream;
  Case<bfloat16> const c{plain};
  auto const exact = Case<double, bfloat16>{plain}.on_host(Write::overwrite);
  static_cast<void>(c.on_device(stream, Write::overwrite));
  CHECK(Kernel::passes(stream.view()).by_cudnn + Kernel::passes(stream.view()).not_by_cudnn == 0);
  for (auto const by_cudnn : {AttentionPass::forward, AttentionPass::backward}) {
    Kernel::use_cudnn(stream.view(), true);  // memory for both
    auto const before = Kernel::passes(stream.view()).by_cudnn;
    check_close(c.on_device<Kernel>(stream, Write::overwrite,
                                    [&](auto pass) { Kernel::use_cudnn(stream.view(), pass == by_cudnn); }),
                exact);
    CHECK(Kernel::passes(stream.view()).by_cudnn - before ==
          (by_cudnn == AttentionPass::forward || cudnn_computes_backward()));
  }
}

TEST_CASE("attention on CUDA: a pass that cuDNN does not compute is counted, and has the bits of other streams") {
  if (!lockstep_test::has_gpu("attention by cuDNN")) return;
  using Kernel = kernel::Attention<CudaSpace>;
  memory::CudaStream const stream, own;
  Kernel::use_cudnn(stream.view(), true);
  auto const check = [&](Setting const& setting, Write write, Index by_cudnn, char const* reason) {
    auto const before = Kernel::passes(stream.view());
    Case<bfloat16> const c{setting};
    auto const got = c.on_device(stream, write);
    auto const passes = Kernel::passes(stream.view());
    CHECK(passes.by_cudnn - before.by_cudnn == by_cudnn);
    CHECK(passes.not_by_cudnn - before.not_by_cudnn == 2 - by_cudnn);
    CHECK(passes.reason == reason);
    if (by_cudnn == 0) CHECK(got.dkey == c.on_device(own, write).dkey);
  };
  auto const with = [](auto const& change) {
    auto setting = plain;
    change(setting);
    return setting;
  };
  check(with([](auto& s) { s.dropout = 0.1; }), Write::overwrite, 0, "cuDNN's dropout has other random bits");
  check(with([](auto& s) { s.biased = true; }), Write::overwrite, 0, "cuDNN adds no bias by distance");
  check(with([](auto& s) { s.kind = TwinLayout::Kind::ragged; }), Write::overwrite, 0, "the layout is ragged");
  check(with([](auto& s) { s.head_width = 20; }), Write::overwrite, 0,
        "the width of a head is not a multiple of 8 up to 256");
  check(with([](auto& s) {
          s.queries = s.keys = {1, 1};
        }),
        Write::overwrite, 0, "cuDNN does not support one query with one key");
  if (cudnn_computes_backward()) check(plain, Write::add, 1, "cuDNN overwrites all gradients");
  auto const too_wide = with([](auto& s) { s.head_width = 264; });
  CHECK_THROWS_WITH_AS(static_cast<void>(Case<bfloat16>{too_wide}.on_device(stream, Write::overwrite)),
                       doctest::Contains("a head is 264 channels wide, but CUDA supports at most 128"), ShapeError);
#ifndef __CUDACC__
  cuda_emulation::compute_capability = 10;
  check(plain, Write::overwrite, 1,
        "cuDNN's deterministic backward for this GPU is a kernel for compute capability 8.0");
  cuda_emulation::compute_capability = 7;
  check(plain, Write::overwrite, 0, "the compute capability is below 8.0");
  cuda_emulation::compute_capability = 9;
  cuda_emulation::cudnn_refuses_graphs = true;
  check(with([](auto& s) { s.heads = 3; }), Write::overwrite, 0,  // not planned yet
        "cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED");
  cuda_emulation::cudnn_refuses_graphs = false;
#endif
}
#else
TEST_CASE("attention on CUDA: cuDNN cannot be used if it is not linked") {
  if (!lockstep_test::has_gpu("kernel::Attention<CudaSpace>")) return;
  memory::CudaStream const stream;
  CHECK_NOTHROW(kernel::Attention<CudaSpace>::use_cudnn(stream.view(), false));
  CHECK_THROWS_WITH_AS(kernel::Attention<CudaSpace>::use_cudnn(stream.view(), true),
                       "Attention: cuDNN cannot be used, because this program was built without lockstep::cudnn; link "
                       "that target, or use Lockstep's own kernels",
                       ConfigError);
}
#endif
