// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/convolution/detail/check_convolution.hpp>
#include <lockstep/kernel/convolution/detail/convolution_portable.hpp>
#include <lockstep/kernel/convolution_shape.hpp>
#include <lockstep/kernel/detail/kernel_types.hpp>
#include <lockstep/kernel/detail/sum_rows.hpp>
#include <lockstep/kernel/write.hpp>
#include <lockstep/memory/scratch.hpp>
#if defined(LOCKSTEP_ONEDNN) && !defined(__CUDACC__)  // nvcc 13.0 aborts in oneDNN's header
#include <lockstep/kernel/convolution/detail/convolution_onednn.hpp>
#endif

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

#if defined(LOCKSTEP_ONEDNN) && defined(__CUDACC__)
namespace detail {
class OneDnnConvolution;
}  // namespace detail
#endif

/// Convolutions over one to three dimensions of space, channels last.
template <class Space>
struct Convolution : detail::NotIncluded<Space> {};

/// Computes float with oneDNN if the target lockstep::onednn is linked, and with matrix products of patches otherwise.
template <>
struct Convolution<HostSpace> : detail::KernelTypes<HostSpace> {
  using Scratch = memory::Scratch<>;  ///< working memory, which a caller keeps between calls

 private:
#if defined(LOCKSTEP_ONEDNN)
  template <class Scalar>
  using EngineFor =
      std::conditional_t<std::is_same_v<Scalar, float>, detail::OneDnnConvolution, detail::PortableConvolution<Scalar>>;
#else
  template <class Scalar>
  using EngineFor = detail::PortableConvolution<Scalar>;
#endif

 public:
  /// Whether oneDNN computes float.
  static constexpr bool by_onednn = !std::is_same_v<EngineFor<float>, detail::PortableConvolution<float>>;

  /// Plans of the last shapes, which a caller keeps between calls for reuse. Not thread-safe.
  template <class Scalar, class Engine = EngineFor<Scalar>>
  class Plans {
   public:
    /// Largest number of plans: enough for two batch sizes, or for lengths that vary within a few steps.
    static constexpr std::size_t capacity = 24;

    /// Returns the plan of this shape and pass. Creates it at the first call; beyond `capacity` plans it replaces the
    /// oldest.
    [[nodiscard]] Engine& find_or_create(ConvolutionShape const& shape, detail::ConvolutionPass pass, Index tile_rows) {
      for (auto& plan : plans_)
        if (plan.pass == pass && plan.shape == shape) return *plan.engine;
      auto engine = std::make_unique<Engine>(shape, pass, tile_rows);
      bool const grows = plans_.size() < capacity;
      if (grows) plans_.push_back({});
      auto& plan = grows ? plans_.back() : plans_[next_++ % capacity];
      plan = {shape, pass, std::move(engine)};
      return *plan.engine;
    }

   private:
    struct Plan {
      ConvolutionShape shape;
      detail::ConvolutionPass pass = detail::ConvolutionPass::forward;
      std::unique_ptr<Engine> engine;
    };
    std::vector<Plan> plans_;
    std::size_t next_ = 0;
  };

  /// Largest number of tiles of samples. Only the shape determines the tiles, so that no bit depends on the number of
  /// threads.
  static constexpr Index max_tiles = 16;

  /// Computes y[r, p, o] = bias[o] + the sum of weight[o, i, k] x[r, p * stride + k * dilation - padding, i]. The sum
  /// is over taps k and the inputs i of o's group.
  /// @shape x [rows, extent…, inputs]   @shape weight [outputs, inputs / groups, kernel…]
  /// @shape bias [outputs], or null   @shape y [rows, result…, outputs], overwritten
  /// @determinism bitwise, for any number of threads; with oneDNN for one library on one processor
  /// @throws ShapeError if a size does not match the shape, the result has no positions, or the groups do not divide
  /// the channels
  /// @source direct from the definition, a correlation, which PyTorch also calls convolution
  template <class Scalar, class Engine>
  static void forward(Stream stream, ConvolutionShape const& shape, Vector<Scalar const> x, Vector<Scalar const> weight,
                      Vector<Scalar const> bias, Vector<Scalar> y, Plans<Scalar, Engine>& plans, Scratch& scratch);

  /// Computes dx = the gradient of x from the gradient of y, or adds it to dx.
  /// @shape dy as y   @shape dx as x
  template <class Scalar, class Engine>
  static void backward_data(Stream stream, ConvolutionShape const& shape, Vector<Scalar const> dy,
                            Vector<Scalar const> weight, Vector<Scalar> dx, Write write, Plans<Scalar, Engine>& plans,
                            Scratch& scratch);

  /// Computes dweight and dbias from dy and x; overwrites or adds to each. Skips a null dbias. Each tile of samples has
  /// a partial sum of its own, and these are added in order.
  /// @shape dweight as weight   @shape dbias [outputs]
  template <class Scalar, class Engine>
  static void backward_weight(Stream stream, ConvolutionShape const& shape, Vector<Scalar const> dy,
                              Vector<Scalar const> x, Vector<Scalar> dweight, Write dweight_write, Vector<Scalar> dbias,
                              Write dbias_write, Plans<Scalar, Engine>& plans, Scratch& scratch);

 private:
  /// Least number of output positions per partial sum of the weight's gradient. With fewer, adding the sums would cost
  /// more than computing them.
  static constexpr Index positions_per_sum = 512;

  /// Split of the samples into tiles.
  struct Tiles {
    Index all, rows, count;
    Tiles(Index samples, Index at_least) noexcept
        : all(samples),
          rows(std::max({Index{1}, at_least, (samples + max_tiles - 1) / max_tiles})),
          count((samples + rows - 1) / rows) {}
    [[nodiscard]] Index rows_of(Index tile) const noexcept { return std::min(rows, all - tile * rows); }
  };

  template <class Scalar>
  static void add(Scalar const* x, Scalar* to, Index count) {
    with_best_instructions([=] {
      for (Index i = 0; i < count; ++i) to[i] += x[i];
    });
  }
};

template <class Scalar, class Engine>
void Convolution<HostSpace>::forward(Stream stream, ConvolutionShape const& shape, Vector<Scalar const> x,
                                     Vector<Scalar const> weight, Vector<Scalar const> bias, Vector<Scalar> y,
                                     Plans<Scalar, Engine>& plans, Scratch& scratch) {
  detail::check_convolution(shape, x.size(), weight.size(), y.size());
  detail::check_convolution_bias(shape, bias);
  if (shape.rows == 0) return;
  scratch.rewind();
  Tiles const tiles(shape.rows, 1);
  auto& plan = plans.find_or_create(shape, detail::ConvolutionPass::forward, tiles.rows);
  auto* const packed = scratch.take_elements<Scalar>(plan.weight_elements());
  auto* const work = scratch.take_elements<Scalar>(plan.tile_elements() * tiles.count);
  plan.pack(stream.pool(), weight.data, packed);
  stream.pool().run(tiles.count, [&](Index tile) {
    auto const first = tile * tiles.rows;
    plan.run(tile, tiles.rows_of(tile), x.data + first * shape.input_size(), packed, bias.data,
             y.data + first * shape.output_size(), work + tile * plan.tile_elements());
  });
}

template <class Scalar, class Engine>
void Convolution<HostSpace>::backward_data(Stream stream, ConvolutionShape const& shape, Vector<Scalar const> dy,
                                           Vector<Scalar const> weight, Vector<Scalar> dx, Write write,
                                           Plans<Scalar, Engine>& plans, Scratch& scratch) {
  detail::check_convolution(shape, dx.size(), weight.size(), dy.size());
  if (shape.rows == 0) return;
  scratch.rewind();
  Tiles const tiles(shape.rows, 1);
  auto& plan = plans.find_or_create(shape, detail::ConvolutionPass::data, tiles.rows);
  auto* const packed = scratch.take_elements<Scalar>(plan.weight_elements());
  auto* const work = scratch.take_elements<Scalar>(plan.tile_elements() * tiles.count);
  auto* const to = write == Write::add ? scratch.take_elements<Scalar>(dx.size()) : dx.data;
  plan.pack(stream.pool(), weight.data, packed);
  stream.pool().run(tiles.count, [&](Index tile) {
    auto const first = tile * tiles.rows, rows = tiles.rows_of(tile);
    auto* const part = to + first * shape.input_size();
    plan.run(tile, rows, dy.data + first * shape.output_size(), packed, nullptr, part,
             work + tile * plan.tile_elements());
    if (write == Write::add) add(part, dx.data + first * shape.input_size(), rows * shape.input_size());
  });
}

template <class Scalar, class Engine>
void Convolution<HostSpace>::backward_weight(Stream stream, ConvolutionShape const& shape, Vector<Scalar const> dy,
                                             Vector<Scalar const> x, Vector<Scalar> dweight, Write dweight_write,
                                             Vector<Scalar> dbias, Write dbias_write, Plans<Scalar, Engine>& plans,
                                             Scratch& scratch) {
  detail::check_convolution(shape, x.size(), dweight.size(), dy.size());
  detail::check_convolution_bias(shape, dbias);
  if (shape.rows == 0) {
    if (dweight_write == Write::overwrite) std::fill_n(dweight.data, dweight.size(), Scalar{0});
    if (dbias.data && dbias_write == Write::overwrite) std::fill_n(dbias.data, dbias.size(), Scalar{0});
    return;
  }
  scratch.rewind();
  Tiles const tiles(shape.rows, positions_per_sum / shape.output_positions());
  auto& plan = plans.find_or_create(shape, detail::ConvolutionPass::weight, tiles.rows);
  auto const size = plan.weight_elements();
  auto* const sums = scratch.take_elements<Scalar>(size * tiles.count);
  auto* const bias_sums = scratch.take_elements<Scalar>(shape.outputs * tiles.count);
  auto* const work = scratch.take_elements<Scalar>(plan.tile_elements() * tiles.count);
  stream.pool().run(tiles.count, [&](Index tile) {
    auto const first = tile * tiles.rows, rows = tiles.rows_of(tile);
    auto const* const part = dy.data + first * shape.output_size();
    plan.run(tile, rows, x.data + first * shape.input_size(), part, nullptr, sums + tile * size,
             work + tile * plan.tile_elements());
    if (dbias.data)
      detail::sum_rows(part, shape.outputs, shape.outputs, rows * shape.output_positions(),
                       bias_sums + tile * shape.outputs, Write::overwrite);
  });
  stream.pool().for_ranges(size, 8192, [=](Index begin, Index end) {
    for (Index tile = 1; tile < tiles.count; ++tile) add(sums + tile * size + begin, sums + begin, end - begin);
  });
  plan.unpack(stream.pool(), sums, dweight.data, dweight_write);
  if (dbias.data) detail::sum_rows(bias_sums, shape.outputs, shape.outputs, tiles.count, dbias.data, dbias_write);
}

// Instantiations in the library, for programs that link it.
#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_CONVOLUTION(instantiate, Scalar)                                                              \
  instantiate void Convolution<HostSpace>::forward<Scalar, Convolution<HostSpace>::EngineFor<Scalar>>(         \
      Stream stream, ConvolutionShape const& shape, Vector<Scalar const> x, Vector<Scalar const> weight,       \
      Vector<Scalar const> bias, Vector<Scalar> y, Plans<Scalar, EngineFor<Scalar>>& plans, Scratch& scratch); \
  instantiate void Convolution<HostSpace>::backward_data<Scalar, Convolution<HostSpace>::EngineFor<Scalar>>(   \
      Stream stream, ConvolutionShape const& shape, Vector<Scalar const> dy, Vector<Scalar const> weight,      \
      Vector<Scalar> dx, Write write, Plans<Scalar, EngineFor<Scalar>>& plans, Scratch& scratch);              \
  instantiate void Convolution<HostSpace>::backward_weight<Scalar, Convolution<HostSpace>::EngineFor<Scalar>>( \
      Stream stream, ConvolutionShape const& shape, Vector<Scalar const> dy, Vector<Scalar const> x,           \
      Vector<Scalar> dweight, Write dweight_write, Vector<Scalar> dbias, Write dbias_write,                    \
      Plans<Scalar, EngineFor<Scalar>>& plans, Scratch& scratch)
LOCKSTEP_CONVOLUTION(extern template, float);
LOCKSTEP_CONVOLUTION(extern template, double);
#endif

}}}  // namespace lockstep::kernel
