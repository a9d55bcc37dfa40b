// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/app/command.hpp>
#include <lockstep/core/error.hpp>

/// Flags for the sizes of a transformer, shared by all trainers.
namespace transformer_flags {

void add(lockstep::app::Command& command, auto& sizes) {
  command.add("--d-model", sizes.width, 1, 8192, "Width of the model (channels per token)");
  command.add("--num-layers", sizes.layers, 1, 128,
              "Number of layers of the encoder, and of the decoder if there is one");
  command.add("--num-heads", sizes.heads, 1, 128, "Number of attention heads per layer");
  command.add("--feed-forward", sizes.feed_forward, 1, 65536, "Width of the feed-forward part of a layer");
  command.add("--dropout", sizes.dropout, 0, 0.9, "Dropout probability");
}

/// Rejects sizes that the layers would reject after the ranks have started, with the names of the flags.
void check(auto const& sizes) {
  if (sizes.width % sizes.heads != 0)
    throw lockstep::ConfigError("--d-model " + std::to_string(sizes.width) + " with --num-heads " +
                                std::to_string(sizes.heads) + ": heads share the width equally; choose a multiple");
}

}  // namespace transformer_flags
