// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <lockstep/parallel/policy/single_device.hpp>

#include <python_peer.hpp>
#include <suite.hpp>
#include <train/training.hpp>

namespace lockstep_bench {

/// Registers training steps on one thread, in samples per second of processor time. `make_model` and `make_loader` make
/// a model and a loader of one batch.
template <class MakeModel, class MakeLoader>
void add_step(std::string const& name, MakeModel make_model, MakeLoader make_loader) {
  Shared const training([=] { return Training(parallel::SingleDevice{.threads = 1}, make_model(), make_loader()); });
  add(name, [=](benchmark::State& state) {
    training->step();  // page faults, caches, lazy setup
    for (auto _ : state) training->step();
    state.SetItemsProcessed(state.iterations() * training->batch_size());
  })->Unit(benchmark::kMillisecond);
}

/// Registers steps of peers/`script` as the peer of `name`.
inline void add_step_peer(std::string const& name, std::string const& script, std::vector<std::string> const& arguments,
                          std::string const& peer = "pytorch") {
  add_peer(name, peer, python_peer(script, arguments))->Unit(benchmark::kMillisecond);
}

}  // namespace lockstep_bench
