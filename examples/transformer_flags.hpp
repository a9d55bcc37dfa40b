// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/app/command.hpp>
#include <lockstep/core/error.hpp>

/// A transformer's sizes as flags, for every struct that names them so: the same in all trainers.
namespace transformer_flags {

void add(lockstep::app::Command& command, auto& sizes) {
  command.add("--d-model", sizes.width, 1, 8192, "Width of the model");
  command.add("--num-layers", sizes.layers, 1, 128, "Layers of the encoder, and of a decoder");
  command.add("--num-heads", sizes.heads, 1, 128, "Attention heads of a layer");
  command.add("--feed-forward", sizes.feed_forward, 1, 65536, "Width of a layer's feed-forward part");
  command.add("--dropout", sizes.dropout, 0, 0.9, "Share of activations that training drops");
}

/// The layers refuse it too, but only once ranks have started, and they know no flags.
void check(auto const& sizes) {
  if (sizes.width % sizes.heads != 0)
    throw lockstep::ConfigError("--d-model " + std::to_string(sizes.width) + " with --num-heads " +
                                std::to_string(sizes.heads) + ": heads share the width equally; choose a multiple");
}

}  // namespace transformer_flags
