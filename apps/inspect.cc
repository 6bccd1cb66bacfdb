// ridge inspect: what a model file holds and what it would take to run it. Reads weights only to check them.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/shortest.h"
#include "base/utf8.h"
#include "base/visible.h"
#include "engine/memory_plan.h"
#include "formats/gguf_values.h"
#include "formats/gguf_weights.h"
#include "verbs.h"

namespace ridge::app {

namespace {

using Json = nlohmann::ordered_json;

Json memory_json(const MemoryPlan& plan) {
  return {{"weights_bytes", plan.weights},
          {"unquantized_bytes", plan.unquantized},
          {"kv_bytes_per_token", plan.kv_token},
          {"kv_tokens", plan.kv_tokens},
          {"kv_bytes", plan.kv},
          {"total_bytes", plan.total}};
}

constexpr size_t kShownBytes = 200;   // of a string
constexpr uint64_t kShownValues = 8;  // of an array

/// The string, or its first characters of 200 bytes at most and "…"; *cut then says so.
std::string shortened(std::string_view s, bool* cut) {
  if (s.size() <= kShownBytes) return std::string(s);
  size_t end = 0;
  for (size_t next = 0; end + next <= kShownBytes; next = std::max<size_t>(1, utf8_sequence(s.substr(end))))
    end += next;
  *cut = true;
  return std::string(s.substr(0, end)) + "…";
}

double json_number(double v) {
  return v;
}
double json_number(float v) {
  return shortest(v);
}

Json value_json(const GgufValue& value, bool* cut) {
  return std::visit(
      [&](const auto& v) -> Json {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::string_view>) return shortened(v, cut);
        // What is not finite is no number in JSON, but its name.
        if constexpr (std::is_floating_point_v<T>)
          return std::isfinite(v) ? Json(json_number(v)) : Json(text(v));
        else if constexpr (!std::is_same_v<T, std::string_view>)
          return Json(v);
      },
      value);
}

Json entry_json(const GgufEntry& e) {
  bool cut = false;
  Json values = Json::array();
  for (const GgufValue& v : gguf_entry_values(e, kShownValues)) values.push_back(value_json(v, &cut));
  Json j = {{"type", gguf_entry_type(e)}};
  if (e.type == GgufType::kArray)
    j["element"] = gguf_type_name(e.element), j["count"] = e.count, j["value"] = std::move(values);
  else
    j["value"] = values.front();
  if (cut) j["cut"] = true;
  return j;
}

Json dims_json(const Shape& shape) {
  Json dims = Json::array();
  for (int i = 0; i < shape.rank(); ++i) dims.push_back(shape[i]);
  return dims;
}

Json describe(const GgufFile& file, const SessionOptions& o) {
  Json j;
  j["path"] = file.path(), j["file_bytes"] = file.file_bytes(), j["gguf_version"] = file.version();
  j["metadata"] = Json::object(), j["tensors"] = Json::array(), j["types"] = Json::object();
  for (const GgufEntry& e : file.entries()) j["metadata"][std::string(e.key)] = entry_json(e);
  std::map<std::string, std::pair<int64_t, int64_t>> types;
  for (const GgufTensor& t : file.tensors()) {
    auto& [count, bytes] = types[t.type->name];
    ++count, bytes += t.bytes;
    j["tensors"].push_back(
        {{"name", t.name}, {"type", t.type->name}, {"shape", dims_json(t.shape)}, {"bytes", t.bytes}});
  }
  for (const auto& [name, total] : types)
    j["types"][name] = {{"tensors", total.first}, {"bytes", total.second}};
  if (const auto config = read_decoder_config(file); config.ok())
    if (const auto plan = plan_memory(file, *config, o.engine); plan.ok()) j["memory"] = memory_json(*plan);
  if (const auto t = file.find_string("tokenizer.chat_template"); t.ok() && *t) j["chat_template"] = **t;
  j["refused"] = Json::array();
  for (const Status& reason : Session::refusals(file, o)) j["refused"].push_back(reason.message());
  return j;
}

void print(const GgufFile& file, const Json& j, bool all) {
  std::printf("%s: GGUF v%d, %s\n", j["path"].get<std::string>().c_str(), j["gguf_version"].get<int>(),
              bytes_text(j["file_bytes"].get<double>()).c_str());
  std::printf("\nmetadata\n");
  for (const GgufEntry& e : file.entries())
    std::printf("  %-44s %-16s %s\n", visible(e.key).c_str(), gguf_entry_type(e).c_str(),
                visible(gguf_entry_text(e, kShownBytes)).c_str());
  std::printf("\ntensors\n");
  for (const auto& [name, t] : j["types"].items())
    std::printf("  %-8s %5lld tensors  %s\n", name.c_str(), t["tensors"].get<long long>(),
                bytes_text(t["bytes"].get<double>()).c_str());
  if (all)
    for (const GgufTensor& t : file.tensors())
      std::printf("  %-40s %-8s %-20s %s\n", visible(t.name).c_str(), t.type->name, t.shape.str().c_str(),
                  bytes_text(static_cast<double>(t.bytes)).c_str());
  if (j.contains("memory")) {
    const Json& m = j["memory"];
    std::printf("\nmemory\n  weights %s\n  KV      %s (%lld tokens of %s)\n  both    %s\n",
                bytes_text(m["weights_bytes"].get<double>()).c_str(),
                bytes_text(m["kv_bytes"].get<double>()).c_str(), m["kv_tokens"].get<long long>(),
                bytes_text(m["kv_bytes_per_token"].get<double>()).c_str(),
                bytes_text(m["total_bytes"].get<double>()).c_str());
    std::printf(
        "  beside them, known once it runs: activations, workspaces, and what packed weights take more than\n"
        "  those of the file; ridge run --memory tells\n");
  }
  std::printf("\nrefused\n");
  for (const auto& r : j["refused"]) std::printf("  %s\n", visible(r.get<std::string>()).c_str());
  if (j["refused"].empty()) std::printf("  nothing: the file runs\n");
}

/// What is listed under refused is a failure, whichever of the file and the options it lies with.
Status verdict(const Json& refused) {
  if (refused.empty()) return {};
  const std::string first = refused.front().get<std::string>();
  return declined(first, refused.size() > 1 ? text("; ", refused.size() - 1, " more under refused") : "");
}

}  // namespace

Command add_inspect(CLI::App& cli) {
  auto o = std::make_shared<CommonOptions>();
  auto all = std::make_shared<bool>(false), weights = std::make_shared<bool>(false);
  CLI::App* sub = cli.add_subcommand(
      "inspect", "Show a model file: metadata, tensors, memory plan, what would be refused");
  o->add_to(*sub);
  sub->add_flag("--tensors", *all, "List every tensor");
  sub->add_flag("--weights", *weights,
                "Read every weight, and refuse a file with one that is NaN or infinite");
  sub->footer(
      "Exit codes: 0 the file is well-formed and runs with these options; 1 it cannot be read, or something\n"
      "is listed under refused; 2 an option is wrong.\n"
      "Examples:\n  ridge inspect model.gguf\n  ridge inspect model.gguf --weights\n"
      "  ridge inspect model.gguf --json --kv q8 --context 4096");
  return {sub, [o, all, weights]() -> Status {
            if (o->synthetic) return invalid_argument("inspect reads a file, and a synthetic model has none");
            RIDGE_ASSIGN(const SessionOptions options, o->session());
            RIDGE_ASSIGN(const GgufFile file, GgufFile::open(o->model));
            Json j = describe(file, options);
            if (*weights) {
              RIDGE_ASSIGN(const std::vector<BadWeights> bad,
                           find_bad_weights(file, o->threads > 0 ? o->threads : allowed_cores()));
              const Status sound = refuse_bad_weights(file, bad);
              for (const BadWeights& b : bad)
                j["bad_weights"].push_back(
                    {{"tensor", b.tensor}, {"first", b.first}, {"value", text(b.value)}, {"count", b.count}});
              if (!sound.ok()) j["refused"].push_back(sound.message());
            }
            if (o->json)
              std::printf("%s\n", j.dump(2, ' ', false, Json::error_handler_t::replace).c_str());
            else
              print(file, j, *all);
            return verdict(j["refused"]);
          }};
}

}  // namespace ridge::app
