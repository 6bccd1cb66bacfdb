// What `ridge inspect` says would be refused is what opening the file refuses: of every spoilt file and
// option, both give the same verdict, and the same words.

#include "formats/gguf_weights.h"
#include "integration/model_file.h"
#include "sanitized.h"

namespace ridge {
namespace {

/// Another program may take memory, or give some back, between the two ways.
std::string without_what_is_free(std::string message) {
  const size_t end = message.find(" can be taken");
  const size_t begin = end == std::string::npos ? end : message.rfind(", ", end);
  return begin == std::string::npos ? message : message.erase(begin, end - begin);
}

/// Opens the file both ways. The reasons of a file that opens are none, the first of one that does not is the
/// error; that error, or "".
std::string verdict(const std::string& path, const SessionOptions& options = one_thread()) {
  const auto opened = Session::open(path, options);
  const auto file = GgufFile::open(path);
  EXPECT_EQ(file.ok() || !opened.ok(), true);
  if (!file.ok()) {
    EXPECT_EQ(opened.status().message(), file.status().message());
    return opened.status().message();
  }
  const std::vector<Status> reasons = Session::refusals(*file, options);
  EXPECT_EQ(opened.ok(), reasons.empty())
      << (reasons.empty() ? opened.status().message() : reasons[0].message());
  if (opened.ok() || reasons.empty()) return "";
  EXPECT_EQ(without_what_is_free(opened.status().message()), without_what_is_free(reasons[0].message()));
  EXPECT_STREQ(code_name(opened.status().code()), code_name(reasons[0].code()));
  return opened.status().message();
}

class Refusals : public testing::TestWithParam<const char*> {
 protected:
  std::string arch() const { return GetParam(); }
  TinySpec spec() const {
    TinySpec s;
    s.architecture = GetParam();
    return s;
  }
  void same(const TinySpec& s, const std::string& says, const FileOptions& f = {},
            const SessionOptions& o = one_thread()) {
    file_.write(s, f);
    const std::string got = verdict(file_.path(), o);
    if (says.empty())
      EXPECT_EQ(got, "");
    else
      EXPECT_NE(got.find(says), std::string::npos) << "'" << got << "' lacks '" << says << "'";
  }
  ModelFile file_;
};
INSTANTIATE_TEST_SUITE_P(All, Refusals, testing::Values("llama", "gemma3", "qwen3"));

TEST_P(Refusals, a_sound_file_opens_and_nothing_is_refused) {
  same(spec(), "");
  TinySpec tied = spec();
  tied.own_head = false;
  same(tied, "");
}

TEST_P(Refusals, each_tensor_that_is_missing_or_has_another_shape) {
  const TinyFile sound(spec());
  int refused = 0, nth = 0;
  for (const GgufTensor& t : sound.file().tensors()) {
    if (kSanitized && nth++ % 4 != 0) continue;  // 4 is prime to the tensors of a block
    const std::string name(t.name);
    TinySpec s = spec();
    s.left_out = {name};
    same(s, name == "output.weight" ? "" : "has no tensor '" + name + "'");
    s.left_out = {};
    for (const int64_t rows : {int64_t{0}, t.shape[0] + 32}) {
      s.reshape = [&](const std::string& at, Shape* shape) {
        if (at == name) (*shape)[0] = rows;
      };
      same(s, name);
    }
    refused += name != "output.weight";
  }
  EXPECT_GT(refused, kSanitized ? 3 : 15);
}

TEST_P(Refusals, a_tensor_of_a_type_without_kernels) {
  // i32 where f32 is: the same bytes.
  const TinyFile sound(spec());
  for (const char* name : {"output_norm.weight", "blk.1.attn_norm.weight", "token_embd.weight"}) {
    file_.write(spec());
    std::ifstream in(file_.path(), std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    const size_t at = bytes.find(name) + std::string_view(name).size();
    const size_t rank = static_cast<uint8_t>(bytes[at]);
    bytes[at + 4 + 8 * rank] = 26;
    std::ofstream(file_.path(), std::ios::binary) << bytes;
    EXPECT_NE(verdict(file_.path()).find("has type i32"), std::string::npos) << name;
  }
}

TEST_P(Refusals, numbers_of_the_metadata_that_are_none) {
  const float nan = std::nanf("");
  for (const char* key : {"rope.freq_base", "attention.layer_norm_rms_epsilon"})
    for (const float bad : {nan, INFINITY, -1.0f}) {
      TinySpec s = spec();
      s.left_out = {key};
      s.extra = [&](GgufWriter* w) { w->add_f32(arch() + "." + key, bad); };
      same(s, key);
    }
  for (const float bad : {nan, INFINITY, 0.0f}) {
    TinySpec s = spec();
    s.extra = [&](GgufWriter* w) {
      w->add_string(arch() + ".rope.scaling.type", "linear");
      w->add_f32(arch() + ".rope.scaling.factor", bad);
    };
    same(s, "factor");
  }
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping", "attention.scale",
                          "logit_scale", "rope.scaling.attn_factor"}) {
    TinySpec s = spec();
    s.extra = [&](GgufWriter* w) { w->add_f32(arch() + "." + key, 0.0f); };
    same(s, "");
    s.extra = [&](GgufWriter* w) { w->add_f32(arch() + "." + key, 30.0f); };
    same(s, text(key, " is 30: not supported"));
  }
}

TEST_P(Refusals, integers_of_the_metadata_that_are_missing_or_contradict) {
  int nth = 0;
  for (const char* key :
       {"block_count", "embedding_length", "attention.head_count", "attention.head_count_kv",
        "attention.key_length", "feed_forward_length", "context_length", "vocab_size"})
    for (const int64_t value : {-1, 0, 1, 3, 1 << 30}) {
      if (kSanitized && nth++ % 3 != 0) continue;  // 3 is prime to the values: each with some key
      TinySpec s = spec();
      s.left_out = {key};
      if (value >= 0)
        s.extra = [&](GgufWriter* w) { w->add_u32(arch() + "." + key, static_cast<uint32_t>(value)); };
      file_.write(s);
      verdict(file_.path());
    }
}

TEST_P(Refusals, divisors_of_frequencies_that_are_none) {
  if (arch() == "gemma3") return;  // has none
  for (const float bad : {0.0f, -1.0f, std::nanf(""), 1.0f}) {
    TinySpec s = spec();
    std::vector<float> divisors(16, 1.0f);
    divisors[3] = bad;
    s.extra = [&](GgufWriter* w) { w->add_tensor("rope_freqs.weight", kF32, {16}, divisors.data()); };
    same(s, bad == 1.0f ? "" : "rope_freqs.weight 3 is");
  }
}

TEST_P(Refusals, what_a_file_says_of_text) {
  same(spec(), "tokenizer.chat_template", {.chat_template = "{% for m in messages %}"});
  same(spec(), "264", {.eos = 264});
  FileOptions f;
  f.edit = [](TokenizerSpec* t) { t->pre = "unheard-of"; };
  same(spec(), "unheard-of", f);
  SessionOptions assumed = one_thread();
  assumed.assume_pre = "smollm";
  same(spec(), "", f, assumed);
  f.edit = [](TokenizerSpec* t) { t->types.pop_back(); };
  same(spec(), "token_type", f);
}

TEST_P(Refusals, options_that_no_engine_takes) {
  const auto with = [&](const std::function<void(SessionOptions*)>& change, const char* says) {
    SessionOptions o = one_thread();
    change(&o);
    same(spec(), says, {}, o);
  };
  with([](SessionOptions* o) { o->engine.kv.context = 513; }, "context is 513");
  with([](SessionOptions* o) { o->engine.kv.context = -1; }, "context is -1");
  with([](SessionOptions* o) { o->engine.kv.page_size = 0; }, "page_size is 0");
  with([](SessionOptions* o) { o->engine.kv.page_size = 4097; }, "page_size is 4097");
  with([](SessionOptions* o) { o->engine.kv.pages = -1; }, "has -1 pages");
  with([](SessionOptions* o) { o->engine.prefill_tokens = 0; }, "prefill_tokens is 0");
  with([](SessionOptions* o) { o->engine.max_sequences = 0; }, "max_sequences is 0");
  with([](SessionOptions* o) { o->engine.kv.pages = INT32_MAX, o->engine.kv.page_size = 4096; },
       "can be taken");
  with([](SessionOptions* o) { o->device.cpu.threads = 5000; }, "threads is 5000");
  with([](SessionOptions* o) { o->device.backend = "abacus"; }, "abacus");
  with([](SessionOptions* o) { o->engine.kv.k_type = kQ8_0; }, "KV format is q8_0");
}

TEST_P(Refusals, every_reason_is_told_once_and_not_the_first_alone) {
  TinySpec s = spec();
  s.left_out = {"blk.1.ffn_up.weight"};
  file_.write(s, {.chat_template = "{% for m in messages %}"});
  SessionOptions o = one_thread();
  o.engine.kv.page_size = 0;
  const auto file = GgufFile::open(file_.path());
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::string all;
  const std::vector<Status> reasons = Session::refusals(*file, o);
  for (const Status& reason : reasons) all += reason.message() + "\n";
  EXPECT_EQ(reasons.size(), 3u) << all;
  for (const char* part : {"chat_template", "blk.1.ffn_up.weight", "page_size is 0"})
    EXPECT_NE(all.find(part), std::string::npos) << all;
}

TEST_P(Refusals, K40_rows_that_are_no_whole_blocks_are_refused_with_their_length) {
  // Rows of 576: whole blocks of 32, and two and a quarter of 256.
  const std::pair<DType, int64_t> bytes[] = {{kQ8_0, 612}, {kQ5_0, 396}, {kQ4_1, 360}, {kQ4_0, 324}};
  for (const auto& [dtype, row] : bytes) {
    EXPECT_EQ(*tensor_bytes(dtype, {1, 576}), row) << dtype_name(dtype);
    EXPECT_EQ(*tensor_bytes(dtype, {7, 576}), 7 * row) << dtype_name(dtype);
  }
  for (const DType dtype : {kQ4_K, kQ6_K}) {
    const auto none = tensor_bytes(dtype, {1, 576});
    ASSERT_FALSE(none.ok()) << dtype_name(dtype);
    EXPECT_NE(none.status().message().find("576"), std::string::npos) << none.status().message();
    // A file that says so all the same: q4_k where f32 is.
    TinySpec s = spec();
    s.hidden = 576, s.all_types = false;
    file_.write(s);
    std::ifstream in(file_.path(), std::ios::binary);
    std::string file((std::istreambuf_iterator<char>(in)), {});
    const std::string name = "blk.0.attn_q.weight";
    file[file.find(name) + name.size() + 4 + 8 * 2] = dtype == kQ4_K ? 12 : 14;
    std::ofstream(file_.path(), std::ios::binary) << file;
    const std::string says = verdict(file_.path());
    for (const std::string& part : {name, std::string("576 elements"), std::string(dtype_name(dtype))})
      EXPECT_NE(says.find(part), std::string::npos) << says;
  }
}

}  // namespace
}  // namespace ridge
