// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/cache_options.ipp>
#include <lockstep/app/detail/hints.ipp>
#include <lockstep/app/detail/run_output.ipp>
#include <lockstep/app/detail/saved_file.ipp>
#include <lockstep/app/examination.ipp>
#include <lockstep/app/run.ipp>
#include <lockstep/app/save_dir.ipp>
#include <lockstep/app/study_files.ipp>
#include <lockstep/app/study_plan.ipp>
#include <lockstep/app/synthetic_data.ipp>
#include <lockstep/app/trainer_program.ipp>
