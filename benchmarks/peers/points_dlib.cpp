// SPDX-License-Identifier: Apache-2.0
// README's program as a user of dlib writes it, on one device, to measure its compile time.
#include <dlib/dnn.h>

#include <cstdio>
#include <random>
#include <vector>

using namespace dlib;

using Point = matrix<float, 2, 1>;
using Disc = loss_multiclass_log<fc<2, gelu<fc<32, input<Point>>>>>;

int main() {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> along(-1, 1);
  std::vector<Point> points;
  std::vector<unsigned long> inside;
  for (int i = 0; i < 20000; ++i) {
    Point point;
    point = along(random), along(random);
    points.push_back(point);
    inside.push_back(point(0) * point(0) + point(1) * point(1) < 0.6f);
  }
  Disc model;
  dnn_trainer<Disc, adam> trainer(model, adam(0.01f, 0.9f, 0.999f));
  trainer.set_learning_rate(1e-2);
  trainer.set_mini_batch_size(32);
  trainer.set_max_num_epochs(3);
  trainer.train(points, inside);
  auto const predicted = model(points);
  std::size_t right = 0;
  for (std::size_t i = 0; i < points.size(); ++i) right += predicted[i] == inside[i];
  std::printf("accuracy %.3f\n", static_cast<double>(right) / static_cast<double>(points.size()));
}
