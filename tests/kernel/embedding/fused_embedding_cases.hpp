// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <lockstep/kernel/embedding/embedding_gradients.hpp>
#include <lockstep/kernel/write.hpp>

#include "exact_embedding.hpp"
#include "fused_embedding_case.hpp"

/// Cases that every backend's fused embedding must satisfy. A backend has a type Space and
///   template <class U> U* put(std::vector<U> const&);          // a copy in its memory, kept until the next clear()
///   template <class U> std::vector<U> get(U const*, Index);
///   void clear();   memory::Stream<Space> stream();   Plan& plan();
namespace lockstep_test {

using lockstep::Write;

/// Gradients in the order of segments and parts, followed by position, type, weight and bias.
template <class T>
using EmbeddingGradientList = std::vector<std::vector<T>>;

template <class T, class Backend>
class EmbeddingRun {
 public:
  using Space = typename Backend::Space;
  using Kernel = lockstep::kernel::FusedEmbedding<Space>;
  using Layout = lockstep::kernel::SequenceLayout<Space>;

  EmbeddingRun(Backend& backend, EmbeddingCase<T> const& c) : backend_(backend), case_(c) {
    backend.clear();
    auto& assembly = inputs_.assembly;
    auto const rows = c.kind.rows;
    lockstep::TensorView<Index const, 1, Space> const positions{backend.put(c.positions), {rows}};
    assembly.arrangement = c.kind.arrangement;
    int parts = 0;
    for (auto const& segment : c.segments) {
      assembly.segments[assembly.count] =
          c.kind.ragged ? Layout::ragged(segment.offsets.back(), segment.length,
                                         {backend.put(segment.offsets), {rows + 1}}, positions)
                        : Layout::padded(segment.length, {backend.put(segment.lengths), {rows}}, positions);
      for (auto const& part : segment.parts)
        inputs_.parts[parts++] = {
            {backend.put(part.rows), {part.count, c.kind.width}}, part.is_table, backend.put(part.ids)};
      inputs_.first_part[++assembly.count] = parts;
    }
    assembly.layout = assembly.segments[0];
    if (assembly.count > 1) lay_out(positions);
    auto const width = c.kind.width;
    if (c.kind.positions) inputs_.position = {backend.put(c.position), {c.most_positions, width}};
    if (c.kind.types) inputs_.type = {backend.put(c.type), {assembly.count, width}};
    if (c.kind.norm != Norm::none) inputs_.weight = {backend.put(c.weight), {width}};
    if (c.kind.norm == Norm::layer) inputs_.bias = {backend.put(c.bias), {width}};
    inputs_.scale = static_cast<T>(c.kind.scale);
    inputs_.position_unit = c.kind.position_unit;
    inputs_.norm = c.kind.norm;
    inputs_.epsilon = static_cast<T>(1e-5);
    inputs_.mask = c.mask;
  }

  std::vector<T> forward() {
    auto* const out = backend_.put(std::vector<T>(case_.dy.size(), T{-7}));
    Kernel::template forward<T>(backend_.stream(), inputs_, {out, {case_.slots(), case_.kind.width}});
    return backend_.get(out, size(case_.dy));
  }

  EmbeddingGradientList<T> backward(Write write, T before) {
    auto const width = case_.kind.width, slots = case_.slots();
    std::vector<std::pair<T*, Index>> all;
    auto const make = [&](std::vector<T> const& like) {
      all.push_back({backend_.put(std::vector<T>(like.size(), before)), size(like)});
      return all.back().first;
    };
    typename Kernel::template Gradients<T> targets;
    int p = 0;
    for (auto const& segment : case_.segments)
      for (auto const& part : segment.parts) {
        auto* const target = make(part.rows);
        if (!inputs_.parts[p].is_table) targets.dense[p] = {target, write};
        ++p;
      }
    if (case_.kind.positions) targets.position = {make(case_.position), write};
    if (case_.kind.types) targets.type = {make(case_.type), write};
    if (case_.kind.norm != Norm::none) targets.weight = {make(case_.weight), write};
    if (case_.kind.norm == Norm::layer) targets.bias = {make(case_.bias), write};
    auto const* const dy = backend_.put(case_.dy);
    T* const dx = inputs_.is_plain_sum() ? nullptr : backend_.put(nothing(case_.dy.size()));
    T* const memory = backend_.put(nothing(static_cast<std::size_t>(Kernel::scratch(inputs_, width))));
    Kernel::template backward<T>(backend_.stream(), inputs_, {dy, {slots, width}}, {dx, {slots, width}}, targets,
                                 memory);
    p = 0;
    for (int segment = 0; segment < inputs_.assembly.count; ++segment)
      for (; p < inputs_.first_part[segment + 1]; ++p)
        if (inputs_.parts[p].is_table)
          backward_table(segment, p, dx ? dx : dy, all[static_cast<std::size_t>(p)].first, write);
    EmbeddingGradientList<T> out;
    for (auto const& [data, count] : all) out.push_back(backend_.get(data, count));
    return out;
  }

 private:
  /// Memory that must be written before it is read.
  static std::vector<T> nothing(std::size_t count) {
    return std::vector<T>(count, std::numeric_limits<T>::quiet_NaN());
  }
  static Index size(std::vector<T> const& v) { return static_cast<Index>(v.size()); }

  void lay_out(lockstep::TensorView<Index const, 1, Space> positions) {
    auto& assembly = inputs_.assembly;
    auto const bounds = assembly.bounds();
    auto const longest = case_.length();
    if (case_.kind.ragged) {
      auto* const offsets = backend_.put(std::vector<Index>(static_cast<std::size_t>(bounds)));
      Kernel::template bounds<Index>(backend_.stream(), assembly, {offsets, {bounds}});
      assembly.layout = Layout::ragged(case_.slots(), longest, {offsets, {bounds}}, positions);
    } else {
      auto* const lengths = backend_.put(std::vector<std::int32_t>(static_cast<std::size_t>(bounds)));
      Kernel::template bounds<std::int32_t>(backend_.stream(), assembly, {lengths, {bounds}});
      assembly.layout = Layout::padded(longest, {lengths, {bounds}}, positions);
    }
  }
  void backward_table(int segment, int part, T const* dx, T* gradient, Write write) {
    auto const width = case_.kind.width, slots = case_.slots();
    auto const elements = Kernel::plan_elements(slots);
    auto* const memory = backend_.put(std::vector<std::int32_t>(static_cast<std::size_t>(elements), -1));
    Kernel::template plan<T>(backend_.stream(), inputs_, segment, part, {memory, {elements}}, backend_.plan());
    auto const rows = Kernel::partial_rows(slots);
    auto* const partial = backend_.put(nothing(static_cast<std::size_t>(rows * width)));
    Kernel::template backward_table<T>(backend_.stream(), backend_.plan(), {dx, {slots, width}},
                                       {partial, {rows, width}}, {gradient, inputs_.parts[part].rows.extent}, write);
  }

  Backend& backend_;
  EmbeddingCase<T> const& case_;
  lockstep::kernel::EmbeddingInputs<T, Space> inputs_;
};

template <class T, class Backend>
void check_embedding_forward(Backend& backend, EmbeddingCase<T> const& c) {
  auto const out = EmbeddingRun<T, Backend>(backend, c).forward();
  REQUIRE(out.size() == c.dy.size());
  bool good = true;
  for (Index r = 0; r < c.kind.rows; ++r) {
    for (Index t = 0; t < c.tokens(r); ++t) {
      ExactToken<T> const token(c, r, t);
      for (Index i = 0; i < c.kind.width; ++i) {
        auto const& y = token.y[static_cast<std::size_t>(i)];
        double const factor = static_cast<double>(c.factor(r, t, i));
        double const got = static_cast<double>(out[static_cast<std::size_t>((c.start(r) + t) * c.kind.width + i)]);
        good = good && std::abs(got - factor * y.value) <= factor * (y.error + std::abs(y.value)) * half_epsilon<T>();
      }
    }
    for (Index i = (c.start(r) + c.tokens(r)) * c.kind.width; i < c.start(r + 1) * c.kind.width; ++i)
      good = good && out[static_cast<std::size_t>(i)] == 0;
  }
  CHECK(good);
}

template <class T, class Backend>
void check_embedding_backward(Backend& backend, EmbeddingCase<T> const& c, Write write) {
  T const before = 0.75;
  auto const got = EmbeddingRun<T, Backend>(backend, c).backward(write, before);
  ExactGradients<T> const exact(c);
  double const start = write == Write::add ? static_cast<double>(before) : 0;
  double const n = static_cast<double>(c.slots());
  double const additions = std::min(n, 512.0) + n / 32 + 4;
  REQUIRE(got.size() == exact.all.size());
  bool good = true;
  for (std::size_t i = 0; i < got.size(); ++i)
    for (std::size_t j = 0; j < got[i].size(); ++j) {
      auto const& e = exact.all[i][j];
      double const bound = half_epsilon<T>() * additions * (e.error + (e.error > 0 ? start : 0));
      good = good && std::abs(static_cast<double>(got[i][j]) - (start + e.value)) <= bound;
    }
  CHECK(good);
}

template <class T, class Backend>
void check_embedding(Backend& backend, EmbeddingKind const& kind) {
  CAPTURE(kind.rows);
  CAPTURE(kind.length);
  CAPTURE(kind.width);
  CAPTURE(static_cast<int>(kind.ids));
  CAPTURE(kind.dropout);
  CAPTURE(kind.segments);
  CAPTURE(static_cast<int>(kind.arrangement));
  CAPTURE(kind.ragged);
  CAPTURE(static_cast<int>(kind.position_unit));
  CAPTURE(static_cast<int>(kind.norm));
  CAPTURE(kind.sums);
  EmbeddingCase<T> const c(kind);
  check_embedding_forward(backend, c);
  check_embedding_backward(backend, c, Write::overwrite);
  check_embedding_backward(backend, c, Write::add);
}

/// A text: one table and positions, at many sizes.
template <class T, class Backend>
void embedding_text_cases(Backend& backend) {
  for (double dropout : {0.0, 0.3})
    for (Ids ids : {Ids::spread, Ids::all_equal})
      for (Index rows : {0, 1, 5})
        for (Index length : {0, 1, 8, 9, 33})
          for (Index width : {1, 16, 130})
            for (bool ragged : {false, true})
              check_embedding<T>(
                  backend,
                  {.rows = rows, .length = length, .width = width, .ids = ids, .dropout = dropout, .ragged = ragged});
}

/// All other cases, in all combinations that differ.
template <class T, class Backend>
void embedding_assembly_cases(Backend& backend) {
  for (int segments : {1, 2, 3})
    for (auto arrangement : {Arrangement::concatenated, Arrangement::interleaved})
      for (auto position_unit : {PositionUnit::tokens, PositionUnit::steps})
        for (auto norm : {Norm::none, Norm::layer, Norm::rms})
          for (bool ragged : {false, true})
            for (bool sums : {false, true})
              check_embedding<T>(backend, {.rows = 6,
                                           .length = 11,
                                           .width = 9,
                                           .dropout = sums == ragged ? 0.3 : 0,
                                           .segments = segments,
                                           .arrangement = arrangement,
                                           .ragged = ragged,
                                           .position_unit = position_unit,
                                           .scale = sums ? 1.5 : 1,
                                           .norm = norm,
                                           .types = true,
                                           .sums = sums});
  for (bool positions : {false, true})
    check_embedding<T>(
        backend,
        {.rows = 70, .length = 3, .width = 33, .segments = 2, .scale = 3, .types = !positions, .positions = positions});
  for (lockstep::Index width : {8, 96, 128, 264}) {  // accesses are whole
    check_embedding<T>(backend, {.rows = 70, .length = 3, .width = width, .segments = 2, .scale = 3, .types = true});
    for (double dropout : {0.0, 0.1})
      check_embedding<T>(backend, {.rows = 9, .length = 20, .width = width, .dropout = dropout, .ragged = true});
  }
  if constexpr (sizeof(T) == sizeof(float))  // several slots per warp
    check_embedding<T>(backend, {.rows = 4, .length = 4200, .width = 40, .dropout = 0.1});
  check_embedding<T>(backend, {.rows = 300, .length = 16, .width = 16, .norm = Norm::layer, .types = true});
  for (auto norm : {Norm::layer, Norm::rms})
    check_embedding<T>(backend, {.rows = 3, .length = 4, .width = 260, .dropout = 0.1, .norm = norm});
}

/// Long segments: many chunks for one id, several adjacent ids of this kind, and a vocabulary with wide gaps.
template <class T, class Backend>
void embedding_hot_row_cases(Backend& backend) {
  for (Index rows : {64, 65})
    for (Ids ids : {Ids::all_equal, Ids::extremes, Ids::skewed})
      check_embedding<T>(backend,
                         {.rows = rows, .length = 40, .width = 20, .vocabulary = 3001, .ids = ids, .dropout = 0.1});
}

/// Adding writes leave rows of absent ids unchanged: -0 + 0 would be +0.
template <class T, class Backend>
void embedding_untouched_rows_case(Backend& backend) {
  EmbeddingCase<T> const c({.ids = Ids::extremes});
  auto const got = EmbeddingRun<T, Backend>(backend, c).backward(Write::add, T{-0.0})[0];
  Index untouched = 0;
  for (Index v = 1; v + 1 < c.kind.vocabulary; ++v, ++untouched)
    for (Index k = 0; k < c.kind.width; ++k) CHECK(std::signbit(got[static_cast<std::size_t>(v * c.kind.width + k)]));
  CHECK(untouched == c.kind.vocabulary - 2);
}

/// Ragged and padded to any length: equal bits for every token and every gradient, including dropout.
template <class T, class Backend>
void embedding_padding_case(Backend& backend) {
  for (auto norm : {Norm::none, Norm::layer}) {
    EmbeddingKind kind{.rows = 6,
                       .length = 37,
                       .width = 24,
                       .dropout = 0.2,
                       .segments = 2,
                       .ragged = true,
                       .norm = norm,
                       .types = true};
    EmbeddingCase<T> const ragged(kind);
    kind.ragged = false;
    EmbeddingCase<T> padded(kind);
    for (std::size_t s = 0; s < padded.segments.size(); ++s)
      for (std::size_t p = 0; p < padded.segments[s].parts.size(); ++p)
        for (Index r = 0; r < kind.rows; ++r)
          for (Index t = 0; t < padded.segments[s].lengths[static_cast<std::size_t>(r)]; ++t) {
            auto const& from = ragged.segments[s].parts[p];
            auto& to = padded.segments[s].parts[p];
            auto const i = static_cast<std::size_t>(ragged.segments[s].start(true, r) + t),
                       j = static_cast<std::size_t>(padded.segments[s].start(false, r) + t);
            if (!to.ids.empty())
              to.ids[j] = from.ids[i];
            else
              std::copy_n(from.rows.begin() + static_cast<std::ptrdiff_t>(i) * kind.width, kind.width,
                          to.rows.begin() + static_cast<std::ptrdiff_t>(j) * kind.width);
          }
    for (Index r = 0; r < kind.rows; ++r)
      std::copy_n(ragged.dy.begin() + ragged.start(r) * kind.width, ragged.tokens(r) * kind.width,
                  padded.dy.begin() + padded.start(r) * kind.width);
    auto const a = EmbeddingRun<T, Backend>(backend, ragged).forward();
    auto const b = EmbeddingRun<T, Backend>(backend, padded).forward();
    for (Index r = 0; r < kind.rows; ++r)
      CHECK(std::equal(a.begin() + ragged.start(r) * kind.width, a.begin() + ragged.start(r + 1) * kind.width,
                       b.begin() + padded.start(r) * kind.width));
    auto const da = EmbeddingRun<T, Backend>(backend, ragged).backward(Write::overwrite, T{1});
    auto const db = EmbeddingRun<T, Backend>(backend, padded).backward(Write::overwrite, T{1});
    for (std::size_t i = 0; i < da.size(); ++i)
      if (i != 1) CHECK(da[i] == db[i]);  // 1 is dense: its gradient has a row per slot
  }
}

}  // namespace lockstep_test
