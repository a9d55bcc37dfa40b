// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/nn/autograd/parameter.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// A table with a learned row per id; starts as N(0, 0.02). It computes nothing itself: `of` names the ids, and
/// FusedEmbedding looks them up while it assembles sequences.
/// @shape weight [rows, width]
class Embedding {
 public:
  /// Rows that a column of ids names. Refers to the table: valid as long as the model.
  template <class Column>
  struct Lookup {
    Parameter const& table;  ///< [rows, width]
    Column column;           ///< ids, each a row of the table
  };

  /// @throws ConfigError unless both are at least 1
  Embedding(Index rows, Index width, GradientForm gradient = GradientForm::by_rows)
      : weight_{.shape = {rows, width}, .initializer = Initializer::normal(0.02), .gradient_form = gradient} {
    expect<ConfigError>(rows >= 1 && width >= 1, [&] {
      return "Embedding: " + std::to_string(rows) + " rows of width " + std::to_string(width) +
             "; both must be at least 1";
    });
  }

  /// Names the parameter "weight".
  void visit(auto&& each) { each("weight", weight_); }

  /// Rejects forward at compile time and explains how to look ids up.
  template <detail::IsContext Context, class... Input>
  SequenceOf<Context> forward(Context&, Input const&...) const {
    static_assert(!std::is_same_v<Context, Context>,
                  "Lockstep: an nn::Embedding is a table, which a layer looks up together with others: "
                  "embedding.forward(context, table.of(batch[&Sample::ids]), batch.positions()) with an "
                  "nn::FusedEmbedding embedding{{.width = width}}");
    return {};
  }

  /// Returns the lookup of a column of ids, for FusedEmbedding.
  template <class Column>
  [[nodiscard]] Lookup<Column> of(Column const& column) const {
    return {weight_, column};
  }
  /// Looks ids up in a table that another layer learns. A language model that ends in a Linear{width, vocabulary} can
  /// look its tokens up in that layer's weight, so that input and output are tied.
  /// @shape table [rows, width]
  template <class Column>
  [[nodiscard]] static Lookup<Column> of(Parameter const& table, Column const& column) {
    return {table, column};
  }
  /// Rejects calls without the context in front at compile time.
  auto forward(detail::NoContext auto const& first, auto const&...) const { return detail::reject_call(first); }

 private:
  Parameter weight_;
};

}}}  // namespace lockstep::nn
