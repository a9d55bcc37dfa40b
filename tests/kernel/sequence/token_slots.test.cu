// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence/token_slots.cuh>

#include "memory/device.hpp"
#include "token_slots_cases.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::Sequences;

namespace {
using Ints = std::vector<std::int32_t>;

/// Sequences in device memory.
struct DeviceSequences {
  Sequences const& host;
  OnDevice<std::int32_t> lengths{host.lengths};
  OnDevice<Index> offsets{host.offsets}, positions{host.positions};

  [[nodiscard]] kernel::SequenceLayout<CudaSpace> layout() const {
    using Layout = kernel::SequenceLayout<CudaSpace>;
    auto const rows = host.lengths.size();
    if (host.ragged) return Layout::ragged(host.slots(), host.length, offsets.view(rows + 1), positions.view(rows));
    return Layout::padded(host.length, lengths.view(rows), positions.view(rows));
  }
};

struct CudaBackend {
  using Kernel = kernel::TokenSlots<CudaSpace>;
  memory::CudaStream stream;

  Ints find(Sequences const& x, Sequences const& names, Ints const& places) {
    DeviceSequences const from{x}, at{names};
    OnDevice<std::int32_t> const in(places), out(Ints(places.size(), 7));
    Kernel::find(stream.view(), from.layout(), at.layout(), in.view(places.size()), out.view(places.size()));
    return out.values();
  }
  std::vector<Index> offsets(Sequences const& x, Sequences const& names, Ints const& firsts) {
    DeviceSequences const from{x}, at{names};
    OnDevice<std::int32_t> const in(firsts);
    OnDevice<Index> const out(std::vector<Index>(firsts.size() + 1, 7));
    Kernel::group_offsets(stream.view(), from.layout(), at.layout(), in.view(firsts.size()),
                          out.view(firsts.size() + 1));
    return out.values();
  }
};
}  // namespace

TEST_CASE("slots of tokens and offsets of groups on CUDA, padded and ragged") {
  if (!lockstep_test::has_gpu("kernel::TokenSlots<CudaSpace>")) return;
  CudaBackend backend;
  lockstep_test::token_slots_cases(backend);
  // The host refuses these. Here no slot is outside x.
  CHECK(backend.find(Sequences({3, 2}, true), Sequences({2, 2}, true), {-1, 3, 2, 1}) == Ints{-1, -1, -1, 4});
  CHECK(backend.offsets(Sequences({3, 2}, true), Sequences({2, 1}, true), {-2, 9, 9}) ==
        std::vector<Index>{0, 3, 5, 5});
}
