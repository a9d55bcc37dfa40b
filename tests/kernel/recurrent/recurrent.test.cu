// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/recurrent/recurrent.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <lockstep/kernel/copy/copy.cuh>

#include "kernel/device_layout.hpp"
#include "larger_error.hpp"
#include "recurrent_run.hpp"

using namespace lockstep;
using kernel::Direction;
using lockstep_test::OnDevice;
using lockstep_test::RecurrentRun;
using lockstep_test::TwinLayout;

namespace {

template <class Cell, class T>
void check(TwinLayout const& twin, Direction direction, Index width, bool begins) {
  using Kernel = kernel::Recurrent<CudaSpace>;
  ThreadPool pool(1);
  memory::CudaStream const stream;
  RecurrentRun<Cell, T> host(twin.host(), width, begins);
  OnDevice<T> const gates(host.gates), kept(host.kept), y(host.y), before(host.before), state(host.state),
      product(host.product), bias(host.bias), dy(host.dy), dstate(host.dstate), dkept(host.dkept),
      dproduct(host.dproduct), dparts(host.dparts), between(host.dstate_between), earlier(host.earlier),
      initial(host.initial), dlast(host.dlast), last(host.last);
  host.run(memory::Stream<HostSpace>(pool), direction);

  auto const rows = twin.rows(), slots = twin.slots(), all = host.all;
  kernel::RecurrentPass<T, CudaSpace> pass{twin.device(), direction, gates.view(slots, all), kept.view(slots, width)};
  if (begins)
    pass.earlier = earlier.view(rows, width), pass.initial = initial.view(rows, width),
    pass.dlast = dlast.view(rows, width);
  for (Index t = 0; t < pass.layout.length; ++t)
    Kernel::template forward_step<Cell, T>(stream.view(), t, pass, product.view(rows, all), bias.view(all),
                                           state.view(rows, width), y.view(slots, width));
  Kernel::template last_kept<T>(stream.view(), pass, last.view(rows, width));
  Kernel::template states_before<T, T>(stream.view(), pass, y.view(slots, width), before.view(slots, width));
  for (Index t = pass.layout.length; t-- > 0;) {
    Kernel::template backward_step<Cell, T, T>(stream.view(), t, pass, dy.view(slots, width), before.view(slots, width),
                                               dstate.view(rows, width), dkept.view(rows, width),
                                               dproduct.view(rows, all), dparts.view(slots, all));
    if (!Cell::passes_state)
      kernel::Copy<CudaSpace>::run(stream.view(), between.view(rows, width).data, dstate.view(rows, width).data,
                                   rows * width);
  }
  // A step rounds some 30 times, of numbers up to 4, and its results are inputs of the following steps.
  double const bound = 30 * 4 * static_cast<double>(1 + pass.layout.length) * std::numeric_limits<T>::epsilon();
  auto const same = [&](OnDevice<T> const& on_device, std::vector<T> const& on_host) {
    auto const values = on_device.values();
    double most = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
      most =
          lockstep_test::larger_error(most, std::abs(static_cast<double>(values[i]) - static_cast<double>(on_host[i])));
    CHECK(most <= bound);
  };
  same(y, host.y), same(before, host.before), same(gates, host.gates), same(dproduct, host.dproduct);
  same(dparts, host.dparts), same(last, host.last);
  if constexpr (!Cell::passes_state) same(dkept, host.dkept);
}

}  // namespace

TEST_CASE_TEMPLATE("recurrent steps on CUDA equal the host's within rounding, padded and ragged", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Recurrent<CudaSpace>")) return;
  for (auto const kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
    for (auto const& lengths : lockstep_test::some_lengths)
      for (auto const direction : {Direction::forward, Direction::backward})
        for (Index const width : {1, 33}) {
          TwinLayout const twin(kind, lengths);
          for (bool const begins : {false, true}) {
            check<kernel::LstmCell, T>(twin, direction, width, begins);
            check<kernel::GruCell, T>(twin, direction, width, begins);
            check<kernel::RnnCell, T>(twin, direction, width, begins);
          }
        }
}
