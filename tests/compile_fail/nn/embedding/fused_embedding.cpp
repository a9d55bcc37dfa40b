// SPDX-License-Identifier: Apache-2.0
// CASE texts: Lockstep: FusedEmbedding looks up a column of std::int32_t, std::array<std::int32_t, N>
// CASE optionals: Lockstep: FusedEmbedding looks up a column of std::int32_t, std::array<std::int32_t, N>
// CASE numbers: Lockstep: FusedEmbedding looks up a column of std::int32_t, std::array<std::int32_t, N>
// CASE enums: Lockstep: FusedEmbedding looks up a column of std::int32_t, std::array<std::int32_t, N>
// CASE own_table: Lockstep: FusedEmbedding looks up a column of std::int32_t, std::array<std::int32_t, N>
// LINES 30
#include <cstdint>
#include <optional>
#include <string>

#include <lockstep/data/columns.hpp>
#include <lockstep/nn/embedding/embedding.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>

using namespace lockstep;

enum class Kind { used, unused };

struct Sample {
#if defined(CASE_texts) || defined(CASE_own_table)
  std::string
#elif defined(CASE_optionals)
  std::optional<std::int32_t>
#elif defined(CASE_numbers)
  float
#elif defined(CASE_enums)
  Kind
#else
  std::int32_t
#endif
      what;
};

auto look_up(nn::FusedEmbedding const& embedding, nn::Embedding const& table, nn::Context<float, HostSpace>& context,
             data::Columns<Sample> const& batch) {
#if defined(CASE_own_table)
  static_cast<void>(table);
  return embedding.forward(context, batch[&Sample::what], batch.positions());
#else
  return embedding.forward(context, table.of(batch[&Sample::what]), batch.positions());
#endif
}
