#include "models/config.h"

#include "models/tiny_model.h"

namespace ridge {
namespace {

/// Loading ends with `code` and a message of one line that holds each of `parts`.
void refuses(const TinySpec& spec, Code code, std::initializer_list<const char*> parts) {
  const TinyFile tiny(spec);
  const auto device = CpuDevice::create({.threads = 1}).take();
  const auto model = load_model(*device, tiny.file());
  ASSERT_FALSE(model.ok()) << "loaded; wanted an error with " << *parts.begin();
  const std::string& message = model.status().message();
  EXPECT_STREQ(code_name(model.status().code()), code_name(code)) << message;
  EXPECT_EQ(message.find("tiny.gguf"), 0u) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (const char* part : parts)
    EXPECT_NE(message.find(part), std::string::npos) << message << " lacks " << part;
}

/// The spec with `key` holding `value` instead.
TinySpec with_key(const std::string& architecture, const char* key, uint32_t value) {
  TinySpec s;
  s.architecture = architecture;
  s.left_out = {key};
  s.extra = [architecture, key, value](GgufWriter* w) { w->add_u32(architecture + "." + key, value); };
  return s;
}

class Architectures : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Architectures, testing::Values("llama", "gemma3", "qwen3"));

TEST_P(Architectures, a_sound_file_loads_with_the_shapes_that_it_states) {
  TinySpec s;
  s.architecture = GetParam();
  const TinyModel tiny(s);
  ASSERT_NE(tiny.model, nullptr);
  const DecoderConfig& c = tiny.model->config();
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.heads, 4);
  EXPECT_EQ(c.kv_heads, 2);
  EXPECT_EQ(c.head_dim, 32);
  EXPECT_EQ(c.vocab, 300);
  EXPECT_EQ(c.context, 512);
  const auto shapes = tiny.model->kv_shapes();
  ASSERT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes[0].window, s.architecture == "gemma3" ? 8 : 0);
  EXPECT_EQ(shapes[1].window, 0);
}

TEST_P(Architectures, I8_counts_that_no_model_can_have_are_refused_with_key_and_value) {
  const std::string a = GetParam();
  const struct {
    const char* key;
    uint32_t value;
    const char* says;
  } cases[] = {{"attention.head_count", 0, "is 0"},
               {"attention.head_count_kv", 0, "is 0"},
               {"attention.key_length", 0, "is 0"},
               {"block_count", 0, "is 0"},
               {"block_count", 1000000000, "is 1000000000"},
               {"embedding_length", 0, "is 0"},
               {"feed_forward_length", 0, "is 0"},
               {"context_length", 0, "is 0"},
               {"vocab_size", 0, "is 0"},
               {"vocab_size", 4000000000u, "is 4000000000"},
               {"embedding_length", 4000000000u, "is 4000000000"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(text(c.key, " = ", c.value));
    refuses(with_key(a, c.key, c.value), Code::kCorrupt, {c.key, c.says});
  }
}

TEST_P(Architectures, I8_heads_that_kv_heads_do_not_divide_are_refused_with_both) {
  TinySpec s;
  s.architecture = GetParam();
  s.heads = 9, s.kv_heads = 4;
  refuses(s, Code::kCorrupt, {"attention.head_count is 9", "attention.head_count_kv", "4"});
}

TEST_P(Architectures, I8_experts_are_refused_whatever_their_number) {
  const std::string a = GetParam();
  for (const auto& [count, used] : {std::pair{0u, 2u}, {8u, 2u}, {8u, 9u}, {8u, 0u}}) {
    TinySpec s;
    s.architecture = a;
    s.extra = [&, c = count, u = used](GgufWriter* w) {
      w->add_u32(a + ".expert_count", c), w->add_u32(a + ".expert_used_count", u);
    };
    SCOPED_TRACE(text(count, " experts, ", used, " used"));
    refuses(s, Code::kDeclined, {count > 0 ? "expert_count is 8" : "expert_used_count is 2"});
  }
  TinySpec none;
  none.architecture = a;
  none.extra = [&](GgufWriter* w) { w->add_u32(a + ".expert_count", 0); };
  EXPECT_NE(TinyModel(none).model, nullptr);
}

TEST(Gemma3, I8_a_window_or_pattern_of_nothing_is_refused) {
  refuses(with_key("gemma3", "attention.sliding_window", 0), Code::kCorrupt, {"sliding_window is 0"});
  refuses(with_key("gemma3", "attention.sliding_window_pattern", 0), Code::kCorrupt,
          {"sliding_window_pattern is 0"});
}

TEST_P(Architectures, I8_a_rotary_width_beyond_the_head_or_odd_is_refused) {
  const std::string a = GetParam();
  for (const uint32_t bad : {0u, 7u, 34u}) {
    TinySpec s;
    s.architecture = a;
    s.extra = [a, bad](GgufWriter* w) { w->add_u32(a + ".rope.dimension_count", bad); };
    SCOPED_TRACE(bad);
    refuses(s, Code::kCorrupt, {"rope.dimension_count is", text(bad).c_str()});
  }
}

TEST_P(Architectures, I8_a_base_or_epsilon_that_is_no_number_of_use_is_refused) {
  const std::string a = GetParam();
  TinySpec s;
  s.architecture = a;
  s.left_out = {"rope.freq_base"};
  for (const float bad : {0.0f, 1e-38f, 1.0f}) {
    s.extra = [a, bad](GgufWriter* w) { w->add_f32(a + ".rope.freq_base", bad); };
    refuses(s, Code::kCorrupt, {text("rope.freq_base is ", bad).c_str(), "needs to be above 1"});
  }
  s.left_out = {"attention.layer_norm_rms_epsilon"};
  s.extra = [a](GgufWriter* w) { w->add_f32(a + ".attention.layer_norm_rms_epsilon", -1.0f); };
  refuses(s, Code::kCorrupt, {"layer_norm_rms_epsilon is -1"});
  s.extra = [a](GgufWriter* w) { w->add_f32(a + ".attention.layer_norm_rms_epsilon", std::nanf("")); };
  refuses(s, Code::kCorrupt, {"layer_norm_rms_epsilon"});
}

TEST_P(Architectures, I8_a_rope_scaling_that_divides_by_nothing_or_is_unknown_is_refused) {
  const std::string a = GetParam();
  TinySpec s;
  s.architecture = a;
  s.extra = [a](GgufWriter* w) {
    w->add_string(a + ".rope.scaling.type", "linear");
    w->add_f32(a + ".rope.scaling.factor", 0.0f);
  };
  refuses(s, Code::kCorrupt, {"rope.scaling", "factor is 0"});
  s.extra = [a](GgufWriter* w) { w->add_string(a + ".rope.scaling.type", "spiral"); };
  refuses(s, Code::kCorrupt, {"rope.scaling", "spiral"});
}

TEST(Llama, I8_frequency_divisors_of_nothing_are_refused_with_index_and_value) {
  for (const float bad : {0.0f, -1.0f, std::nanf(""), INFINITY}) {
    TinySpec s;
    std::vector<float> divisors(16, 1.0f);
    divisors[3] = bad;
    s.extra = [&](GgufWriter* w) { w->add_tensor("rope_freqs.weight", kF32, {16}, divisors.data()); };
    refuses(s, Code::kCorrupt, {"rope_freqs.weight 3 is"});
  }
}

TEST_P(Architectures, a_missing_key_or_tensor_is_named) {
  TinySpec s;
  s.architecture = GetParam();
  for (const char* key : {"block_count", "embedding_length", "attention.head_count", "feed_forward_length",
                          "context_length", "vocab_size", "attention.layer_norm_rms_epsilon"}) {
    s.left_out = {key};
    refuses(s, Code::kNotFound, {key});
  }
  for (const char* tensor :
       {"token_embd.weight", "blk.1.attn_k.weight", "blk.0.ffn_norm.weight", "output_norm.weight"}) {
    s.left_out = {tensor};
    refuses(s, Code::kNotFound, {tensor});
  }
}

TEST_P(Architectures, layers_beyond_block_count_are_refused_with_tensor_and_number) {
  TinySpec s = with_key(GetParam(), "block_count", 1);
  refuses(s, Code::kCorrupt, {"tensor 'blk.1.attn_norm.weight'", "block_count is 1", "layers are 0 to 0"});
  s = TinySpec();
  s.architecture = GetParam();
  const std::vector<float> one(256, 1.0f);
  for (const char* name : {"blk.2.attn_norm.weight", "blk.7.unheard_of", "blk.-1.attn_norm.weight",
                           "blk.x.weight", "blk.0", "blk.", "blk.99999999999999999999.weight"}) {
    s.extra = [&](GgufWriter* w) { w->add_tensor(name, kF32, {256}, one.data()); };
    refuses(s, Code::kCorrupt, {name, "block_count is 2"});
  }
}

TEST_P(Architectures, a_tensor_that_the_architecture_has_no_use_for_is_refused_by_name) {
  TinySpec s;
  s.architecture = GetParam();
  const std::vector<float> ones(256, 1.0f);
  for (const char* name :
       {"blk.1.attn_q.bias", "blk.0.attn_output.bias", "blk.0.ffn_gate_inp.weight", "output.bias",
        "output_norm.bias", "rope_factors_long.weight", "v.patch_embd.weight"}) {
    s.extra = [&](GgufWriter* w) { w->add_tensor(name, kF32, {256}, ones.data()); };
    refuses(s, Code::kDeclined, {name, "[256]", "no part in this architecture"});
  }
  s.extra = [&](GgufWriter* w) {
    for (const char* name : {"blk.0.attn_q.bias", "blk.0.attn_k.bias", "blk.1.attn_q.bias"})
      w->add_tensor(name, kF32, {256}, ones.data());
  };
  refuses(s, Code::kDeclined, {"blk.0.attn_q.bias", "2 others"});
}

TEST(Gemma3, frequency_divisors_that_no_layer_takes_are_refused_by_name) {
  TinySpec s;
  s.architecture = "gemma3";
  const std::vector<float> divisors(16, 8.0f);
  s.extra = [&](GgufWriter* w) { w->add_tensor("rope_freqs.weight", kF32, {16}, divisors.data()); };
  refuses(s, Code::kDeclined, {"rope_freqs.weight"});
}

TEST(Decoders, a_window_shorter_than_the_context_is_refused_where_no_layer_has_one) {
  for (const char* architecture : {"llama", "qwen3"}) {
    TinySpec s;
    s.architecture = architecture;
    s.extra = [&](GgufWriter* w) { w->add_u32(text(architecture, ".attention.sliding_window"), 64); };
    refuses(s, Code::kDeclined, {"attention.sliding_window is 64", "context 512"});
    s.extra = [&](GgufWriter* w) { w->add_u32(text(architecture, ".attention.sliding_window"), 512); };
    EXPECT_NE(TinyModel(s).model, nullptr) << "it hides nothing";
  }
}

TEST_P(Architectures, a_tensor_of_another_shape_is_refused_with_both_shapes) {
  TinySpec s;
  s.architecture = GetParam();
  s.reshape = [](const std::string& name, Shape* shape) {
    if (name == "blk.1.ffn_up.weight") (*shape)[0] = 255;
  };
  refuses(s, Code::kCorrupt, {"blk.1.ffn_up.weight", "[255, 256]", "[256, 256]"});
  s.reshape = [](const std::string& name, Shape* shape) {
    if (name == "output_norm.weight") *shape = {128, 2};
  };
  s.all_types = false;
  refuses(s, Code::kCorrupt, {"output_norm.weight", "[128, 2]", "[256]"});
}

TEST(Models, an_unknown_architecture_is_refused_with_those_known) {
  TinySpec s;
  s.architecture = "mamba";
  refuses(s, Code::kDeclined, {"mamba", "llama", "gemma3"});
}

TEST(Models, I8_a_vocabulary_that_contradicts_the_token_list_is_refused_with_both) {
  TinySpec s;
  s.extra = [](GgufWriter* w) {
    const std::vector<std::string> tokens(299, "t");
    w->add_string_array("tokenizer.ggml.tokens", tokens);
  };
  refuses(s, Code::kCorrupt, {"vocab_size is 300", "299"});
}

/// What a model says of the rotary tables that its keys went through.
uint64_t rope_hash_of(const TinySpec& spec) {
  const TinyModel tiny(spec);
  return tiny.model == nullptr ? 0 : tiny.model->rope_hash();
}

TEST_P(Architectures, the_rope_hash_follows_every_table_that_keys_go_through) {
  TinySpec plain;
  plain.architecture = GetParam();
  const uint64_t hash = rope_hash_of(plain);
  EXPECT_EQ(rope_hash_of(plain), hash);
  TinySpec other_weights = plain;
  other_weights.seed = 2;
  EXPECT_EQ(rope_hash_of(other_weights), hash) << "weights are the model hash's matter";
  const auto with = [&](const char* left_out,
                        const std::function<void(const std::string&, GgufWriter*)>& add) {
    TinySpec s = plain;
    s.left_out = {left_out};
    s.extra = [&](GgufWriter* w) { add(s.architecture + ".", w); };
    return rope_hash_of(s);
  };
  const uint64_t base = with("rope.freq_base", [](const std::string& a, GgufWriter* w) {
    w->add_f32(a + "rope.freq_base", 10001.0f);
  });
  const uint64_t scaled = with("", [](const std::string& a, GgufWriter* w) {
    w->add_string(a + "rope.scaling.type", "linear");
    w->add_f32(a + "rope.scaling.factor", 2.0f);
  });
  const uint64_t again = with("", [](const std::string& a, GgufWriter* w) {
    w->add_string(a + "rope.scaling.type", "linear");
    w->add_f32(a + "rope.scaling.factor", 1.0f);
  });
  EXPECT_NE(base, hash);
  EXPECT_NE(scaled, hash);
  EXPECT_NE(scaled, base);
  EXPECT_EQ(again, hash) << "another spelling of the same table";
}

TEST(Gemma3, the_rope_hash_follows_the_base_of_its_local_layers) {
  TinySpec plain;
  plain.architecture = "gemma3";
  TinySpec other = plain;
  other.extra = [](GgufWriter* w) { w->add_f32("gemma3.rope.freq_base_swa", 10001.0f); };
  EXPECT_NE(rope_hash_of(other), rope_hash_of(plain));
}

TEST(Llama, the_rope_hash_follows_the_divisors_of_the_file) {
  const auto with_divisor = [](float last) {
    TinySpec s;
    std::vector<float> divisors(16, 1.0f);
    divisors.back() = last;
    s.extra = [&](GgufWriter* w) { w->add_tensor("rope_freqs.weight", kF32, {16}, divisors.data()); };
    return rope_hash_of(s);
  };
  EXPECT_EQ(with_divisor(1), rope_hash_of({}));
  EXPECT_NE(with_divisor(8), rope_hash_of({}));
}

}  // namespace
}  // namespace ridge
