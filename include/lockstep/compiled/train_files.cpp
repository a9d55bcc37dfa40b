// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/checkpoint/checkpoint.ipp>
#include <lockstep/train/checkpoint/keep_best.ipp>
#include <lockstep/train/checkpoint/load_averages.ipp>
#include <lockstep/train/files/export_parameters.ipp>
#include <lockstep/train/files/names_in_file.ipp>
#include <lockstep/train/files/parameters_sha256.ipp>
#include <lockstep/train/files/safetensors.ipp>
#include <lockstep/train/logs/csv_log.ipp>
#include <lockstep/train/logs/detail/line_file.ipp>
#include <lockstep/train/logs/metrics_log.ipp>
#include <lockstep/train/logs/progress_bar.ipp>
#include <lockstep/train/logs/run_json.ipp>
#include <lockstep/train/logs/run_record.ipp>
#include <lockstep/train/logs/unreadable_samples.ipp>
#include <lockstep/train/trace/detail/named_spans.ipp>
#include <lockstep/train/trace/detail/trace_events.ipp>
#include <lockstep/train/trace/layer_times.ipp>
