// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace cuda_emulation {

/// How often an event was recorded, and how many of the records the streams have come to.
struct Event {
  std::uint64_t recorded = 0, reached = 0;
  std::uint64_t when = 0;  // it was reached, in pieces of work
};

/// What a stream does, once `event`, where there is one, has come as far as `mark`, and `ready()`, where that is what
/// it waits for: another device.
struct Work {
  std::function<void()> run;
  std::shared_ptr<Event> event;
  std::uint64_t mark = 0;
  std::function<bool()> ready = {};
  std::shared_ptr<Event> marks = {};  // recorded anew each time that the work is queued
};

}  // namespace cuda_emulation

/// What the stream has yet to do, or, while it is captured, what it would have done.
struct CUstream_st {
  std::deque<cuda_emulation::Work> work;
  std::vector<cuda_emulation::Work>* capture = nullptr;
  bool spoiled = false;  // the capture: by a call that is not allowed meanwhile
};

namespace cuda_emulation {

/// The streams of a device that is as late, and as unfair, as CUDA allows: nothing happens before somebody waits for
/// it, and then streams go on in an arbitrary order, alike in every run. So whoever reuses memory without a guard tends
/// to be found out.
class Device {
 public:
  /// The one that all threads share, unless the calling thread has one of its own.
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

  CUstream_st* add_stream() {
    std::lock_guard const lock(mutex_);
    streams_.push_back(new CUstream_st);
    return streams_.back();
  }
  void remove(CUstream_st* stream) {
    std::lock_guard const lock(mutex_);
    finish(*stream);
    std::erase(streams_, stream);
    delete stream;
  }
  void push(CUstream_st* stream, Work work) {
    std::lock_guard const lock(mutex_);
    auto& to = of(stream);
    if (work.marks && !to.capture) return record(stream, work.marks);
    if (to.capture)
      to.capture->push_back(std::move(work));
    else
      to.work.push_back(std::move(work));
  }
  void finish(CUstream_st& stream) {
    run_until([&] { return stream.work.empty(); });
  }
  void finish_all() {
    run_until([&] {
      for (auto const* stream : streams_)
        if (!stream->work.empty()) return false;
      return true;
    });
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
  /// Somebody looks: a device may have got further meanwhile.
  [[nodiscard]] bool has_reached(Event const& event) {
    std::lock_guard const lock(mutex_);
    if (auto* const stream = choose()) run_one(*stream);
    return event.reached == event.recorded;
  }

  /// How much work was done between two events; negative where one has not been reached.
  [[nodiscard]] double between(Event const& begin, Event const& end) {
    std::lock_guard const lock(mutex_);
    bool const reached = begin.reached == begin.recorded && end.reached == end.recorded;
    return reached ? static_cast<double>(end.when - begin.when) : -1;
  }

  /// Memory that CUDA has given; other host memory is pageable.
  void give(void* memory, std::size_t bytes, bool on_host) {
    std::lock_guard const lock(mutex_);
    given_[static_cast<std::byte const*>(memory)] = {bytes, on_host};
  }
  void take_back(void* memory) {
    std::lock_guard const lock(mutex_);
    given_.erase(static_cast<std::byte const*>(memory));
  }
  struct Given {
    std::size_t bytes;
    bool on_host;
  };
  [[nodiscard]] Given const* given(void const* memory) {
    std::lock_guard const lock(mutex_);
    auto const* const at = static_cast<std::byte const*>(memory);
    auto const after = given_.upper_bound(at);
    if (after == given_.begin()) return nullptr;
    auto const& [first, what] = *std::prev(after);
    return at < first + what.bytes ? &what : nullptr;
  }

  /// This thread's stream that is being captured, or null: then there are calls that spoil the capture.
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
        std::fprintf(stderr, "CUDA emulation: a stream waits for an event that nothing will reach\n");
        std::abort();
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
  std::map<std::byte const*, Given> given_;
  CUstream_st* last_ = nullptr;
  std::uint64_t stay_ = 0, random_ = 1, now_ = 0;
};

/// A device of its own for the calling thread, while this lives.
class OwnDevice {
 public:
  OwnDevice() { Device::of_thread() = &device_; }
  ~OwnDevice() { Device::of_thread() = nullptr; }
  OwnDevice(OwnDevice const&) = delete;
  OwnDevice& operator=(OwnDevice const&) = delete;

 private:
  Device device_;
};

}  // namespace cuda_emulation
