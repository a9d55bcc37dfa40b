// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "opcodes.hpp"

namespace ptx {

[[noreturn]] inline void fail(std::string const& why) {
  std::fprintf(stderr, "PTX: %s\n", why.c_str());
  std::fflush(stderr);
  std::_Exit(66);
}

/// Addresses of the shared variables of all modules, each at its own place, with the 32 bits that programs use. Dynamic
/// shared memory begins at the first byte for all kernels, because blocks run one by one.
class SharedArena {
 public:
  static constexpr std::size_t most = std::size_t{64} << 20, most_dynamic = std::size_t{256} << 10;
  static SharedArena& instance() {
    static SharedArena arena;
    return arena;
  }
  std::byte* const memory =
      static_cast<std::byte*>(::mmap(reinterpret_cast<void*>(std::uintptr_t{1} << 30), most, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0));
  std::size_t end = most_dynamic;

 private:
  SharedArena() {
    if (reinterpret_cast<std::uintptr_t>(memory) >> 31 != 0) fail("there is no room at addresses of 32 bits");
  }
};

/// Parses the PTX text that nvcc writes, and no other parts of the language.
class Parser {
 public:
  Parser(std::string_view text, Module& module) : text_(text), module_(module) {}

  void parse() {
    for (next(); !token_.empty();) {
      if (token_ == ".version" || token_ == ".target" || token_ == ".address_size") {
        auto const line = line_;
        if (take(".target"))
          module_.target = static_cast<unsigned>(std::strtoul(token_.c_str() + std::strlen("sm_"), nullptr, 10));
        while (!token_.empty() && line_ == line) next();
      } else if (token_ == ".visible" || token_ == ".weak" || token_ == ".extern" || token_ == ".common") {
        next();
      } else if (token_ == ".entry" || token_ == ".func") {
        parse_function();
      } else if (token_ == ".file") {
        parse_file();
      } else if (token_ == ".section") {
        while (!take("}")) next();
      } else if (token_ == ".global" || token_ == ".const" || token_ == ".shared") {
        parse_variable(nullptr);
      } else {
        unexpected();
      }
    }
    link();
  }

 private:
  struct Variable {
    Operand at;
    std::size_t bytes = 0;
  };
  using Scope = std::map<std::string, Variable>;

  [[noreturn]] void unexpected() const { fail("line " + std::to_string(line_) + ": " + token_ + " was not expected"); }
  void expect(std::string_view token) {
    if (token_ != token) fail("line " + std::to_string(line_) + ": " + std::string(token) + " expected, not " + token_);
    next();
  }
  bool take(std::string_view token) {
    if (token_ != token) return false;
    return next(), true;
  }
  std::string take_any() {
    auto token = token_;
    next();
    return token;
  }

  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
  }
  void next() {
    for (;; ++at_) {
      if (at_ >= text_.size()) return token_.clear();
      if (text_.substr(at_, 2) == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        auto const end = text_.find("*/", at_);
        for (; at_ < end + 1; ++at_) line_ += text_[at_] == '\n';
      }
      if (at_ < text_.size() && text_[at_] == '\n') ++line_;
      if (at_ < text_.size() && !std::isspace(static_cast<unsigned char>(text_[at_])) && text_[at_] != '\0') break;
    }
    auto const begin = at_;
    if (text_[at_] == '"')
      for (++at_; text_[at_] != '"'; ++at_) continue;
    else if (text_[at_] == '-' && at_ + 1 < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_ + 1])))
      for (++at_; is_word(text_[at_]); ++at_) continue;
    else if (is_word(text_[at_]))
      while (at_ < text_.size() && (is_word(text_[at_]) || text_.substr(at_, 2) == "::"))
        at_ += is_word(text_[at_]) ? 1u : 2u;
    if (at_ == begin || text_[at_] == '"') ++at_;
    token_ = text_.substr(begin, at_ - begin);
  }

  static bool is_number(std::string const& token) {
    return std::isdigit(static_cast<unsigned char>(token[0])) || token[0] == '-';
  }
  static std::uint64_t number(std::string const& token) {
    auto const real = token.size() > 2 && token[0] == '0' &&
                      (token[1] == 'f' || token[1] == 'd' || token[1] == 'F' || token[1] == 'D');
    if (real) return std::strtoull(token.c_str() + 2, nullptr, 16);
    if (token[0] == '-') return static_cast<std::uint64_t>(std::strtoll(token.c_str(), nullptr, 0));
    return std::strtoull(token.c_str(), nullptr, 0);
  }
  /// Parses the text between a state space and a variable's name: its type, and optionally an alignment.
  Parameter parse_declared() {
    Parameter declared;
    Type type = Type::none;
    std::size_t alignment = 0;
    while (token_[0] == '.') {
      auto const word = take_any();
      if (word == ".align")
        alignment = number(take_any());
      else if (auto const named = type_of(word.substr(1)); named != Type::none)
        type = named;
    }
    declared.name = take_any();
    declared.bytes = size_of(type);
    declared.alignment = alignment > 0 ? alignment : declared.bytes;
    element_ = declared.bytes;
    if (take("[")) {
      declared.bytes *= token_ == "]" ? 0 : number(take_any());
      expect("]");
    }
    return declared;
  }

  void parse_variable(Scope* scope) {
    auto const space = take_any();
    auto const declared = parse_declared();
    Variable variable;
    variable.bytes = declared.bytes;
    if (space == ".shared") {
      auto& arena = SharedArena::instance();
      auto const alignment = std::max<std::size_t>(declared.alignment, 16);
      arena.end = (arena.end + alignment - 1) / alignment * alignment;
      auto const begin = declared.bytes == 0 ? 0 : arena.end;
      variable.at = {Operand::Kind::value, 0, reinterpret_cast<std::uint64_t>(arena.memory + begin)};
      arena.end += declared.bytes;
      if (arena.end > arena.most) fail("shared variables take too much");
    } else if (space == ".local") {
      function_->local_bytes = (function_->local_bytes + 15) / 16 * 16;
      variable.at = {Operand::Kind::local, 0, function_->local_bytes};
      function_->local_bytes += declared.bytes;
    } else {
      auto* const memory = module_.memory.emplace_back(new std::byte[declared.bytes + 32]()).get();
      auto* const begin = memory + (16 - reinterpret_cast<std::uintptr_t>(memory) % 16) % 16;
      variable.at = {Operand::Kind::value, 0, reinterpret_cast<std::uint64_t>(begin)};
      module_.globals.push_back({begin, declared.bytes});
      if (take("=")) {
        std::size_t at = 0;
        bool const list = take("{");
        do {
          if (token_ == "}") break;
          if (!is_number(token_)) unexpected();
          auto const value = number(take_any());
          std::memcpy(begin + at, &value, element_);
          at += element_;
        } while (take(","));
        if (list) expect("}");
      }
    }
    expect(";");
    (scope ? *scope : globals_)[declared.name] = variable;
  }

  void parse_parameters(std::vector<Parameter>& to) {
    expect("(");
    while (!take(")")) {
      take(".param");
      to.push_back(parse_declared());
      take(",");
    }
  }
  void parse_function() {
    auto function = std::make_unique<Function>();
    next();
    if (token_ == "(") parse_parameters(function->results);
    function->name = take_any();
    if (token_ == "(") parse_parameters(function->parameters);
    std::size_t end = 0;
    for (auto& parameter : function->parameters) {
      end = (end + parameter.alignment - 1) / parameter.alignment * parameter.alignment;
      parameter.at = end;
      end += parameter.bytes;
    }
    function->parameter_bytes = end;
    while (token_ != "{" && token_ != ";") next();
    auto& known = module_.functions[function->name];
    if (take(";")) {
      if (!known) known = std::move(function);
      return;
    }
    function_ = function.get();
    function->module = &module_;
    scopes_.assign(1, {});
    labels_.clear();
    branches_.clear();
    file_ = source_line_ = 0;
    std::int32_t formal = 0;
    for (auto* const list : {&function->results, &function->parameters})
      for (auto const& parameter : *list)
        scopes_.back()[parameter.name] = {{Operand::Kind::formal, formal++, 0}, parameter.bytes};
    expect("{");
    parse_block();
    function->code.emplace_back().op = Op::ret;
    for (auto const& [at, label] : branches_) {
      auto const found = labels_.find(label);
      if (found == labels_.end()) fail("there is no label " + label);
      function->code[at].target = found->second;
    }
    function->local_bytes = (function->local_bytes + 15) / 16 * 16;
    function->has_body = true;
    known = std::move(function);
  }
  void parse_block() {
    while (!take("}")) {
      if (take("{")) {
        scopes_.emplace_back();
        parse_block();
        scopes_.pop_back();
      } else if (token_ == ".reg") {
        parse_registers();
      } else if (token_ == ".local" || token_ == ".shared") {
        parse_variable(&scopes_.back());
      } else if (token_ == ".param") {
        token_ = ".local";
        parse_variable(&scopes_.back());
      } else if (token_ == ".pragma") {
        while (!take(";")) next();
      } else if (token_ == ".loc") {
        parse_place();
      } else if (!token_.empty() && token_[0] == '.') {
        unexpected();
      } else {
        parse_instruction();
      }
    }
  }
  void parse_file() {
    next();
    auto const index = number(take_any());
    if (module_.files.size() <= index) module_.files.resize(index + 1);
    module_.files[index] = token_.substr(1, token_.size() - 2);
    next();
    while (take(",")) next();
  }
  /// A source location; `inlined_at` and the following attributes name the callers.
  void parse_place() {
    auto const line = line_;
    next();
    file_ = static_cast<std::uint32_t>(number(take_any()));
    source_line_ = static_cast<std::uint32_t>(number(take_any()));
    while (line_ == line) next();
  }
  void parse_registers() {
    next();
    auto const bytes = take_any() == ".pred" ? 1u : 8u;  // all others have 64 bits, regardless of their type
    do {
      auto const name = take_any();
      if (take("<")) {
        auto const count = number(take_any());
        expect(">");
        for (std::uint64_t i = 0; i < count; ++i) add_register(name + std::to_string(i), bytes);
      } else {
        add_register(name, bytes);
      }
    } while (take(","));
    expect(";");
  }
  void add_register(std::string const& name, std::size_t bytes) {
    scopes_.back()[name] = {{Operand::Kind::reg, static_cast<std::int32_t>(function_->registers++), 0}, bytes};
  }

  Variable const* find(std::string const& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (auto const found = scope->find(name); found != scope->end()) return &found->second;
    auto const found = globals_.find(name);
    return found == globals_.end() ? nullptr : &found->second;
  }
  static std::int32_t special(std::string const& name) {
    static std::map<std::string, Special> const names{{"%tid.x", Special::tid_x},
                                                      {"%tid.y", Special::tid_y},
                                                      {"%tid.z", Special::tid_z},
                                                      {"%ntid.x", Special::ntid_x},
                                                      {"%ntid.y", Special::ntid_y},
                                                      {"%ntid.z", Special::ntid_z},
                                                      {"%ctaid.x", Special::ctaid_x},
                                                      {"%ctaid.y", Special::ctaid_y},
                                                      {"%ctaid.z", Special::ctaid_z},
                                                      {"%nctaid.x", Special::nctaid_x},
                                                      {"%nctaid.y", Special::nctaid_y},
                                                      {"%nctaid.z", Special::nctaid_z},
                                                      {"%laneid", Special::laneid},
                                                      {"%warpid", Special::warpid},
                                                      {"%lanemask_eq", Special::lanemask_eq},
                                                      {"%lanemask_lt", Special::lanemask_lt},
                                                      {"%lanemask_le", Special::lanemask_le},
                                                      {"%lanemask_gt", Special::lanemask_gt},
                                                      {"%lanemask_ge", Special::lanemask_ge}};
    auto const found = names.find(name);
    return found == names.end() ? -1 : static_cast<std::int32_t>(found->second);
  }
  Operand parse_operand() {
    bool const negated = take("!");
    if (negated) unexpected();
    auto const token = take_any();
    if (is_number(token)) return {Operand::Kind::value, 0, number(token)};
    if (token == "_") return {};
    if (auto const* const variable = find(token)) {
      note_shared(*variable);
      auto operand = variable->at;
      if (take("+")) operand.value += number(take_any());
      return operand;
    }
    if (auto const index = special(token); index >= 0) return {Operand::Kind::special, index, 0};
    fail("line " + std::to_string(line_) + ": " + token + " is not known");
  }
  void note_shared(Variable const& variable) {
    auto const& arena = SharedArena::instance();
    auto const at = variable.at.value - reinterpret_cast<std::uint64_t>(arena.memory);
    if (variable.at.kind != Operand::Kind::value || at >= arena.most) return;
    for (auto const& each : function_->shared)
      if (each.at == at) return;
    function_->shared.push_back({at, variable.bytes, variable.bytes == 0});
  }
  /// One operand, or several in braces.
  int parse_operands(Operand* to, int room) {
    if (!take("{")) return *to = parse_operand(), 1;
    int count = 0;
    do {
      if (count == room) unexpected();
      to[count++] = parse_operand();
    } while (take(","));
    expect("}");
    return count;
  }

  void parse_instruction() {
    Instruction instruction;
    instruction.line = source_line_ > 0 ? source_line_ : static_cast<std::uint32_t>(line_);
    instruction.file = source_line_ > 0 ? file_ : 0;
    if (take("@")) {
      instruction.guard_not = take("!");
      instruction.guard = parse_operand().index;
    }
    auto const opcode = take_any();
    if (instruction.guard < 0 && take(":")) {
      labels_[opcode] = static_cast<std::int32_t>(function_->code.size());
      return;
    }
    if (!decode(opcode, instruction)) fail("line " + std::to_string(line_) + ": " + opcode + " is not known");
    switch (instruction.op) {
      case Op::bra:
        branches_.emplace_back(function_->code.size(), take_any());
        break;
      case Op::call:
        parse_call(instruction);
        break;
      case Op::st:
        parse_address(instruction);
        expect(",");
        parse_operands(&instruction.from_operands[1], 4);
        break;
      case Op::ld:
      case Op::ldmatrix:
        if (auto const count = parse_operands(instruction.to, 4);
            instruction.op == Op::ldmatrix && count != instruction.width)
          unexpected();
        expect(",");
        parse_address(instruction);
        break;
      case Op::stmatrix:
        parse_address(instruction);
        expect(",");
        if (parse_operands(&instruction.from_operands[1], 4) != instruction.width) unexpected();
        break;
      case Op::mma:
        parse_mma(instruction);
        break;
      case Op::cp_async:
        parse_copy(instruction);
        break;
      case Op::cp_async_commit:
      case Op::cp_async_wait_all:
        break;
      case Op::cp_async_wait:
        instruction.from_operands[0] = parse_operand();
        break;
      case Op::atom: {
        instruction.to[0] = parse_operand();
        expect(",");
        parse_address(instruction);
        for (int i = 1; take(",");) instruction.from_operands[i++] = parse_operand();
        break;
      }
      case Op::bar:
      case Op::bar_warp:
      case Op::nanosleep:
        if (token_ != ";") instruction.from_operands[0] = parse_operand();
        break;
      case Op::mov: {
        auto const to = parse_operands(instruction.to, 4);
        expect(",");
        auto const from = parse_operands(instruction.from_operands, 4);
        instruction.width = static_cast<std::uint8_t>(std::max(to, from));
        instruction.takes_apart = to > 1;
        break;
      }
      default: {
        int count = 0;
        if (token_ != ";") {
          instruction.to[0] = parse_operand();
          if (take("|")) instruction.also_to = parse_operand();
        }
        while (take(",")) {
          if (count == 5) unexpected();
          instruction.from_operands[count++] = parse_operand();
        }
      }
    }
    expect(";");
    function_->code.push_back(instruction);
  }
  void parse_address(Instruction& instruction, int to = 0) {
    expect("[");
    auto operand = parse_operand();
    if (operand.kind == Operand::Kind::reg && take("+")) operand.value = number(take_any());
    instruction.from_operands[to] = operand;
    expect("]");
  }
  void parse_mma(Instruction& instruction) {
    instruction.factors = std::make_shared<std::array<Operand, 10>>();
    if (parse_operands(instruction.to, 4) != 4) unexpected();
    int at = 0;
    for (auto const registers : {mma_registers(instruction), mma_registers(instruction) / 2, 4}) {
      expect(",");
      if (parse_operands(instruction.factors->data() + at, registers) != registers) unexpected();
      at += registers;
    }
  }
  /// Two addresses, the number of bytes, and optionally the number of bytes to read. A predicate that ignores the
  /// source is refused.
  void parse_copy(Instruction& instruction) {
    parse_address(instruction);
    expect(",");
    parse_address(instruction, 1);
    expect(",");
    auto const bytes = parse_operand();
    bool const known = bytes.kind == Operand::Kind::value &&
                       (bytes.value == 16 || (instruction.width != 16 && (bytes.value == 4 || bytes.value == 8)));
    if (!known) fail("line " + std::to_string(line_) + ": a copy of that many bytes is not known");
    instruction.width = static_cast<std::uint8_t>(bytes.value);
    instruction.from_operands[2] = bytes;
    if (!take(",")) return;
    if (auto const* const variable = find(token_); variable && variable->bytes == 1) unexpected();
    instruction.from_operands[2] = parse_operand();
  }
  void parse_call(Instruction& instruction) {
    Call call;
    auto const list = [&](std::vector<Operand>& to) {
      expect("(");
      while (!take(")")) {
        to.push_back(parse_operand());
        take(",");
      }
    };
    if (token_ == "(") {
      list(call.results);
      expect(",");
    }
    call.callee = take_any();
    if (take(",")) list(call.arguments);
    instruction.call = static_cast<std::int32_t>(function_->calls.size());
    function_->calls.push_back(std::move(call));
  }

  /// Resolves calls, and adds to each function the shared variables of its callees.
  void link() {
    for (auto& [name, function] : module_.functions)
      for (auto& call : function->calls)
        if (auto const found = module_.functions.find(call.callee); found != module_.functions.end())
          call.function = found->second.get();
    for (int depth = 0; depth < 4; ++depth)
      for (auto& [name, function] : module_.functions)
        for (auto const& call : function->calls)
          if (call.function)
            for (auto const& variable : call.function->shared) {
              bool known = false;
              for (auto const& each : function->shared) known = known || each.at == variable.at;
              if (!known) function->shared.push_back(variable);
            }
  }

  std::string_view text_;
  Module& module_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::uint32_t file_ = 0, source_line_ = 0;
  std::string token_;
  std::size_t element_ = 0;
  Function* function_ = nullptr;
  Scope globals_;
  std::vector<Scope> scopes_;
  std::map<std::string, std::int32_t> labels_;
  std::vector<std::pair<std::size_t, std::string>> branches_;
};

}  // namespace ptx
