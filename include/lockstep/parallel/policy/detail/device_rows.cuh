// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/kernel/copy/convert.cuh>
#include <lockstep/memory/block.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/detail/arena_ranges.hpp>
#include <lockstep/parallel/detail/gradient_wire.hpp>
#include <lockstep/parallel/policy/detail/table_rows.cuh>
#include <lockstep/parallel/policy/detail/table_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Ranks gather the bits of all ranks on the device. The host unites them, since it starts an operation with the number
/// of rows. A table with more touched rows than one in `share` is summed whole, in place, so packed rows take at most
/// that part of the tables' memory.
/// @determinism equal bits on all ranks, as the communicator's; with two ranks those of sums of whole tables
template <>
class DeviceRows<CudaSpace> : public TableRows {
 public:
  using Wire = GradientWire<CudaSpace>;

  /// Handles tables of at least `least` elements. Other arguments except the layout must outlive this object.
  /// @param wire memory in which whole tables are summed, and the type of all sums   @collective
  template <class Communicator>
  DeviceRows(Communicator& communicator, nn::ParameterLayout const& layout, Wire const& wire, float* gradients,
             memory::Stream<CudaSpace> stream, Index least)
      : TableRows(layout, communicator.size(), wire.type(), least),
        wire_(wire),
        gradients_(gradients),
        stream_(stream),
        found_(communicator.allocate(bytes_of_bits() * static_cast<std::size_t>(ranks()))),
        packed_(communicator.allocate(static_cast<std::size_t>(capacity()) * sizeof(float))),
        packed_wire_(wire.type(), packed(),
                     wire.rounds() ? communicator.allocate(static_cast<std::size_t>(capacity()) * size_of(wire.type()))
                                   : memory::Block(),
                     stream),
        rank_(communicator.rank()) {
    if (tables().empty()) return;
    pinned_bits_ = memory::PinnedResource{}.allocate(found_.bytes());
  }

  /// Loads all kernels, which may wait for the whole device, and so for peers once a sum is in progress. Packs the
  /// first row of zeroed gradients and unpacks it.
  void load_kernels() {
    if (tables().empty()) return;
    auto* const found = reinterpret_cast<std::uint64_t*>(pinned_bits_.data());
    std::fill_n(found, words() * ranks(), std::uint64_t{0});
    found[0] = 1;
    find();
    unite(stream_, found, share);
    pack(stream_, gradients_, packed());
    ArenaPart const row{0, is_whole(0) ? 0 : tables()[0].width};
    packed_wire_.round(row);
    packed_wire_.widen(row);
    unpack(stream_, packed(), gradients_);
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return found_.bytes() + packed_.bytes() + packed_wire_.bytes(); }

  /// Queues the search for this rank's rows, after all gradients.
  void find() {
    if (!tables().empty()) TableRows::find(stream_, gradients_, own_bits());
  }
  /// Starts to gather the bits of all ranks, once the device reaches `found`.   @collective
  template <class Communicator>
  void gather(Communicator& communicator, memory::CudaEvent const& found) {
    if (tables().empty()) return;
    gather_ = {.type = ElementType::uint8,
               .data = found_.data(),
               .count = static_cast<Index>(bytes_of_bits()),
               .collective = comm::Collective::all_gather,
               .in = own_bits()};
    communicator.start_after(gather_, found);
  }
  /// Waits for the bits, then starts the sums.   @collective
  template <class Communicator>
  void start(Communicator& communicator) {
    if (tables().empty()) return;
    begin();
    communicator.wait(gather_);
    copy(pinned_bits_.data(), found_.data(), found_.bytes(), cudaMemcpyDeviceToHost, stream_);
    event_.record(stream_);
    memory::wait_for(event_);
    unite(stream_, reinterpret_cast<std::uint64_t const*>(pinned_bits_.data()), share);
    pack(stream_, gradients_, packed());
    parts_.clear();
    for_lists([this](std::size_t t, std::int32_t const*, Index count, Index at) {
      add_part(t, packed_wire_, at, count * tables()[t].width);
    });
    for (std::size_t t = 0; t < tables().size(); ++t)
      if (is_whole(t)) add_part(t, wire_, tables()[t].offset, tables()[t].end() - tables()[t].offset);
    for (auto const& part : parts_) part.wire->round(part.range);
    event_.record(stream_);
    for (auto& operation : operations()) communicator.start_after(operation, event_);
  }
  /// Writes the sums to the gradients, once all operations are complete. Work that is queued afterwards sees them.
  void finish() {
    if (tables().empty()) return;
    for (auto const& part : parts_) part.wire->widen(part.range);
    unpack(stream_, packed(), gradients_);
  }

 private:
  /// At one half, at least half of the bytes are saved.
  static constexpr Index share = 2;

  struct Part {
    Wire const* wire;
    ArenaPart range;
  };

  [[nodiscard]] Index capacity() const noexcept {
    Index elements = 0;
    for (auto const& table : tables()) elements += table.rows / share * table.width;
    return elements;
  }
  [[nodiscard]] float* packed() const noexcept { return reinterpret_cast<float*>(packed_.data()); }
  [[nodiscard]] std::uint64_t* own_bits() const noexcept {
    return reinterpret_cast<std::uint64_t*>(found_.data()) + words() * rank_;
  }
  void add_part(std::size_t t, Wire const& wire, Index at, Index count) {
    if (count == 0) return;
    parts_.push_back({&wire, {at, at + count}});
    add(t, wire.at(at), count);
  }

  Wire const& wire_;
  float* gradients_;
  memory::Stream<CudaSpace> stream_;
  memory::Block found_;   // bits of all ranks
  memory::Block packed_;  // gradients of the union's rows
  Wire packed_wire_;      // memory in which they are summed
  int rank_;
  memory::Block pinned_bits_;  // copy of the bits on the host
  comm::CollectiveOperation gather_;
  memory::CudaEvent event_;  // the bits are on the host; later, the rows are packed
  std::vector<Part> parts_;  // of each operation
};

}}}  // namespace lockstep::parallel::detail
