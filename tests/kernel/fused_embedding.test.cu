// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/dropout.cuh>
#include <lockstep/kernel/fused_embedding.cuh>

#include "kernel/fused_embedding_cases.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::EmbeddingCase;
using lockstep_test::EmbeddingGradients;
using lockstep_test::Ids;
using lockstep_test::OnDevice;

namespace {

class CudaBackend {
 public:
  template <class T>
  std::vector<T> forward(EmbeddingCase<T> const& c) {
    OnDevice<std::int32_t> const ids(c.ids), lengths(c.lengths);
    OnDevice<Index> const positions(c.positions);
    OnDevice<T> const token(c.token), position(c.position), out(std::vector<T>(c.dy.size(), T{-7}));
    Kernel::forward<T>(stream_.view(), {ids.view(c.rows, c.length), lengths.view(c.rows)},
                       token.view(c.vocabulary, c.width), position.view(c.most_positions, c.width), c.mask,
                       positions.view(c.rows), out.view(c.rows * c.length, c.width));
    return out.values();
  }

  template <class T>
  EmbeddingGradients<T> backward(EmbeddingCase<T> const& c, Write write, T before) {
    OnDevice<std::int32_t> const ids(c.ids), lengths(c.lengths);
    OnDevice<Index> const positions(c.positions);
    OnDevice<T> const dy(c.dy), token(std::vector<T>(c.token.size(), before)),
        position(std::vector<T>(c.position.size(), before));
    Kernel::Tokens const tokens{ids.view(c.rows, c.length), lengths.view(c.rows)};
    auto const gradient = dy.view(c.rows * c.length, c.width);
    if (c.mask.active())
      kernel::Dropout<CudaSpace>::apply<T>(
          stream_.view(), c.mask,
          kernel::SequenceLayout<CudaSpace>::padded(c.length, tokens.lengths, positions.view(c.rows)), gradient,
          gradient, Write::overwrite);
    Kernel::plan(stream_.view(), tokens, {}, plan_);
    OnDevice<T> const partial(std::vector<T>(static_cast<std::size_t>(plan_.chunks() * c.width)));
    Kernel::backward_token<T>(stream_.view(), plan_, gradient, partial.view(plan_.chunks(), c.width),
                              token.view(c.vocabulary, c.width), write);
    Kernel::backward_position<T>(stream_.view(), tokens, gradient, position.view(c.most_positions, c.width), write);
    return {token.values(), position.values()};
  }

 private:
  using Kernel = kernel::FusedEmbedding<CudaSpace>;
  memory::CudaStream stream_;
  Kernel::Plan plan_;
};

}  // namespace

TEST_CASE_TEMPLATE("embedding on CUDA: the definition, at many sizes", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  CudaBackend backend;
  lockstep_test::embedding_cases<T>(backend);
}
TEST_CASE_TEMPLATE("embedding on CUDA: hot rows", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  CudaBackend backend;
  lockstep_test::embedding_hot_row_cases<T>(backend);
}
TEST_CASE_TEMPLATE("embedding on CUDA: add leaves absent ids alone", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  CudaBackend backend;
  lockstep_test::embedding_untouched_rows_case<T>(backend);
}
TEST_CASE_TEMPLATE("embedding on CUDA: row and padding do not matter", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  CudaBackend backend;
  lockstep_test::embedding_padding_case<T>(backend);
}

TEST_CASE("embedding on CUDA: the same bits again and again") {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  auto const c = EmbeddingCase<float>::make(65, 40, 72, Ids::skewed, 0.1, 3001);
  CudaBackend once;
  auto const out = once.forward(c);
  auto const gradients = once.backward(c, Write::overwrite, 1.5f);
  for (int repetition = 0; repetition < 30; ++repetition) {
    CudaBackend backend;
    CHECK(backend.forward(c) == out);
    CHECK(backend.backward(c, Write::overwrite, 1.5f) == gradients);
  }
}

TEST_CASE("embedding on CUDA: an id outside the table gives nan, and nothing is read there") {
  if (!lockstep_test::has_gpu("kernel::FusedEmbedding<CudaSpace>")) return;
  auto c = EmbeddingCase<float>::make(5, 9, 4, Ids::spread);
  c.ids[c.slot(4, 7)] = 2'000'000'000;
  CudaBackend backend;
  auto const out = backend.forward(c);
  for (std::size_t i = 0; i < out.size(); ++i) CHECK(std::isnan(out[i]) == (i / 4 == c.slot(4, 7)));
}
