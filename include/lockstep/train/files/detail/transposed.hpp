// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/train/files/tensor_in_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Finds square matrices that a function of names forgot to transpose: their shapes do not show it, but others next to
/// them are transposed. Names are next to each other if they differ in the part before the last dot only, as
/// "h.0.attn.c_attn.weight" and "h.0.attn.c_proj.weight".
class Transposed {
 public:
  void add(TensorInFile const& from, std::vector<Index> const& shape);
  /// @throws DataError if a square matrix is not transposed, and all others next to it are
  /// @param done for messages: "read"
  void check(std::string const& path, char const* done) const;

 private:
  struct Group {
    std::string name, transposed, square;
    bool has_others = false;
  };
  [[nodiscard]] Group& group_of(std::string const& name);

  std::vector<Group> groups_;
};

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/files/detail/transposed.ipp>
#endif
