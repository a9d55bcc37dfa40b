// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/detail/attention_cudnn.cuh>

#include <doctest/doctest.h>

#include <vector>

#include <lockstep/memory/cuda_graph.cuh>

#include "kernel/attention/cuda_attention.cuh"

using namespace attention_on_cuda;

namespace {

using kernel::detail::AttentionPass;
using kernel::detail::CudnnAttention;
using enum TwinLayout::Kind;

/// cuDNN's passes, without Lockstep's own.
struct ByCudnn {
  template <class T>
  using Inputs = CudnnAttention::Inputs<T>;
  using Stream = CudnnAttention::Stream;
  template <class T, int Rank>
  using View = TensorView<T, Rank, CudaSpace>;

  [[nodiscard]] static CudnnAttention& of(Stream stream) {
    auto& cudnn = stream.persistent<CudnnAttention>();
    cudnn.use(true);
    return cudnn;
  }
  template <class T>
  [[nodiscard]] static Index need(Stream stream, Inputs<T> const& in, AttentionPass pass) {
    return static_cast<Index>(of(stream).memory_bytes(stream, in, pass) / sizeof(float));
  }
  template <class T>
  [[nodiscard]] static Index forward_scratch(Stream stream, Inputs<T> const& in) {
    return need(stream, in, AttentionPass::forward);
  }
  template <class T>
  [[nodiscard]] static Index scratch(Stream stream, Inputs<T> const& in) {
    return need(stream, in, AttentionPass::backward);
  }
  template <class T>
  static void forward(Stream stream, Inputs<T> const& in, View<T, 2> out, View<float, 2> log_sums,
                      View<float, 1> memory) {
    INFO(of(stream).reason());
    REQUIRE(of(stream).forward(stream, in, out.data, log_sums.data, memory.data));
  }
  template <class T>
  static void backward(Stream stream, Inputs<T> const& in, View<T const, 2> out, View<float const, 2> log_sums,
                       View<T const, 2> dout, kernel::detail::AttentionGradients<T> const& to, View<float, 1> memory) {
    INFO(of(stream).reason());
    REQUIRE(of(stream).backward(stream, in, out.data, log_sums.data, dout.data, to, memory.data));
  }
};

/// Returns whether this GPU computes both passes.
bool has_gpu() {
  if (!lockstep_test::has_gpu("attention by cuDNN")) return false;
  int major = 0;
  memory::check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
  if (major == 8 || major == 9) return true;
  MESSAGE("skipped: attention by cuDNN needs a GPU of compute capability 8 or 9");
  return false;
}

/// Padding is finite, because cuDNN may multiply it by zero.
std::vector<Setting> cudnn_settings() {
  std::vector<std::int32_t> const lengths{35, 0, 1, 32, 7};
  std::vector<Setting> all{
      {.kind = padded, .queries = lengths, .keys = lengths, .heads = 2, .head_width = 8},
      {.kind = padded, .queries = {33, 20}, .keys = {33, 20}, .heads = 2, .head_width = 64, .causal = true},
      {.kind = padded, .queries = {3, 40, 5}, .keys = {40, 0, 9}, .heads = 1, .head_width = 24},
      {.kind = padded,
       .queries = {24, 24},
       .keys = {31, 31},
       .heads = 3,
       .head_width = 40,
       .causal = true,
       .whole = true},
      {.kind = padded, .queries = {27}, .keys = {27}, .heads = 2, .head_width = 16, .causal = true, .whole = true},
      {.kind = padded, .queries = {33, 9}, .keys = {33, 9}, .heads = 4, .head_width = 32, .heads_per_key_head = 2},
      {.kind = padded, .queries = {18, 20}, .keys = {18, 20}, .heads = 1, .head_width = 256}};
  for (auto& setting : all) setting.padding = 3;
  return all;
}

template <class T>
Results<T> by_cudnn(Case<T> const& c, memory::CudaStream const& stream) {
  return c.template on_device<ByCudnn>(stream, Write::overwrite, [](auto) {});
}

}  // namespace

TEST_CASE_TEMPLATE("attention by cuDNN equals the host's within rounding", T, bfloat16, float16) {
  if (!has_gpu()) return;
  memory::CudaStream const stream;
  for (auto const& setting : cudnn_settings()) {
    CAPTURE(setting.head_width);
    CAPTURE(setting.causal);
    check_close(by_cudnn(Case<T>{setting}, stream), Case<double, T>{setting}.on_host(Write::overwrite));
  }
}

TEST_CASE("attention by cuDNN can be recorded, and gives equal bits again") {
  if (!has_gpu()) return;
  memory::CudaStream const stream;
  Index const width = 2 * 16, slots = 3 * 20;
  std::vector<bfloat16> numbers;
  for (float const x : values<float>(slots * width, 1)) numbers.push_back(static_cast<bfloat16>(x));
  OnDevice<bfloat16> const x(numbers), out(numbers), dquery(numbers), dkey(numbers), dvalue(numbers);
  OnDevice<Index> const positions(std::vector<Index>{0, 1, 2});
  OnDevice<float> const log_sums(std::vector<float>(3 * 2 * 20));
  auto const layout = kernel::SequenceLayout<CudaSpace>::padded(20, {}, positions.view(3));
  ByCudnn::Inputs<bfloat16> const in{.query = x.view(slots, width),
                                     .key = x.view(slots, width),
                                     .value = x.view(slots, width),
                                     .queries = layout,
                                     .keys = layout,
                                     .heads = 2,
                                     .scale = 0.25};
  auto const view = stream.view();
  auto const need = std::max(ByCudnn::forward_scratch<bfloat16>(view, in), ByCudnn::scratch<bfloat16>(view, in));
  OnDevice<float> const memory(std::vector<float>(static_cast<std::size_t>(need)));
  auto const step = [&] {
    ByCudnn::forward<bfloat16>(view, in, out.view(slots, width), log_sums.view(6, 20), memory.view(need));
    ByCudnn::backward<bfloat16>(view, in, out.view(slots, width), log_sums.view(6, 20), x.view(slots, width),
                                {{dquery.view(0).data}, {dkey.view(0).data}, {dvalue.view(0).data}}, memory.view(need));
  };
  step();
  auto const first_out = out.values(), first_dquery = dquery.values(), first_dkey = dkey.values();
  memory::CudaGraph const graph(view, step);
  for (auto const* written : {&out, &dquery, &dkey})
    memory::check_cuda(
        cudaMemsetAsync(written->view(0).data, 0xff, static_cast<std::size_t>(slots * width) * 2, view.get()),
        "memset");
  graph.launch(view);
  CHECK(out.values() == first_out);
  CHECK(dquery.values() == first_dquery);
  CHECK(dkey.values() == first_dkey);
}

#ifndef __CUDACC__
TEST_CASE("descriptors of cuDNN's graphs are destroyed with the stream") {
  REQUIRE(cuda_emulation::cudnn_descriptors == 0);
  {
    memory::CudaStream const stream;
    static_cast<void>(by_cudnn(Case<bfloat16>{cudnn_settings()[4]}, stream));
    CHECK(cuda_emulation::cudnn_descriptors == 2);  // a plan for each pass
  }
  CHECK(cuda_emulation::cudnn_descriptors == 0);
}

TEST_CASE("a failure of cuDNN is an error, unlike a refusal") {
  using kernel::detail::CudnnGraphPlan;
  using kernel::detail::CudnnRefusal;
  auto const describing = [](cudnnStatus_t status) {
    return [=]() -> kernel::detail::CudnnGraph { throw CudnnRefusal{status, "a call"}; };
  };
  CudnnGraphPlan const refused(nullptr, describing(CUDNN_STATUS_NOT_SUPPORTED_SHAPE));
  CHECK_FALSE(refused.is_supported());
  CHECK(refused.refusal() == "a call");
  CHECK_THROWS_WITH_AS(CudnnGraphPlan(nullptr, describing(CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED)), "Attention: a call",
                       CudaError);
}
#endif
