// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/detail/escaped.ipp>
#include <lockstep/scaling/figure/bar_chart.ipp>
#include <lockstep/scaling/figure/detail/axis.ipp>
#include <lockstep/scaling/figure/drawing.ipp>
#include <lockstep/scaling/figure/line_chart.ipp>
#include <lockstep/scaling/study/configuration.ipp>
#include <lockstep/scaling/study/findings.ipp>
#include <lockstep/scaling/study/statistic.ipp>
#include <lockstep/scaling/study/study.ipp>
#include <lockstep/scaling/study/study_entry.ipp>
#include <lockstep/scaling/study/study_figures.ipp>
#include <lockstep/scaling/study/study_report.ipp>
#include <lockstep/scaling/study/study_run.ipp>
#include <lockstep/scaling/study/study_tables.ipp>
