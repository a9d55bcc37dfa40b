// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/parallel/gradients/row_exchange.hpp>

#include <suite.hpp>

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

/// Seconds of as many reductions of a token table's gradient over two thread ranks.
template <class Sum>
double seconds_of_sums(Index count, Sum const& sum) {
  double result = 0;
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
    for (Index step = 0; step < count; ++step) {
      touch(table, world.rank, step);
      communicator.barrier();
      auto const began = Clock::seconds();
      sum(communicator, exchange, gradients);
      elapsed += Clock::seconds() - began;
      communicator.barrier();
    }
    if (world.rank == 0) result = elapsed;
    return 0;
  });
  return result;
}

template <class Sum>
void add_sum(std::string const& name, Sum sum) {
  add(name,
      [sum](benchmark::State& state) {
        while (state.KeepRunningBatch(state.max_iterations))
          state.SetIterationTime(seconds_of_sums(state.max_iterations, sum));
      })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

void register_benchmarks() {
  std::string const name = "row_exchange/ranks:2/ids:zipf";
  add_sum(name, [](auto& communicator, auto& exchange, float* gradients) { exchange.sum(communicator, gradients); });
  add_sum(name + "/peer:dense", [](auto& communicator, auto&, float* gradients) {
    comm::CollectiveOperation operation{ElementType::float32, gradients, vocabulary * width, comm::Reduction::sum, {}};
    communicator.start(operation);
    communicator.finish();
  });
}
