// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/nccl/nccl_communicator.cuh>

#include <doctest/doctest.h>

#include <lockstep/app/detail/nccl.hpp>
#include <lockstep/kernel/elementwise/binary_operation.cuh>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/memory/cuda_graph.cuh>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm/operations.hpp"
#include "comm/store_ranks.hpp"
#include "memory/device.hpp"

using namespace lockstep_test;
using lockstep::CudaSpace;
using lockstep::ElementType;
using lockstep::TensorView;

namespace {

#if defined(LOCKSTEP_NCCL_EMULATION)
constexpr int max_ranks = 4;
using cuda_emulation::OwnDevice;
#else
constexpr int max_ranks = 1;  // NCCL refuses several on one GPU
struct OwnDevice {};
#endif

template <class Body>
void run_ranks(int n, Body const& body, launch::Options options = {}) {
  options.threads = n;
  launch::run(options, [&](launch::World& world) {
    [[maybe_unused]] OwnDevice const device;
    body(world);
    return 0;
  });
}
template <class Body>
void with_nccl(Body const& body) {
  if (!has_gpu("comm::NcclCommunicator")) return;
  for (int n = 1; n <= max_ranks; ++n) {
    CAPTURE(n);
    CHECK_NOTHROW(run_ranks(n, [&](launch::World& world) {
      comm::AnyCommunicator c(comm::NcclCommunicator{world});
      body(c);
    }));
  }
}

void move_bytes(void* to, void const* from, std::size_t bytes) {
  lockstep::memory::check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  lockstep::memory::check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

/// Elements of device memory with access from the host, and a guard after them.
class Mirror {
 public:
  Mirror(comm::AnyCommunicator& c, ElementType type, Index count)
      : type_(type), host_((static_cast<std::size_t>(count) + 1) * size_of(type), std::byte{0x5a}) {
    block_ = c.allocate(host_.size());
  }
  [[nodiscard]] Elements elements() { return {type_, host_.data()}; }
  [[nodiscard]] std::byte* at(Index i) const { return block_.data() + static_cast<std::size_t>(i) * size_of(type_); }
  void up() const { move_bytes(block_.data(), host_.data(), host_.size()); }
  void down() {
    move_bytes(host_.data(), block_.data(), host_.size());
    for (std::size_t i = host_.size() - size_of(type_); i < host_.size(); ++i)
      require(host_[i] == std::byte{0x5a}, "wrote outside of the memory");
  }

 private:
  ElementType type_;
  std::vector<std::byte> host_;
  lockstep::memory::Block block_;
};

/// So small that every type represents every sum, in any order: at most 4 * 4 * 12 = 192, a multiple of every number of
/// ranks up to 4, and sometimes 0.
double small_input(ElementType type, int rank, Index i) {
  auto const x = static_cast<double>(12 * ((i * 7 + rank * 3) % 5));
  return whole(type) || i % 2 == 0 ? x : -x;
}
double small_result(ElementType type, comm::Reduction reduction, int ranks, Index i) {
  double sum = 0, most = small_input(type, 0, i), any = 0, all = 1;
  for (int r = 0; r < ranks; ++r) {
    auto const x = small_input(type, r, i);
    sum += x;
    most = std::max(most, x);
    if (x != 0) any = 1;
    if (x == 0) all = 0;
  }
  switch (reduction) {
    case comm::Reduction::sum:
      return sum;
    case comm::Reduction::average:
      return sum / ranks;
    case comm::Reduction::max:
      return most;
    case comm::Reduction::logical_or:
      return any;
    default:
      return all;
  }
}

void reduces(comm::AnyCommunicator& c, ElementType type, Reduction reduction, Index count) {
  auto const ranks = c.size();
  Mirror data(c, type, count), wide(c, type, count * ranks);
  for (Index i = 0; i < count; ++i) data.elements().put(i, small_input(type, c.rank(), i));
  for (Index i = 0; i < count * ranks; ++i) wide.elements().put(i, small_input(type, c.rank(), i));
  data.up();
  wide.up();
  std::vector<double> scalars{1.0, c.rank() + 0.5};
  CollectiveOperation sum{type, data.at(0), count, reduction, scalars};
  c.start(sum);
  c.finish();
  data.down();
  for (Index i = 0; i < count; ++i)
    require(data.elements().get(i) == small_result(type, reduction, ranks, i), "all_reduce");
  require(scalars[0] == ranks && scalars[1] == ranks * ranks / 2.0, "scalars");
  CollectiveOperation scatter{.type = type,
                              .data = data.at(0),
                              .count = count,
                              .reduction = reduction,
                              .collective = Collective::reduce_scatter,
                              .in = wide.at(0)};
  c.start(scatter);
  c.wait(scatter);
  data.down();
  for (Index i = 0; i < count; ++i)
    require(data.elements().get(i) == small_result(type, reduction, ranks, c.rank() * count + i), "reduce_scatter");
}

void gathers_parts(comm::AnyCommunicator& c, Index unit, bool in_place) {
  std::vector<Index> counts;
  Index all = 0, before = 0;
  for (int r = 0; r < c.size(); ++r) {
    if (r == c.rank()) before = all;
    counts.push_back(r == 1 ? 0 : unit * (r + 1));
    all += counts.back();
  }
  auto const own = counts[static_cast<std::size_t>(c.rank())];
  Mirror out(c, ElementType::int32, all), in(c, ElementType::int32, own);
  auto& from = in_place ? out : in;
  for (Index i = 0; i < own; ++i)
    from.elements().put((in_place ? before : 0) + i, static_cast<double>(c.rank() * 1000 + i));
  in.up();
  out.up();
  CollectiveOperation operation{.type = ElementType::int32,
                                .data = out.at(0),
                                .collective = Collective::all_gather,
                                .in = in_place ? out.at(before) : in.at(0),
                                .counts = counts};
  c.start(operation);
  c.finish();
  out.down();
  Index at = 0;
  for (int r = 0; r < c.size(); ++r)
    for (Index i = 0; i < counts[static_cast<std::size_t>(r)]; ++i)
      require(out.elements().get(at++) == static_cast<double>(r * 1000 + i), "all_gather of unequal parts");
}

}  // namespace

TEST_CASE("NCCL supports every operation of every type, on device memory") {
  with_nccl([](comm::AnyCommunicator& c) {
    require(std::string(c.name()) == "nccl", "name");
    for (auto const type : all_types)
      for (auto const reduction : all_reductions)
        for (Index const count : {1, 31, 32, 33, 257})
          if (allowed(type, reduction)) reduces(c, type, reduction, count);
    for (Index const unit : {0, 1, 33})
      for (bool const in_place : {false, true}) gathers_parts(c, unit, in_place);
  });
}

TEST_CASE("invalid operations are refused, and the communicator remains usable") {
  with_nccl([](comm::AnyCommunicator& c) {
    impossible_pieces_are_refused(c);
    impossible_operations_are_refused(c);
    auto const device = c.allocate(16);
    float host[4] = {};
    CollectiveOperation mixed{.data = device.data(), .count = 1, .collective = Collective::all_gather, .in = host};
    refuses([&] { c.start(mixed); }, "must both be on the device, or both on the host");
    refuses([&] { (void)c.split(-1, 0); }, "the color is -1");
  });
}

TEST_CASE("host memory uses the host's engine") {
  with_nccl([](comm::AnyCommunicator& c) {
    work_is_waited_for(c);
    std::vector<float> x(1000, 1);
    auto const device = c.allocate(x.size() * sizeof(float));
    move_bytes(device.data(), x.data(), x.size() * sizeof(float));
    CollectiveOperation on_host{ElementType::float32, x.data(), 1000},
        on_device{ElementType::float32, device.data(), 1000};
    c.start(on_device);
    c.start(on_host);
    c.barrier();
    move_bytes(x.data() + 500, device.data(), 500 * sizeof(float));
    require(on_device.complete() && x[0] == static_cast<float>(c.size()) && x[999] == x[0], "both kinds at once");
  });
}

TEST_CASE("an operation begins after the work of its stream") {
  if (!has_gpu("comm::NcclCommunicator::follow")) return;
  for (int n = 1; n <= max_ranks; ++n)
    CHECK_NOTHROW(run_ranks(n, [](launch::World& world) {
      comm::NcclCommunicator nccl(world);
      lockstep::memory::CudaStream const stream;
      nccl.follow(stream.view());
      constexpr Index size = 4000, operations = 8;
      auto const memory = nccl.allocate(size * sizeof(float));
      TensorView<float, 1, CudaSpace> const x{reinterpret_cast<float*>(memory.data()), {size}};
      std::vector<float> host(size, static_cast<float>(world.rank + 1));
      move_bytes(x.data, host.data(), size * sizeof(float));
      std::vector<CollectiveOperation> started(operations);
      for (Index i = 0; i < operations; ++i) {
        TensorView<float, 1, CudaSpace> const part{x.data + i * 500, {500}};
        lockstep::kernel::BinaryOperation<CudaSpace>::forward<lockstep::kernel::Plus, float>(stream.view(), part, part,
                                                                                             part);
        started[static_cast<std::size_t>(i)] = {ElementType::float32, part.data, 500};
        nccl.start(started[static_cast<std::size_t>(i)]);
      }
      nccl.wait(started[3]);
      for (std::size_t i = 1; i < 4; ++i)
        require(started[i].complete() && started[i].finished_seconds >= started[i - 1].finished_seconds, "in order");
      nccl.finish();
      move_bytes(host.data(), x.data, size * sizeof(float));
      for (float const each : host)
        require(each == static_cast<float>(world.size * (world.size + 1)), "the doubles' sum");
    }));
}

TEST_CASE("operations started during a recording are executed with the recording") {
  if (!has_gpu("comm::NcclCommunicator in a graph")) return;
  for (int n = 1; n <= max_ranks; ++n)
    CHECK_NOTHROW(run_ranks(n, [](launch::World& world) {
      comm::NcclCommunicator nccl(world);
      lockstep::memory::CudaStream const stream;
      nccl.follow(stream.view());
      constexpr Index size = 300;
      auto const memory = nccl.allocate(2 * size * sizeof(float));
      auto* const x = reinterpret_cast<float*>(memory.data());
      std::vector<float> host(2 * size, static_cast<float>(world.rank + 1));
      move_bytes(x, host.data(), host.size() * sizeof(float));
      CollectiveOperation sum{ElementType::float32, x, size},
          last{.type = ElementType::float32, .data = x + size, .count = size, .collective = Collective::broadcast};
      last.root = world.size - 1;
      CollectiveOperation earlier{ElementType::float32, x, size};
      nccl.start(earlier);  // and is in progress
      lockstep::memory::CudaGraph const graph(stream.view(), [&] {
        nccl.start(sum);
        nccl.start(last);
        require(sum.complete() && last.complete(), "recorded");
        std::vector<double> scalars(1);
        CollectiveOperation with_scalars{ElementType::float32, x, size, Reduction::sum, scalars};
        refuses([&] { nccl.start(with_scalars); }, "cannot be recorded");
      });
      nccl.finish();
      int const times = 3;
      for (int i = 0; i < times; ++i) graph.launch(stream.view());
      stream.view().synchronize();
      CollectiveOperation plain{ElementType::float32, x, size};
      nccl.start(plain);
      nccl.finish();
      move_bytes(host.data(), x, host.size() * sizeof(float));
      auto expected = static_cast<float>(world.size * (world.size + 1) / 2);
      for (int i = 0; i <= times; ++i) expected *= static_cast<float>(world.size);
      for (std::size_t i = 0; i < size; ++i)
        require(host[i] == expected && host[size + i] == static_cast<float>(world.size), "as often as it was done");
    }));
}

TEST_CASE("memory is zeroed, and outlives the communicator") {
  if (!has_gpu("comm::NcclCommunicator::allocate")) return;
  for (int n = 1; n <= max_ranks; ++n)
    CHECK_NOTHROW(run_ranks(n, [](launch::World& world) {
      lockstep::memory::Block block;
      {
        comm::NcclCommunicator nccl(world);
        require(nccl.allocate(0).data() == nullptr, "no memory for no bytes");
        block = nccl.allocate(1000);
      }
      std::vector<std::byte> host(1000, std::byte{1});
      move_bytes(host.data(), block.data(), host.size());
      for (auto const each : host) require(each == std::byte{0}, "zeroed");
    }));
}

TEST_CASE("memory with pending work of a stream can be freed, as with cudaFree") {
  if (!has_gpu("comm::NcclCommunicator::allocate")) return;
  CHECK_NOTHROW(run_ranks(1, [](launch::World& world) {
    lockstep::memory::CudaStream const stream;
    comm::NcclCommunicator nccl(world);
    auto memory = nccl.allocate(1000);
    lockstep::memory::check_cuda(cudaMemsetAsync(memory.data(), 1, 1000, stream.view().get()), "cudaMemsetAsync");
    memory = {};
    stream.view().synchronize();
  }));
}

#if defined(LOCKSTEP_NCCL_EMULATION)

namespace {

nccl_emulation::Registry& nccl() { return nccl_emulation::Registry::instance(); }

/// Each rank's part of a failing run, and the ranks' error messages.
template <class Error, class Body>
std::vector<std::string> heard_by_ranks(int n, Body const& body, launch::Options const& options = {}) {
  std::mutex mutex;
  std::vector<std::string> recorder;
  CHECK_THROWS(run_ranks(
      n,
      [&](launch::World& world) {
        try {
          body(world);
        } catch (Error const& error) {
          std::lock_guard const lock(mutex);
          recorder.emplace_back(error.what());
          throw;
        }
      },
      options));
  return recorder;
}
bool message(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("no kernel is loaded on a GPU while NCCL may wait there for peers") {
  auto const loads = cuda_emulation::loads_beside_peers.load();
  with_nccl([](comm::AnyCommunicator& c) {
    for (auto const type : {ElementType::int32, ElementType::int64, ElementType::uint8})
      reduces(c, type, Reduction::logical_and, 33);
  });
  CHECK(cuda_emulation::loads_beside_peers == loads);
}

TEST_CASE("groups are split by NCCL, and nothing is left after them") {
  auto const aborted = nccl().aborted.load(), left = nccl().communicators - nccl().destroyed;
  with_nccl([](comm::AnyCommunicator& c) { groups_may_be_split(c); });
  CHECK(nccl().aborted == aborted);
  CHECK(nccl().communicators - nccl().destroyed == left);
  CHECK(nccl().communicators > 20);
  CHECK(nccl().registered == 0);
}

TEST_CASE("ranks on separate hosts connect through a store, and reduce with NCCL") {
  for (int const n : {1, 2, 4}) {
    CAPTURE(n);
    for (auto const& error : run_store_ranks(n, [](launch::World& world) {
           OwnDevice const device;
           comm::AnyCommunicator c(comm::NcclCommunicator{world});
           for (auto const type : {ElementType::float32, ElementType::int32})
             for (Index const count : {1, 257}) reduces(c, type, Reduction::sum, count);
           gathers_parts(c, 33, false);
           work_is_waited_for(c);
           groups_may_be_split(c);
         }))
      CHECK_NOTHROW(error ? std::rethrow_exception(error) : void());
  }
  auto const errors = run_store_ranks(2, [](launch::World& world) {
    OwnDevice const device;
    comm::NcclCommunicator c(world);
    auto const memory = c.allocate(64);
    CollectiveOperation operation{ElementType::float32, memory.data(), world.rank == 1 ? 7 : 8};
    c.start(operation);
    c.wait(operation);
  });
  for (auto const& error : errors) CHECK_THROWS_AS(std::rethrow_exception(error), lockstep::CollectiveMismatch);
}

TEST_CASE("a trainer's ranks use their assigned GPUs, and threads share none") {
  cuda_emulation::devices = 2;
  CHECK_NOTHROW(run_ranks(2, [](launch::World& world) {
    comm::AnyCommunicator c(lockstep::app::detail::connect_gpu<comm::NcclCommunicator>(world, 1 - world.rank));
    reduces(c, ElementType::float32, Reduction::sum, 33);
    int gpu = -1;
    lockstep::memory::check_cuda(cudaGetDevice(&gpu), "cudaGetDevice");
    require(gpu == 1 - world.rank, "the GPU is current");
  }));
  CHECK(std::getenv("NCCL_HOSTID") == nullptr);
  for (auto const& text : heard_by_ranks<lockstep::ConfigError>(
           2, [](launch::World& world) { (void)lockstep::app::detail::connect_gpu<comm::NcclCommunicator>(world, 1); }))
    CHECK(message(text, "no two threads of a process share a GPU; use --nproc"));
  cuda_emulation::devices = 1;
  for (auto const& error : run_store_ranks(2, [](launch::World& world) {  // as processes are
         OwnDevice const device;
         comm::AnyCommunicator c(lockstep::app::detail::connect_gpu<comm::NcclCommunicator>(world, 0));
         reduces(c, ElementType::float32, Reduction::sum, 33);
       }))
    CHECK_NOTHROW(error ? std::rethrow_exception(error) : void());
  CHECK(std::getenv("NCCL_HOSTID") != nullptr);
  ::unsetenv("NCCL_HOSTID");
}

TEST_CASE("ranks that disagree all learn it, and NCCL is aborted") {
  for (int const kind : {0, 1, 2, 3}) {
    CAPTURE(kind);
    auto const aborted = nccl().aborted.load();
    auto const recorder = heard_by_ranks<lockstep::CollectiveMismatch>(3, [kind](launch::World& world) {
      comm::NcclCommunicator c(world);
      auto const memory = c.allocate(64);
      bool const odd = world.rank == 1;
      CollectiveOperation operation{ElementType::float32, memory.data(), 8};
      if (odd && kind == 0) operation.count = 7;
      if (odd && kind == 1) operation.type = ElementType::int32;
      if (odd && kind == 2) operation.reduction = Reduction::max;
      if (odd && kind == 3) operation.collective = Collective::broadcast;
      c.start(operation);
      c.wait(operation);
    });
    REQUIRE(recorder.size() == 3);
    char const* const theirs[] = {"all_reduce of 7 float32 (sum", "all_reduce of 8 int32 (sum",
                                  "all_reduce of 8 float32 (max", "broadcast of 8 float32 from rank 0"};
    for (auto const& text : recorder) {
      CAPTURE(text);
      CHECK(message(text, "rank 1 "));
      CHECK(message(text, "NCCL's operation 0"));
      CHECK(message(text, "all_reduce of 8 float32 (sum, 0 piggybacked scalars)"));
      CHECK(message(text, theirs[kind]));
    }
    CHECK(nccl().aborted == aborted + 3);
  }
}

TEST_CASE("a missing rank causes a warning and then an error with its name, at the start and later") {
  for (bool const at_start : {true, false}) {
    CAPTURE(at_start);
    launch::Options options{.limits = {.warn_seconds = 0.05, .stall_seconds = 0.2}};
    std::mutex mutex;
    std::string warnings;
    options.warn = [&](std::string const& text) {
      std::lock_guard const lock(mutex);
      warnings += text + "\n";
    };
    std::atomic<bool> over{false};
    auto const recorder = heard_by_ranks<lockstep::RankStalled>(
        2,
        [&](launch::World& world) {
          auto const wait = [&] {
            while (world.rank == 1 && !over) std::this_thread::yield();
          };
          try {
            if (at_start) wait();
            if (at_start && world.rank == 1) return;
            comm::NcclCommunicator c(world);
            auto const memory = c.allocate(64);
            wait();
            if (world.rank == 1) return;
            CollectiveOperation operation{ElementType::float32, memory.data(), 8};
            c.start(operation);
            c.finish();
          } catch (...) {
            over = true;
            throw;
          }
        },
        options);
    REQUIRE(recorder.size() == 1);
    CHECK(message(recorder[0], "for rank 1"));
    CHECK(message(warnings, "for rank 1"));
    CHECK(message(recorder[0], "NCCL's operation 0 (all_reduce of 8 float32 (sum, 0 piggybacked scalars))") ==
          !at_start);
  }
}

TEST_CASE("a rank lost during or after NCCL's work is named by the others") {
  enum class End { throws, throws_late, returns };
  for (auto const end : {End::throws, End::throws_late, End::returns}) {
    CAPTURE(static_cast<int>(end));
    std::atomic<int> started{0};
    auto const recorder = heard_by_ranks<lockstep::RankLost>(3, [&](launch::World& world) {
      comm::NcclCommunicator c(world);
      auto const memory = c.allocate(64);
      CollectiveOperation operation{ElementType::float32, memory.data(), 8};
      nccl_emulation::dead() = world.rank == 1;
      c.start(operation);
      ++started;
      while (world.rank == 1 && started < 3) std::this_thread::yield();
      if (world.rank != 1) return c.wait(operation);
      if (end == End::returns) return;
      if (end == End::throws_late) {  // NCCL knows first
        nccl().failure = ncclRemoteError;
        ::usleep(50'000);
      }
      throw std::domain_error("the GPU is on fire");
    });
    nccl().failure = ncclSuccess;
    REQUIRE(recorder.size() == 2);
    for (auto const& text : recorder) {
      CAPTURE(text);
      CHECK(message(text, end == End::returns ? "rank 1 has ended its work" : "rank 1 failed: the GPU is on fire"));
      CHECK(message(text, "NCCL's operation 0 (all_reduce of 8 float32 (sum, 0 piggybacked scalars)"));
    }
  }
}

TEST_CASE("freeing memory during an operation, its own or another, waits for no rank, and aborts NCCL") {
  for (bool const own : {true, false}) {
    CAPTURE(own);
    auto const aborted = nccl().aborted.load();
    auto const frees = cuda_emulation::frees_beside_peers.load();
    std::atomic<bool> joined{false}, over{false};
    auto const recorder = heard_by_ranks<lockstep::CommunicationError>(2, [&](launch::World& world) {
      comm::NcclCommunicator c(world);
      if (world.rank == 1) joined = true;
      while (world.rank == 1 && !over) std::this_thread::yield();
      if (world.rank == 1) return;
      while (!joined) std::this_thread::yield();
      auto const kept = c.allocate(64);
      auto memory = c.allocate(64);
      CollectiveOperation operation{ElementType::float32, own ? memory.data() : kept.data(), 8};
      c.start(operation);
      memory = {};
      over = true;
      c.wait(operation);
    });
    REQUIRE(recorder.size() == 1);
    CHECK(message(recorder[0], " has left NCCL's operation 0 (all_reduce of 8 float32"));
    CHECK(nccl().aborted == aborted + 1);
    CHECK(cuda_emulation::frees_beside_peers == frees);
  }
}

TEST_CASE(
    "a rank that has recorded operations and leaves waits neither for peers nor for the recording, and aborts NCCL") {
  for (bool const abandons : {false, true}) {
    CAPTURE(abandons);
    auto const aborted = nccl().aborted.load();
    std::atomic<int> left{0};
    CHECK_NOTHROW(run_ranks(2, [&](launch::World& world) {
      lockstep::memory::CudaStream const stream;
      lockstep::memory::CudaGraph graph;
      {
        comm::NcclCommunicator c(world);
        c.follow(stream.view());
        auto const memory = c.allocate(64);
        CollectiveOperation sum{ElementType::float32, memory.data(), 8};
        graph = lockstep::memory::CudaGraph(stream.view(), [&] { c.start(sum); });
        if (abandons && world.rank == 0) {
          graph.launch(stream.view());
          c.abandon();
          stream.view().synchronize();
        }
        ++left;
        while (left < 2) std::this_thread::yield();
      }
    }));
    while (nccl().aborted < aborted + 2) std::this_thread::yield();  // concurrently
  }
}

TEST_CASE("ranks that fail while they record learn why, and wait neither for NCCL nor for their recording") {
  for (bool const busy : {false, true}) {
    CAPTURE(busy);
    auto const aborted = nccl().aborted.load();
    std::atomic<int> ready{0};
    auto const recorder = heard_by_ranks<lockstep::CommunicationError>(
        2,
        [&](launch::World& world) {
          comm::NcclCommunicator c(world);
          lockstep::memory::CudaStream const stream;
          auto const memory = c.allocate(64);
          CollectiveOperation operation{ElementType::float32, memory.data(), 8}, other = operation, odd = operation;
          odd.count = world.rank + 1;
          c.follow(stream.view());
          ++ready;
          while (ready < 2) std::this_thread::yield();
          if (busy) nccl().failure = ncclInProgress;
          if (busy) c.start(other);
          lockstep::memory::CudaGraph const graph(stream.view(), [&] {
            c.start(operation);
            c.start(odd);
          });
        },
        {.limits = {.stall_seconds = 1}});
    nccl().failure = ncclSuccess;
    REQUIRE(recorder.size() == 2);
    for (auto const& text : recorder) {
      CAPTURE(text);
      CHECK(message(text, busy ? " s in NCCL's operation 0 (" : "all_reduce of 2 float32"));
    }
    while (nccl().aborted < aborted + 2) std::this_thread::yield();
  }
}

TEST_CASE("ranks use the GPUs of their host in turn, by their local rank") {
  cuda_emulation::devices = 2;
  launch::World world;
  world.local_rank = 3;
  comm::NcclCommunicator const c(world);
  CHECK(c.gpu() == 1);
  cuda_emulation::devices = 1;
  cuda_emulation::current_device = 0;
}

TEST_CASE("memory that NCCL cannot register is freed") {
  auto const recorder = heard_by_ranks<lockstep::CommunicationError>(1, [&](launch::World& world) {
    comm::NcclCommunicator c(world);
    nccl().failure = ncclRemoteError;
    auto const memory = c.allocate(64);
  });
  nccl().failure = ncclSuccess;
  REQUIRE(recorder.size() == 1);
  CHECK(message(recorder[0], "ncclCommRegister"));
}

TEST_CASE("a failed split aborts NCCL before it throws, recorded or not, and later calls throw again") {
  for (bool const records : {false, true}) {
    CAPTURE(records);
    auto const aborted = nccl().aborted.load();
    auto const recorder = heard_by_ranks<lockstep::CommunicationError>(1, [&](launch::World& world) {
      comm::NcclCommunicator c(world);
      lockstep::memory::CudaStream const stream;
      auto const memory = c.allocate(64);
      CollectiveOperation operation{ElementType::float32, memory.data(), 8};
      c.follow(stream.view());
      lockstep::memory::CudaGraph graph;
      if (records) graph = lockstep::memory::CudaGraph(stream.view(), [&] { c.start(operation); });
      nccl().failure = ncclRemoteError;
      try {
        (void)c.split(0, 0);
      } catch (lockstep::CommunicationError const& error) {
        nccl().failure = ncclSuccess;
        require(nccl().aborted > aborted, "NCCL still writes to what is gone");
        c.start(operation);
        try {
          c.wait(operation);
        } catch (lockstep::CommunicationError const& again) {
          require(std::string(error.what()) == again.what(), "the same again");
          throw;
        }
      }
    });
    nccl().failure = ncclSuccess;
    REQUIRE(recorder.size() == 1);
    CHECK(message(recorder[0], "ncclCommSplit"));
  }
}

TEST_CASE("NCCL's own errors are thrown when a rank waits, repeatedly") {
  std::atomic<int> ready{0};
  auto const recorder = heard_by_ranks<lockstep::CommunicationError>(2, [&](launch::World& world) {
    comm::NcclCommunicator c(world);
    auto const memory = c.allocate(64);
    CollectiveOperation operation{ElementType::float32, memory.data(), 8};
    ++ready;
    while (ready < 2) std::this_thread::yield();
    nccl().failure = ncclRemoteError;
    c.start(operation);
    std::string first;
    try {
      c.wait(operation);
    } catch (lockstep::CommunicationError const& error) {
      first = error.what();
    }
    nccl().failure = ncclSuccess;
    try {
      c.finish();
    } catch (lockstep::CommunicationError const& error) {
      require(first == error.what(), "the same again");
      throw;
    }
  });
  nccl().failure = ncclSuccess;
  REQUIRE(!recorder.empty());
  CHECK(message(recorder[0], "remote process exited or there was a network error"));
  CHECK(message(recorder[0], "which one is not determined"));
}

#endif
