// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/mix.hpp>
#include <lockstep/kernel/embedding/fused_embedding.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/global_norm.hpp>

#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

constexpr Index vocabulary = 20000, width = 128, rows = 32, length = 128, batches = 16;

/// A new batch each time, so that the touched rows vary. Zipf: rank r with frequency 1 / r.
std::vector<std::int32_t> draw(bool zipf, std::uint64_t batch) {
  std::vector<std::int32_t> ids;
  for (std::uint64_t k = 0; k < rows * length; ++k) {
    auto const part = static_cast<double>(mix(batch, k) >> 11) * 0x1p-53;
    auto const rank =
        zipf ? std::pow(static_cast<double>(vocabulary), part) - 1 : part * static_cast<double>(vocabulary);
    ids.push_back(static_cast<std::int32_t>(static_cast<Index>(rank) * 7919 % vocabulary));
  }
  return ids;
}

/// A token table in training, whose gradient is dense or row-sparse.
class Table {
 public:
  using Kernel = kernel::FusedEmbedding<HostSpace>;
  enum class Form { dense, by_rows };

  Table(ThreadPool& pool, Form form, bool zipf) : stream_(pool) {
    for (Index b = 0; b < batches; ++b) ids_.push_back(draw(zipf, static_cast<std::uint64_t>(b)));
    for (auto* each : {&values_, &gradients_, &dy_, &m_, &v_}) std::ranges::fill(each->span(), 0.01F);
    if (form == Form::by_rows) touched_ = {0, vocabulary, width, bits_.data()};
  }

  void backward() {
    plan_.build(ids_[static_cast<std::size_t>(next_++ % batches)]);
    if (touched_.words != nullptr) touched_.clear();
    Kernel::backward_table<float>(stream_, plan_, {dy_.data(), {rows * length, width}},
                                  {partial_.data(), {Kernel::partial_rows(rows * length), width}},
                                  {gradients_.data(), {vocabulary, width}}, Write::overwrite, touched_);
  }
  void update(double clip_norm, optim::AdamW const& optimizer = {}) {
    optim::StepScalars<HostSpace> scalars{.step = ++t_, .learning_rate = 1e-3, .weight = rows};
    auto const tables = std::span(&touched_, touched_.words != nullptr ? 1 : 0);
    if (clip_norm > 0)
      scalars.clip = optim::GlobalNorm::of(
                         stream_, TensorView<float, 1, HostSpace>(gradients_.data(), {gradients_.size()}), tables)
                         .clip(clip_norm, scalars.weight);
    float* const states[] = {m_.data(), v_.data()};
    optim::Slice<float, HostSpace> slice{0, values_.size(), values_.data(), gradients_.data(), states};
    slice.touched = touched_;
    optimizer.step(stream_, slice, &scalars);
  }

 private:
  memory::Stream<HostSpace> stream_;
  std::vector<std::vector<std::int32_t>> ids_;
  memory::Buffer<float> values_{vocabulary * width}, gradients_{vocabulary * width}, m_{vocabulary * width},
      v_{vocabulary * width}, dy_{rows * length * width}, partial_{rows * length * width};
  std::vector<std::uint64_t> bits_ = std::vector<std::uint64_t>(kernel::TouchedRows::words_for(vocabulary));
  kernel::TouchedRows touched_;
  Kernel::Plan plan_;
  Index next_ = 0;
  double t_ = 0;
};

}  // namespace

void register_benchmarks() {
  static ThreadPool pool;
  for (bool const zipf : {true, false}) {
    Shared const compact([zipf] { return Table(pool, Table::Form::by_rows, zipf); });
    Shared const dense([zipf] { return Table(pool, Table::Form::dense, zipf); });
    auto const add_both = [&](std::string const& what, auto const& pass) {
      auto const name = "touched_rows/" + what + "/ids:" + (zipf ? "zipf" : "uniform");
      add_pass(name, compact, pass);
      add_pass(name + "/peer:dense", dense, pass);
    };
    add_both("backward", [](Table& t) { t.backward(); });
    add_both("backward_adamw", [](Table& t) { t.backward(), t.update(0); });
    add_both("backward_norm_adamw", [](Table& t) { t.backward(), t.update(1); });
    // With a dense gradient there are no untouched rows.
    add_both("backward_norm_adamw/untouched_rows_stay", [](Table& t) {
      t.backward();
      t.update(1, {.untouched_rows = optim::UntouchedRows::skip});
    });
  }
}
