// SPDX-License-Identifier: Apache-2.0
// The precompiled start.hpp needs a source of its own.
