// SPDX-License-Identifier: Apache-2.0
// README's program as a user of LibTorch writes it, on one device, to measure its compile time.
#include <torch/torch.h>

#include <cstdio>
#include <random>
#include <utility>
#include <vector>

struct Point {
  float x, y;
  std::int64_t inside;
};

class Points : public torch::data::datasets::Dataset<Points> {
 public:
  Points() {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> along(-1, 1);
    for (int i = 0; i < 20000; ++i) {
      float const x = along(random), y = along(random);
      points_.push_back({x, y, x * x + y * y < 0.6f});
    }
  }
  torch::data::Example<> get(std::size_t i) override {
    auto const& point = points_[i];
    return {torch::tensor({point.x, point.y}), torch::tensor(point.inside)};
  }
  torch::optional<std::size_t> size() const override { return points_.size(); }

 private:
  std::vector<Point> points_;
};

struct DiscImpl : torch::nn::Module {
  DiscImpl() {
    register_module("hidden", hidden);
    register_module("head", head);
  }
  torch::Tensor forward(torch::Tensor const& at) { return head(torch::gelu(hidden(at))); }
  torch::nn::Linear hidden{2, 32}, head{32, 2};
};
TORCH_MODULE(Disc);

int main() {
  auto points = Points().map(torch::data::transforms::Stack<>());
  auto const loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(points), torch::data::DataLoaderOptions(32).workers(1));
  Disc model;
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-2));
  for (int epoch = 0; epoch < 3; ++epoch)
    for (auto& batch : *loader) {
      optimizer.zero_grad();
      torch::nn::functional::cross_entropy(model(batch.data), batch.target).backward();
      optimizer.step();
    }
  torch::NoGradGuard const nothing_is_learned;
  std::int64_t right = 0, all = 0;
  for (auto& batch : *loader) {
    right += (model(batch.data).argmax(1) == batch.target).sum().item<std::int64_t>();
    all += batch.target.size(0);
  }
  std::printf("accuracy of %td points: %.3f\n", static_cast<std::ptrdiff_t>(all),
              static_cast<double>(right) / static_cast<double>(all));
}
