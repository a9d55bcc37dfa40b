// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trace/detail/operation_name.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE std::size_t opening(std::string_view text, char open, char close) noexcept {
  int depth = 0;
  for (auto i = text.size(); i-- > 0;) {
    if (text[i] == close) ++depth;
    if (text[i] == open && --depth == 0) return i;
  }
  return 0;
}

LOCKSTEP_INLINE std::string_view take_last_part(std::string_view& name) noexcept {
  if (name.ends_with('>') && !name.ends_with("operator>")) name = name.substr(0, opening(name, '<', '>'));
  int depth = 0;
  auto at = name.size();
  for (; at > 0; --at) {
    auto const c = name[at - 1];
    if (c == ')' || c == '>') ++depth;
    if (c == '(' || c == '<') --depth;
    if (depth == 0 && (c == ':' || c == ' ')) break;
  }
  auto const last = name.substr(at);
  name = name.substr(0, name.substr(0, at).ends_with("::") ? at - 2 : 0);
  return last;
}

LOCKSTEP_INLINE std::string operation_name(char const* type) {
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> const readable(abi::__cxa_demangle(type, nullptr, nullptr, &status),
                                                        &std::free);
  if (!readable) return "operation";
  std::string_view name(readable.get());
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {  // keeps the scope of the outermost closure
    if (depth == 0 && name.substr(i).starts_with("::{lambda(")) name = name.substr(0, i);
    if (i < name.size()) depth += (name[i] == '<' || name[i] == '(') - (name[i] == '>' || name[i] == ')');
  }
  for (std::string_view const qualifier : {"&", "&", " const"})
    if (name.ends_with(qualifier)) name.remove_suffix(qualifier.size());
  if (name.ends_with(')')) name = name.substr(0, opening(name, '(', ')'));
  auto const function = take_last_part(name), scope = take_last_part(name);
  bool const is_class = !scope.empty() && scope.front() >= 'A' && scope.front() <= 'Z';
  bool const is_generic = function == "forward" || function == "operator()";
  if (function.empty() || function.front() == '$') return "operation";  // clang's name in a function of one file
  return std::string(!scope.empty() && (is_class || is_generic) ? scope : function);
}

}}}  // namespace lockstep::train::detail
