// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trace/detail/named_spans.hpp>

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

LOCKSTEP_INLINE std::string common_prefix(std::string_view a, std::string_view b) {
  std::size_t end = 0;
  for (std::size_t i = 0; i <= a.size() && i <= b.size(); ++i) {
    bool const ends_a = i == a.size() || a[i] == '.', ends_b = i == b.size() || b[i] == '.';
    if (ends_a && ends_b) end = i;
    if (i == a.size() || i == b.size() || a[i] != b[i]) break;
  }
  return std::string(a.substr(0, end));
}

LOCKSTEP_INLINE std::vector<OperationName> named_spans(Timeline const& spans, nn::ParameterLayout const& layout) {
  std::map<char const*, std::string> operations;
  auto const operation = [&](Span const& span) -> std::string const& {
    auto const [at, is_new] = operations.try_emplace(span.name);
    if (is_new) at->second = *span.name == '\0' ? "loss" : operation_name(span.name);
    return at->second;
  };
  auto const layer = [&](int ordinal) {
    auto const& name = layout.entries()[static_cast<std::size_t>(ordinal)].name;
    auto const dot = name.rfind('.');
    return dot == std::string::npos ? name : name.substr(0, dot);
  };

  std::vector<OperationName> names(spans.size());
  std::vector<std::size_t> pass;  // indices of the pass's forward operations, by number
  auto const name_operations_without_parameters = [&] {
    std::string before;
    for (std::size_t i = 0; i < pass.size(); ++i) {
      auto const& span = spans[pass[i]];
      auto& name = names[pass[i]];
      if (span.first >= 0) {
        before = name.layer;
        continue;
      }
      auto next = i;
      while (next < pass.size() && spans[pass[next]].first < 0 && *spans[pass[next]].name != '\0') ++next;
      bool const found = next < pass.size() && spans[pass[next]].first >= 0;
      if (found && *span.name != '\0') name.layer = common_prefix(before, names[pass[next]].layer);
    }
  };
  std::size_t first_backward = 0;
  auto const end_pass = [&](std::size_t end) {
    name_operations_without_parameters();
    for (auto i = first_backward; i < end; ++i)
      if (auto const number = static_cast<std::size_t>(spans[i].number);
          spans[i].kind == Span::Kind::backward && number < pass.size())
        names[i] = names[pass[number]];
    pass.clear();
    first_backward = end;
  };
  for (std::size_t i = 0; i < spans.size(); ++i) {
    auto const& span = spans[i];
    if (span.kind != Span::Kind::forward && span.kind != Span::Kind::recompute) continue;
    if (span.number == 0) end_pass(i);
    pass.push_back(i);
    names[i].operation = operation(span);
    if (span.first >= 0)
      names[i].layer = span.first == span.last ? layer(span.first) : common_prefix(layer(span.first), layer(span.last));
  }
  end_pass(spans.size());
  return names;
}

}}}  // namespace lockstep::train::detail
