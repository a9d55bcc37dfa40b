// SPDX-License-Identifier: Apache-2.0
// The precompiled start.hpp wants a source of its own.
