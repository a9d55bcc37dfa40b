// SPDX-License-Identifier: Apache-2.0
// All-reduce of float32 in device memory: the engine nccl against ncclAllReduce on NCCL's own communicator, without
// waits as ours and, as in most programs, with waits. algbw is bytes over time; busbw is algbw times 2 (n - 1) / n, as
// nccl-tests define them. Uses a rank per GPU; on a single GPU one rank, and then two that share it. LOCKSTEP_BYTES, a
// comma-separated list, chooses other sizes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/nccl/nccl_communicator.cuh>
#include <lockstep/launch/run/run.hpp>

#include <kernel/device_roof.cuh>
#include <ratios.hpp>

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

/// Seconds of one all-reduce with a wait, and host seconds of each of many all-reduces without waits.
struct Seconds {
  double whole = 0, host = 0;
};

template <class Sum, class Finish>
Seconds measure(int times, Sum const& sum, Finish const& finish) {
  constexpr int together = 16;
  std::vector<double> whole, host;
  for (int i = 0; i < times; ++i) {
    auto const begin = Clock::seconds();
    sum(0);
    finish();
    whole.push_back(Clock::seconds() - begin);
  }
  for (int i = 0; i < times; ++i) {
    auto const begin = Clock::seconds();
    for (int k = 0; k < together; ++k) sum(k);
    host.push_back((Clock::seconds() - begin) / together);
    finish();
  }
  return {Spread::of(whole).median, Spread::of(host).median};
}

/// The slowest rank's time.
Seconds longest(comm::NcclCommunicator& c, Seconds mine) {
  double numbers[]{mine.whole, mine.host};
  comm::CollectiveOperation operation{ElementType::float64, numbers, 2, comm::Reduction::max, {}};
  c.start(operation);
  c.finish();
  return {numbers[0], numbers[1]};
}

void compare(Ratios* ratios, comm::NcclCommunicator& ours, RawNccl& raw, RawNccl& blocking, std::size_t bytes) {
  auto const block = ours.allocate(bytes);
  auto* const data = reinterpret_cast<float*>(block.data());
  auto const count = bytes / sizeof(float);
  std::vector<comm::CollectiveOperation> operations(16);
  auto const engine = [&](int k) {
    auto& operation = operations[static_cast<std::size_t>(k)];
    operation = {ElementType::float32, data, static_cast<Index>(count), comm::Reduction::sum, {}};
    ours.start(operation);
  };
  int const times = bytes > (std::size_t{16} << 20) ? 10 : 50;
  auto const turn_of = [&](RawNccl& nccl) {
    return longest(ours, measure(
                             times, [&](int) { nccl.sum(data, count); }, [&] { nccl.finish(); }));
  };
  auto const our_turn = [&] { return longest(ours, measure(times, engine, [&] { ours.finish(); })); };
  std::vector<double> over_raw, over_blocking, whole, extra;
  static_cast<void>(our_turn()), static_cast<void>(turn_of(raw)), static_cast<void>(turn_of(blocking));
  for (int i = 0; i < 9; ++i) {
    auto const with_us = our_turn(), with_raw = turn_of(raw), with_blocking = turn_of(blocking);
    over_raw.push_back(with_raw.whole / with_us.whole);
    over_blocking.push_back(with_blocking.whole / with_us.whole);
    whole.push_back(with_us.whole);
    extra.push_back(with_us.host - with_raw.host);
  }
  if (!ratios) return;
  auto const n = static_cast<double>(ours.size()), rate = static_cast<double>(bytes) / Spread::of(whole).median * 1e-9;
  auto const text = bytes >> 20 != 0 ? std::to_string(bytes >> 20) + " MB" : std::to_string(bytes >> 10) + " KB";
  auto const name = "all_reduce " + text + ", " + std::to_string(ours.size()) + " ranks, nccl";
  std::printf("%s: p50 %.2f us, algbw %.2f GB/s, busbw %.2f GB/s; the host takes %.2f us more than NCCL alone\n",
              name.c_str(), 1e6 * Spread::of(whole).median, rate, rate * 2 * (n - 1) / n,
              1e6 * Spread::of(extra).median);
  ratios->report(name, "raw nccl", Spread::of(over_raw), "9 blocks");
  ratios->report(name, "raw nccl blocking", Spread::of(over_blocking), "9 blocks");
}

int rank_main(launch::World& world) {
  int gpus = 0;
  memory::check_cuda(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  if (world.size > gpus) {  // makes NCCL accept several ranks on one GPU, as if on different hosts
    ::setenv("NCCL_HOSTID", ("lockstep-" + std::to_string(world.rank)).c_str(), 0);
    ::setenv("NCCL_SOCKET_IFNAME", "lo", 0);
  }
  memory::check_cuda(cudaSetDevice(world.rank % gpus), "cudaSetDevice");
  auto host = comm::connect(world);
  RawNccl raw(host, false), blocking(host, true);
  comm::NcclCommunicator ours(world, std::move(host));
  std::optional<Ratios> ratios;
  if (world.rank == 0) ratios.emplace("cuda/comm/collectives/all_reduce");
  auto const* const given = std::getenv("LOCKSTEP_BYTES");
  std::istringstream sizes(given ? given : "1024,65536,1048576,16777216,67108864,268435456");
  for (std::string bytes; std::getline(sizes, bytes, ',');)
    compare(ratios ? &*ratios : nullptr, ours, raw, blocking, std::stoull(bytes));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2) {
    launch::Options options;
    options.nproc = std::atoi(argv[1]);
    options.arguments = {argv[0], argv[1]};
    options.report = [](std::string const& what) { std::fprintf(stderr, "%s\n", what.c_str()); };
    return launch::run(options, rank_main);
  }
  if (!DeviceRoof::there("cuda/comm/collectives/all_reduce")) return 0;
  int gpus = 0;
  memory::check_cuda(cudaGetDeviceCount(&gpus), "cudaGetDeviceCount");
  for (int const ranks : {1, std::max(2, gpus)})
    if (std::system((std::string(argv[0]) + " " + std::to_string(ranks)).c_str()) != 0) return 1;
}
