// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/kernel/embedding/fused_embedding.hpp>
#include <lockstep/memory/buffer.hpp>

#include <kernel/zipf.hpp>
#include <python_peer.hpp>
#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr Index vocabulary = 20000, width = 128, rows = 32, length = 128, slots = rows * length;

using Kernel = kernel::FusedEmbedding<HostSpace>;
using Inputs = kernel::EmbeddingInputs<float, HostSpace>;
using Layout = kernel::SequenceLayout<HostSpace>;

memory::Buffer<float> filled(Index count) {
  memory::Buffer<float> values(count);
  std::ranges::fill(values.span(), 0.5F);
  return values;
}

/// The first layer of a text classifier: token and position table, one batch of full rows.
class Text {
 public:
  Text(ThreadPool& pool, std::vector<std::int32_t> ids)
      : stream_(pool), ids_(std::move(ids)), lengths_(rows, static_cast<std::int32_t>(length)), places_(rows, 0) {
    inputs_.assembly.count = 1;
    inputs_.assembly.layout = inputs_.assembly.segments[0] =
        Layout::padded(length, {lengths_.data(), {rows}}, {places_.data(), {rows}});
    inputs_.parts[0] = {{token_.data(), {vocabulary, width}}, true, ids_.data()};
    inputs_.first_part[1] = 1;
    inputs_.position = {position_.data(), {length, width}};
    plan();
  }
  Text(Text const&) = delete;
  Text& operator=(Text const&) = delete;

  void forward() { Kernel::forward<float>(stream_, inputs_, {out_.data(), {slots, width}}); }
  /// The segment plan of the ids, for the gradients.
  void plan() { Kernel::plan(stream_, inputs_, 0, 0, {list_.data(), {slots}}, plan_); }
  /// The gradients of both tables.
  void backward(Write write) {
    TensorView<float const, 2, HostSpace> const dy{out_.data(), {slots, width}};
    kernel::EmbeddingGradients<float, HostSpace> targets;
    targets.position = {position_.data(), write};
    Kernel::backward<float>(stream_, inputs_, dy, {}, targets, memory_.data());
    Kernel::backward_table<float>(stream_, plan_, dy, {memory_.data(), {Kernel::partial_rows(slots), width}},
                                  {token_.data(), {vocabulary, width}}, write);
  }
  /// Reads and writes a pass's minimum of bytes: forward a row per token each way, backward the gradient of every token
  /// and, both ways, of every row that occurs.
  void copy_forward() { copy(slots * width); }
  void copy_backward() { copy((slots + 2 * (static_cast<Index>(plan_.rows.size()) + length)) * width / 2); }

 private:
  void copy(Index count) {
    std::memcpy(copy_.data(), from_.data(), static_cast<std::size_t>(count) * sizeof(float));
    asm volatile("" ::: "memory");
  }

  memory::Stream<HostSpace> stream_;
  std::vector<std::int32_t> ids_, lengths_, list_ = std::vector<std::int32_t>(slots);
  std::vector<Index> places_;
  memory::Buffer<float> token_ = filled(vocabulary * width), position_ = filled(length * width),
                        out_ = filled(slots * width), memory_ = filled(slots * width),
                        copy_ = filled(2 * slots * width), from_ = filled(2 * slots * width);
  Inputs inputs_;
  SegmentPlan plan_;
};

/// As in BERT: tokens, positions and two segment types, layer norm and dropout; forward and backward.
class Pair {
 public:
  explicit Pair(ThreadPool& pool)
      : stream_(pool), lengths_(rows, static_cast<std::int32_t>(length)), places_(rows, 0), halves_(slots) {
    for (Index i = 0; i < slots; ++i) halves_[static_cast<std::size_t>(i)] = i % length >= length / 2;
    inputs_.assembly.count = 1;
    inputs_.assembly.layout = inputs_.assembly.segments[0] =
        Layout::padded(length, {lengths_.data(), {rows}}, {places_.data(), {rows}});
    inputs_.parts[0] = {{token_.data(), {vocabulary, width}}, true, ids_.data()};
    inputs_.parts[1] = {{half_.data(), {2, width}}, true, halves_.data()};
    inputs_.first_part[1] = 2;
    inputs_.position = {position_.data(), {length, width}};
    inputs_.norm = kernel::Norm::layer;
    inputs_.weight = {weight_.data(), {width}};
    inputs_.bias = {bias_.data(), {width}};
    inputs_.epsilon = 1e-5F;
    inputs_.mask = kernel::DropoutMask::of(1, 0.1);
    memory_ = filled(Kernel::scratch(inputs_, width) + slots * width);
    for (Index i = 0; i < token_.size(); ++i) token_.data()[i] = static_cast<float>(i % 97) / 97;
  }
  Pair(Pair const&) = delete;
  Pair& operator=(Pair const&) = delete;

  void forward_backward() {
    TensorView<float, 2, HostSpace> const out{out_.data(), {slots, width}}, dx{dx_.data(), {slots, width}};
    Kernel::forward<float>(stream_, inputs_, out);
    kernel::EmbeddingGradients<float, HostSpace> targets;
    targets.position = {gradients_.data(), Write::add};
    targets.weight = {gradients_.data() + length * width, Write::add};
    targets.bias = {gradients_.data() + (length + 1) * width, Write::add};
    Kernel::backward<float>(stream_, inputs_, {dy_.data(), {slots, width}}, dx, targets, memory_.data());
    float* const to[] = {token_gradient_.data(), gradients_.data() + (length + 2) * width};
    for (int part = 0; part < 2; ++part) {
      Kernel::plan(stream_, inputs_, 0, part, {list_.data(), {slots}}, plan_);
      Kernel::backward_table<float>(stream_, plan_, dx, {memory_.data(), {Kernel::partial_rows(slots), width}},
                                    {to[part], inputs_.parts[part].rows.extent}, Write::add);
    }
  }

 private:
  memory::Stream<HostSpace> stream_;
  std::vector<std::int32_t> ids_ = zipf_ids(vocabulary, slots), lengths_, list_ = std::vector<std::int32_t>(slots);
  std::vector<Index> places_;
  std::vector<std::int32_t> halves_;
  memory::Buffer<float> token_ = filled(vocabulary * width), token_gradient_ = filled(vocabulary * width),
                        half_ = filled(2 * width), position_ = filled(length * width), weight_ = filled(width),
                        bias_ = filled(width), gradients_ = filled((length + 4) * width), out_ = filled(slots * width),
                        dx_ = filled(slots * width), dy_ = filled(slots * width), memory_;
  Inputs inputs_;
  SegmentPlan plan_;
};

/// Three projected inputs of a batch of trajectories with 11 to 20 steps: interleaved, with a type embedding added to
/// each.
class Trajectories {
 public:
  static constexpr Index samples = 80, max_steps = 20;

  explicit Trajectories(ThreadPool& pool) : stream_(pool), places_(samples, 0) {
    for (Index r = 0; r < samples; ++r) offsets_.push_back(offsets_.back() + max_steps - r % 10);
    steps_ = offsets_.back();
    for (auto const offset : offsets_) all_.push_back(3 * offset);
    auto& assembly = inputs_.assembly;
    assembly.arrangement = kernel::Arrangement::interleaved;
    for (int s = 0; s < 3; ++s) {
      dense_[s] = filled(steps_ * width);
      gradients_[s] = filled(steps_ * width);
      targets_.dense[s] = {gradients_[s].data(), Write::overwrite};
      inputs_.parts[s] = {{dense_[s].data(), {steps_, width}}};
      assembly.segments[s] =
          Layout::ragged(steps_, max_steps, {offsets_.data(), {samples + 1}}, {places_.data(), {samples}});
      inputs_.first_part[++assembly.count] = s + 1;
    }
    assembly.layout =
        Layout::ragged(3 * steps_, 3 * max_steps, {all_.data(), {samples + 1}}, {places_.data(), {samples}});
    inputs_.type = {type_.data(), {3, width}};
    targets_.type = {type_gradient_.data(), Write::overwrite};
    out_ = filled(3 * steps_ * width);
    memory_ = filled(Kernel::scratch(inputs_, width));
  }
  Trajectories(Trajectories const&) = delete;
  Trajectories& operator=(Trajectories const&) = delete;

  void forward_backward() {
    TensorView<float, 2, HostSpace> const out{out_.data(), {3 * steps_, width}};
    Kernel::forward<float>(stream_, inputs_, out);
    Kernel::backward<float>(stream_, inputs_, out, {}, targets_, memory_.data());
  }

 private:
  memory::Stream<HostSpace> stream_;
  std::vector<Index> places_, offsets_{0}, all_;
  Index steps_ = 0;
  memory::Buffer<float> dense_[3], gradients_[3], type_ = filled(3 * width), type_gradient_ = filled(3 * width), out_,
                                                  memory_;
  Inputs inputs_;
  kernel::EmbeddingGradients<float, HostSpace> targets_;
};

std::vector<std::int32_t> uniform_ids() {
  std::vector<std::int32_t> ids;
  for (Index i = 0; i < slots; ++i) ids.push_back(static_cast<std::int32_t>(i * 2654435761 % vocabulary));
  return ids;
}

}  // namespace

void register_benchmarks() {
  static ThreadPool pool;
  Shared const zipf([] { return Text(pool, zipf_ids(vocabulary, slots)); });
  Shared const uniform([] { return Text(pool, uniform_ids()); });
  Shared const equal([] { return Text(pool, std::vector<std::int32_t>(slots, 7)); });
  auto const pytorch_text = [](std::string const& name) {
    return pytorch_kernel(name, {vocabulary, width, rows, length});
  };
  for (auto const& [ids, text] : {std::pair{"zipf", zipf}, std::pair{"uniform", uniform}}) {
    auto const name = std::string("embedding/forward/ids:") + ids;
    add_pass(name, text, [](Text& layer) { layer.forward(); });
    add_pass(name + "/peer:roof", text, [](Text& layer) { layer.copy_forward(); });
  }
  add_peer("embedding/forward/ids:zipf", "pytorch", pytorch_text("embedding_forward"));

  auto const planned = [](Text& layer) {
    layer.plan();
    layer.backward(Write::add);
  };
  std::string const backward = "embedding/backward/ids:";
  add_pass(backward + "zipf", zipf, planned);
  add_peer(backward + "zipf", "pytorch", pytorch_text("embedding_backward_add"));
  add_pass(backward + "zipf/peer:roof", zipf, [](Text& layer) { layer.copy_backward(); });
  add_pass(backward + "zipf/new_gradient", zipf, [](Text& layer) {
    layer.plan();
    layer.backward(Write::overwrite);
  });
  add_peer(backward + "zipf/new_gradient", "pytorch", pytorch_text("embedding_backward"));
  add_pass(backward + "zipf/planned_by_a_worker", zipf, [](Text& layer) { layer.backward(Write::add); });
  add_pass(backward + "zipf/planned_by_a_worker/peer:roof", zipf, [](Text& layer) { layer.copy_backward(); });
  add_pass(backward + "uniform", uniform, planned);
  add_pass(backward + "uniform/peer:roof", uniform, [](Text& layer) { layer.copy_backward(); });
  add_pass(backward + "equal", equal, planned);
  add_pass(backward + "equal/peer:uniform", uniform, planned);

  add_pass("embedding/pairs/forward_backward", Shared([] { return Pair(pool); }),
           [](Pair& pair) { pair.forward_backward(); });
  add_peer("embedding/pairs/forward_backward", "pytorch", pytorch_text("embedding_of_pairs"));
  add_pass("embedding/trajectories/forward_backward", Shared([] { return Trajectories(pool); }),
           [](Trajectories& types) { types.forward_backward(); });
  add_peer("embedding/trajectories/forward_backward", "pytorch",
           pytorch_kernel("trajectory_types", {Trajectories::samples, Trajectories::max_steps, width}));
}
