// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The part of NCCL that Lockstep uses, on the host, between threads with one emulated device each: names, types and
/// rules are NCCL's. Calls do not wait: the communicator is busy for some queries afterwards, at first until all ranks
/// have requested something, and refuses all other calls meanwhile. Waits for a peer that is missing, calls another
/// operation or has aborted never end and print nothing, on the stream.
#include <cuda_runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>

#define LOCKSTEP_NCCL_EMULATION
#define NCCL_VERSION_CODE 22809
#define NCCL_CONFIG_INITIALIZER \
  { INT_MIN }

enum ncclResult_t {
  ncclSuccess = 0,
  ncclUnhandledCudaError = 1,
  ncclSystemError = 2,
  ncclInternalError = 3,
  ncclInvalidArgument = 4,
  ncclInvalidUsage = 5,
  ncclRemoteError = 6,
  ncclInProgress = 7,
};
inline ncclResult_t ncclGetVersion(int* version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }
enum ncclDataType_t {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,
};
enum ncclRedOp_t { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 };
struct ncclUniqueId {
  char internal[128];
};
struct ncclConfig_t {
  int blocking;
};

namespace nccl_emulation {

enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast };

/// One operation of a group, executed when the ranks' streams reach it.
struct Exchange {
  struct Asked {
    Kind kind;
    std::size_t count;
    ncclDataType_t type;
    ncclRedOp_t operation;
    int root;
    bool operator==(Asked const&) const = default;
  };
  explicit Exchange(std::size_t ranks) : asked(ranks), inputs(ranks) {}

  [[nodiscard]] bool complete() {
    std::lock_guard const lock(mutex);
    for (auto const& each : asked)
      if (each != asked[0]) return false;
    return arrived == asked.size();
  }

  std::mutex mutex;
  std::vector<Asked> asked;
  std::vector<std::vector<std::byte>> inputs;
  std::size_t arrived = 0;
};

/// State that the ranks of a communicator share.
struct Group {
  explicit Group(int ranks) : size(ranks) {}
  std::shared_ptr<Exchange> exchange(std::uint64_t number) {
    std::lock_guard const lock(mutex);
    auto& at = exchanges[number];
    if (!at) at = std::make_shared<Exchange>(static_cast<std::size_t>(size));
    return at;
  }
  int const size;
  std::mutex mutex;
  int joined = 0;
  std::atomic<int> connected{0};  // ranks that have requested something
  std::map<std::uint64_t, std::shared_ptr<Exchange>> exchanges;
  std::vector<std::tuple<int, int, int>> split;  // color, key, rank
  std::map<int, std::shared_ptr<Group>> parts;   // by color
};

/// State that outlives a call.
struct Registry {
  static Registry& instance() {
    static Registry registry;
    return registry;
  }
  std::mutex mutex;
  std::uint64_t ids = 0;
  std::map<std::uint64_t, std::shared_ptr<Group>> groups;
  std::atomic<ncclResult_t> failure{ncclSuccess};  // the error that every communicator reports from now on
  std::atomic<int> aborted{0}, destroyed{0}, communicators{0}, registered{0};
};

inline std::size_t size_of(ncclDataType_t type) {
  return std::array<std::size_t, 10>{1, 1, 4, 4, 8, 8, 2, 4, 8, 2}[type];
}

/// In the order of ranks; sums are rounded to the type at every step.
template <class T>
void combine(Exchange const& x, std::size_t from, std::byte* to) {
  auto const& asked = x.asked[0];
  auto const at = [&](std::size_t rank, std::size_t i) {
    T out;
    std::memcpy(&out, x.inputs[rank].data() + (from + i) * sizeof(T), sizeof(T));
    return out;
  };
  using A = lockstep::Accumulate<T>;
  for (std::size_t i = 0; i < asked.count; ++i) {
    T sum = at(0, i);
    for (std::size_t r = 1; r < x.inputs.size(); ++r) {
      A const a = static_cast<A>(sum), b = static_cast<A>(at(r, i));
      sum = static_cast<T>(asked.operation == ncclMax   ? std::max(a, b)
                           : asked.operation == ncclMin ? std::min(a, b)
                                                        : a + b);
    }
    if (asked.operation == ncclAvg) sum = static_cast<T>(static_cast<A>(sum) / static_cast<A>(x.inputs.size()));
    std::memcpy(to + i * sizeof(T), &sum, sizeof sum);
  }
}
inline void combine(Exchange const& x, std::size_t from, std::byte* to) {
  switch (x.asked[0].type) {
    case ncclUint8:
      return combine<std::uint8_t>(x, from, to);
    case ncclInt32:
      return combine<std::int32_t>(x, from, to);
    case ncclUint32:
      return combine<std::uint32_t>(x, from, to);
    case ncclInt64:
      return combine<std::int64_t>(x, from, to);
    case ncclUint64:
      return combine<std::uint64_t>(x, from, to);
    case ncclFloat16:
      return combine<lockstep::float16>(x, from, to);
    case ncclBfloat16:
      return combine<lockstep::bfloat16>(x, from, to);
    case ncclFloat32:
      return combine<float>(x, from, to);
    case ncclFloat64:
      return combine<double>(x, from, to);
    case ncclInt8:
      break;
  }
  std::abort();
}

inline void give(Exchange const& x, std::size_t rank, std::byte* to) {
  auto const& asked = x.asked[rank];
  if (asked.kind == Kind::all_reduce) return combine(x, 0, to);
  if (asked.kind == Kind::reduce_scatter) return combine(x, rank * asked.count, to);
  std::size_t place = 0;
  for (std::size_t r = 0; r < x.inputs.size(); ++r) {
    if (asked.kind == Kind::broadcast && r != static_cast<std::size_t>(asked.root)) continue;
    std::memcpy(to + place, x.inputs[r].data(), x.inputs[r].size());
    place += x.inputs[r].size();
  }
}

}  // namespace nccl_emulation

struct ncclComm {
  std::shared_ptr<nccl_emulation::Group> group;
  int rank = 0;
  std::shared_ptr<std::uint64_t> operations = std::make_shared<std::uint64_t>(0);  // that its stream has reached
  std::uint64_t calls = 0;
  int looks = 0;  // for how many more queries the communicator is busy
  bool finalized = false;
  std::shared_ptr<int> recordings = std::make_shared<int>();  // each recording refers to the communicator
  int device = cuda_emulation::current_device;                // by number
  std::shared_ptr<std::atomic<bool>> aborted = std::make_shared<std::atomic<bool>>(false);
};
using ncclComm_t = ncclComm*;

namespace nccl_emulation {

inline int& open_groups() {
  thread_local int groups = 0;
  return groups;
}

/// Whether the calling thread's device has stopped serving others.
inline bool& dead() {
  thread_local bool is_dead = false;
  return is_dead;
}

/// Whether the rank's first operation waits for ranks without a request: ranks are connected then.
inline bool connects(ncclComm_t c) { return c->calls > 0 && c->group->connected < c->group->size; }
/// A call on a busy communicator is an error of the caller.
inline bool busy(ncclComm_t c) {
  return c->group->joined < c->group->size || ((c->looks > 0 || connects(c)) && open_groups() == 0);
}

/// Whether this many bytes are memory that the communicator's device can access.
inline bool reaches(ncclComm_t c, void const* memory, std::size_t bytes) {
  auto const block = cuda_emulation::Memory::instance().find(memory);
  if (!block || !block->holds(memory, bytes)) return false;
  return block->on_host || (block->device == &cuda_emulation::Device::instance() && block->number == c->device);
}

inline ncclResult_t ask(ncclComm_t c, Exchange::Asked asked, void const* in, void* out, cudaStream_t stream) {
  if (busy(c) || c->finalized) return ncclInvalidUsage;
  auto const rank = static_cast<std::size_t>(c->rank);
  auto const parts = asked.kind == Kind::reduce_scatter ? static_cast<std::size_t>(c->group->size) : 1;
  auto const bytes = asked.count * size_of(asked.type) * parts;
  auto const written = asked.kind == Kind::all_gather       ? bytes * static_cast<std::size_t>(c->group->size)
                       : asked.kind == Kind::reduce_scatter ? bytes / parts
                                                            : bytes;
  bool const gives = asked.kind != Kind::broadcast || asked.root == c->rank;
  if (stream && stream->device != c->device) return ncclInvalidArgument;
  if (!reaches(c, out, written) || (gives && !reaches(c, in, bytes))) return ncclInvalidArgument;
  auto const aborted = c->aborted;
  auto const now = std::make_shared<std::shared_ptr<Exchange>>();  // a recorded operation is a new one each time
  auto const recording = stream && stream->capture ? c->recordings : nullptr;
  auto const arrive = [=, group = c->group, operations = c->operations] {
    static_cast<void>(recording);
    if (*aborted || dead()) return;
    auto const x = *now = group->exchange((*operations)++);
    std::lock_guard const lock(x->mutex);
    auto const* const from = static_cast<std::byte const*>(in);
    if (gives) x->inputs[rank].assign(from, from + bytes);
    x->asked[rank] = asked;
    ++x->arrived;
  };
  auto const leave = [=] {
    if (!*aborted && !dead()) give(**now, rank, static_cast<std::byte*>(out));
  };
  auto& device = cuda_emulation::Device::instance();
  device.push(stream, {arrive, nullptr, 0, {}, {}, in, out});
  device.push(stream, {leave, nullptr, 0, [=] { return *aborted || dead() || (*now)->complete(); }, {}, in, out});
  if (c->calls == 0) ++c->group->connected;
  c->looks = static_cast<int>(++c->calls % 3);
  return busy(c) ? ncclInProgress : ncclSuccess;
}

}  // namespace nccl_emulation

namespace nccl_emulation {
/// Busy for two queries.
inline ncclComm_t joined(std::shared_ptr<Group> group, int rank) {
  auto* const c = new ncclComm;
  c->group = std::move(group);
  c->rank = rank;
  c->looks = 2;
  return c;
}
}  // namespace nccl_emulation

inline char const* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError    ? "remote process exited or there was a network error"
         : result == ncclInvalidUsage ? "invalid usage"
                                      : "unhandled system error";
}
inline char const* ncclGetLastError(ncclComm_t) { return ""; }

inline ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  auto& registry = nccl_emulation::Registry::instance();
  std::lock_guard const lock(registry.mutex);
  auto const number = ++registry.ids;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}
inline ncclResult_t ncclCommInitRankConfig(ncclComm_t* to, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  auto& registry = nccl_emulation::Registry::instance();
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  std::lock_guard const lock(registry.mutex);
  auto& group = registry.groups[number];
  if (!group) group = std::make_shared<nccl_emulation::Group>(ranks);
  std::lock_guard const lock_group(group->mutex);
  ++group->joined;
  ++registry.communicators;
  *to = joined(group, rank);
  return ncclInProgress;
}
inline ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t* state) {
  auto const failure = nccl_emulation::Registry::instance().failure.load();
  std::lock_guard const lock(c->group->mutex);
  bool const waits = c->group->joined < c->group->size || nccl_emulation::connects(c);
  if (!waits && c->looks > 0) --c->looks;
  *state = failure != ncclSuccess ? failure : waits || c->looks > 0 ? ncclInProgress : ncclSuccess;
  return ncclSuccess;
}
inline ncclResult_t ncclCommFinalize(ncclComm_t c) {
  if (nccl_emulation::busy(c) || c->finalized) return ncclInvalidUsage;
  if (c->recordings.use_count() > 1)
    cuda_emulation::refuse_to_go_on("a communicator of recordings is finalized, which waits until they are gone");
  c->finalized = true;
  c->looks = 2;
  return ncclInProgress;
}
inline ncclResult_t ncclCommDestroy(ncclComm_t c) {
  if (!c->finalized || c->looks > 0) return ncclInvalidUsage;
  ++nccl_emulation::Registry::instance().destroyed;
  return delete c, ncclSuccess;
}
/// Waits until recordings are destroyed, as NCCL does: forever, if their owner calls it.
inline ncclResult_t ncclCommAbort(ncclComm_t c) {
  *c->aborted = true;
  ++nccl_emulation::Registry::instance().aborted;
  for (int looks = 0; c->recordings.use_count() > 1; ++looks) {
    if (looks == 10'000)
      cuda_emulation::refuse_to_go_on("a communicator of recordings is aborted, which waits for them");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return delete c, ncclSuccess;
}
/// All ranks have called this before any rank's part is available: this waits for them, which NCCL does in the
/// background.
inline ncclResult_t ncclCommSplit(ncclComm_t c, int color, int key, ncclComm_t* to, ncclConfig_t* config) {
  if (nccl_emulation::busy(c) || config->blocking != 0) return ncclInvalidUsage;
  auto& group = *c->group;
  std::unique_lock lock(group.mutex);
  auto const rounds = group.split.size() / static_cast<std::size_t>(group.size);
  group.split.emplace_back(color, key, c->rank);
  auto const all = (rounds + 1) * static_cast<std::size_t>(group.size);
  while (group.split.size() < all) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  std::vector<std::pair<int, int>> mine;
  for (auto i = all - static_cast<std::size_t>(group.size); i < all; ++i)
    if (std::get<0>(group.split[i]) == color)
      mine.emplace_back(std::get<1>(group.split[i]), std::get<2>(group.split[i]));
  std::sort(mine.begin(), mine.end());
  int rank = 0;
  while (mine[static_cast<std::size_t>(rank)].second != c->rank) ++rank;
  auto& part = group.parts[static_cast<int>(rounds) * 1000 + color];
  if (!part) part = std::make_shared<nccl_emulation::Group>(static_cast<int>(mine.size()));
  std::lock_guard const lock_part(part->mutex);
  ++part->joined;
  ++nccl_emulation::Registry::instance().communicators;
  *to = joined(part, rank);
  c->looks = 2;
  return ncclInProgress;
}

inline ncclResult_t ncclMemAlloc(void** to, std::size_t bytes) {
  return cudaMalloc(to, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
/// Unmaps memory at once, even during use.
inline ncclResult_t ncclMemFree(void* memory) {
  auto const block = cuda_emulation::Memory::instance().find(memory);
  if (block && block->device->has_work(block->number))
    cuda_emulation::refuse_to_go_on("memory of NCCL's is given back while the device may work on it");
  return cudaFree(memory) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
inline ncclResult_t ncclCommRegister(ncclComm_t c, void* memory, std::size_t, void** handle) {
  if (nccl_emulation::busy(c)) return ncclInvalidUsage;
  ++nccl_emulation::Registry::instance().registered;
  return *handle = memory, ncclSuccess;
}
inline ncclResult_t ncclCommDeregister(ncclComm_t c, void*) {
  if (nccl_emulation::busy(c)) cuda_emulation::refuse_to_go_on("memory is deregistered while NCCL is busy");
  --nccl_emulation::Registry::instance().registered;
  return ncclSuccess;
}

inline ncclResult_t ncclGroupStart() { return ++nccl_emulation::open_groups(), ncclSuccess; }
inline ncclResult_t ncclGroupEnd() { return --nccl_emulation::open_groups(), ncclInProgress; }

inline ncclResult_t ncclAllReduce(void const* in, void* out, std::size_t count, ncclDataType_t type, ncclRedOp_t how,
                                  ncclComm_t c, cudaStream_t stream) {
  return nccl_emulation::ask(c, {nccl_emulation::Kind::all_reduce, count, type, how, 0}, in, out, stream);
}
inline ncclResult_t ncclReduceScatter(void const* in, void* out, std::size_t count, ncclDataType_t type,
                                      ncclRedOp_t how, ncclComm_t c, cudaStream_t stream) {
  return nccl_emulation::ask(c, {nccl_emulation::Kind::reduce_scatter, count, type, how, 0}, in, out, stream);
}
inline ncclResult_t ncclAllGather(void const* in, void* out, std::size_t count, ncclDataType_t type, ncclComm_t c,
                                  cudaStream_t stream) {
  return nccl_emulation::ask(c, {nccl_emulation::Kind::all_gather, count, type, ncclSum, 0}, in, out, stream);
}
inline ncclResult_t ncclBroadcast(void const* in, void* out, std::size_t count, ncclDataType_t type, int root,
                                  ncclComm_t c, cudaStream_t stream) {
  return nccl_emulation::ask(c, {nccl_emulation::Kind::broadcast, count, type, ncclSum, root}, in, out, stream);
}
