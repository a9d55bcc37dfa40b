// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/parallel/gradients/row_exchange.hpp>

#include <rate.hpp>
#include <ratios.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr Index vocabulary = 20000, width = 128, tokens = 32 * 128;
constexpr int ranks = 2;

/// The rows that a batch of a text touches on a rank: rank r of the vocabulary with frequency 1 / r.
void touch(kernel::TouchedRows const& table, int rank, Index step) {
  table.clear();
  for (Index k = 0; k < tokens; ++k) {
    auto const key = mix(static_cast<std::uint64_t>(step * ranks + rank), static_cast<std::uint64_t>(k));
    auto const place = static_cast<Index>(std::pow(double{vocabulary}, static_cast<double>(key >> 11) * 0x1p-53)) - 1;
    table.insert(place * 7919 % vocabulary);
  }
}

/// Reductions of a token table's gradient over two thread ranks, per second.
template <class Sum>
double sums_per_second(double duration, Sum const& sum) {
  double result = 0;
  std::atomic<bool> more{true};
  launch::Options options;
  options.threads = ranks;
  launch::run(options, [&](launch::World& world) {
    auto communicator = comm::connect(world);
    auto const block = communicator.allocate(static_cast<std::size_t>(vocabulary * width) * sizeof(float));
    auto* const gradients = reinterpret_cast<float*>(block.data());
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(kernel::TouchedRows::words_for(vocabulary)));
    kernel::TouchedRows const table{0, vocabulary, width, bits.data()};
    parallel::RowExchange exchange(std::span(&table, 1), ranks);
    double elapsed = 0;
    Index steps = 0;
    for (; more.load(); ++steps) {
      touch(table, world.rank, steps);
      communicator.barrier();
      auto const began = seconds(Time::wall);
      sum(communicator, exchange, gradients);
      elapsed += seconds(Time::wall) - began;
      communicator.barrier();
      if (world.rank == 0 && elapsed > duration) more.store(false);
      communicator.barrier();  // equal on all ranks
    }
    if (world.rank == 0) result = static_cast<double>(steps) / elapsed;
    return 0;
  });
  return result;
}

}  // namespace

int main() {
  Ratios ratios("parallel/gradients/row_exchange");
  ratios.compare(
      "2 ranks, threads, gradient of a table, float32, V=20000, D=128, zipf", "dense",
      [](double duration) {
        return sums_per_second(duration, [](auto& communicator, auto& exchange, float* gradients) {
          exchange.sum(communicator, gradients);
        });
      },
      [](double duration) {
        return sums_per_second(duration, [](auto& communicator, auto&, float* gradients) {
          comm::CollectiveOperation operation{
              ElementType::float32, gradients, vocabulary * width, comm::Reduction::sum, {}};
          communicator.start(operation);
          communicator.finish();
        });
      });
}
