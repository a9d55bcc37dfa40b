// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_CUDNN)
#include <cudnn.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/float16.hpp>
#include <lockstep/kernel/attention/detail/attention_inputs.hpp>
#include <lockstep/kernel/attention/detail/passes_cudnn.cuh>
#include <lockstep/kernel/detail/descriptor_cudnn.cuh>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/vectorized_access.cuh>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Sets vectors of padding to zero, and those of sequences whose counterpart in `others` has no tokens. cuDNN does not
/// define them. `width` is a multiple of 8, and x aligned to 16 bytes.
template <class Scalar>
void clear_padding(memory::Stream<CudaSpace> stream, SequenceLayout<CudaSpace> const& layout,
                   SequenceLayout<CudaSpace> const& others, Index width, Scalar* x) {
  using Access = VectorizedAccess<elements_per_access<Scalar>>;
  auto const count = layout.slots * width;
  for_elements("kernel::Attention", stream, count / Access::size, [=] __device__(Index at) {
    auto const slot = at * Access::size / width;
    if (layout.is_token(slot) && others.tokens(layout.row_of(slot)) > 0) return;
    typename Access::template Values<Scalar> zeros{};
    Access(at * Access::size, count).store(zeros, x);
  });
}

/// Attention of a stream by cuDNN's fused kernels, with a plan for each shape so far. Plans are kept, because recorded
/// graphs contain their kernels. The functions do what Attention's do. They return false if cuDNN does not compute the
/// pass; they then wrote nothing.
class CudnnAttention {
 public:
  template <class Scalar>
  using Inputs = AttentionInputs<Scalar, CudaSpace>;
  using Stream = memory::Stream<CudaSpace>;

  /// Older versions need other graphs for some shapes.
  static constexpr std::size_t min_version = 91600;
  template <class Scalar>
  static constexpr bool computes = std::is_same_v<Scalar, bfloat16> || std::is_same_v<Scalar, float16>;

  void use(bool use) noexcept { used_ = use; }
  [[nodiscard]] bool is_used() const noexcept { return used_; }
  /// Returns the number of passes that cuDNN computed, and of those that it did not although it was to be used.
  [[nodiscard]] Index computed() const noexcept { return computed_; }
  [[nodiscard]] Index refused() const noexcept { return refused_; }
  /// Returns the reason of the last refusal.
  [[nodiscard]] std::string const& reason() const noexcept { return reason_; }

  /// Returns the bytes of memory that a pass needs: 0 if cuDNN does not compute it.
  template <class Scalar>
  [[nodiscard]] std::size_t memory_bytes(Stream stream, Inputs<Scalar> const& in, AttentionPass pass) {
    auto const* const plan = find(stream, in, pass);
    return plan ? alignment + means_offset(*plan) + statistics(in) * sizeof(float) : 0;
  }

  template <class Scalar>
  [[nodiscard]] bool forward(Stream stream, Inputs<Scalar> const& in, Scalar* out, float* log_sums, float* memory) {
    if (!used_) return false;
    auto const* const plan = find(stream, in, AttentionPass::forward);
    if (!can_run(plan, in.query.data, in.key.data, in.value.data, out)) return false;
    Constants const constants(in.scale);
    auto bindings = constants.bindings(in);
    bindings.push_back({cudnn_id::out, out});
    bindings.push_back({cudnn_id::log_sums, log_sums});
    plan->run(handle(stream), bindings, aligned(memory));
    ++stream.queued().kernels;
    if (!in.queries.lengths.empty()) clear_padding(stream, in.queries, in.keys, in.width(), out);
    return true;
  }

  template <class Scalar>
  [[nodiscard]] bool backward(Stream stream, Inputs<Scalar> const& in, Scalar const* out, float const* log_sums,
                              Scalar const* dout, AttentionGradients<Scalar> const& to, float* memory) {
    if (!used_) return false;
    auto const* plan = find(stream, in, AttentionPass::backward);
    auto const is_written = [](auto const& target) { return target.data && target.write == Write::overwrite; };
    if (plan && !(is_written(to.query) && is_written(to.key) && is_written(to.value))) {
      reason_ = "cuDNN overwrites all gradients";
      plan = nullptr;
    }
    if (!can_run(plan, in.query.data, in.key.data, in.value.data, out, dout, to.query.data, to.key.data, to.value.data))
      return false;
    Constants const constants(in.scale);
    auto* const workspace = aligned(memory);
    auto bindings = constants.bindings(in);
    bindings.push_back({cudnn_id::one, &constants.one});
    bindings.push_back({cudnn_id::out, out});
    bindings.push_back({cudnn_id::log_sums, log_sums});
    bindings.push_back({cudnn_id::dout, dout});
    bindings.push_back({cudnn_id::means, workspace + means_offset(*plan)});
    bindings.push_back({cudnn_id::dquery, to.query.data});
    bindings.push_back({cudnn_id::dkey, to.key.data});
    bindings.push_back({cudnn_id::dvalue, to.value.data});
    plan->run(handle(stream), bindings, workspace);
    ++stream.queued().kernels;
    if (!in.queries.lengths.empty()) {
      clear_padding(stream, in.queries, in.keys, in.width(), to.query.data);
      clear_padding(stream, in.keys, in.queries, in.key_width(), to.key.data);
      clear_padding(stream, in.keys, in.queries, in.key_width(), to.value.data);
    }
    return true;
  }

 private:
  using Binding = CudnnGraphPlan::Binding;
  static constexpr std::size_t alignment = 256;  // that of cudaMalloc

  /// Numbers that cuDNN reads in host memory, and what both passes have in common.
  struct Constants {
    explicit Constants(double factor) : scale(static_cast<float>(factor)) {}
    template <class Scalar>
    [[nodiscard]] std::vector<Binding> bindings(Inputs<Scalar> const& in) const {
      std::vector<Binding> out{{cudnn_id::query, in.query.data},
                               {cudnn_id::key, in.key.data},
                               {cudnn_id::value, in.value.data},
                               {cudnn_id::scale, &scale}};
      bool const padded = !in.queries.lengths.empty();
      if (padded) out.push_back({cudnn_id::query_lengths, in.queries.lengths.data});
      if (padded) out.push_back({cudnn_id::key_lengths, in.keys.lengths.data});
      if (padded || in.causal) out.push_back({cudnn_id::minus_infinity, &minus_infinity});
      return out;
    }
    float scale, one = 1, minus_infinity = -std::numeric_limits<float>::infinity();
  };

  [[nodiscard]] static std::byte* aligned(float* memory) noexcept {
    auto const address = reinterpret_cast<std::uintptr_t>(memory);
    return reinterpret_cast<std::byte*>((address + alignment - 1) / alignment * alignment);
  }
  [[nodiscard]] static std::size_t means_offset(CudnnGraphPlan const& plan) noexcept {
    return (plan.workspace_bytes() + alignment - 1) / alignment * alignment;
  }
  template <class Scalar>
  [[nodiscard]] static std::size_t statistics(Inputs<Scalar> const& in) noexcept {
    return static_cast<std::size_t>(in.rows() * in.heads * in.queries.length);
  }

  /// Counts the pass, and returns whether there is a plan, and all tensors have the alignment that it relies on.
  template <class... Tensors>
  [[nodiscard]] bool can_run(CudnnGraphPlan const* plan, Tensors const*... tensors) {
    bool const fits = (... && (reinterpret_cast<std::uintptr_t>(tensors) % 16 == 0));
    if (plan && !fits) reason_ = "cuDNN's tensors must be aligned to 16 bytes";
    ++(plan && fits ? computed_ : refused_);
    return plan && fits;
  }

  /// Returns the stream's own handle.
  [[nodiscard]] static cudnnHandle_t handle(Stream stream) {
    auto* const handle = stream.persistent<CudnnHandle>().get();
    check_cudnn(cudnnSetStream(handle, stream.get()), "cudnnSetStream");
    return handle;
  }

  /// Returns the pass's plan, or null if cuDNN is not used or does not support it.
  template <class Scalar>
  [[nodiscard]] CudnnGraphPlan const* find(Stream stream, Inputs<Scalar> const& in, AttentionPass pass) {
    if (!used_) return nullptr;
    if (auto const* const obstacle = obstacle_to(in, pass)) {
      reason_ = obstacle;
      return nullptr;
    }
    CudnnAttentionShape const shape{.pass = pass,
                                    .type = std::is_same_v<Scalar, bfloat16> ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF,
                                    .rows = in.rows(),
                                    .heads = in.heads,
                                    .key_heads = in.key_heads(),
                                    .queries = in.queries.length,
                                    .keys = in.keys.length,
                                    .channels = in.head_width(),
                                    .causal = in.causal,
                                    .padded = !in.queries.lengths.empty()};
    auto found = plans_.find(shape);
    if (found == plans_.end())
      found =
          plans_.emplace(shape, CudnnGraphPlan(handle(stream), [&] { return CudnnAttentionGraph::describe(shape); }))
              .first;
    if (found->second.is_supported()) return &found->second;
    reason_ = found->second.refusal();
    return nullptr;
  }

  /// Returns why cuDNN cannot compute the pass, or null.
  template <class Scalar>
  [[nodiscard]] static char const* obstacle_to(Inputs<Scalar> const& in, AttentionPass pass) {
    if (cudnnGetVersion() < min_version) return "cuDNN is older than 9.16";
    if (in.mask.active()) return "cuDNN's dropout has other random bits";
    if (in.bias.data) return "cuDNN adds no bias by distance";
    if (in.queries.is_ragged() || in.keys.is_ragged()) return "the layout is ragged";
    if (in.queries.lengths.empty() != in.keys.lengths.empty()) return "only one side has padding";
    if (in.rows() == 0 || in.queries.length == 0 || in.keys.length == 0) return "there are no tokens";
    if (in.queries.length == 1 && in.keys.length == 1) return "cuDNN does not support one query with one key";
    if (in.head_width() % 8 != 0 || in.head_width() > 256)
      return "the width of a head is not a multiple of 8 up to 256";
    if (std::max(in.query.size(), in.key.size()) > std::numeric_limits<std::int32_t>::max())
      return "a tensor has more than 2^31 - 1 elements";
    int device = 0, major = 0;
    memory::check_cuda(cudaGetDevice(&device), "cudaGetDevice");
    memory::check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                       "cudaDeviceGetAttribute");
    if (major < 8) return "the compute capability is below 8.0";
    if (pass == AttentionPass::backward && major > 9)
      return "cuDNN's deterministic backward for this GPU is a kernel for compute capability 8.0";
    return nullptr;
  }

  bool used_ = false;
  std::map<CudnnAttentionShape, CudnnGraphPlan> plans_;
  Index computed_ = 0, refused_ = 0;
  std::string reason_;
};

}}}  // namespace lockstep::kernel::detail
#endif
