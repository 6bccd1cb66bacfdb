#pragma once
// The eager front door: check, select, record, run.

#include "ops/any_operator.h"

namespace ridge {

/// The registered operator of an argument type. Specialised by the generated registration; RIDGE_OPERATOR
/// declares it.
template <class A>
AnyOperator& registered();

/// In an operator's header: its description, and where dispatch finds it.
#define RIDGE_OPERATOR(Args, describe) \
  Operator<Args> describe();           \
  template <>                          \
  AnyOperator& registered<Args>();

/// Checks, selects and runs one erased call; records it when the stream has a recorder.
Status run_eager(Stream& stream, const AnyOperator& op, const void* args);

/// What an operator's typed front door does.
template <class A>
Status dispatch(Stream& stream, const A& args) {
  return run_eager(stream, registered<A>(), &args);
}

}  // namespace ridge
