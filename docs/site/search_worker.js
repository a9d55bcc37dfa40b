
// SPDX-License-Identifier: Apache-2.0
// Appended to the theme's search worker (hooks.py), whose search library is lunr.

// lunr merges states of its automaton that have equal descriptions. Its own description is ambiguous for words with
// digits: "1" to state 5 and "2" to state 7 reads as "1" to state 527. Queries that meet such states fail.
self.lunr.TokenSet.prototype.toString = function () {
  let description = this.final ? "1" : "0";
  for (const label of Object.keys(this.edges).sort()) description += `,${label}${this.edges[label].id}`;
  return description;
};

// A colon would name a field of the index. Names such as nn::Linear are words next to each other.
self.lunr.QueryLexer = class extends self.lunr.QueryLexer {
  constructor(query) {
    super(query.replaceAll(":", " "));
  }
};
