// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <lockstep/core/timeline.hpp>
#include <lockstep/nn/autograd/parameter_gradients.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn::detail {

/// Records when each operation of a pass runs. A forward operation ends where it registers its backward and begins
/// where the previous one ended. Consecutive registrations without allocations in between count as one operation.
template <class Space>
class Tracer {
 public:
  /// Returns a time of the space's work, as in Span::begin, or a value that the timeline's owner converts to one.
  struct Now {
    double (*call)(void* self) = nullptr;
    void* self = nullptr;
  };

  /// Starts recording into `timeline`; null stops it.
  void start(Timeline* timeline, Now now) {
    timeline_ = timeline;
    now_ = now;
    operations_.reserve(reserved_operations);
    entries_.reserve(reserved_operations);
  }
  [[nodiscard]] explicit operator bool() const noexcept { return timeline_ != nullptr; }

  void begin_pass() {
    operations_.clear();
    begin(now());
  }
  void allocated(Index bytes) noexcept { bytes_ += bytes; }
  /// Records that the tape's entry `entry` was registered, with the closure's type and parameters. `recomputed`: by
  /// Context::recompute.
  void registered(std::size_t entry, char const* type, std::span<Parameter const* const> parameters, bool recomputed) {
    Operation here{type};
    for (auto const* parameter : parameters) here.include(parameter->ordinal);
    if (bytes_ == 0 && may_merge_)
      merge(here);
    else
      write(here, recomputed ? Span::Kind::recompute : Span::Kind::forward);
    entries_.resize(std::max(entries_.size(), entry + 1));
    entries_[entry] = operations_.size() - 1;
    may_merge_ = true;
  }
  /// Ends an operation that registers no backward. `first` and `last` are the ordinals of its parameters, or -1.
  void ended(char const* type, int first, int last) { write({type, first, last}, Span::Kind::forward); }
  /// Records the time since the last forward operation as the loss, whose gradient is already computed.
  void end_forward() {
    if (timeline_) write({}, Span::Kind::forward);
  }

  /// Guard values of an entry's run.
  struct Running {
    std::size_t operation = 0;
    double began = 0;
  };
  [[nodiscard]] Running enter(std::size_t entry) {
    if (!timeline_) return {};
    begin(now());
    return {entries_[entry], began_};
  }
  void leave(Running const& running) {
    if (!timeline_) return;
    auto const& done = operations_[running.operation];
    add(done, running.operation, running.began, now(), Span::Kind::backward);
    begin(0);
  }
  /// Wraps the sink and records the time of each call separately from the layer's time, because it may send gradients.
  /// On a device the sink is returned unchanged: gradients are sent in parallel with computation.
  [[nodiscard]] ReadySink wrap(ReadySink sink) noexcept {
    if (!timeline_ || !sink.call || !Space::host_accessible) return sink;
    sink_ = sink;
    return {[](void* self, Index offset, Index count) {
              auto& tracer = *static_cast<Tracer*>(self);
              auto const began = tracer.now();
              tracer.sink_.call(tracer.sink_.self, offset, count);
              tracer.timeline_->add({.name = "gradients ready", .begin = began, .end = tracer.now()});
            },
            this};
  }

 private:
  static constexpr std::size_t reserved_operations = 4096;  // reserved operations of a pass; more reallocate

  struct Operation {
    char const* type = nullptr;
    int first = -1, last = -1;

    void include(int ordinal) noexcept {
      if (ordinal < 0) return;
      first = first < 0 ? ordinal : std::min(first, ordinal);
      last = std::max(last, ordinal);
    }
  };

  [[nodiscard]] double now() const { return now_.call(now_.self); }
  void begin(double moment) noexcept {
    began_ = moment;
    bytes_ = 0;
    may_merge_ = false;
  }
  void add(Operation const& done, std::size_t number, double began, double ended, Span::Kind kind) noexcept {
    timeline_->add({.name = done.type ? done.type : "",
                    .begin = began,
                    .end = ended,
                    .number = static_cast<Index>(number),
                    .amount = bytes_,
                    .first = done.first,
                    .last = done.last,
                    .kind = kind});
  }
  void write(Operation const& done, Span::Kind kind) {
    operations_.push_back(done);
    auto const ended = now();
    at_ = timeline_->size();
    add(done, operations_.size() - 1, began_, ended, kind);
    begin(ended);
  }
  void merge(Operation const& more) noexcept {
    auto& all = operations_.back();
    all.include(more.first);
    all.include(more.last);
    if (at_ == timeline_->size()) return;  // the timeline is full
    (*timeline_)[at_].first = all.first;
    (*timeline_)[at_].last = all.last;
  }

  Timeline* timeline_ = nullptr;
  Now now_;
  ReadySink sink_;
  std::vector<Operation> operations_;  // of the pass
  std::vector<std::size_t> entries_;   // operation of each tape entry
  std::size_t at_ = 0;                 // index of the last operation in the timeline
  double began_ = 0;
  Index bytes_ = 0;         // allocated since the operation began
  bool may_merge_ = false;  // whether only registrations followed the last operation
};

}}}  // namespace lockstep::nn::detail
