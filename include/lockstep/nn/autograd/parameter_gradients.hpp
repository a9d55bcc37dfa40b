// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Callback for parameters whose gradient is complete. A function pointer instead of a template argument, so that all
/// policies share one instantiation of every layer.
struct ReadySink {
  /// Receives the gradient's range of the arena, in elements; null: no callback.
  void (*call)(void* self, Index offset, Index count) = nullptr;
  void* self = nullptr;  ///< first argument of `call`
};

/// Destination of a gradient and how to write it. `data` is null if no gradient is needed.
template <class Scalar>
struct GradientTarget {
  Scalar* data;  ///< first element
  Write write;   ///< whether to overwrite or to add
  /// Returns whether a gradient is needed.
  [[nodiscard]] explicit operator bool() const noexcept { return data != nullptr; }
};

/// Destination of a table's gradient when a step may touch only some rows. If `touched` has bits, the writer adds to
/// rows that it contains, and overwrites and inserts all other rows. If it has none, `write` holds for the whole table.
template <class Scalar>
struct RowGradientTarget {
  Scalar* data;                 ///< first element of the table
  Write write;                  ///< for the whole table, if `touched` has no bits
  kernel::TouchedRows touched;  ///< rows that this step has written
};

/// Gradients of a model's parameters in an arena that it does not own. Tracks which gradients, and which rows of
/// tables, this step has written, and how many uses of each parameter backward has not reached yet.
template <class Scalar, class Space>
class ParameterGradients {
 public:
  /// Binds `parameters` dense gradients, regardless of the form that parameters request.
  void bind(Scalar* arena, std::size_t parameters) {
    arena_ = arena;
    written_.assign(parameters, 0);
    pending_uses_.assign(parameters, 0);
    touched_.clear();
  }
  /// Binds the gradients of a layout's parameters, in the form that each parameter requests.
  void bind(Scalar* arena, ParameterLayout const& layout) {
    bind(arena, layout.entries().size());
    if constexpr (Space::host_accessible) {
      Index words = 0;
      for (auto const& entry : layout.entries())
        if (entry.by_rows()) words += kernel::TouchedRows::words_for(entry.shape[0]);
      touched_bits_ = memory::Buffer<std::uint64_t>(words);
      auto* next = touched_bits_.data();
      for (auto i = layout.entries().size(); i-- > 0;) {  // in the arena's order
        auto const& entry = layout.entries()[i];
        if (!entry.by_rows()) continue;
        touched_.push_back({entry.offset, entry.shape[0], entry.size / entry.shape[0], next});
        next += kernel::TouchedRows::words_for(entry.shape[0]);
      }
    }
  }

  /// Resets the written flags: the next writers overwrite.
  void begin_step() {
    std::fill(written_.begin(), written_.end(), std::uint8_t{0});
    for (auto const& table : touched_) table.clear();
  }
  /// Forgets uses that backward has not reached.
  void begin_micro_batch() { std::fill(pending_uses_.begin(), pending_uses_.end(), 0); }

  /// Returns the destination of p's gradient: the first writer of a step overwrites, later writers add.
  [[nodiscard]] GradientTarget<Scalar> target(Parameter const& p) {
    auto const before = std::exchange(written_[index(p)], std::uint8_t{1});
    if (auto const* touched = touched_of(p); touched && before)
      write_all_rows(*touched);
    else if (touched)
      touched->insert_all();
    return {arena_ + p.offset, before ? Write::add : Write::overwrite};
  }
  /// Returns the destination for a writer that touches only some rows and inserts them after it has written them.
  [[nodiscard]] RowGradientTarget<Scalar> target_by_rows(Parameter const& p) {
    auto const* const touched = touched_of(p);
    if (!touched) {
      auto const dense = target(p);
      return {dense.data, dense.write, {}};
    }
    written_[index(p)] = 1;
    return {arena_ + p.offset, Write::add, *touched};
  }

  /// Sets the callback of the following `finish_use`.
  void set_sink(ReadySink sink) noexcept { sink_ = sink; }
  /// Counts uses of p by backward closures. Forward calls `add_use` for each use, and backward calls `finish_use` after
  /// it, as Context::on_backward does for the parameters that it names. After the last use, p's gradient is complete.
  /// Parameters that the model does not visit are ignored.
  void add_use(Parameter const& p) {
    if (p.ordinal >= 0) ++pending_uses_[index(p)];
  }
  /// Counts one use as done; after the last, calls the sink with p's range.
  void finish_use(Parameter const& p) {
    if (p.ordinal < 0) return;
    if (--pending_uses_[index(p)] == 0 && written_[index(p)] && sink_.call) sink_.call(sink_.self, p.offset, p.size());
  }

  /// Returns whether this step has written the gradient of a parameter.
  [[nodiscard]] bool written(std::size_t ordinal) const noexcept { return written_[ordinal] != 0; }
  /// Flags of all parameters by ordinal, to read or to restore.
  [[nodiscard]] std::span<std::uint8_t const> written() const noexcept { return {written_.data(), written_.size()}; }
  /// Restores the flags.
  /// @shape written [parameters]
  void set_written(std::span<std::uint8_t const> written) noexcept {
    std::copy(written.begin(), written.end(), written_.begin());
  }
  /// Returns the tables whose gradient is stored by rows, in the arena's order.
  [[nodiscard]] std::span<kernel::TouchedRows const> touched() const noexcept {
    return {touched_.data(), touched_.size()};
  }

 private:
  static std::size_t index(Parameter const& p) noexcept { return static_cast<std::size_t>(p.ordinal); }

  [[nodiscard]] kernel::TouchedRows const* touched_of(Parameter const& p) const noexcept {
    for (auto const& table : touched_)  // an empty parameter has the offset of the next one
      if (table.offset == p.offset && table.rows > 0 && p.size() > 0) return &table;
    return nullptr;
  }
  /// Makes a gradient by rows dense, so that a writer can add to all of it.
  void write_all_rows(kernel::TouchedRows const& table) {
    auto* const gradient = arena_ + table.offset;
    table.for_runs(0, table.rows, [&](Index first, Index last, bool touched) {
      if (!touched) std::fill_n(gradient + first * table.width, (last - first) * table.width, Scalar{0});
    });
    table.insert_all();
  }

  Scalar* arena_ = nullptr;
  ReadySink sink_;
  std::vector<std::uint8_t> written_;
  std::vector<int> pending_uses_;
  std::vector<kernel::TouchedRows> touched_;
  memory::Buffer<std::uint64_t> touched_bits_;
};

}}}  // namespace lockstep::nn
