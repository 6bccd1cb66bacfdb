#include "models/model.h"

namespace ridge {

const char* activation_format_name(ActivationFormat f) {
  return f == ActivationFormat::kF32 ? "f32" : f == ActivationFormat::kBf16 ? "bf16" : "int8";
}

Result<std::unique_ptr<Model>> load_model(Device& device, const GgufFile& file, Values values) {
  RIDGE_ASSIGN(const std::string_view name, file.get_string("general.architecture"));
  std::string known;
  for (const Architecture& a : architectures()) {
    if (name == a.name) {
      RIDGE_ASSIGN(auto model, a.load(std::make_unique<WeightStore>(device, file, values)));
      RIDGE_TRY(model->weights().check_all_taken());
      return {std::move(model)};
    }
    known += text(known.empty() ? "" : ", ", a.name);
  }
  return declined(file.path(), ": architecture ", printable(name), " is not supported; supported: ", known);
}

}  // namespace ridge
