// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/class_report.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/error.hpp>

using namespace lockstep;

namespace {
train::EvaluationReport report_of(std::vector<std::vector<double>> const& matrix) {
  train::EvaluationReport report;
  report.metrics = {{"accuracy", 0.5}};
  for (std::size_t i = 0; i < matrix.size(); ++i)
    for (std::size_t k = 0; k < matrix.size(); ++k) {
      report.metrics.emplace_back("confusion." + std::to_string(i) + "." + std::to_string(k), matrix[i][k]);
      report.samples += static_cast<Index>(matrix[i][k]);
    }
  return report;
}
}  // namespace

TEST_CASE("recall, precision and F1 of each class, their means, and the matrix") {
  // Recall 8/10, 3/4 and 0/1; precision 8/8, 3/6 and 0/1; F1 16/18, 6/10 and 0.
  auto const report = report_of({{8, 2, 0}, {0, 3, 1}, {0, 1, 0}});
  CHECK(train::class_report(report, {"rest", "walk", "circling"}) ==
        "class        samples   recall precision       F1\n"
        "rest              10   0.8000    1.0000   0.8889\n"
        "walk               4   0.7500    0.5000   0.6000\n"
        "circling           1   0.0000    0.0000   0.0000\n"
        "macro mean        15   0.5167    0.5000   0.4963\n"
        "confusion matrix: rows are labels, columns are predictions\n"
        "              rest    walk  circling\n"
        "rest             8       2         0\n"
        "walk             0       3         1\n"
        "circling         0       1         0\n");
}

TEST_CASE("columns are aligned by characters, for names of any length") {
  std::string const longest(200, 'x');
  auto const report = report_of({{8, 2}, {0, 5}});
  CHECK(train::class_report(report, {"k\xC3\xA4se", longest}) ==
        "class" + std::string(195, ' ') + "   samples   recall precision       F1\n" +  //
            "k\xC3\xA4se" + std::string(196, ' ') + "        10   0.8000    1.0000   0.8889\n" + longest +
            "         5   1.0000    0.7143   0.8333\n" + "macro mean" + std::string(190, ' ') +
            "        15   0.9000    0.8571   0.8611\n" +
            "confusion matrix: rows are labels, columns are predictions\n" + std::string(200, ' ') +
            "    k\xC3\xA4se  " + longest + "\nk\xC3\xA4se" + std::string(196, ' ') + "       8" +
            std::string(201, ' ') + "2\n" + longest + "       0" + std::string(201, ' ') + "5\n");
}

TEST_CASE("the samples of the means are the counted labels, also of sequences and without ignored ones") {
  auto report = report_of({{8, 2}, {0, 5}});
  report.samples = 3;  // sequences of 15 tokens
  CHECK(train::class_report(report, {"a", "b"}).find("macro mean        15   ") != std::string::npos);
}

TEST_CASE("a class that is neither a label nor predicted does not count in the means") {
  auto const text = train::class_report(report_of({{2, 0, 0}, {0, 2, 0}, {0, 0, 0}}), {"a", "b", "c"});
  CHECK(text.find("macro mean         4   1.0000    1.0000   1.0000") != std::string::npos);
}

TEST_CASE("an evaluation without a matrix of this many classes is refused") {
  auto const report = report_of({{1, 0}, {0, 1}});
  CHECK_THROWS_WITH_AS(static_cast<void>(train::class_report(report, {"a", "b", "c"})),
                       doctest::Contains("no confusion matrix of 3 classes"), ConfigError);
  CHECK_THROWS_AS(static_cast<void>(train::class_report({}, {"a"})), ConfigError);
  CHECK_THROWS_AS(static_cast<void>(train::class_report({}, {})), ConfigError);
}
