// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/philox.hpp>
#include <lockstep/kernel/attention/detail/attention_inputs.hpp>
#include <lockstep/kernel/attention/detail/attention_tiles.cuh>
#include <lockstep/kernel/detail/tensor_core.cuh>
#include <lockstep/kernel/dropout_mask.hpp>
#include <lockstep/kernel/write.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Blocks that a multiprocessor is to hold at once: a limit of the kernels' registers.
template <class Scalar>
constexpr int resident_blocks(int channels, int row_tiles) {
  auto const row_bytes = channels * static_cast<int>(sizeof(Scalar));
  return row_bytes > 256 ? 1 : row_tiles > 1 ? 2 : row_bytes <= 64 ? 4 : row_bytes <= 128 ? 3 : 2;
}

/// Shape of a block's work in attention on tensor cores. Each of 4 warps owns `row_tiles` times 16 rows of the block's
/// own side. The other side is processed `tile` rows at a time, in shared memory, while the next tile is copied there.
/// In float, a head of more than 64 channels does not fit into a warp's registers: two warps then own equal rows, and
/// half of the channels each.
template <class Scalar_, int channels_, int row_tiles_>
struct FragmentShape {
  using Scalar = Scalar_;
  static constexpr bool in_float = std::is_same_v<Scalar, float>;
  static constexpr int channels = channels_;  // of a head, which may be narrower
  static constexpr int parts = channels * static_cast<int>(sizeof(Scalar)) > 256 ? 2 : 1, part = channels / parts;
  static constexpr int row_tiles = row_tiles_, row_warps = 4, warps = parts * row_warps, threads = 32 * warps;
  static constexpr int warp_rows = 16 * row_tiles, own = row_warps * warp_rows;
  static constexpr int tile = channels * static_cast<int>(sizeof(Scalar)) > 128 ? 32 : 64;
  static constexpr int access = 16 / static_cast<int>(sizeof(Scalar)), groups = channels / access,  // copied at once
      part_groups = groups / parts;
  static constexpr int stride = channels + access;  // so that eight rows of 16 bytes are in different banks
  static constexpr int depth = in_float ? 8 : 16, steps = part / depth;  // of products over channels
  /// Rows of shared memory: two tiles of two arrays of the other side, or two arrays of the own side.
  static constexpr int buffer_rows = 2 * tile, memory_rows = own > buffer_rows ? 2 * own : 2 * buffer_rows;

  template <int n>
  static constexpr auto extent = static_cast<std::size_t>(n);
  using Element = std::conditional_t<in_float, float, std::uint16_t>;
  using Row = Element[extent<stride>];
  /// Static shared memory, unless it is too small for all rows.
  static constexpr int memory_bytes = memory_rows * static_cast<int>(sizeof(Row)),
                       dynamic_bytes = memory_bytes > static_cast<int>(most_static_shared_bytes) ? memory_bytes : 0,
                       static_rows = dynamic_bytes > 0 ? 1 : memory_rows;
  /// The left factor's rows of a warp, and sums for them, both for the warp's channels.
  using Left = std::conditional_t<in_float, float, ElementPair>[extent<row_tiles>][extent<steps>][4];
  using Sums = float[extent<row_tiles>][extent<part / 8>][4];
  /// Products of a warp's rows with 16 rows of the other side.
  using Products = float[extent<row_tiles>][2][4];

  [[nodiscard]] static __device__ Element element(Scalar x) noexcept {
    if constexpr (in_float)
      return x;
    else
      return x.bits;
  }
};

inline namespace LOCKSTEP_CUDA_ABI {

/// This thread's position in a fragment: its first row and its first pair of columns.
__device__ inline int fragment_row() noexcept { return static_cast<int>(threadIdx.x) % 32 / 4; }
__device__ inline int fragment_column() noexcept { return static_cast<int>(threadIdx.x) % 4 * 2; }
/// This warp's first row of a block's own rows. Two warps with equal rows are `number` and 7 - number: each quarter of
/// a multiprocessor, which executes each fourth warp, then has equal shares of the rows that skip a tile.
template <class Shape>
[[nodiscard]] __device__ int warp_row() noexcept {
  auto const number = static_cast<int>(threadIdx.x) / 32;
  return (Shape::parts == 1 || number < Shape::row_warps ? number : Shape::warps - 1 - number) * Shape::warp_rows;
}
/// This warp's first channel.
template <class Shape>
[[nodiscard]] __device__ int warp_channel() noexcept {
  return Shape::parts == 1 ? 0 : static_cast<int>(threadIdx.x) / (32 * Shape::row_warps) * Shape::part;
}

/// One head of one sequence, as used by a block whose number is head * blocks + block.
template <class Scalar>
struct FragmentHead {
  int index, row, number, block;
  int queries, keys;  // tokens
  int query_slots, key_slots;
  Index query_start, key_start;  // offsets of the head's first elements

  /// `heads`: of each sequence, on the side that the blocks divide; `query_heads_per_key_head`: heads of queries for
  /// each of them.
  __device__ FragmentHead(AttentionArguments<Scalar> const& in, int blocks, int heads,
                          int query_heads_per_key_head) noexcept {
    auto const of_side = static_cast<int>(blockIdx.x / static_cast<unsigned>(blocks));
    block = static_cast<int>(blockIdx.x) - of_side * blocks;
    row = static_cast<int>(static_cast<unsigned>(of_side) / static_cast<unsigned>(heads));
    number = (of_side - row * heads) * query_heads_per_key_head;
    index = row * heads * query_heads_per_key_head + number;
    queries = static_cast<int>(in.queries.tokens(row));
    keys = static_cast<int>(in.keys.tokens(row));
    auto const query_slot = in.queries.start(row), key_slot = in.keys.start(row);
    query_slots = static_cast<int>(in.queries.end(row) - query_slot);
    key_slots = static_cast<int>(in.keys.end(row) - key_slot);
    query_start = query_slot * in.width + number * in.head_width;
    key_start = key_slot * in.key_width +
                static_cast<int>(static_cast<unsigned>(number) / static_cast<unsigned>(in.query_heads_per_key_head)) *
                    in.head_width;
  }
  /// Returns the bias of distance zero; that of (query, key) is key - query elements after it.
  [[nodiscard]] __device__ Scalar const* bias(AttentionArguments<Scalar> const& in) const noexcept {
    return in.bias + number * in.distances + in.queries.length - 1;
  }
  /// Advances to the next head of queries that shares the keys.
  __device__ void advance(AttentionArguments<Scalar> const& in) noexcept {
    ++index;
    ++number;
    query_start += in.head_width;
  }
};

/// Order of a tile's rows in shared memory. `permuted`: of each 32 keys, a thread's columns of four adjacent products
/// are 8 consecutive keys, so that it needs no other thread's block of dropout's random bits.
enum class RowOrder { same, permuted };

/// Returns the index of row r in shared memory.
template <RowOrder order>
[[nodiscard]] __device__ constexpr int permuted_index(int r) noexcept {
  return order == RowOrder::same ? r : r / 32 * 32 + r % 8 / 2 * 8 + r % 32 / 8 * 2 + r % 2;
}
/// Returns the row at column `e` (0 or 1) of this thread's pair in the n-th product of 8 permuted rows.
[[nodiscard]] __device__ inline int permuted_row(int n, int e) noexcept {
  return n / 4 * 32 + fragment_column() * 4 + n % 4 * 2 + e;
}

/// Exchanges two bits of a row's number, so that rows 2 n and 2 n + 1 become rows that are 4 apart in shared memory.
/// Eight lanes copy two rows of 64 bytes at once, with strides of 80 bytes: these two rows are in different banks.
template <RowOrder order>
[[nodiscard]] __device__ constexpr int with_rows_apart(int number) noexcept {
  constexpr int bit = order == RowOrder::same ? 2 : 4;
  static_assert(permuted_index<order>(1 << bit) == 4);
  return (number & ~(1 | 1 << bit)) | (number >> bit & 1) | (number & 1) << bit;
}

/// Starts to copy `rows` rows of one head, `stride` apart, to shared memory. Missing rows and channels become zero.
/// `wide`: each group of 8 channels is aligned to 16 bytes and lies inside the head or outside.
template <class Shape, int rows, RowOrder order = RowOrder::same>
__device__ void copy_rows(typename Shape::Scalar const* from, Index stride, int count, int head_width, bool wide,
                          typename Shape::Row* to) noexcept {
  constexpr int accesses = rows * Shape::groups / Shape::threads, row_step = Shape::threads / Shape::groups;
  static_assert(accesses * Shape::threads == rows * Shape::groups && (row_step & (row_step - 1)) == 0);
  auto const number = static_cast<int>(threadIdx.x) / Shape::groups,
             first = Shape::groups == 4 ? with_rows_apart<order>(number) : number,
             c = static_cast<int>(threadIdx.x) % Shape::groups * Shape::access;
  if (wide) {
    auto const* at = from + first * stride + c;
    auto* const first_row = &to[permuted_index<order>(first)][c];
    auto const left = c < head_width ? count - first : 0;
    LOCKSTEP_UNROLL
    for (int n = 0; n < accesses; ++n) {
      // permuted_index exchanges bits, and `first` is below row_step, so the index of the sum is the sum of the indices
      copy_async<16>(first_row + permuted_index<order>(n * row_step) * Shape::stride, at, n * row_step < left);
      at += row_step * stride;
    }
  } else {
    LOCKSTEP_LOOP
    for (int row = first; row < rows; row += row_step) {
      LOCKSTEP_LOOP
      for (int k = c; k < c + Shape::access; ++k)
        to[permuted_index<order>(row)][k] =
            row < count && k < head_width ? Shape::element(from[row * stride + k]) : typename Shape::Element{0};
    }
  }
}

/// Starts to copy a tile of a head's keys, and then of its values, from key `at` on. Keys from `end` on become zero.
template <class Shape, class Scalar>
__device__ void copy_keys(AttentionArguments<Scalar> const& in, FragmentHead<Scalar> const& head, int at, int end,
                          bool wide, typename Shape::Row* to) noexcept {
  auto const from = head.key_start + at * in.key_width;
  auto const head_width = static_cast<int>(in.head_width);
  copy_rows<Shape, Shape::tile, RowOrder::permuted>(in.key + from, in.key_width, end - at, head_width, wide, to);
  copy_rows<Shape, Shape::tile, RowOrder::permuted>(in.value + from, in.key_width, end - at, head_width, wide,
                                                    to + Shape::tile);
}

/// Loads the warp's rows as the left factor of products over channels.
template <class Shape>
__device__ void load_left(typename Shape::Row const* own, typename Shape::Left& left) noexcept {
  auto const lane = static_cast<int>(threadIdx.x) % 32;
  LOCKSTEP_UNROLL
  for (int m = 0; m < Shape::row_tiles; ++m) {
    auto const* const row =
        &own[warp_row<Shape>() + 16 * m + lane % 16][warp_channel<Shape>() + lane / 16 * Shape::access];
    LOCKSTEP_UNROLL
    for (int k = 0; k < Shape::steps; ++k) {
      if constexpr (Shape::in_float)
        load_matrices(left[m][k], row + Shape::depth * k);
      else
        load_matrices<Transposed::no>(left[m][k], row + Shape::depth * k);
    }
  }
}

/// Computes the products over the warp's channels of its rows with 16 rows in shared memory.
template <class Shape>
__device__ void multiply_channels(typename Shape::Left const& left, typename Shape::Row const* rows,
                                  typename Shape::Products& products) noexcept {
  auto const lane = static_cast<int>(threadIdx.x) % 32;
  for (auto& tile : products)
    for (auto& half : tile)
      for (auto& p : half) p = 0;
  auto const* const row = &rows[lane / 16 * 8 + lane % 8][warp_channel<Shape>() + lane / 8 % 2 * Shape::access];
  LOCKSTEP_UNROLL
  for (int k = 0; k < Shape::steps; ++k) {
    if constexpr (Shape::in_float) {
      float b[4];
      load_matrices(b, row + Shape::depth * k);
      LOCKSTEP_UNROLL
      for (int m = 0; m < Shape::row_tiles; ++m) {
        multiply_add(products[m][0], left[m][k], b[0], b[1]);
        multiply_add(products[m][1], left[m][k], b[2], b[3]);
      }
    } else {
      ElementPair b[4];
      load_matrices<Transposed::no>(b, row + Shape::depth * k);
      LOCKSTEP_UNROLL
      for (int m = 0; m < Shape::row_tiles; ++m) {
        multiply_add<typename Shape::Scalar>(products[m][0], left[m][k], b[0], b[1]);
        multiply_add<typename Shape::Scalar>(products[m][1], left[m][k], b[2], b[3]);
      }
    }
  }
}

/// Completes two products over channels by the part of the warp that owns the same rows and the other channels. The
/// whole block must call it. A warp without products passes `idle`.
template <class Shape>
__device__ void add_parts(bool idle, typename Shape::Products& first, typename Shape::Products& second) noexcept {
  static_assert(Shape::parts == 2 && Shape::row_tiles == 1);
  __shared__ uint4 sent[4][Shape::template extent<Shape::threads>];
  float(*const products[4])[4] = {&first[0][0], &first[0][1], &second[0][0], &second[0][1]};
  __syncthreads();  // the last products were read
  if (!idle) {
    LOCKSTEP_UNROLL
    for (int i = 0; i < 4; ++i) std::memcpy(&sent[i][threadIdx.x], products[i], sizeof(uint4));
  }
  __syncthreads();
  if (idle) return;
  LOCKSTEP_UNROLL
  for (int i = 0; i < 4; ++i) {
    float others[4];
    std::memcpy(others, &sent[i][threadIdx.x ^ 32 * (Shape::warps - 1)], sizeof others);
    for (int e = 0; e < 4; ++e) (*products[i])[e] += others[e];
  }
}

/// Adds weights times 16 rows in shared memory to the sums of the warp's rows. 16-bit types: the weights are rounded.
template <class Shape>
__device__ void add_weighted(typename Shape::Products const& weights, typename Shape::Row const* rows,
                             typename Shape::Sums& sums) noexcept {
  using Scalar = typename Shape::Scalar;
  auto const lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (Shape::in_float) {
    // A product's rows 0 to 3 and 4 to 7 are here the even and the odd rows: a lane holds their weights already.
    LOCKSTEP_UNROLL
    for (int half = 0; half < 2; ++half) {
      auto const* const even = &rows[8 * half + fragment_column()][warp_channel<Shape>() + lane / 4];
      LOCKSTEP_UNROLL
      for (int n = 0; n < Shape::part / 8; ++n) {
        LOCKSTEP_UNROLL
        for (int m = 0; m < Shape::row_tiles; ++m) {
          auto const& w = weights[m][half];
          float const a[4] = {w[0], w[2], w[1], w[3]};
          multiply_add(sums[m][n], a, even[8 * n], even[8 * n + Shape::stride]);
        }
      }
    }
  } else {
    ElementPair a[Shape::template extent<Shape::row_tiles>][4];
    LOCKSTEP_UNROLL
    for (int m = 0; m < Shape::row_tiles; ++m)
      for (int i = 0; i < 4; ++i)
        a[m][i] = pack<Scalar>(weights[m][i / 2][i % 2 * 2], weights[m][i / 2][i % 2 * 2 + 1]);
    LOCKSTEP_UNROLL
    for (int k = 0; k < Shape::steps; ++k) {
      ElementPair b[4];
      load_matrices<Transposed::yes>(b, &rows[lane % 16][warp_channel<Shape>() + 16 * k + lane / 16 * 8]);
      LOCKSTEP_UNROLL
      for (int m = 0; m < Shape::row_tiles; ++m) {
        multiply_add<Scalar>(sums[m][2 * k], a[m], b[0], b[1]);
        multiply_add<Scalar>(sums[m][2 * k + 1], a[m], b[2], b[3]);
      }
    }
  }
}

/// Writes the warp's part of a result, in units of 16 bytes where alignment permits: `tokens` rows of sums, each times
/// its row's factor, then zeros up to `slots`. Rows are counted from the warp's first, at `to`. Uses the warp's part of
/// `shared`, which no other warp may still read. All threads of the warp must call it.
template <class Shape>
__device__ void write_rows(AttentionTarget<typename Shape::Scalar> target, Index at, Index stride, int tokens,
                           int slots, int head_width, bool wide,
                           float const (&factors)[Shape::template extent<Shape::row_tiles>][2],
                           typename Shape::Sums const& sums, typename Shape::Row* shared) noexcept {
  using Scalar = typename Shape::Scalar;
  auto* const to = target.data + at;
  auto const first_channel = warp_channel<Shape>();
  if (target.write == Write::add) {  // the sum is rounded once
    LOCKSTEP_UNROLL
    for (int m = 0; m < Shape::row_tiles; ++m) {
      LOCKSTEP_UNROLL
      for (int n = 0; n < Shape::part / 8; ++n)
        for (int i = 0; i < 4; ++i) {
          auto const row = 16 * m + i / 2 * 8 + fragment_row(), c = first_channel + 8 * n + fragment_column() + i % 2;
          if (row >= tokens || c >= head_width) continue;
          auto& element = to[row * stride + c];
          element = static_cast<Scalar>(static_cast<float>(element) + factors[m][i / 2] * sums[m][n][i]);
        }
    }
    return;
  }
  auto* const mine = shared + warp_row<Shape>();
  LOCKSTEP_UNROLL
  for (int m = 0; m < Shape::row_tiles; ++m) {
    LOCKSTEP_UNROLL
    for (int n = 0; n < Shape::part / 8; ++n)
      for (int h = 0; h < 2; ++h) {
        auto const row = 16 * m + h * 8 + fragment_row();
        auto const first = row < tokens ? factors[m][h] * sums[m][n][2 * h] : 0.0f,
                   second = row < tokens ? factors[m][h] * sums[m][n][2 * h + 1] : 0.0f;
        auto* const element = &mine[row][first_channel + 8 * n + fragment_column()];
        if constexpr (Shape::in_float) {
          element[0] = first;
          element[1] = second;
        } else {
          *reinterpret_cast<ElementPair*>(element) = pack<Scalar>(first, second);
        }
      }
  }
  __syncwarp();
  for (int i = static_cast<int>(threadIdx.x) % 32; i < Shape::warp_rows * Shape::part_groups; i += 32) {
    auto const row = i / Shape::part_groups, c = first_channel + i % Shape::part_groups * Shape::access;
    if (row >= slots || c >= head_width) continue;
    auto* const element = to + row * stride + c;
    if (wide) {
      *reinterpret_cast<uint4*>(element) = *reinterpret_cast<uint4 const*>(&mine[row][c]);
    } else {
      auto* const raw = reinterpret_cast<typename Shape::Element*>(element);
      for (int k = 0; k < Shape::access && c + k < head_width; ++k) raw[k] = mine[row][c + k];
    }
  }
  __syncwarp();
}

/// Replaces FragmentDropout in kernels without dropout.
struct NoDropout {
  template <class Arguments, class Head>
  __device__ constexpr NoDropout(Arguments const&, Head const&) noexcept {}
};

/// Dropout of one head's probabilities: DropoutMask's bits for element (number * queries + query) * groups * 8 + key,
/// with `groups` of 8 keys. A group takes one block of random bits.
template <class Scalar>
struct FragmentDropout {
  Philox random;
  std::uint64_t position, first;  // the counter of this head's first group is (position, first)
  std::uint32_t groups, dropped;

  __device__ FragmentDropout(AttentionArguments<Scalar> const& in, FragmentHead<Scalar> const& head) noexcept
      : random(in.mask.resolved().key),
        position(static_cast<std::uint64_t>(in.queries.positions.data[head.row])),
        groups(static_cast<std::uint32_t>(head.keys + 7) / 8),
        dropped(in.mask.dropped << 16) {
    first = static_cast<std::uint64_t>(head.number) * static_cast<std::uint32_t>(head.queries) * groups;
  }
  /// Calls f(i, n, e, keep) for the probabilities of `count` times a query and 8 keys: query + i * query_step, and
  /// key + i * key_step + 2 * n + e. Keys are multiples of 8.
  template <int count, class Function>
  __device__ void for_keys(int query, int query_step, int key, int key_step, Function const& f) const noexcept {
    std::array<std::uint64_t, static_cast<std::size_t>(count)> counters;
    for (int i = 0; i < count; ++i)
      counters[static_cast<std::size_t>(i)] =
          first + static_cast<std::uint64_t>(static_cast<std::uint32_t>(query + i * query_step)) * groups +
          static_cast<std::uint32_t>(key + i * key_step) / 8;
    auto const blocks = random(position, counters);
    LOCKSTEP_UNROLL
    for (int i = 0; i < count; ++i) {
      LOCKSTEP_UNROLL
      for (int n = 0; n < 4; ++n) {  // a half-word is compared in the upper half
        auto const word = blocks[static_cast<std::size_t>(i)][static_cast<std::size_t>(n)];
        f(i, n, 0, word << 16 >= dropped);
        f(i, n, 1, word >= dropped);
      }
    }
  }
};

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
