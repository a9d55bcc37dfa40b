// SPDX-License-Identifier: Apache-2.0
// CASE integers: Lockstep: activations are float, double, bfloat16 or float16
// CASE twice: Lockstep: this model stores its activations in 16 bits already; leave nn::InBfloat16 or nn::InFloat16 out
// CASE in_double: Lockstep: a model stores its activations as float, bfloat16 or float16
// CASE no_layer: Lockstep: visit calls each(name, child) with a child that is no layer
// CASE temporary: Lockstep: visit calls each(name, child) with a temporary object or a number
// CASE const_visit: Lockstep: visit calls each(name, child) with a const child
// CASE const_model: Lockstep: ParameterLayout::of writes offsets into the parameters of the model, which is const here
#include <vector>

#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>

using namespace lockstep;

struct Model {
#if defined(CASE_in_double)
  using Activations = double;
#else
  using Activations = float;
#endif
#if defined(CASE_no_layer)
  std::vector<nn::Parameter> tables;
#else
  nn::Parameter tables;
#endif
  void visit(auto&& each)
#if defined(CASE_const_visit)
      const
#endif
  {
    each("tables", tables);
#if defined(CASE_temporary)
    each("rows", 3);
#endif
  }
};

#if defined(CASE_integers)
using Context = nn::Context<int, HostSpace>;
#else
using Context = nn::Context<bfloat16, HostSpace>;
#endif

Context make(memory::Stream<Context::Space> stream) { return Context(stream); }

#if defined(CASE_twice)
nn::InFloat16<nn::InBfloat16<Model>> model{nn::InBfloat16<Model>{Model{}}};
#else
nn::InBfloat16<Model> model{Model{}};
#endif
static_assert(sizeof(nn::ActivationsOf<Model>) == 4);

nn::ParameterLayout layout() {
#if defined(CASE_const_model)
  Model const own;
#else
  Model own;
#endif
  return nn::ParameterLayout::of(own);
}
