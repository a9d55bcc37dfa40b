// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/embedding/fused_embedding.cuh>

#include <algorithm>
#include <any>
#include <deque>
#include <memory>
#include <vector>

#include "fused_embedding_cases.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::EmbeddingCase;
using lockstep_test::EmbeddingRun;
using lockstep_test::Ids;
using lockstep_test::OnDevice;

namespace {

class CudaBackend {
 public:
  using Space = CudaSpace;

  template <class U>
  U* put(std::vector<U> const& values) {
    memory_.push_back(std::make_shared<OnDevice<U>>(values));
    return std::any_cast<std::shared_ptr<OnDevice<U>>&>(memory_.back())->view(values.size()).data;
  }
  template <class U>
  std::vector<U> get(U const* data, Index count) {
    std::vector<U> out(static_cast<std::size_t>(count));
    memory::check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (count > 0)
      memory::check_cuda(cudaMemcpy(out.data(), data, out.size() * sizeof(U), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return out;
  }
  void clear() { memory_.clear(); }
  memory::Stream<CudaSpace> stream() { return stream_.view(); }
  kernel::FusedEmbedding<CudaSpace>::Plan& plan() { return plan_; }

 private:
  memory::CudaStream stream_;
  kernel::FusedEmbedding<CudaSpace>::Plan plan_;
  std::deque<std::any> memory_;
};

}  // namespace

TEST_CASE_TEMPLATE("embedding on CUDA: a text, at many sizes", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  CudaBackend backend;
  lockstep_test::embedding_text_cases<T>(backend);
}
TEST_CASE_TEMPLATE("embedding on CUDA: assembled, summed, typed, scaled and normalized", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  CudaBackend backend;
  lockstep_test::embedding_assembly_cases<T>(backend);
}
TEST_CASE_TEMPLATE("embedding on CUDA: hot rows", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  CudaBackend backend;
  lockstep_test::embedding_hot_row_cases<T>(backend);
}
TEST_CASE_TEMPLATE("embedding on CUDA: adding writes leave rows of absent ids unchanged", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  CudaBackend backend;
  lockstep_test::embedding_untouched_rows_case<T>(backend);
}

TEST_CASE("embedding on CUDA: bits are equal on repetition") {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  EmbeddingCase<float> const c({.rows = 17,
                                .length = 20,
                                .width = 72,
                                .vocabulary = 3001,
                                .ids = Ids::skewed,
                                .dropout = 0.1,
                                .segments = 2,
                                .norm = lockstep_test::Norm::layer,
                                .types = true});
  CudaBackend once;
  EmbeddingRun<float, CudaBackend> run(once, c);
  auto const out = run.forward();
  auto const gradients = run.backward(Write::overwrite, 1.5f);
  for (int repetition = 0; repetition < 5; ++repetition) {
    CudaBackend backend;
    EmbeddingRun<float, CudaBackend> again(backend, c);
    CHECK(again.forward() == out);
    CHECK(again.backward(Write::overwrite, 1.5f) == gradients);
  }
}

TEST_CASE("the plan on CUDA equals the host's, in memory of another one") {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  using Plan = kernel::FusedEmbedding<CudaSpace>::Plan;
  constexpr std::int32_t vocabulary = 100;
  memory::CudaStream const stream;
  for (Index length : {0, 1, 2, 3, 31, 32, 33, 64, 65, 500}) {
    CAPTURE(length);
    constexpr Index rows = 3;
    auto const slots = rows * length;
    OnDevice<std::int32_t> const memory(std::vector<std::int32_t>(static_cast<std::size_t>(Plan::elements(slots)), 9));
    for (std::int32_t distinct : {1, 5, 120}) {
      CAPTURE(distinct);
      std::vector<std::int32_t> lengths, ids, list;
      for (Index row = 0; row < rows; ++row) {
        lengths.push_back(static_cast<std::int32_t>(row == 1 ? length / 2 : length));
        for (Index i = 0; i < length; ++i) {
          auto const id = static_cast<std::int32_t>(row * length + i) * 37 % distinct;
          ids.push_back(id == 17 ? -3 : id);
          list.push_back(i < lengths.back() && id != 17 && id < vocabulary ? id : -1);
        }
      }
      OnDevice<std::int32_t> const device_lengths(lengths), device_ids(ids);
      OnDevice<Index> const positions(std::vector<Index>(rows, 0));
      kernel::Assembly<CudaSpace> assembly;
      assembly.count = 1;
      assembly.layout = assembly.segments[0] =
          kernel::SequenceLayout<CudaSpace>::padded(length, device_lengths.view(rows), positions.view(rows));
      Plan plan;
      plan.build(stream.view(), assembly, 0, device_ids.view(slots).data, vocabulary,
                 memory.view(Plan::elements(slots)));
      SegmentPlan host;
      host.build(list);
      auto const all = memory.values();
      auto const* const begin = memory.view(1).data;
      auto const same = [&](auto const& expected, auto const* data) {
        auto const at = reinterpret_cast<std::int32_t const*>(data) - begin;
        return std::equal(expected.begin(), expected.end(), all.begin() + at,
                          [](auto a, std::int32_t b) { return static_cast<std::int32_t>(a) == b; });
      };
      std::vector<std::uint32_t> several;
      for (std::size_t row = 0; row < host.rows.size(); ++row)
        if (host.first[row + 1] - host.first[row] > 1) several.push_back(static_cast<std::uint32_t>(row));
      CHECK(same(std::vector{host.rows.size(), static_cast<std::size_t>(host.chunks()), several.size()}, plan.total()));
      CHECK(host.chunks() <= plan.chunks());
      CHECK(static_cast<Index>(several.size()) <= plan.max_several());
      if (host.rows.empty()) continue;
      CHECK(same(host.order, plan.order()));
      CHECK(same(host.rows, plan.rows()));
      CHECK(same(host.first, plan.first()));
      CHECK(same(host.begin, plan.begin()));
      CHECK(same(several, plan.several()));
    }
  }
}

TEST_CASE("embedding on CUDA: an id outside the table gives NaN, and no memory outside is read") {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  EmbeddingCase<float> c({.rows = 5, .length = 9, .width = 4});
  c.segments[0].parts[0].ids[4 * 9 + 7] = 2'000'000'000;
  CudaBackend backend;
  auto const out = EmbeddingRun<float, CudaBackend>(backend, c).forward();
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(std::isnan(out[i]) == (i / 4 == 4 * 9 + 7));
}
