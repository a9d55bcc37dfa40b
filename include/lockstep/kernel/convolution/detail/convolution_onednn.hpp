// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_ONEDNN)
#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/kernel/convolution/detail/convolution_pass.hpp>
#include <lockstep/kernel/convolution/detail/convolution_portable.hpp>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

// Declared here under names of our own: an OpenMP header needs no OpenMP compiler, but some compilers do not install
// it.
extern "C" int lockstep_omp_get_max_threads() __asm__("omp_get_max_threads");
extern "C" void lockstep_omp_set_num_threads(int threads) __asm__("omp_set_num_threads");

/// While it exists, a library that uses OpenMP works on the calling thread only and opens no parallel region. The
/// setting belongs to the calling thread, not to the process. Other threads keep their own, and the destructor restores
/// the caller's.
class [[nodiscard]] OneOpenmpThread {
 public:
  OneOpenmpThread() noexcept : before_(lockstep_omp_get_max_threads()) { lockstep_omp_set_num_threads(1); }
  ~OneOpenmpThread() { lockstep_omp_set_num_threads(before_); }
  OneOpenmpThread(OneOpenmpThread const&) = delete;
  OneOpenmpThread& operator=(OneOpenmpThread const&) = delete;

 private:
  int before_;
};

/// A pass of a convolution with oneDNN, version 2 or 3. Creates primitives, streams and memory objects once per shape.
/// Only the calling thread computes a tile of samples. The functions do what PortableConvolution's do, except that
/// `pack` also chooses the weight that `run` takes. PortableConvolution computes depthwise convolutions for which
/// oneDNN would use the code of general groups, which is many times slower. Dilated ones are an example.
class OneDnnConvolution {
 public:
  /// @throws Error if oneDNN fails; names the shape
  OneDnnConvolution(ConvolutionShape const& shape, ConvolutionPass pass, Index tile_rows) : pass_(pass) {
    try {
      OneOpenmpThread const alone;
      auto const tiles = (shape.rows + tile_rows - 1) / tile_rows, rest = shape.rows - (tiles - 1) * tile_rows;
      Choice const full(shape, tile_rows, pass, engine_, nullptr);
      bool const slow = pass == ConvolutionPass::weight && shape.kernel[0] == 1 && shape.kernel[1] == 1;
      if (shape.is_depthwise() && (!full.is_by_channel || slow)) {
        portable_.emplace(shape, pass, tile_rows);
        return;
      }
      dnnl::memory::desc const plain(weight_extent(shape), type, weight_order(shape));
      packed_ = dnnl::memory(full.weight, engine_, nullptr);
      plain_ = dnnl::memory(plain, engine_, nullptr);
      reorder_ = pass == ConvolutionPass::weight ? dnnl::reorder(packed_, plain_) : dnnl::reorder(plain_, packed_);
      stream_ = dnnl::stream(engine_);
      no_bias_.resize(static_cast<std::size_t>(shape.outputs));
      for (Index tile = 1; tile < tiles; ++tile) calls_.emplace_back(full, engine_);
      calls_.emplace_back(rest == tile_rows ? full : Choice(shape, rest, pass, engine_, &full.weight), engine_);
    } catch (dnnl::error const& error) {
      throw Error("Convolution: oneDNN refuses " + std::to_string(shape.inputs) + " to " +
                  std::to_string(shape.outputs) + " channels in " + std::to_string(shape.groups) + " groups, extent " +
                  to_string(shape.extent) + ", kernel " + to_string(shape.kernel) + " (" + error.what() + ")");
    }
  }

  [[nodiscard]] Index weight_elements() const {
    return portable_ ? portable_->weight_elements() : floats(packed_.get_desc().get_size());
  }
  [[nodiscard]] Index tile_elements() const noexcept {
    if (portable_) return portable_->tile_elements();
    return floats(std::max(calls_.front().scratch_bytes, calls_.back().scratch_bytes));
  }

  void pack(ThreadPool& pool, float const* weight, float* packed) {
    if (portable_) return portable_->pack(pool, weight, packed);
    plain_.set_data_handle(const_cast<float*>(weight));
    packed_.set_data_handle(packed);
    reorder(plain_, packed_);
  }
  void unpack(ThreadPool& pool, float* packed, float* weight, Write write) {
    if (portable_) return portable_->unpack(pool, packed, weight, write);
    if (write == Write::add) sum_.resize(static_cast<std::size_t>(floats(plain_.get_desc().get_size())));
    packed_.set_data_handle(packed);
    plain_.set_data_handle(write == Write::add ? sum_.data() : weight);
    reorder(packed_, plain_);
    if (write == Write::add)
      for (std::size_t i = 0; i < sum_.size(); ++i) weight[i] += sum_[i];
  }

  void run(Index tile, Index rows, float const* from, float const* with, float const* bias, float* to, float* scratch) {
    if (portable_) return portable_->run(tile, rows, from, with, bias, to, scratch);
    OneOpenmpThread const alone;
    auto& call = calls_[static_cast<std::size_t>(tile)];
    if (pass_ == ConvolutionPass::weight) {
      call.run({{{DNNL_ARG_SRC, from}, {DNNL_ARG_DIFF_DST, with}, {DNNL_ARG_DIFF_WEIGHTS, to}}}, nullptr, scratch);
    } else if (pass_ == ConvolutionPass::data) {
      call.run({{{DNNL_ARG_DIFF_DST, from}, {DNNL_ARG_DIFF_SRC, to}, {}}}, packed_.get(), scratch);
    } else {
      call.run({{{DNNL_ARG_SRC, from}, {DNNL_ARG_DST, to}, {DNNL_ARG_BIAS, bias ? bias : no_bias_.data()}}},
               packed_.get(), scratch);
    }
  }

 private:
  static constexpr auto type = dnnl::memory::data_type::f32;
  using Order = dnnl::memory::format_tag;

  [[nodiscard]] static constexpr Index floats(std::size_t bytes) noexcept {
    return static_cast<Index>((bytes + sizeof(float) - 1) / sizeof(float));
  }
  /// Returns the number of leading axes of space that can be dropped. The library has faster code for fewer dimensions,
  /// and code for depthwise convolutions over two.
  [[nodiscard]] static std::size_t trivial_axes(ConvolutionShape const& s) noexcept {
    std::size_t const maximum = s.is_depthwise() ? 1 : 2;
    std::size_t axes = 0;
    while (axes < maximum && s.extent[axes] == 1 && s.kernel[axes] == 1 && s.padding[axes] == 0 &&
           s.padding_after[axes] == 0)
      ++axes;
    return axes;
  }
  [[nodiscard]] static dnnl::memory::dims space(ConvolutionShape const& s, Extents<3> const& extent) {
    return {extent.begin() + static_cast<std::ptrdiff_t>(trivial_axes(s)), extent.end()};
  }
  [[nodiscard]] static dnnl::memory::dims tensor(ConvolutionShape const& s, Index rows, Index channels,
                                                 Extents<3> const& extent) {
    dnnl::memory::dims out{rows, channels};
    auto const rest = space(s, extent);
    out.insert(out.end(), rest.begin(), rest.end());
    return out;
  }
  [[nodiscard]] static Order order(ConvolutionShape const& s) noexcept {
    return std::array{Order::ndhwc, Order::nhwc, Order::nwc}[trivial_axes(s)];
  }
  /// Returns the weight's extents; groups are an axis of their own.
  [[nodiscard]] static dnnl::memory::dims weight_extent(ConvolutionShape const& s) {
    auto extent = tensor(s, s.group_outputs(), s.group_inputs(), s.kernel);
    if (s.groups > 1) extent.insert(extent.begin(), s.groups);
    return extent;
  }
  [[nodiscard]] static Order weight_order(ConvolutionShape const& s) noexcept {
    return s.groups > 1 ? std::array{Order::goidhw, Order::goihw, Order::goiw}[trivial_axes(s)]
                        : std::array{Order::oidhw, Order::oihw, Order::oiw}[trivial_axes(s)];
  }

  void reorder(dnnl::memory& from, dnnl::memory& to) {
    OneOpenmpThread const alone;
    reorder_.execute(stream_, from, to);
  }

  /// Primitive and layouts that oneDNN chose for a number of samples.
  struct Choice {
    dnnl::primitive primitive;
    dnnl::memory::desc x, y, weight, bias, scratchpad;
    ConvolutionPass pass;
    bool is_by_channel = false;  ///< whether it is made for depthwise convolutions, which only its name shows

    /// Uses the order of `given` for the weight, if not null.
    Choice(ConvolutionShape const& s, Index rows, ConvolutionPass which, dnnl::engine const& engine,
           dnnl::memory::desc const* given)
        : x(tensor(s, rows, s.inputs, s.extent), type, order(s)),
          y(tensor(s, rows, s.outputs, s.result()), type, order(s)),
          weight(given ? *given : dnnl::memory::desc(weight_extent(s), type, Order::any)),
          bias({s.outputs}, type, Order::x),
          pass(which) {
      using dnnl::algorithm, dnnl::prop_kind;
      auto const stride = space(s, s.stride), before = space(s, s.padding), after = space(s, s.padding_after);
      auto dilation = space(s, s.dilation);
      for (auto& positions : dilation) --positions;  // oneDNN counts dilation from 0
      dnnl::primitive_attr attributes;
      attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
      dnnl::memory::desc const any(weight_extent(s), type, Order::any);
      auto const& forward_weight = pass == ConvolutionPass::forward ? weight : any;
      // Version 2 takes the description of a pass as one argument, version 3 as separate ones.
      auto const describe = [&]<class Pass>(std::type_identity<Pass>, auto const& what, auto const&... forward) {
        return std::apply(
            [&](auto const&... argument) {
              if constexpr (DNNL_VERSION_MAJOR < 3)
                return typename Pass::primitive_desc({argument...}, attributes, engine, forward...);
              else
                return typename Pass::primitive_desc(engine, argument..., forward..., attributes);
            },
            what);
      };
      auto const kind = prop_kind::forward_training;
      auto const direct = algorithm::convolution_direct;
      auto const forward =
          describe(std::type_identity<dnnl::convolution_forward>{},
                   std::tie(kind, direct, x, forward_weight, bias, y, stride, dilation, before, after));
      auto const backward = std::tie(direct, x, weight, y, stride, dilation, before, after);
      auto const take = [this](auto made, auto const& description, dnnl::memory::desc const& chosen) {
        primitive = std::move(made);
        weight = chosen;
        scratchpad = description.scratchpad_desc();
        is_by_channel = std::string(description.impl_info_str()).find("dw") != std::string::npos;
      };
      if (pass == ConvolutionPass::forward) {
        take(dnnl::convolution_forward(forward), forward, forward.weights_desc());
      } else if (pass == ConvolutionPass::data) {
        auto const description = describe(std::type_identity<dnnl::convolution_backward_data>{}, backward, forward);
        take(dnnl::convolution_backward_data(description), description, description.weights_desc());
      } else {
        auto const description = describe(std::type_identity<dnnl::convolution_backward_weights>{}, backward, forward);
        take(dnnl::convolution_backward_weights(description), description, description.diff_weights_desc());
      }
    }
    [[nodiscard]] dnnl::memory::desc const& of(int argument) const noexcept {
      switch (argument) {
        case DNNL_ARG_SRC:
        case DNNL_ARG_DIFF_SRC:
          return x;
        case DNNL_ARG_DST:
        case DNNL_ARG_DIFF_DST:
          return y;
        case DNNL_ARG_BIAS:
          return bias;
        default:
          return weight;
      }
    }
  };

  struct Argument {
    int id = 0;
    void const* data = nullptr;
  };

  /// Resources of one tile, so that tiles can be computed concurrently.
  class Call {
   public:
    std::size_t scratch_bytes;

    Call(Choice const& choice, dnnl::engine const& engine)
        : scratch_bytes(choice.scratchpad.get_size()), choice_(choice), engine_(engine), stream_(engine) {
      scratchpad_ = dnnl::memory(choice.scratchpad, engine, nullptr);
    }
    void run(std::array<Argument, 3> const& arguments, dnnl_memory_t weight, void* scratch) {
      std::array<dnnl_exec_arg_t, 5> all{};
      int count = 0;
      for (std::size_t i = 0; i < arguments.size() && arguments[i].id != 0; ++i) {
        if (!memories_[i]) memories_[i] = dnnl::memory(choice_.of(arguments[i].id), engine_, nullptr);
        memories_[i].set_data_handle(const_cast<void*>(arguments[i].data));
        all[static_cast<std::size_t>(count++)] = {arguments[i].id, memories_[i].get()};
      }
      if (weight != nullptr) all[static_cast<std::size_t>(count++)] = {DNNL_ARG_WEIGHTS, weight};
      scratchpad_.set_data_handle(scratch);
      all[static_cast<std::size_t>(count++)] = {DNNL_ARG_SCRATCHPAD, scratchpad_.get()};
      dnnl::error::wrap_c_api(dnnl_primitive_execute(choice_.primitive.get(), stream_.get(), count, all.data()),
                              "a convolution could not be computed");
    }

   private:
    Choice choice_;
    dnnl::engine engine_;
    dnnl::stream stream_;
    std::array<dnnl::memory, 3> memories_;
    dnnl::memory scratchpad_;
  };

  ConvolutionPass pass_;
  std::optional<PortableConvolution<float>> portable_;  // if not empty, computes instead of oneDNN
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_;
  dnnl::memory packed_, plain_;  // the weight, in oneDNN's order and in ours
  dnnl::reorder reorder_;
  std::vector<Call> calls_;
  std::vector<float> no_bias_, sum_;
};

}}}  // namespace lockstep::kernel::detail
#endif
