// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/bottleneck.ipp>
#include <lockstep/scaling/compared_run.ipp>
#include <lockstep/scaling/detail/device_limit.ipp>
#include <lockstep/scaling/diagnosis.ipp>
#include <lockstep/scaling/fabric.ipp>
#include <lockstep/scaling/prediction.ipp>
#include <lockstep/scaling/profile_of.ipp>
#include <lockstep/scaling/saved_run.ipp>
#include <lockstep/scaling/scaling_report.ipp>
#include <lockstep/scaling/speed_up.ipp>
