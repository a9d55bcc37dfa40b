// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/study_files.ipp>
#include <lockstep/app/study_plan.ipp>
#include <lockstep/app/trainer_program.ipp>
