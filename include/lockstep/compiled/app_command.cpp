// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/command.ipp>
#include <lockstep/app/common_flags.ipp>
#include <lockstep/app/detail/combinations.ipp>
#include <lockstep/app/detail/config_file.ipp>
#include <lockstep/app/detail/flag_list.ipp>
#include <lockstep/app/detail/flag_names.ipp>
#include <lockstep/app/detail/given_flags.ipp>
#include <lockstep/app/detail/synonyms.ipp>
