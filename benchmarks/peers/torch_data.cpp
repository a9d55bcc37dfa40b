// SPDX-License-Identifier: Apache-2.0
// PyTorch's C++ loader, torch::data: torch_data CASE BATCH WORKERS stack|written [FILE]. Each answer is samples per
// second. `stack` is the library's collate, `written` one by hand; padded cases have the latter only.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <torch/data.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <answer.hpp>

namespace {

namespace data = torch::data;
using Tensors = data::TensorExample;

double part(std::int64_t i) {
  auto const x = static_cast<double>(i) * 0.6180339887498949;
  return x - std::floor(x);
}
std::int64_t pose_length(std::int64_t i) { return static_cast<std::int64_t>(30 * std::pow(20.0, part(i))); }

/// Tensors in memory.
struct Held : data::Dataset<Held, Tensors> {
  std::vector<torch::Tensor> samples;
  explicit Held(std::vector<torch::Tensor> all) : samples(std::move(all)) {}
  Tensors get(std::size_t i) override { return samples[i]; }
  torch::optional<std::size_t> size() const override { return samples.size(); }
};
/// Pairs in memory, without a tensor each.
struct Pairs : data::Dataset<Pairs, std::array<float, 2>> {
  std::vector<std::array<float, 2>> samples;
  explicit Pairs(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) samples.push_back({static_cast<float>(i), 1});
  }
  std::array<float, 2> get(std::size_t i) override { return samples[i]; }
  torch::optional<std::size_t> size() const override { return samples.size(); }
};
/// Records of one file, read one by one.
struct Clips : data::Dataset<Clips, Tensors> {
  static constexpr std::size_t bytes = 17 * 256 * 256;
  std::string path;
  std::FILE* file = nullptr;
  std::size_t count;

  explicit Clips(std::string from) : path(std::move(from)), count(counted(path)) {}
  Clips(Clips const& other) : Dataset(other), path(other.path), count(other.count) {}  // each worker has a copy
  Tensors get(std::size_t i) override {
    if (file == nullptr) {
      file = std::fopen(path.c_str(), "rb");
      if (file == nullptr) throw std::runtime_error("cannot open " + path);
      std::setvbuf(file, nullptr, _IONBF, 0);
    }
    auto out = torch::empty({17, 256, 256}, torch::kUInt8);
    std::fseek(file, static_cast<long>(i * bytes), SEEK_SET);
    if (std::fread(out.data_ptr(), 1, bytes, file) != bytes) throw std::runtime_error("cannot read " + path);
    return out;
  }
  torch::optional<std::size_t> size() const override { return count; }

 private:
  static std::size_t counted(std::string const& path) {
    auto* const opened = std::fopen(path.c_str(), "rb");
    if (opened == nullptr) throw std::runtime_error("cannot open " + path);
    std::fseek(opened, 0, SEEK_END);
    auto const size = std::ftell(opened);
    std::fclose(opened);
    return static_cast<std::size_t>(size) / bytes;
  }
};

torch::Tensor joined(std::vector<Tensors> const& samples) {
  std::vector<torch::Tensor> all;
  for (auto const& each : samples) all.push_back(each.data);
  return torch::stack(all);
}
torch::Tensor pairs(std::vector<std::array<float, 2>> const& samples) {
  auto out = torch::empty({static_cast<std::int64_t>(samples.size()), 2});
  auto* to = out.data_ptr<float>();
  for (auto const& each : samples) {
    *to++ = each[0];
    *to++ = each[1];
  }
  return out;
}
torch::Tensor padded(std::vector<Tensors> const& samples) {
  std::int64_t longest = 0;
  for (auto const& each : samples) longest = std::max(longest, each.data.size(0));
  auto const rows = static_cast<std::int64_t>(samples.size());
  auto out = torch::zeros({rows, longest, 133, 3}), mask = torch::zeros({rows, longest}, torch::kBool);
  for (std::int64_t row = 0; row < rows; ++row) {
    auto const& sample = samples[static_cast<std::size_t>(row)].data;
    out[row].narrow(0, 0, sample.size(0)).copy_(sample);
    mask[row].narrow(0, 0, sample.size(0)).fill_(true);
  }
  return out;
}

/// Delivers batches until it is stopped; epochs follow one another.
template <class D>
int deliver(D dataset, std::size_t batch, std::size_t workers) {
  auto loader = data::make_data_loader<data::samplers::RandomSampler>(
      std::move(dataset), data::DataLoaderOptions().batch_size(batch).workers(workers).drop_last(true));
  auto at = loader->begin();
  return lockstep_bench::answer_each([&](long count) {
    double samples = 0;
    auto const seconds = lockstep_bench::seconds_of(count, [&] {
      if (at == loader->end()) at = loader->begin();
      samples += static_cast<double>((*at).size(0));
      ++at;
    });
    return lockstep_bench::Answer{seconds, samples};
  });
}

template <class Example, class F>
auto collated(F f) {
  return data::transforms::BatchLambda<std::vector<Example>, torch::Tensor>(f);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  torch::set_num_threads(1);
  std::string const name = argv[1], collate = argv[4];
  auto const batch = std::strtoull(argv[2], nullptr, 10), workers = std::strtoull(argv[3], nullptr, 10);
  std::vector<torch::Tensor> samples;
  if (name == "clips") return deliver(Clips(argv[5]).map(collated<Tensors>(joined)), batch, workers);
  if (name == "tiny" && collate == "written") {
    return deliver(Pairs(102'400).map(collated<std::array<float, 2>>(pairs)), batch, workers);
  }
  if (name == "tiny") {
    for (int i = 0; i < 102'400; ++i) samples.push_back(torch::full({2}, i, torch::kFloat));
    return deliver(Held(samples).map(collated<Tensors>(joined)), batch, workers);
  }
  for (std::int64_t i = 0; i < 512; ++i) samples.push_back(torch::ones({pose_length(i), 133, 3}));
  return deliver(Held(samples).map(collated<Tensors>(padded)), batch, workers);
}
