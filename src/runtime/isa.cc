#include <initializer_list>

#include "runtime/device.h"

namespace ridge {

const char* isa_name(Isa isa) {
  static const char* const kNames[] = {"none", "scalar", "avx2", "avx512"};
  return kNames[static_cast<int>(isa)];
}

static Isa processor_isa() {
  __builtin_cpu_init();
  const auto avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  if (!avx2) return Isa::scalar;
  const auto avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16") &&
                      __builtin_cpu_supports("avx512vbmi");
  return avx512 ? Isa::avx512 : Isa::avx2;
}

Status check_isa(Isa isa) {
  const char* name = isa_name(isa);
  if (isa > processor_isa())
    return declined("instruction set ", name, ": this processor has ", isa_name(processor_isa()), " at most");
  // No silent step down to a narrower set's kernels.
  if (std::string_view(RIDGE_KERNEL_ISAS).find(name) == std::string_view::npos)
    return declined("instruction set ", name,
                    ": this build has kernels for " RIDGE_KERNEL_ISAS
                    " alone: configure it with -DRIDGE_KERNEL_ISAS=\"scalar;avx2;avx512\"");
  return {};
}

Result<Isa> parse_isa(std::string_view name) {
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (name != isa_name(isa)) continue;
    RIDGE_TRY(check_isa(isa));
    return isa;
  }
  return invalid_argument("instruction set is ", printable(name), ": use scalar, avx2 or avx512");
}

Isa native_isa() {
  for (const Isa isa : {Isa::avx512, Isa::avx2})
    if (check_isa(isa).ok()) return isa;
  return Isa::scalar;
}

}  // namespace ridge
