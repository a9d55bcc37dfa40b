// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/check/check_memory.hpp>

#include <cstddef>
#include <string>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/self_communicator.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/parallel/replica/replica.hpp>
#include <lockstep/train/trainer/trainer.hpp>

using namespace lockstep;
using Check = parallel::detail::MemoryCheck;
using Limit = FreeMemory::Limit;

namespace {

constexpr double gibibyte = 1 << 30;
constexpr FreeMemory with_free(double free, double total, Limit limit = Limit::device) {
  return {static_cast<std::size_t>(free * gibibyte), static_cast<std::size_t>(total * gibibyte), limit};
}
Check::Need need(double bytes, int replicas = 1) { return {bytes * gibibyte, replicas, "values and gradients"}; }

/// Returns the error message of the refusal; empty if there is none.
template <class F>
std::string refused(F&& f) {
  try {
    f();
  } catch (ConfigError const& error) {
    return error.what();
  }
  return "";
}
bool has(std::string const& text, char const* part) { return text.find(part) != text.npos; }

/// 2^40 parameters: more than any machine's memory.
class Huge {
 public:
  void visit(auto&& each) { each("layer", layer_); }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    return layer_.forward(context, batch);
  }
  template <class Context>
  nn::LossOf<Context> loss(Context&, auto const&, auto const&) const {
    return {};
  }

 private:
  nn::Linear layer_{Index{1} << 20, Index{1} << 20};
};

template <class Policy, class Model = Huge, class Optimizer = optim::AdamW>
std::string refused_trainer(Policy policy, Model model = Model(), Optimizer optimizer = {}) {
  return refused([&] { Trainer const trainer(model, optimizer, policy); });
}

}  // namespace

TEST_CASE("a model that exceeds the host's memory is refused before any allocation") {
  auto const text = refused_trainer(parallel::SingleDevice{.threads = 1});
  CHECK(has(text,
            "Trainer: 1099512676352 parameters need at least 20480.0 GiB of host memory before the first batch, "
            "for values, gradients, 2 optimizer moments and initial values, but "));
  CHECK(has(text, " are free; "));
  CHECK(has(text, "use a smaller model or an optimizer with fewer moments"));
  CHECK(has(refused_trainer(parallel::SingleDevice{.threads = 1}, nn::InBfloat16{Huge()}, optim::SGD{}),
            " need at least "));
  CHECK(has(refused_trainer(parallel::DataParallel{.devices = 3, .threads = 1}),
            "Trainer: 3 replicas of 1099512676352 parameters need at least 36864.0 GiB of host memory"));
  CHECK(has(refused_trainer(parallel::DistributedDataParallel{comm::SelfCommunicator()}),
            " need at least 24576.0 GiB of host memory"));
  CHECK(has(refused_trainer(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 4}),
            "Trainer: 1099512676352 parameters need"));
}

TEST_CASE("the refusal names the free memory and a remedy for its limit") {
  Check const check(7, 1, true, 2);
  auto const on_host = [&](double bytes, FreeMemory const& free) {
    return refused([&] { check.host(need(bytes), free, 1); });
  };
  CHECK(on_host(4, with_free(4, 8)).empty());
  CHECK(on_host(5, with_free(4, 8)) ==
        "Trainer: 7 parameters need at least 5.0 GiB of host memory before the first batch, for values and gradients, "
        "but 4.0 GiB of 8.0 GiB are free; end other processes, or use a smaller model or an optimizer with fewer "
        "moments, or shard the optimizer's moments over the ranks (--shard-optimizer)");
  CHECK(has(on_host(9, with_free(4, 8)), "free; use a smaller model"));
  CHECK(
      has(on_host(5, with_free(4, 8, Limit::control_group)), "; raise the memory limit of this container or job, or"));
  CHECK(has(on_host(5, with_free(4, 8, Limit::address_space)), "; raise the limit (ulimit -v), or use a smaller"));
  CHECK(refused([] { Check(7, 1, false, 0).host(need(9), with_free(4, 8), 1); }).ends_with("; use a smaller model"));
}

TEST_CASE("ranks of one host must fit into its memory together, and their threads into their address space") {
  Check const check(7, 4, false, 1);
  auto const on_host = [&](FreeMemory const& free, int threads) {
    return refused([&] { check.host(need(3), free, threads); });
  };
  CHECK(on_host(with_free(4, 12), 1).empty());
  CHECK(has(on_host(with_free(4, 11), 1),
            "Trainer: 4 ranks on this host with 7 parameters need at least 12.0 GiB of host memory before the first "
            "batch, for values and gradients, but only 11.0 GiB exist; use a smaller model"));
  CHECK(on_host(with_free(4, 11, Limit::address_space), 1).empty());
  CHECK(
      has(on_host(with_free(4, 11, Limit::address_space), 4), "but only 11.0 GiB exist; raise the limit (ulimit -v)"));
}

TEST_CASE("the refusal for a GPU names the GPU and the processes that can use it") {
  Check const check(7, 1, false, 1);
  auto const on_gpu = [&](double bytes, int replicas) {
    return refused([&] { check.gpu(need(bytes, replicas), with_free(4, 8), 2); });
  };
  CHECK(on_gpu(4, 1).empty());
  CHECK(on_gpu(5, 1) ==
        "Trainer: 7 parameters need at least 5.0 GiB of memory of GPU 2 before the first batch, for values and "
        "gradients, but 4.0 GiB of 8.0 GiB are free; end other processes that use this GPU, which nvidia-smi lists, "
        "choose another GPU (--gpu-ids), or use a smaller model or an optimizer with fewer moments");
  CHECK(has(on_gpu(9, 1), "are free; use a smaller model"));
  CHECK(has(on_gpu(9, 2), "Trainer: 2 replicas of 7 parameters need"));
  CHECK(has(on_gpu(9, 2), "; use one GPU for each replica, or use a smaller model"));
}
