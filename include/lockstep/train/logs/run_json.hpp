// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/json_writer.hpp>
#include <lockstep/core/version.hpp>
#include <lockstep/train/files/atomic_file.hpp>
#include <lockstep/train/logs/run_record.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Labels of run.json in addition to the record of the run.
struct RunLabels {
  std::string example = {};                                        ///< name of the program
  std::string backend = "host";                                    ///< "host" or "cuda"
  std::string parameters_sha256 = {};                              ///< of the final parameters
  std::string bound = {};                                          ///< the bottleneck of the run, as a word
  std::string summary = {};                                        ///< the bottleneck of the run, as a sentence
  std::string precision = "fp32";                                  ///< of activations: "fp32", "bf16" or "fp16"
  std::vector<std::string> command = {};                           ///< command line of the run, by word
  std::vector<std::pair<std::string, std::string>> settings = {};  ///< settings such as {"lr", "0.001"}
  std::vector<std::string> strings = {};  ///< names of settings that are strings, also if they look like numbers
  std::string cause = {};                 ///< of lost time, by name; empty: not looked for
};

namespace detail {

/// Writes booleans, and numbers in the form that Lockstep writes, as such. Everything else is a string, such as "007"
/// and "1e5".
void write_setting(json::Writer& out, std::string_view text);

void write_phases(json::Writer& out, RunRecord const& record);

/// Writes a GPU, the kernels that computed on it, and the work of an average step.
void write_gpu(json::Writer& out, parallel::DeviceFacts const& facts, parallel::DeviceStep const& step);

void write_ranks(json::Writer& out, RunRecord const& record);

/// Writes how its host's processors served each rank.
void write_loads(json::Writer& out, RunRecord const& record);

void write_buckets(json::Writer& out, RunRecord const& record);

void write_evaluation(json::Writer& out, EvaluationReport const& report);

void write_final(json::Writer& out, RunRecord const& record);

}  // namespace detail

/// Returns the contents of run.json, schema 1. Phases are mean milliseconds per step, of this rank and, with several
/// ranks, of each. `buckets` are of the last step: bytes as sent, and milliseconds since its first batch. Without
/// communication, the times say when buckets were ready. Values of evaluations that are not numbers are null.
[[nodiscard]] std::string run_json(RunRecord const& record, RunLabels const& labels);

/// Writes run.json. The file appears complete or not at all.
void write_run_json(std::string const& path, RunRecord const& record, RunLabels const& labels);

}}}  // namespace lockstep::train

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/logs/run_json.ipp>
#endif
