// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

struct CUstream_st;

namespace cuda_emulation {

/// How often an event was recorded, and how many of the records the streams have reached.
struct Event {
  std::uint64_t recorded = 0, reached = 0;
  std::uint64_t when = 0;  // it was reached, in operations
};

/// A stream's operation, after `event`, if any, has reached `mark`, and after `ready()`, if it waits for another
/// device.
struct Work {
  std::function<void()> run;
  std::shared_ptr<Event> event;
  std::uint64_t mark = 0;
  std::function<bool()> ready = {};
  std::shared_ptr<Event> marks = {};          // recorded again each time that the operation is queued
  void const *from = nullptr, *to = nullptr;  // memory of a copy, or of an NCCL operation
  std::shared_ptr<Event> awaits = {};         // waited for, as it was recorded last
};

/// Captured operations: of the captured stream, and of streams that wait for it meanwhile.
struct Capture {
  struct Branch {
    CUstream_st* stream;
    std::size_t pieces = 0, joined = 0;  // its own, and how many of these the first stream waits for
  };
  struct Piece {
    std::size_t branch;
    Work work;
  };
  std::vector<Branch> branches;
  std::vector<Piece> pieces = {};  // in the order in which they were queued
  bool invalidated = false;        // by a call that is not allowed during a capture

  [[nodiscard]] bool is_joined() const {
    return std::all_of(branches.begin() + 1, branches.end(), [](auto const& b) { return b.joined == b.pieces; });
  }
};

/// For undefined behaviour of CUDA: the program ends.
[[noreturn]] inline void refuse_to_go_on(std::string const& why) {
  std::fprintf(stderr, "CUDA emulation: %s\n", why.c_str());
  std::abort();
}

}  // namespace cuda_emulation

/// The stream's pending operations or, during a capture, the captured ones.
struct CUstream_st {
  int device = 0;  // by number
  std::deque<cuda_emulation::Work> work = {};
  std::shared_ptr<cuda_emulation::Capture> capture = {};
  std::size_t branch = 0;                 // branch of the capture
  std::vector<CUstream_st*> beside = {};  // for the branches of graphs that are launched here
  int priority = 0;                       // any order is arbitrary, so execution order changes nothing
};

namespace cuda_emulation {

/// Dynamic shared memory per block that a kernel may use unless cudaFuncSetAttribute allows more.
inline constexpr std::size_t default_shared_bytes = std::size_t{48} << 10;

/// The streams of a device that is as late and as unfair as CUDA allows. Nothing is executed before a wait, and then
/// streams run in an arbitrary order, equal in every run. So unguarded reuse of memory tends to be found.
class Device {
 public:
  /// The stream that all threads share, unless the calling thread has its own.
  static Device& instance() {
    static Device device;
    return of_thread() ? *of_thread() : device;
  }
  static Device*& of_thread() noexcept {
    thread_local Device* device = nullptr;
    return device;
  }
  Device() : streams_{&default_} {}
  Device(Device const&) = delete;
  Device& operator=(Device const&) = delete;

  [[nodiscard]] CUstream_st& of(CUstream_st* stream) noexcept { return stream ? *stream : default_; }

  CUstream_st* add_stream(int device) {
    std::lock_guard const lock(mutex_);
    streams_.push_back(new CUstream_st{.device = device});
    return streams_.back();
  }
  void remove(CUstream_st* stream) {
    std::lock_guard const lock(mutex_);
    if (!stream->work.empty()) refuse_to_go_on("a stream is destroyed before its work is done");
    for (auto* const each : stream->beside) remove(each);
    std::erase(streams_, stream);
    delete stream;
  }
  void push(CUstream_st* stream, Work work) {
    std::lock_guard const lock(mutex_);
    auto& to = of(stream);
    if (to.capture) {
      to.capture->branches[to.branch].pieces += work.marks == nullptr;
      return to.capture->pieces.push_back({to.branch, std::move(work)});
    }
    if (work.marks) return record(stream, work.marks);
    if (work.awaits) return wait(stream, work.awaits);
    to.work.push_back(std::move(work));
  }
  /// Queues captured operations on the stream and on hidden streams.
  void push(CUstream_st* stream, std::vector<Capture::Piece> const& pieces) {
    std::lock_guard const lock(mutex_);
    auto& first = of(stream);
    for (auto const& [branch, work] : pieces) {
      while (first.beside.size() < branch) first.beside.push_back(add_stream(first.device));
      push(branch == 0 ? stream : first.beside[branch - 1], work);
    }
  }
  void finish(CUstream_st& stream) {
    run_until([&] { return stream.work.empty(); });
  }
  /// Whether a stream with that number has pending operations.
  [[nodiscard]] bool has_work(int number) {
    std::lock_guard const lock(mutex_);
    return std::any_of(streams_.begin(), streams_.end(),
                       [=](auto const* stream) { return stream->device == number && !stream->work.empty(); });
  }
  /// Runs all streams with that number, and others only as far as these wait for them. Calls waits(), once, if this
  /// would wait for another device, which may never come.
  template <class Waits>
  void finish_all(int number, Waits const& waits) {
    std::lock_guard const lock(mutex_);
    auto const left = [=](CUstream_st const* stream) { return stream->device == number && !stream->work.empty(); };
    auto const ready = [&](CUstream_st const* stream) { return left(stream) && can_go_on(stream); };
    bool waited = false;
    while (std::any_of(streams_.begin(), streams_.end(), left)) {
      auto const own = std::find_if(streams_.begin(), streams_.end(), ready);
      if (auto* const stream = own != streams_.end() ? *own : choose())
        run_one(*stream);
      else if (waits_for_another_device())
        std::exchange(waited, true) ? std::this_thread::yield() : waits();
      else
        refuse_to_go_on("a stream waits for an event that nothing will reach");
    }
  }
  void finish(Event const& event) {
    std::lock_guard const lock(mutex_);
    run_until([&, mark = event.recorded] { return event.reached >= mark; });
  }
  void record(CUstream_st* stream, std::shared_ptr<Event> const& event) {
    std::lock_guard const lock(mutex_);
    auto const mark = ++event->recorded;
    push(stream, {[this, event, mark] { event->reached = mark, event->when = now_; }, nullptr});
  }
  void wait(CUstream_st* stream, std::shared_ptr<Event> const& event) {
    std::lock_guard const lock(mutex_);
    push(stream, {{}, event, event->recorded});
  }
  /// A query: a device may have progressed meanwhile.
  [[nodiscard]] bool has_reached(Event const& event) {
    std::lock_guard const lock(mutex_);
    if (auto* const stream = choose()) run_one(*stream);
    return event.reached == event.recorded;
  }

  /// Returns the number of operations between two events; negative if one has not been reached.
  [[nodiscard]] double between(Event const& begin, Event const& end) {
    std::lock_guard const lock(mutex_);
    bool const reached = begin.reached == begin.recorded && end.reached == end.recorded;
    return reached ? static_cast<double>(end.when - begin.when) : -1;
  }

  void begin_capture(CUstream_st& stream) {
    std::lock_guard const lock(mutex_);
    stream.capture = std::make_shared<Capture>(Capture{.branches = {{&stream}}});
    stream.branch = 0;
    captured() = &stream;
  }
  /// Returns the captured operations; null without any.
  std::shared_ptr<Capture> end_capture(CUstream_st& stream) {
    std::lock_guard const lock(mutex_);
    auto const capture = stream.capture;
    if (!capture) return nullptr;
    for (auto const& branch : capture->branches) branch.stream->capture = nullptr;
    if (captured() == &stream) captured() = nullptr;
    return capture;
  }
  /// An event of a capture.
  struct Captured {
    std::weak_ptr<Capture> capture;
    std::size_t branch, pieces;
    std::shared_ptr<Event> event = std::make_shared<Event>();
  };
  Captured record_captured(CUstream_st& stream) {
    std::lock_guard const lock(mutex_);
    Captured const captured{stream.capture, stream.branch, stream.capture->branches[stream.branch].pieces};
    Work work;
    work.marks = captured.event;
    return push(&stream, std::move(work)), captured;
  }
  /// The stream belongs to the capture from now on.
  void wait_captured(CUstream_st& stream, Captured const& event, std::shared_ptr<Capture> const& capture) {
    std::lock_guard const lock(mutex_);
    if (!stream.capture) {
      stream.capture = capture;
      stream.branch = capture->branches.size();
      capture->branches.push_back({&stream});
    }
    Work work;
    work.awaits = event.event;
    push(&stream, std::move(work));
    if (stream.branch != 0) return;
    auto& joined = capture->branches[event.branch].joined;
    joined = std::max(joined, event.pieces);
  }
  /// Called if any thread waits for all streams of a device, or for this one: that invalidates the capture.
  [[nodiscard]] bool spoils_capture_of(int device, CUstream_st const* only = nullptr) {
    std::lock_guard const lock(mutex_);
    bool any = false;
    for (auto* const stream : streams_)
      if (stream->capture && stream->device == device && (!only || stream == only))
        stream->capture->invalidated = any = true;
    return any;
  }
  /// Whether a copy is queued from or to [begin, begin + bytes), on a stream with another number.
  [[nodiscard]] bool copies(std::byte const* begin, std::size_t bytes, int other_than = -1) {
    std::lock_guard const lock(mutex_);
    auto const within = [=](void const* at) { return at >= begin && at < begin + bytes; };
    for (auto const* const stream : streams_)
      for (auto const& work : stream->work)
        if (stream->device != other_than && (within(work.from) || within(work.to))) return true;
    return false;
  }
  /// Called if a kernel is launched or requested on the device with that number. Whether this loads it there, for which
  /// CUDA may wait for all streams, while one of them has work that waits for another device.
  [[nodiscard]] bool loads_beside_another_device(int number, std::uintptr_t kernel) {
    std::lock_guard const lock(mutex_);
    if (!loaded_.emplace(number, kernel).second) return false;
    for (auto const* const stream : streams_)
      for (auto const& work : stream->work)
        if (work.ready) return true;
    return false;
  }

  /// Allows the kernel that many bytes of dynamic shared memory per block, on the device with that number.
  void allow_shared(int number, std::uintptr_t kernel, std::size_t bytes) {
    std::lock_guard const lock(mutex_);
    shared_[{number, kernel}] = bytes;
  }
  /// Returns the allowed bytes of dynamic shared memory, if cudaFuncSetAttribute was called for the kernel.
  [[nodiscard]] std::optional<std::size_t> allowed_shared(int number, std::uintptr_t kernel) {
    std::lock_guard const lock(mutex_);
    auto const found = shared_.find({number, kernel});
    return found == shared_.end() ? std::nullopt : std::optional(found->second);
  }

  /// Returns this thread's captured stream, or null: during a capture some calls invalidate it.
  static CUstream_st*& captured() noexcept {
    thread_local CUstream_st* stream = nullptr;
    return stream;
  }

 private:
  template <class Done>
  void run_until(Done const& done) {
    std::lock_guard const lock(mutex_);
    while (!done()) {
      auto* const stream = choose();
      if (!stream && waits_for_another_device()) {
        std::this_thread::yield();
        continue;
      }
      if (!stream) {
        refuse_to_go_on("a stream waits for an event that nothing will reach");
      }
      run_one(*stream);
    }
  }
  void run_one(CUstream_st& stream) {
    ++now_;
    auto const work = std::move(stream.work.front());
    stream.work.pop_front();
    if (work.run) work.run();
  }
  /// Stays with a stream for a while, so that one may get far ahead of the others.
  CUstream_st* choose() {
    if (stay_-- > 0 && can_go_on(last_)) return last_;
    std::size_t count = 0;
    for (auto* const stream : streams_)
      if (can_go_on(stream) && random() % ++count == 0) last_ = stream;
    stay_ = random() % 16;
    return count > 0 ? last_ : nullptr;
  }
  [[nodiscard]] bool can_go_on(CUstream_st const* stream) const noexcept {
    for (auto const* each : streams_) {  // the last one may be gone
      if (each != stream) continue;
      if (stream->work.empty()) return false;
      auto const& next = stream->work.front();
      return (!next.event || next.event->reached >= next.mark) && (!next.ready || next.ready());
    }
    return false;
  }
  [[nodiscard]] bool waits_for_another_device() const noexcept {
    for (auto const* stream : streams_)
      if (!stream->work.empty() && stream->work.front().ready) return true;
    return false;
  }
  std::uint64_t random() noexcept {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return random_ >> 33;
  }

  std::recursive_mutex mutex_;
  CUstream_st default_;
  std::vector<CUstream_st*> streams_;
  std::set<std::pair<int, std::uintptr_t>> loaded_;
  std::map<std::pair<int, std::uintptr_t>, std::size_t> shared_;
  CUstream_st* last_ = nullptr;
  std::uint64_t stay_ = 0, random_ = 1, now_ = 0;
};

/// Memory allocated by CUDA, on all devices; other host memory is pageable.
class Memory {
 public:
  struct Block {
    std::byte* begin;
    std::size_t bytes;
    bool on_host;
    Device* device;
    int number;  // number of the device, among the streams of a thread
    /// Whether it contains this many bytes.
    [[nodiscard]] bool holds(void const* from, std::size_t count) const noexcept {
      auto const before = static_cast<std::size_t>(static_cast<std::byte const*>(from) - begin);
      return before <= bytes && count <= bytes - before;
    }
  };
  static Memory& instance() {
    static Memory memory;
    return memory;
  }
  void give(Block const& block) {
    std::lock_guard const lock(mutex_);
    blocks_[block.begin] = block;
  }
  void take_back(Block const& block) {
    std::lock_guard const lock(mutex_);
    blocks_.erase(block.begin);
  }
  [[nodiscard]] std::optional<Block> find(void const* memory) {
    std::lock_guard const lock(mutex_);
    auto const* const at = static_cast<std::byte const*>(memory);
    auto const after = blocks_.upper_bound(at);
    if (after == blocks_.begin()) return {};
    auto const& block = std::prev(after)->second;
    return at < block.begin + block.bytes ? std::optional(block) : std::nullopt;
  }
  /// Returns how much of a device's memory is in use.
  [[nodiscard]] std::size_t bytes_of(int number) {
    std::lock_guard const lock(mutex_);
    std::size_t bytes = 0;
    for (auto const& [begin, block] : blocks_)
      if (!block.on_host && block.number == number) bytes += block.bytes;
    return bytes;
  }
  [[nodiscard]] bool has_any_of(Device const& device) {
    std::lock_guard const lock(mutex_);
    for (auto const& [begin, block] : blocks_)
      if (block.device == &device) return true;
    return false;
  }

 private:
  std::mutex mutex_;
  std::map<std::byte const*, Block> blocks_;
};

/// Gives the calling thread its own device during the lifetime of this object.
class OwnDevice {
 public:
  OwnDevice() { Device::of_thread() = &device_; }
  ~OwnDevice() {
    Device::of_thread() = nullptr;
    if (!Memory::instance().has_any_of(device_)) return;
    refuse_to_go_on("a device's memory outlives it");
  }
  OwnDevice(OwnDevice const&) = delete;
  OwnDevice& operator=(OwnDevice const&) = delete;

 private:
  Device device_;
};

}  // namespace cuda_emulation
