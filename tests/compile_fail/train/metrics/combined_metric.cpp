// SPDX-License-Identifier: Apache-2.0
// CASE several: Lockstep: a CombinedMetric takes metrics with one value(), and one of these has several
// CASE part: Lockstep: a CombinedMetric takes metrics of predictions, and a LossPart is none
// CASE arguments: Lockstep: the function of a CombinedMetric takes one double for each metric and returns a number
// CASE nothing: Lockstep: the function of a CombinedMetric takes one double for each metric and returns a number
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/metrics/combined_metric.hpp>
#include <lockstep/train/metrics/confusion_matrix.hpp>

using namespace lockstep;

struct Sample {
  int label;
};

auto metric() {
  train::Accuracy const accuracy{&Sample::label};
#if defined(CASE_several)
  return train::CombinedMetric{"score", [](double a, double b) { return a + b; }, accuracy,
                               train::ConfusionMatrix{&Sample::label, 2}};
#elif defined(CASE_part)
  return train::CombinedMetric{"score", [](double a, double b) { return a + b; }, accuracy, train::LossPart{"kl"}};
#elif defined(CASE_arguments)
  return train::CombinedMetric{"score", [](double a, double b) { return a + b; }, accuracy};
#elif defined(CASE_nothing)
  return train::CombinedMetric{"score", [](double) {}, accuracy};
#else
  return train::CombinedMetric{"score", [](double a, double b) { return a + b; }, accuracy, accuracy};
#endif
}
