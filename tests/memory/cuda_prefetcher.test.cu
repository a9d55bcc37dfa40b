// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/cuda_prefetcher.cuh>

#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <stdexcept>

#include "memory/device.hpp"

using namespace lockstep;

namespace {

/// The tensors of a batch, on the host: two types, and an absent one.
struct OnHost {
  TensorView<std::int16_t const, 2, HostSpace> tokens;
  TensorView<double const, 1, HostSpace> weights;
  TensorView<bool const, 1, HostSpace> mask{};
};
struct Received {
  TensorView<std::int16_t const, 2, CudaSpace> tokens;
  TensorView<double const, 1, CudaSpace> weights;
  TensorView<bool const, 1, CudaSpace> mask;
};
Received move_to_device(OnHost const& batch, memory::CudaPrefetcher::Copy const& copy) {
  return {copy(batch.tokens), copy(batch.weights), copy(batch.mask)};
}

std::int16_t token(int step, Index i) { return static_cast<std::int16_t>(7 * step + 3 * i + 1); }

/// As a loader makes them: in a page-locked slab that is rewritten for every batch, and initially contains garbage.
class Slab {
 public:
  OnHost fill(int step, Index rows) {
    std::memset(block_.data(), 0x55, block_.bytes());
    auto* const weights = reinterpret_cast<double*>(block_.data());
    auto* const tokens = reinterpret_cast<std::int16_t*>(weights + rows);
    std::fill_n(weights, rows, step + 0.5);
    for (Index i = 0; i < 3 * rows; ++i) tokens[i] = token(step, i);
    return {{tokens, {rows, 3}}, {weights, {rows}}};
  }

 private:
  memory::Block block_ = memory::PinnedResource{}.allocate(std::size_t{4} << 20);
};

void copy_on_device(void* to, void const* from, std::size_t bytes, memory::Stream<CudaSpace> stream) {
  memory::check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream.get()), "cudaMemcpyAsync");
}

/// A step reads its batch twice, before and after other work.
class Step {
 public:
  explicit Step(Index rows)
      : tokens_(std::vector<std::int16_t>(3 * static_cast<std::size_t>(rows))),
        again_(tokens_.values()),
        weights_(std::vector<double>(static_cast<std::size_t>(rows))) {}
  void queue(Received const& batch, memory::Stream<CudaSpace> stream) {
    auto const bytes = static_cast<std::size_t>(batch.tokens.size()) * sizeof(std::int16_t);
    auto const size = batch.tokens.size();
    copy_on_device(tokens_.view(size).data, batch.tokens.data, bytes, stream);
    copy_on_device(weights_.view(batch.weights.size()).data, batch.weights.data,
                   static_cast<std::size_t>(batch.weights.size()) * sizeof(double), stream);
    copy_on_device(again_.view(size).data, batch.tokens.data, bytes, stream);
  }
  void check(int step) const {
    CAPTURE(step);
    auto expected = tokens_.values();
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = token(step, static_cast<Index>(i));
    CHECK(tokens_.values() == expected);
    CHECK(again_.values() == expected);
    auto const weights = weights_.values();
    CHECK(weights == std::vector<double>(weights.size(), step + 0.5));
  }

 private:
  lockstep_test::OnDevice<std::int16_t> tokens_, again_;
  lockstep_test::OnDevice<double> weights_;
};

}  // namespace

TEST_CASE("each step reads its own batch, during the copy of the next one and a rewrite of its slab") {
  if (!lockstep_test::has_gpu("memory::CudaPrefetcher")) return;
  // The last sizes exceed the first chunk of device memory, twice.
  std::vector<Index> const sizes{0, 1, 31, 32, 33, 1000, 5, 100000, 33, 0, 100001, 7, 200000, 200000, 3, 200000};
  std::vector<Step> steps;
  for (auto const rows : sizes) steps.emplace_back(rows);
  std::array<Slab, 2> slabs;
  memory::CudaStream const reader;
  memory::CudaPrefetcher prefetcher;
  auto const count = static_cast<int>(sizes.size());
  auto const receive = [&](int step) {
    auto const batch = slabs[static_cast<std::size_t>(step % 2)].fill(step, sizes[static_cast<std::size_t>(step)]);
    return prefetcher.prefetch([&](auto const& copy) { return move_to_device(batch, copy); });
  };
  auto next = receive(0);
  for (int step = 0; step < count; ++step) {
    prefetcher.activate(reader.view());
    auto const batch = next;
    CHECK(batch.mask.data == nullptr);
    steps[static_cast<std::size_t>(step)].queue(batch, reader.view());
    if (step + 1 == count) break;
    if (step % 3 == 0) prefetcher.wait();  // the slab of this step is reused by the one after the next
    while (!prefetcher.arrived()) continue;
    next = receive(step + 1);
  }
  reader.view().synchronize();
  for (int step = 0; step < count; ++step) steps[static_cast<std::size_t>(step)].check(step);
}

TEST_CASE("batches of one shape alternate between two places; an unopened batch is replaced") {
  if (!lockstep_test::has_gpu("memory::CudaPrefetcher")) return;
  Slab slab;
  memory::CudaStream const reader;
  memory::CudaPrefetcher prefetcher;
  auto const receive = [&] {
    auto const batch = prefetcher.prefetch([&](auto const& copy) { return move_to_device(slab.fill(1, 33), copy); });
    prefetcher.wait();
    return batch.tokens.data;
  };
  auto const* const first = receive();
  prefetcher.activate(reader.view());
  auto const* const second = receive();
  CHECK(second != first);
  CHECK(receive() == second);
  prefetcher.activate(reader.view());
  CHECK(receive() == first);
  prefetcher.activate(reader.view());
  CHECK(receive() == second);
}

TEST_CASE("a batch that cannot be copied leaves no pending copies") {
  if (!lockstep_test::has_gpu("memory::CudaPrefetcher")) return;
  Slab slab;
  Step step(50);
  memory::CudaStream const reader;
  memory::CudaPrefetcher prefetcher;
  CHECK_THROWS_WITH_AS(static_cast<void>(prefetcher.prefetch([&](auto const& copy) {
                         static_cast<void>(move_to_device(slab.fill(1, 40), copy));
                         throw std::runtime_error("no");
                         return 0;
                       })),
                       "no", std::runtime_error);
  auto const batch = prefetcher.prefetch([&](auto const& copy) { return move_to_device(slab.fill(2, 50), copy); });
  prefetcher.activate(reader.view());
  step.queue(batch, reader.view());
  step.check(2);
}

TEST_CASE("partial copies of a failed batch are waited for like a batch") {
  if (!lockstep_test::has_gpu("memory::CudaPrefetcher")) return;
  memory::CudaPrefetcher prefetcher;
  for (int step = 0; step < 2; ++step) {
    Slab slab;
    CHECK_THROWS_WITH_AS(static_cast<void>(prefetcher.prefetch([&](auto const& copy) {
                           static_cast<void>(move_to_device(slab.fill(step, 1000), copy));
                           throw std::runtime_error("no");
                           return 0;
                         })),
                         "no", std::runtime_error);
    prefetcher.wait();
    CHECK(prefetcher.arrived());
  }  // the slab's memory is freed, which is no longer copied
}

#if defined(LOCKSTEP_CUDA_EMULATION)

TEST_CASE("a larger batch waits only for its own device") {
  bool over = false;  // outlives the device's last access
  memory::CudaStream const reader, sums;
  memory::CudaPrefetcher prefetcher;
  Slab slab;
  auto const receive = [&](Index rows) {
    static_cast<void>(prefetcher.prefetch([&](auto const& copy) { return move_to_device(slab.fill(1, rows), copy); }));
    prefetcher.wait();
    prefetcher.activate(reader.view());
  };
  auto const before = cuda_emulation::frees_beside_peers.load();
  cuda_emulation::Device::instance().push(
      sums.view().get(), {{}, nullptr, 0, [&] { return over || cuda_emulation::frees_beside_peers > before; }});
  for (Index const rows : {100000, 100000, 200000, 200000, 5, 5, 5}) receive(rows);
  CHECK(cuda_emulation::frees_beside_peers == before);
  over = true;
}

#endif
