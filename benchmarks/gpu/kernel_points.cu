// SPDX-License-Identifier: Apache-2.0
// Time of single kernels on a GPU, one row each: kernel_points [PART OF A NAME…]. peers/gpu_points.py has the same
// rows. points.cuh says how a row is measured and printed. All rows take less than 40 s.
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/sequence.h>

#include <lockstep/core/error.hpp>
#include <lockstep/kernel/attention/attention.cuh>
#include <lockstep/kernel/copy/permute.cuh>
#include <lockstep/kernel/elementwise/channel_bias.cuh>
#include <lockstep/kernel/embedding/fused_embedding.cuh>
#include <lockstep/kernel/linear/linear.cuh>
#include <lockstep/kernel/loss/cross_entropy.cuh>
#include <lockstep/kernel/normalization/layer_norm.cuh>
#include <lockstep/kernel/normalization/rms_norm.cuh>
#include <lockstep/kernel/optimizer/optimizer_step.cuh>
#include <lockstep/optim/adamw.hpp>

#include <gpu/points.cuh>
#include <kernel/zipf.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

enum class Memory {
  warm,  ///< every call uses the same memory, and a small case finds it in the cache
  cold,  ///< calls use copies in turn that together exceed the cache
};

template <class T>
std::string type_name() {
  return std::is_same_v<T, float> ? "float" : "bf16";
}
std::string sizes(std::initializer_list<Index> extents) {
  std::string out;
  for (auto const extent : extents) out += (out.empty() ? "" : "x") + std::to_string(extent);
  return out;
}
std::string ending(Memory memory) { return memory == Memory::cold ? " cold" : ""; }

template <class T>
TensorView<T, 2, CudaSpace> matrix(DeviceBuffer<T> const& buffer, Index rows, Index width) {
  return {buffer.data(), {rows, width}};
}
template <class T>
TensorView<T, 1, CudaSpace> vector(DeviceBuffer<T> const& buffer) {
  return {buffer.data(), {buffer.size()}};
}
/// Sequences of `length` tokens, and the memory that their layout refers to.
struct Sequences {
  DeviceBuffer<std::int32_t> lengths;
  DeviceBuffer<Index> positions, offsets;
  kernel::SequenceLayout<CudaSpace> layout;

  static Sequences full(Index rows, Index length) {
    Sequences out = at(rows);
    out.lengths = device<std::int32_t>(rows);
    thrust::fill_n(thrust::device, out.lengths.data(), rows, static_cast<std::int32_t>(length));
    out.layout = kernel::SequenceLayout<CudaSpace>::padded(length, vector(out.lengths), vector(out.positions));
    return out;
  }
  /// The lengths of the classifier's unequal texts: from `length` / 8 to `length`, with a mean of 0.42 `length`.
  static Sequences ragged(Index rows, Index length) {
    std::vector<Index> offsets{0};
    Index longest = 0;
    for (Index row = 0; row < rows; ++row) {
      auto const part = std::fmod(static_cast<double>(row + 1) * 0.6180339887498949, 1.0);
      auto const tokens = static_cast<Index>(static_cast<double>(length) / 8 * std::pow(8, part));
      offsets.push_back(offsets.back() + tokens);
      longest = std::max(longest, tokens);
    }
    Sequences out = at(rows);
    out.offsets = device_of(offsets);
    out.layout =
        kernel::SequenceLayout<CudaSpace>::ragged(offsets.back(), longest, vector(out.offsets), vector(out.positions));
    return out;
  }

 private:
  static Sequences at(Index rows) {
    auto positions = device<Index>(rows);
    thrust::sequence(thrust::device, positions.data(), positions.data() + rows);
    return {device<std::int32_t>(0), std::move(positions), device<Index>(0), {}};
  }
};

kernel::RowDropout<CudaSpace> dropped(Sequences const& sequences) {
  return {kernel::DropoutMask::of(7, 0.1), sequences.layout};
}

void copy(Points& points, Index bytes, std::string const& name, Memory memory) {
  auto const row = "copy " + name + ending(memory);
  if (!points.selects(row)) return;
  struct Set {
    DeviceBuffer<char> from, to;
  };
  Copies<Set> const sets(memory == Memory::cold, 2.0 * static_cast<double>(bytes), [&] {
    return Set{device<char>(bytes), device<char>(bytes)};
  });
  points.measure(row, 2.0 * static_cast<double>(bytes), 0, sets.count(), [&](int k) {
    memory::check_cuda(cudaMemcpyAsync(sets[k].to.data(), sets[k].from.data(), static_cast<std::size_t>(bytes),
                                       cudaMemcpyDeviceToDevice, points.stream().get()),
                       "cudaMemcpyAsync");
  });
}

template <class T>
void embedding(Points& points) {
  using Kernel = kernel::FusedEmbedding<CudaSpace>;
  constexpr Index vocabulary = 20000, width = 128, rows = 2048, length = 128, slots = rows * length;
  auto const type = type_name<T>();
  auto const forward = "embedding forward " + type, plan_row = "embedding plan " + type,
             backward = "embedding backward given plan " + type;
  if (!points.selects(forward) && !points.selects(plan_row) && !points.selects(backward)) return;
  auto const sequences = Sequences::full(rows, length);
  auto const ids = device_of(zipf_ids(vocabulary, slots));
  auto const token = filled<float>(vocabulary * width), position = filled<float>(length * width);
  auto const token_gradient = device<float>(vocabulary * width), position_gradient = device<float>(length * width);
  auto const out = filled<T>(slots * width);
  kernel::EmbeddingInputs<float, CudaSpace> in;
  in.assembly.count = 1;
  in.assembly.layout = in.assembly.segments[0] = sequences.layout;
  in.parts[0] = {matrix(token, vocabulary, width), true, ids.data()};
  in.first_part[1] = 1;
  in.position = matrix(position, length, width);
  auto const scratch = device<float>(Kernel::scratch(in, width));
  auto const partial = device<float>(Kernel::partial_rows(slots) * width);
  auto const plan_memory = device<std::int32_t>(Kernel::plan_elements(slots));
  Kernel::Plan plan;
  auto const stream = points.stream();
  auto const slot_bytes = static_cast<double>(slots * width) * sizeof(T);
  auto const table_bytes = static_cast<double>(vocabulary * width) * sizeof(float);
  points.measure(forward, slot_bytes + table_bytes + slots * 4.0,
                 [&] { Kernel::forward<T>(stream, in, matrix(out, slots, width)); });
  points.measure(plan_row, slots * 8.0, [&] { Kernel::plan(stream, in, 0, 0, vector(plan_memory), plan); });
  if (!points.selects(backward)) return;
  Kernel::plan(stream, in, 0, 0, vector(plan_memory), plan);
  points.measure(backward, slot_bytes + table_bytes, [&] {
    kernel::EmbeddingGradients<float, CudaSpace> targets;
    targets.position = {position_gradient.data(), Write::overwrite};
    Kernel::backward<T>(stream, in, matrix(out, slots, width), {}, targets, scratch.data());
    Kernel::backward_table<T>(stream, plan, matrix(out, slots, width),
                              {partial.data(), {Kernel::partial_rows(slots), width}},
                              matrix(token_gradient, vocabulary, width), Write::overwrite);
  });
}

enum class Joined {
  nothing,
  residual,  ///< x + dropout(residual), as in an encoder layer after its norm
};

template <class T>
struct NormSet {
  DeviceBuffer<T> x, y, residual, sum, dx, dresidual;
  DeviceBuffer<float> moments, partial;
};

/// Rows of a norm, whose kernels `Calls` names.
template <class Calls, class T>
void norm(Points& points, Index rows, Index width, Memory memory, Joined joined = Joined::nothing) {
  bool const joins = joined == Joined::residual;
  auto const shape =
      std::string(joins ? "residual " : "") + type_name<T>() + " " + sizes({rows, width}) + ending(memory);
  auto const forward = std::string(Calls::name) + " forward " + shape,
             backward = std::string(Calls::name) + " backward " + shape;
  if (!points.selects(forward) && !points.selects(backward)) return;
  auto const sequences = Sequences::full(1, rows);
  auto const elements = rows * width, joined_elements = joins ? elements : 0;
  auto const bytes = static_cast<double>(elements) * sizeof(T);
  Copies<NormSet<T>> const sets(memory == Memory::cold, (joins ? 4 : 2) * bytes, [&] {
    return NormSet<T>{filled<T>(elements),        filled<T>(elements),
                      filled<T>(joined_elements), device<T>(joined_elements),
                      device<T>(elements),        device<T>(joined_elements),
                      filled<float>(2 * rows),    device<float>(Calls::partial(rows, width))};
  });
  auto const vectors = filled<float>(4 * width);
  auto const stream = points.stream();
  auto const view = [&](DeviceBuffer<T> const& buffer) {
    return buffer.size() > 0 ? matrix(buffer, rows, width) : TensorView<T, 2, CudaSpace>{};
  };
  kernel::RowDropout<CudaSpace> const dropout = joins ? dropped(sequences) : kernel::RowDropout<CudaSpace>{};
  points.measure(forward, (joins ? 4 : 2) * bytes, 0, sets.count(), [&](int k) {
    auto const& set = sets[k];
    Calls::template forward<T>(stream, view(set.x), {view(set.residual), dropout}, vectors.data(), view(set.sum),
                               set.moments.data(), view(set.y));
  });
  points.measure(backward, (joins ? 4 : 3) * bytes, 0, sets.count(), [&](int k) {
    auto const& set = sets[k];
    Calls::template backward<T>(stream, view(set.y), view(set.x), set.moments.data(), {view(set.residual), dropout},
                                vectors.data(), view(set.dx), view(set.dresidual), set.partial.data());
  });
}

template <class T>
using View = TensorView<T, 2, CudaSpace>;
inline TensorView<float, 1, CudaSpace> part(float* vectors, Index number, Index width) {
  return {vectors + number * width, {width}};
}

struct LayerNormCalls {
  using Kernel = kernel::LayerNorm<CudaSpace>;
  static constexpr char const* name = "layer_norm";
  static Index partial(Index rows, Index width) { return Kernel::partial_elements(rows, width); }
  template <class T>
  static void forward(memory::Stream<CudaSpace> stream, View<T> x, kernel::Residual<T, CudaSpace> residual,
                      float* vectors, View<T> sum, float* moments, View<T> y) {
    auto const width = x.extent[1];
    Kernel::forward<T>(stream, x, residual, part(vectors, 0, width), part(vectors, 1, width), 1e-5f, sum.data ? sum : x,
                       {moments, {x.extent[0], 2}}, y);
  }
  template <class T>
  static void backward(memory::Stream<CudaSpace> stream, View<T> dy, View<T> x, float* moments,
                       kernel::Residual<T, CudaSpace> residual, float* vectors, View<T> dx, View<T> dresidual,
                       float* partial) {
    auto const width = x.extent[1];
    Kernel::backward<T>(stream, dy, x, {moments, {x.extent[0], 2}}, residual, part(vectors, 0, width), dx,
                        Write::overwrite, dresidual, Write::overwrite, part(vectors, 2, width), Write::overwrite,
                        part(vectors, 3, width), Write::overwrite, partial);
  }
};

struct RMSNormCalls {
  using Kernel = kernel::RMSNorm<CudaSpace>;
  static constexpr char const* name = "rms_norm";
  static Index partial(Index rows, Index width) { return Kernel::partial_elements(rows, width); }
  template <class T>
  static void forward(memory::Stream<CudaSpace> stream, View<T> x, kernel::Residual<T, CudaSpace> residual,
                      float* vectors, View<T> sum, float* moments, View<T> y) {
    Kernel::forward<T>(stream, x, residual, part(vectors, 0, x.extent[1]), 1e-5f, sum.data ? sum : x,
                       {moments, {x.extent[0]}}, y);
  }
  template <class T>
  static void backward(memory::Stream<CudaSpace> stream, View<T> dy, View<T> x, float* moments,
                       kernel::Residual<T, CudaSpace> residual, float* vectors, View<T> dx, View<T> dresidual,
                       float* partial) {
    Kernel::backward<T>(stream, dy, x, {moments, {x.extent[0]}}, {}, residual.dropout, part(vectors, 0, x.extent[1]),
                        dx, Write::overwrite, dresidual, Write::overwrite, part(vectors, 2, x.extent[1]),
                        Write::overwrite, partial);
  }
};

template <class T>
void column_sums(Points& points, Index rows, Index width, Memory memory) {
  using Kernel = kernel::ChannelBias<CudaSpace>;
  auto const row = "column_sums " + type_name<T>() + " " + sizes({rows, width}) + ending(memory);
  if (!points.selects(row)) return;
  auto const bytes = static_cast<double>(rows * width) * sizeof(T);
  Copies<DeviceBuffer<T>> const sets(memory == Memory::cold, bytes, [&] { return filled<T>(rows * width); });
  auto const sums = device<float>(width), partial = device<float>(Kernel::partial_elements(rows, width));
  points.measure(row, bytes, 0, sets.count(), [&](int k) {
    Kernel::backward<T>(points.stream(), matrix(sets[k], rows, width), vector(sums), Write::overwrite, partial.data());
  });
}

/// A feed-forward block's two linear maps, rows x in x out: the first with GELU and dropout, the second's backward
/// through both; and a plain map.
template <class T>
void linear(Points& points, Index rows, Index in, Index out) {
  using Kernel = kernel::Linear<CudaSpace>;
  auto const type = type_name<T>();
  auto const plain = type + " " + sizes({rows, in, out}), back = type + " " + sizes({rows, out, in});
  auto const names = {"linear forward " + plain, "linear backward " + plain, "linear gelu dropout forward " + plain,
                      "gelu dropout linear backward " + back};
  if (std::none_of(names.begin(), names.end(), [&](auto const& name) { return points.selects(name); })) return;
  auto const sequences = Sequences::full(1, rows);
  auto const x = filled<T>(rows * in), y = filled<T>(rows * out), slope = filled<T>(rows * out),
             wide = device<T>(rows * out), narrow = device<T>(rows * in);
  auto const weight = filled<T>(in * out), bias = filled<T>(out);
  auto const weight_gradient = device<float>(in * out), bias_gradient = device<float>(std::max(in, out));
  auto const partial = device<float>(std::max(Kernel::partial_elements(points.stream(), rows, in, out),
                                              Kernel::partial_elements(points.stream(), rows, out, in)));
  auto const stream = points.stream();
  auto const operations = 2.0 * static_cast<double>(rows * in * out);
  auto const bytes_of = [](auto... elements) { return (static_cast<double>(elements) + ...) * sizeof(T); };
  points.measure(names.begin()[0], bytes_of(rows * in, in * out, rows * out), operations, 1, [&](int) {
    Kernel::forward<T>(stream, matrix(x, rows, in), matrix(weight, out, in), vector(bias), matrix(wide, rows, out));
  });
  points.measure(names.begin()[1], bytes_of(rows * in, in * out, rows * out, rows * in, 2 * in * out), 2 * operations,
                 1, [&](int) {
                   Kernel::backward<T>(stream, matrix(y, rows, out), matrix(x, rows, in), matrix(weight, out, in), {},
                                       matrix(narrow, rows, in), Write::overwrite, matrix(weight_gradient, out, in),
                                       Write::overwrite, {bias_gradient.data(), {out}}, Write::overwrite,
                                       partial.data());
                 });
  points.measure(names.begin()[2], bytes_of(rows * in, in * out, 2 * rows * out), operations, 1, [&](int) {
    Kernel::forward<T>(stream, matrix(x, rows, in), matrix(weight, out, in), vector(bias), kernel::Activation::gelu,
                       dropped(sequences), matrix(wide, rows, out), matrix(slope, rows, out));
  });
  points.measure(names.begin()[3], bytes_of(rows * in, in * out, 3 * rows * out, 2 * in * out), 2 * operations, 1,
                 [&](int) {
                   Kernel::backward<T>(stream, matrix(x, rows, in), matrix(y, rows, out), matrix(weight, in, out),
                                       {.factors = matrix(slope, rows, out)}, matrix(wide, rows, out), Write::overwrite,
                                       matrix(weight_gradient, in, out), Write::overwrite, {bias_gradient.data(), {in}},
                                       Write::overwrite, partial.data());
                 });
}

/// Backward of the maps to query, key and value, without biases. "apart": the weights are not at equal distances, so
/// that separate products compute the input's gradient.
template <class T>
void projections(Points& points, Index rows, Index width) {
  using Kernel = kernel::Linear<CudaSpace>;
  constexpr Index layers = 3, size_apart = 64;
  auto const size = width * width;
  auto const dy = filled<T>(layers * rows * width), x = filled<T>(rows * width), dx = device<T>(rows * width),
             weights = filled<T>(layers * size + size_apart);
  auto const gradients = device<float>(layers * size);
  auto const each = [](auto const& f) { return std::array{f(0), f(1), f(2)}; };
  std::array<Write, 3> const all{Write::overwrite, Write::overwrite, Write::overwrite};  // nvcc deduces no such type
  for (Index const gap : {Index{0}, size_apart}) {
    auto const row = "projections backward " + type_name<T>() + " " + sizes({rows, width}) + (gap > 0 ? " apart" : "");
    if (!points.selects(row)) continue;
    auto const bytes =
        static_cast<double>((layers + 2) * rows * width + layers * size) * sizeof(T) + 4.0 * layers * size;
    auto const operations = 4.0 * layers * static_cast<double>(rows * size);
    points.measure(row, bytes, operations, 1, [&](int) {
      Kernel::backward_each<T, layers>(
          points.stream(), matrix(dy, layers * rows, width), matrix(x, rows, width), each([&](Index i) {
            return TensorView<T const, 2, CudaSpace>{weights.data() + i * size + (i == 2 ? gap : 0), {width, width}};
          }),
          matrix(dx, rows, width), Write::overwrite, each([&](Index i) {
            return TensorView<float, 2, CudaSpace>{gradients.data() + i * size, {width, width}};
          }),
          all, each([&](Index) {
            return TensorView<float, 1, CudaSpace>{nullptr, {width}};
          }),
          all, nullptr);
    });
  }
}

template <class T>
void cross_entropy(Points& points, Index classes) {
  auto const rows = (Index{1} << 26) / classes;
  auto const row = "cross_entropy forward+backward " + type_name<T>() + " " + sizes({rows, classes});
  if (!points.selects(row)) return;
  auto const logits = filled<T>(rows * classes), gradient = device<T>(rows * classes);
  auto const labels = device<std::int32_t>(rows);
  auto const losses = device<double>(rows), weights = device<double>(rows);
  points.measure(row, 2.0 * static_cast<double>(rows * classes) * sizeof(T), [&] {
    kernel::CrossEntropy<CudaSpace>::forward_backward<T>(
        points.stream(), kernel::SequenceLayout<CudaSpace>::vectors(rows), {}, matrix(logits, rows, classes),
        TensorView<std::int32_t const, 1, CudaSpace>{labels.data(), {rows}}, vector(losses), vector(weights),
        matrix(gradient, rows, classes), Write::overwrite);
  });
}

/// Axes of a tensor in another order. With `lines` the last axis stays, otherwise the last two are exchanged.
template <class T>
void permute(Points& points, Index rows, Index height, Index width, bool lines) {
  auto const row = "permute " + type_name<T>() + " " + sizes({rows, height, width}) + (lines ? " 1,0,2" : " 0,2,1");
  if (!points.selects(row)) return;
  auto const size = rows * height * width;
  auto const x = filled<T>(size), y = device<T>(size);
  auto const shape =
      kernel::PermuteShape::of(std::array{rows, height, width}, lines ? std::array{1, 0, 2} : std::array{0, 2, 1});
  points.measure(row, 2.0 * static_cast<double>(size) * sizeof(T), [&] {
    kernel::Permute<CudaSpace>::run<T>(points.stream(), shape, vector(x), vector(y), Write::overwrite);
  });
}

void adamw(Points& points, Index count) {
  auto const row = "adamw " + std::to_string(count);
  if (!points.selects(row)) return;
  auto const scalars =
      device_of(std::vector<optim::StepScalars<CudaSpace>>{{.step = 1, .learning_rate = 1e-3, .weight = 1}});
  auto const values = filled<float>(count), gradients = filled<float>(count), m = device<float>(count),
             v = device<float>(count);
  float* const states[] = {m.data(), v.data()};
  points.measure(row, 7.0 * static_cast<double>(count) * sizeof(float), [&] {
    optim::AdamW{}.step(points.stream(),
                        optim::Slice<float, CudaSpace>{0, count, values.data(), gradients.data(), states},
                        scalars.data());
  });
}

enum class Variant { plain, causal, ragged, dropout };
enum class AttentionBy { own_kernels, cudnn };

template <class T>
void attention(Points& points, Index rows, Index heads, Index length, Index head_width,
               Variant variant = Variant::plain, AttentionBy by = AttentionBy::own_kernels) {
  using Kernel = kernel::Attention<CudaSpace>;
  using Sum = Accumulate<T>;
  std::string const endings[] = {"", " causal", " ragged", " dropout"};
  auto const shape = type_name<T>() + " " + sizes({rows, heads, length, head_width}) +
                     endings[static_cast<std::size_t>(variant)] + (by == AttentionBy::cudnn ? " by cuDNN" : "");
  auto const forward = "attention forward " + shape, backward = "attention backward " + shape;
  if (!points.selects(forward) && !points.selects(backward)) return;
  auto const sequences = variant == Variant::ragged ? Sequences::ragged(rows, length) : Sequences::full(rows, length);
  auto const layout = sequences.layout;
  auto const slots = layout.slots, width = heads * head_width, elements = slots * width;
  auto const q = filled<T>(elements), k = filled<T>(elements), v = filled<T>(elements), out = filled<T>(elements),
             dout = filled<T>(elements), dq = device<T>(elements), dk = device<T>(elements), dv = device<T>(elements);
  auto const log_sums = device<Sum>(rows * heads * layout.length);
  auto const stream = points.stream();
  typename Kernel::template Inputs<T> const in{
      .query = matrix(q, slots, width),
      .key = matrix(k, slots, width),
      .value = matrix(v, slots, width),
      .queries = layout,
      .keys = layout,
      .heads = heads,
      .scale = 1 / std::sqrt(static_cast<double>(head_width)),
      .causal = variant == Variant::causal,
      .bias = {},
      .mask = variant == Variant::dropout ? kernel::DropoutMask::of(7, 0.1) : kernel::DropoutMask{}};
  guarded(forward, [&] {
    Kernel::use_cudnn(stream, by == AttentionBy::cudnn);
    auto const before = Kernel::passes(stream).not_by_cudnn;
    auto const scratch =
        device<Sum>(std::max(Kernel::template forward_scratch<T>(stream, in), Kernel::template scratch<T>(stream, in)));
    TensorView<Sum, 2, CudaSpace> const sums{log_sums.data(), {rows * heads, layout.length}};
    auto const bytes = static_cast<double>(elements) * sizeof(T);
    double pairs = static_cast<double>(rows * length) * static_cast<double>(length);
    if (variant == Variant::causal) pairs /= 2;
    if (variant == Variant::ragged) pairs = 0;  // unknown
    auto const operations = 4 * pairs * static_cast<double>(width);
    points.measure(forward, 4 * bytes, operations, 1, [&](int) {
      Kernel::template forward<T>(stream, in, matrix(out, slots, width), sums, vector(scratch));
    });
    points.measure(backward, 8 * bytes, 2.5 * operations, 1, [&](int) {
      Kernel::template backward<T>(
          stream, in, matrix(out, slots, width), sums, matrix(dout, slots, width),
          {{dq.data(), Write::overwrite}, {dk.data(), Write::overwrite}, {dv.data(), Write::overwrite}},
          vector(scratch));
    });
    if (Kernel::passes(stream).not_by_cudnn > before) throw CudaError("not by cuDNN: " + Kernel::passes(stream).reason);
  });
  Kernel::use_cudnn(stream, false);
}

template <class T>
void all_norms(Points& points) {
  for (Index const width : {64, 128, 256, 768, 1024, 4096}) {
    norm<LayerNormCalls, T>(points, (Index{1} << 27) / width / static_cast<Index>(sizeof(T)), width, Memory::warm);
    norm<LayerNormCalls, T>(points, 2048, width, Memory::cold);
    norm<RMSNormCalls, T>(points, (Index{1} << 27) / width / static_cast<Index>(sizeof(T)), width, Memory::warm);
    norm<RMSNormCalls, T>(points, 2048, width, Memory::cold);
  }
  for (Memory const memory : {Memory::warm, Memory::cold}) {
    norm<LayerNormCalls, T>(points, 4096, 128, memory, Joined::residual);
    norm<LayerNormCalls, T>(points, 4096, 768, memory);
    norm<LayerNormCalls, T>(points, 4096, 768, memory, Joined::residual);
    norm<RMSNormCalls, T>(points, 4096, 768, memory);
    norm<RMSNormCalls, T>(points, 4096, 768, memory, Joined::residual);
    column_sums<T>(points, 4096, 128, memory);
    column_sums<T>(points, 4096, 768, memory);
    column_sums<T>(points, 4096, 3072, memory);
    column_sums<T>(points, 32768, 768, memory);
  }
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "kernel_points: no GPU is available\n");
    return 1;
  }
  Points points(Filter(argc, argv));
  copy(points, Index{1} << 30, "1 GiB", Memory::warm);
  for (Memory const memory : {Memory::warm, Memory::cold}) {
    copy(points, 4096 * 128 * 2, "bf16 4096x128", memory);
    copy(points, 4096 * 768 * 2, "bf16 4096x768", memory);
    copy(points, 4096 * 3072 * 2, "bf16 4096x3072", memory);
  }
  guarded("embedding", [&] { embedding<float>(points); });
  guarded("embedding", [&] { embedding<bfloat16>(points); });
  guarded("norms", [&] { all_norms<float>(points); });
  guarded("norms", [&] { all_norms<bfloat16>(points); });
  for (Index const classes : {1000, 32000}) {
    guarded("cross_entropy", [&] { cross_entropy<float>(points, classes); });
    guarded("cross_entropy", [&] { cross_entropy<bfloat16>(points, classes); });
  }
  for (bool const lines : {false, true}) {
    guarded("permute", [&] { permute<float>(points, 256, 128, 1024, lines); });
    guarded("permute", [&] { permute<bfloat16>(points, 256, 128, 1024, lines); });
  }
  guarded("permute", [&] { permute<float>(points, 256, 1 << 16, 3, false); });
  guarded("adamw", [&] { adamw(points, Index{1} << 27); });
  guarded("adamw", [&] { adamw(points, Index{1} << 21); });
  for (auto const& [rows, in, out] : {std::array<Index, 3>{4096, 768, 3072}, {4096, 768, 768}, {4096, 128, 256}}) {
    guarded("linear", [&] { linear<float>(points, rows, in, out); });
    guarded("linear", [&] { linear<bfloat16>(points, rows, in, out); });
  }
  for (auto const& [rows, width] : {std::array<Index, 2>{4096, 128}, {4096, 256}, {32768, 128}, {32768, 256}})
    guarded("projections", [&] { projections<bfloat16>(points, rows, width); });
  guarded("attention", [&] { attention<float>(points, 32, 4, 128, 32); });
  guarded("attention", [&] { attention<float>(points, 16, 12, 512, 64); });
  guarded("attention", [&] { attention<bfloat16>(points, 32, 4, 128, 32); });
  guarded("attention", [&] { attention<bfloat16>(points, 256, 4, 128, 32); });
  guarded("attention", [&] { attention<bfloat16>(points, 16, 12, 512, 64); });
  guarded("attention", [&] { attention<bfloat16>(points, 4, 12, 2048, 64); });
  for (Index const head_width : {32, 64, 128})
    for (Index const length : {128, 512, 2048})  // 16,384 tokens of 768 channels
      for (Variant const variant : {Variant::plain, Variant::causal, Variant::ragged, Variant::dropout})
        if (variant == Variant::plain || head_width == 64)
          guarded("attention",
                  [&] { attention<bfloat16>(points, 16384 / length, 768 / head_width, length, head_width, variant); });
#if defined(LOCKSTEP_CUDNN)
  auto const by_cudnn = [&](Index rows, Index heads, Index length, Index head_width, Variant variant) {
    guarded("attention",
            [&] { attention<bfloat16>(points, rows, heads, length, head_width, variant, AttentionBy::cudnn); });
  };
  by_cudnn(256, 4, 128, 32, Variant::plain);
  by_cudnn(16, 12, 512, 64, Variant::plain);
  by_cudnn(4, 12, 2048, 64, Variant::plain);
  for (Index const head_width : {64, 128})
    for (Index const length : {128, 512, 2048})
      for (Variant const variant : {Variant::plain, Variant::causal})
        by_cudnn(16384 / length, 768 / head_width, length, head_width, variant);
#endif
}
