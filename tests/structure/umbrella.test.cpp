// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include <lockstep/lockstep.hpp>

#include "structure/source_tree.hpp"

using namespace lockstep_test;

namespace lockstep_test {
char const* version_seen_by_the_other_unit();
}

TEST_CASE("two translation units share one library") {
  CHECK(version_seen_by_the_other_unit() == static_cast<char const*>(lockstep::version));
}

// Programs include headers for a specific data format or order themselves, so that others need not compile them. The
// file with main includes headers that start and connect ranks; users of an engine with a library include the engine.
TEST_CASE("the umbrella is every public .hpp of core to scaling except those, floor by floor") {
  std::set<std::string> const of_main{"comm/engine/connect.hpp",
                                      "comm/mpi/mpi_communicator.hpp",
                                      "comm/shared_memory/process_communicator.hpp",
                                      "comm/engine/self_communicator.hpp",
                                      "comm/store/store_communicator.hpp",
                                      "comm/shared_memory/thread_communicator.hpp",
                                      "launch/environment/environment.hpp",
                                      "launch/peer_text.hpp",
                                      "launch/run/run.hpp",
                                      "launch/run/run_program.hpp",
                                      "launch/stop_request.hpp",
                                      "launch/store/store.hpp",
                                      "launch/store/store_server.hpp",
                                      "launch/run/supervisor.hpp"};
  // Headers that report on a run, in addition to a trainer's records.
  std::set<std::string> const of_reports{
      "scaling/compared_run.hpp",    "scaling/diagnosis.hpp",       "scaling/fabric.hpp",
      "scaling/lost_time.hpp",       "scaling/machine_ceiling.hpp", "scaling/prediction.hpp",
      "scaling/saved_run.hpp",       "scaling/scaling_report.hpp",  "train/logs/csv_log.hpp",
      "train/trace/layer_times.hpp", "train/logs/tensorboard.hpp",  "train/trace/trace_file.hpp"};
  // Headers that generate and score texts.
  std::set<std::string> const of_texts{
      "core/base64.hpp",          "train/prediction/beam_search.hpp", "train/metrics/bleu.hpp",
      "train/metrics/chrf.hpp",   "train/prediction/generate.hpp",    "train/files/csv_file.hpp",
      "train/files/write_csv.hpp"};
  // Headers that measure labels which do not exclude each other.
  std::set<std::string> const of_labels{"train/metrics/f1_thresholds.hpp", "train/metrics/multilabel_f1.hpp"};
  // Headers of readers and writers of files, and of connections; of those who write kernels for a space.
  std::set<std::string> const of_files{"core/crc32.hpp",
                                       "core/hmac_sha256.hpp",
                                       "core/out_of_memory.hpp",
                                       "core/parse_real.hpp",
                                       "train/files/export_parameters.hpp",
                                       "core/random_suffix.hpp",
                                       "core/regular_file.hpp",
                                       "core/safetensors_layout.hpp",
                                       "kernel/contract/contract.hpp"};
  // Headers of several optimizers for one model.
  std::set<std::string> const of_optimizers{"kernel/optimizer/orthogonalize.hpp", "optim/muon.hpp",
                                            "optim/partitioned.hpp"};

  std::set<std::string> const common_samplers{"data/sampler/sampler.hpp", "data/sampler/sequential_sampler.hpp",
                                              "data/sampler/shuffled_sampler.hpp"};

  std::vector<std::string> expected;
  for (auto const& floor : floors) {
    if (floor.folder == "app" || floor.folder == "interop") continue;
    for (auto const& header : library_headers())
      if (folder_of(header) == floor.folder && header.ends_with(".hpp") && !is_detail(header) &&
          !header.starts_with("data/source/") && !header.starts_with("data/text/") &&
          !header.starts_with("scaling/figure/") && !header.starts_with("scaling/study/") &&
          (!header.starts_with("data/sampler/") || common_samplers.contains(header)) && !of_main.contains(header) &&
          !of_reports.contains(header) && !of_texts.contains(header) && !of_labels.contains(header) &&
          !of_files.contains(header) && !of_optimizers.contains(header))
        expected.push_back("<lockstep/" + header + ">");
  }
  std::vector<std::string> found;
  for (auto const& line : lines_of(source_root / "include/lockstep/lockstep.hpp"))
    if (auto included = included_by(line); !included.empty()) found.push_back(included);
  for (auto const& header : expected)
    CHECK_MESSAGE(std::find(found.begin(), found.end(), header) != found.end(), "missing: #include ", header);
  CHECK(found == expected);
  CHECK(expected.size() >= 9);
}
