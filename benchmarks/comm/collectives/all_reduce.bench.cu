// SPDX-License-Identifier: Apache-2.0
// All-reduce of float32 in device memory: the engine nccl against ncclAllReduce on NCCL's own communicator, without
// waits as ours and, as in most programs, with waits. algbw is bytes over time; busbw is algbw times 2 (n - 1) / n, as
// nccl-tests define them. Uses a rank per GPU; on a single GPU one rank, and then two that share it. LOCKSTEP_BYTES, a
// comma-separated list, chooses other sizes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/nccl/nccl_communicator.cuh>
#include <lockstep/launch/run/run.hpp>

#include <kernel/device_roof.cuh>
#include <peer.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

void must(ncclResult_t result, char const* call) {
  if (result != ncclSuccess && result != ncclInProgress)
    throw CommunicationError(std::string(call) + ": " + ncclGetErrorString(result));
}

/// NCCL called directly, without other libraries.
class RawNccl {
 public:
  RawNccl(comm::AnyCommunicator& host, bool blocking) : blocking_(blocking) {
    ncclUniqueId id{};
    if (host.rank() == 0) must(ncclGetUniqueId(&id), "ncclGetUniqueId");
    host.broadcast(&id, sizeof id, 0);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking ? 1 : 0;
    must(ncclCommInitRankConfig(&group_, host.size(), id, host.rank(), &config), "ncclCommInitRankConfig");
    check_for_errors();
  }
  RawNccl(RawNccl const&) = delete;
  RawNccl& operator=(RawNccl const&) = delete;
  ~RawNccl() { ncclCommAbort(group_); }

  void sum(float* data, std::size_t count) {
    must(ncclAllReduce(data, data, count, ncclFloat32, ncclSum, group_, stream_.view().get()), "ncclAllReduce");
    check_for_errors();
  }
  void finish() const { stream_.view().synchronize(); }

 private:
  void check_for_errors() const {
    if (blocking_) return;
    ncclResult_t now = ncclInProgress;
    while (now == ncclInProgress) {
      must(ncclCommGetAsyncError(group_, &now), "ncclCommGetAsyncError");
      must(now, "NCCL");
    }
  }

  bool blocking_;
  ncclComm_t group_ = nullptr;
  memory::CudaStream stream_;
};

/// The median of the seconds of `count` all-reduces with a wait each, and the host's mean seconds of one without waits.
struct Seconds {
  double whole = 0, host = 0;
};

template <class Sum, class Finish>
Seconds measure(int count, Sum const& sum, Finish const& finish) {
  constexpr int together = 16;
  std::vector<double> whole;
  double host = 0;
  for (int i = 0; i < count; ++i) {
    auto const begin = Clock::seconds();
    sum(0);
    finish();
    whole.push_back(Clock::seconds() - begin);
  }
  for (int i = 0; i < count; ++i) {
    auto const begin = Clock::seconds();
    for (int k = 0; k < together; ++k) sum(k);
    host += (Clock::seconds() - begin) / together;
    finish();
  }
  std::nth_element(whole.begin(), whole.begin() + count / 2, whole.end());
  return {whole[static_cast<std::size_t>(count / 2)], host / count};
}

/// The slowest rank's time.
Seconds longest(comm::NcclCommunicator& c, Seconds mine) {
  double numbers[]{mine.whole, mine.host};
  comm::CollectiveOperation operation{ElementType::float64, numbers, 2, comm::Reduction::max, {}};
  c.start(operation);
  c.finish();
  return {numbers[0], numbers[1]};
}

/// Parts of a request.
enum class Way { engine, raw, blocking };
struct Plan {
  long count = 0, bytes = 0;
  Way way = Way::engine;

  /// Reads `COUNT BYTES engine|raw|blocking`; a count of 0 is the end.
  static Plan read() {
    Plan plan;
    char way[16];
    if (std::scanf("%ld %ld %15s", &plan.count, &plan.bytes, way) != 3) return {};
    plan.way = way[0] == 'e' ? Way::engine : way[0] == 'r' ? Way::raw : Way::blocking;
    return plan;
  }
};

int rank_main(launch::World& world) {
  int gpus = 0;
  memory::check_cuda(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  if (world.size > gpus) {  // makes NCCL accept several ranks on one GPU, as if on different hosts
    ::setenv("NCCL_HOSTID", ("lockstep-" + std::to_string(world.rank)).c_str(), 0);
    ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  }
  memory::check_cuda(cudaSetDevice(world.rank % gpus), "cudaSetDevice");
  auto host = comm::connect(world), requests = comm::connect(world);
  RawNccl raw(host, false), blocking(host, true);
  comm::NcclCommunicator ours(world, std::move(host));
  if (world.rank == 0) {
    std::puts("ready");
    std::fflush(stdout);
  }
  memory::Block block;
  std::vector<comm::CollectiveOperation> operations(16);
  for (;;) {
    auto plan = world.rank == 0 ? Plan::read() : Plan{};
    requests.broadcast(&plan, sizeof plan, 0);
    if (plan.count == 0) return 0;
    if (block.bytes() < static_cast<std::size_t>(plan.bytes)) {
      block = {};
      block = ours.allocate(static_cast<std::size_t>(plan.bytes));
    }
    auto* const data = reinterpret_cast<float*>(block.data());
    auto const elements = static_cast<std::size_t>(plan.bytes) / sizeof(float);
    auto const engine = [&](int k) {
      auto& operation = operations[static_cast<std::size_t>(k)];
      operation = {ElementType::float32, data, static_cast<Index>(elements), comm::Reduction::sum, {}};
      ours.start(operation);
    };
    auto& nccl = plan.way == Way::raw ? raw : blocking;
    auto const times = static_cast<int>(std::min(plan.count, 2000L));
    auto const seconds = longest(
        ours, plan.way == Way::engine ? measure(times, engine, [&] { ours.finish(); })
                                      : measure(
                                            times, [&](int) { nccl.sum(data, elements); }, [&] { nccl.finish(); }));
    if (world.rank != 0) continue;
    auto const count = static_cast<double>(plan.count);
    std::printf("%.9g host_seconds %.9g\n", count * seconds.whole, count * seconds.host);
    std::fflush(stdout);
  }
}

Role const rank("rank", [](std::vector<std::string> const& arguments) {
  launch::Options options;
  options.nproc = std::stoi(arguments.at(0));
  options.arguments = {"all_reduce", "--role=rank", arguments[0]};
  options.report = [](std::string const& what) { std::fprintf(stderr, "%s\n", what.c_str()); };
  return launch::run(options, rank_main);
});

void add_way(std::string const& name, std::string const& way, int ranks, long bytes) {
  auto command = own_role("rank", {std::to_string(ranks)});
  command.request = std::to_string(bytes) + " " + way;
  add(name,
      [=](benchmark::State& state) {
        if (!has_gpu()) return skip(state, "no GPU answers");
        for (auto const& [counter, value] : run_peer(state, command)) state.counters[counter] = per_iteration(value);
        set_all_reduce_bandwidths(state, bytes, ranks);
      })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

void register_benchmarks() {
  int gpus = 0;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess) gpus = 0;
  auto const* const given = std::getenv("LOCKSTEP_BYTES");
  for (int const ranks : {1, std::max(2, gpus)}) {
    std::istringstream sizes(given ? given : "1024,65536,1048576,16777216,67108864,268435456");
    for (std::string bytes; std::getline(sizes, bytes, ',');) {
      auto const name = "cuda/all_reduce/bytes:" + bytes + "/ranks:" + std::to_string(ranks);
      add_way(name, "engine", ranks, std::stol(bytes));
      add_way(name + "/peer:raw_nccl", "raw", ranks, std::stol(bytes));
      add_way(name + "/peer:raw_nccl_blocking", "blocking", ranks, std::stol(bytes));
    }
  }
}
