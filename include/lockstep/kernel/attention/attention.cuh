// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/attention/attention.hpp>
#include <lockstep/kernel/attention/detail/attention_backward.cuh>
#include <lockstep/kernel/attention/detail/attention_backward_tensor_core.cuh>
#include <lockstep/kernel/attention/detail/attention_forward.cuh>
#include <lockstep/kernel/attention/detail/attention_forward_tensor_core.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes, masks and formulas, queued on the stream. The forward kernel passes
/// over the keys once and corrects the softmax as it proceeds. The backward kernels pass over queries and keys once
/// each, so that each gradient has one writer. Products run on tensor cores, except in double and on GPUs older than
/// compute capability 8.0; sums are float. In bfloat16 and float16, probabilities and the scores' gradients are rounded
/// to that type before their product. A product of floats is the sum of three TF32 products, which loses less than
/// 2^-20 of it.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct Attention<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar, int Rank>
  using View = TensorView<Scalar, Rank, CudaSpace>;

  template <class Scalar>
  using Inputs = detail::AttentionInputs<Scalar, CudaSpace>;
  template <class Scalar>
  using Target = detail::AttentionTarget<Scalar>;
  template <class Scalar>
  using Gradients = detail::AttentionGradients<Scalar>;

  /// The widest head whose queries and keys fit into a block's shared memory; without tensor cores, at most 64.
  template <class Scalar>
  static constexpr Index max_head_width = sizeof(Scalar) == sizeof(double)  ? 32
                                          : sizeof(Scalar) == sizeof(float) ? 64
                                                                            : 128;

  template <class Scalar>
  [[nodiscard]] static Index forward_scratch(Stream, Inputs<Scalar> const&) {
    return 0;
  }
  template <class Scalar>
  [[nodiscard]] static Index scratch(Stream, Inputs<Scalar> const& in) {
    return in.rows() * in.heads *
           (per_query(in) * in.queries.length + (in.bias.data ? query_tiles(in) * in.distances() : 0));
  }

  /// @throws ShapeError as on the host, and for a head wider than max_head_width
  template <class Scalar>
  static void forward(Stream stream, Inputs<Scalar> const& in, View<Scalar, 2> out,
                      View<Accumulate<Scalar>, 2> log_sums, View<Accumulate<Scalar>, 1>) {
    auto const name = "kernel::Attention::forward";
    with_shape<Scalar>(in, out.extent, [&](auto on_tensor_cores, auto channels) {
      constexpr int n = decltype(channels)::value;
      count_products<Scalar, decltype(on_tensor_cores)::value>(stream, in, 2);
      if constexpr (decltype(on_tensor_cores)::value) {
        bool const wide = is_wide(in, {in.query.data, in.key.data, in.value.data, out.data});
        with_flag(in.mask.active(), [&](auto drops) {
          auto const run = [&](auto row_tiles) {
            constexpr int tiles = decltype(row_tiles)::value;
            launch<detail::FragmentShape<Scalar, n, tiles>>(
                name, stream, in, in.heads, in.queries.length,
                detail::attend_on_tensor_cores<Scalar, n, tiles, decltype(drops)::value>, wide, out.data,
                log_sums.data);
          };
          if constexpr (n == 64 && sizeof(Scalar) < sizeof(float)) {
            // More queries per block read keys less often, but leave short sequences few blocks.
            if (in.queries.length >= 256) return run(Constant<2>{});
          }
          run(Constant<1>{});
        });
      } else {
        launch<detail::AttentionShape<Scalar, n>>(name, stream, in, in.heads, in.queries.length,
                                                  detail::attend<Scalar, n>, out.data, log_sums.data);
      }
    });
  }

  template <class Scalar>
  static void backward(Stream stream, Inputs<Scalar> const& in, View<Scalar const, 2> out,
                       View<Accumulate<Scalar> const, 2> log_sums, View<Scalar const, 2> dout,
                       Gradients<Scalar> const& to, View<Accumulate<Scalar>, 1> memory) {
    using Sum = Accumulate<Scalar>;
    auto const name = "kernel::Attention::backward";
    auto const heads = in.rows() * in.heads;
    auto* const by_distance = to.bias.data ? memory.data + per_query(in) * heads * in.queries.length : nullptr;
    auto const blocks = heads * query_tiles(in);
    if (by_distance && blocks > 0)
      memory::check_cuda(cudaMemsetAsync(by_distance, 0,
                                         static_cast<std::size_t>(blocks * in.distances()) * sizeof(Sum), stream.get()),
                         "cudaMemsetAsync");
    auto const arguments = arguments_of(in);
    with_shape<Scalar>(in, out.extent, [&](auto on_tensor_cores, auto channels) {
      constexpr int n = decltype(channels)::value;
      count_products<Scalar, decltype(on_tensor_cores)::value>(stream, in, 5);
      if constexpr (decltype(on_tensor_cores)::value) {
        using Shape = detail::FragmentShape<Scalar, n, 1>;
        auto* const statistics = reinterpret_cast<detail::QueryStatistics*>(memory.data);
        auto* const bits = reinterpret_cast<std::uint8_t*>(statistics + heads * in.queries.length);
        bool const wide = is_wide(in, {in.query.data, in.key.data, in.value.data, out.data, dout.data, to.query.data,
                                       to.key.data, to.value.data});
        with_flag(in.mask.active(), [&](auto drops) {
          launch<Shape>(name, stream, in, in.heads, in.queries.length,
                        detail::differentiate_queries<Scalar, n, 1, decltype(drops)::value>, wide, out.data, dout.data,
                        log_sums.data, statistics, bits, to.query, by_distance);
          launch<Shape>(name, stream, in, in.key_heads(), in.keys.length,
                        detail::differentiate_keys<Scalar, n, 1, decltype(drops)::value>, wide, dout.data, statistics,
                        bits, to.key, to.value);
        });
      } else {
        using Shape = detail::AttentionShape<Scalar, n>;
        auto* const means = memory.data;
        detail::launch(name, stream, heads * in.queries.length * detail::warp, detail::attention_means<Scalar>,
                       arguments, out.data, dout.data, means);
        launch<Shape>(name, stream, in, in.heads, in.queries.length,
                      detail::differentiate_attention<Scalar, n, detail::Side::queries>, dout.data, log_sums.data,
                      means, to.query, Target<Scalar>{}, by_distance);
        launch<Shape>(name, stream, in, in.key_heads(), in.keys.length,
                      detail::differentiate_attention<Scalar, n, detail::Side::keys>, dout.data, log_sums.data, means,
                      to.key, to.value, static_cast<Sum*>(nullptr));
      }
    });
    if (to.bias.data)
      detail::launch_grid(
          name, stream, static_cast<unsigned>(in.heads * ((in.distances() + detail::warp - 1) / detail::warp)),
          detail::threads_per_block, detail::sum_distances<Scalar>, arguments, query_tiles(in), by_distance, to.bias);
  }

 private:
  template <int n>
  struct Constant {
    static constexpr int value = n;
  };

  /// Returns how many numbers the backward pass stores for each query of a head: statistics and dropout's bits.
  template <class Scalar>
  [[nodiscard]] static Index per_query(Inputs<Scalar> const& in) {
    if constexpr (!detail::on_tensor_cores<Scalar>) return 1;
    constexpr Index statistics{sizeof(detail::QueryStatistics)}, number{sizeof(float)};
    return (statistics + (in.mask.active() ? detail::kept_pitch(in.keys.length) : 0)) / number;
  }

  /// Calls f with the flag as a constant.
  template <class Function>
  static void with_flag(bool flag, Function const& f) {
    flag ? f(std::true_type{}) : f(std::false_type{});
  }

  /// Returns the number of blocks that the backward pass has for the queries of one head.
  template <class Scalar>
  [[nodiscard]] static Index query_tiles(Inputs<Scalar> const& in) {
    Index own = detail::AttentionShape<Scalar, 1>::own;  // equal for all head widths
    with_path<Scalar>([&](auto on_tensor_cores) {
      if constexpr (decltype(on_tensor_cores)::value) own = detail::FragmentShape<Scalar, 32, 1>::own;
    });
    return (in.queries.length + own - 1) / own;
  }

  /// Returns whether kernels may access 16 bytes of a head at once.
  template <class Scalar>
  [[nodiscard]] static bool is_wide(Inputs<Scalar> const& in, std::initializer_list<void const*> arrays) {
    return in.head_width() % (16 / Index{sizeof(Scalar)}) == 0 &&
           std::all_of(arrays.begin(), arrays.end(),
                       [](void const* array) { return reinterpret_cast<std::uintptr_t>(array) % 16 == 0; });
  }

  template <class Scalar>
  [[nodiscard]] static detail::AttentionArguments<Scalar> arguments_of(Inputs<Scalar> const& in) {
    return {in.query.data,
            in.key.data,
            in.value.data,
            in.bias.data,
            in.queries,
            in.keys,
            in.heads,
            in.query_heads_per_key_head,
            in.width(),
            in.key_width(),
            in.head_width(),
            in.distances(),
            static_cast<Accumulate<Scalar>>(in.scale),
            in.causal,
            in.mask,
            static_cast<Accumulate<Scalar>>(in.mask.scale())};
  }

  /// Counts `products` matrix products of each head, for all positions, padding included. On tensor cores, a product of
  /// floats is three in TF32, each of which takes as long as two in 16 bits.
  template <class Scalar, bool on_tensor_cores>
  static void count_products(Stream stream, Inputs<Scalar> const& in, int products) {
    auto const pairs = static_cast<double>(in.queries.length) * static_cast<double>(in.keys.length);
    auto const all = (in.causal ? 1.0 : 2.0) * products * static_cast<double>(in.rows() * in.width()) * pairs;
    bool const in_tf32 = on_tensor_cores && std::is_same_v<Scalar, float>;
    stream.queued().add_products(in_tf32 ? 6 * all : all, in_tf32 ? 2 : sizeof(Scalar));
  }

  /// Queues one block for each tile of `length` rows, for each head of each row.
  template <class Shape, class Scalar, class... Parameters, class... Arguments>
  static void launch(char const* name, Stream stream, Inputs<Scalar> const& in, Index heads, Index length,
                     void (*kernel)(Parameters...), Arguments const&... arguments) {
    auto const tiles = (length + Shape::own - 1) / Shape::own;
    detail::launch_grid(name, stream, static_cast<unsigned>(in.rows() * heads * tiles), Shape::threads, kernel,
                        arguments_of(in), arguments...);
  }

  /// Calls f with true if the current GPU computes attention in Scalar on tensor cores, or else with false, as a
  /// constant.
  template <class Scalar, class Function>
  static void with_path(Function const& f) {
    if constexpr (!detail::on_tensor_cores<Scalar>)
      f(std::false_type{});
    else if constexpr (detail::always_tensor_cores)
      f(std::true_type{});
    else
      with_flag(detail::has_tensor_cores(), f);
  }

  /// Checks the shapes, and calls f with with_path's constant and a second one: the head's channels, rounded up;
  /// without tensor cores, the number of them per lane.
  template <class Scalar, class Function>
  static void with_shape(Inputs<Scalar> const& in, Extents<2> out, Function const& f) {
    in.check(out);
    auto const head_width = in.head_width();
    auto const require_at_most = [&](Index widest) {
      expect<ShapeError>(head_width <= widest, [&] {
        return "Attention: a head is " + std::to_string(head_width) + " channels wide, but CUDA supports at most " +
               std::to_string(widest) + "; use more heads";
      });
    };
    with_path<Scalar>([&](auto on_tensor_cores) {
      if constexpr (decltype(on_tensor_cores)::value) {
        require_at_most(max_head_width<Scalar>);
        if constexpr (max_head_width < Scalar >> 64) {
          if (head_width > 64) return f(on_tensor_cores, Constant<128>{});
        }
        if (head_width > 32) return f(on_tensor_cores, Constant<64>{});
        f(on_tensor_cores, Constant<32>{});
      } else {
        require_at_most(std::min<Index>(64, max_head_width<Scalar>));
        if constexpr (max_head_width < Scalar >> 32) {
          if (head_width > 32) return f(on_tensor_cores, Constant<2>{});
        }
        f(on_tensor_cores, Constant<1>{});
      }
    });
  }
};

}}}  // namespace lockstep::kernel
