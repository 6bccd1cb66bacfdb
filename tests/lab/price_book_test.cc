// The book of prices says of every call of every step what its description says.

#include "lab/price_book.h"

#include "account/flat_machine.h"
#include "engine/generate.h"
#include "lab/profile.h"

namespace ridge {
namespace {

PriceBook::Group& price(PriceBook& book, const StepPlan& plan, size_t call) {
  return book.price(call, plan.calls()[call].call.args.get());
}

/// Compares a book kept over steps with the descriptions, after each step.
struct Comparison final : StepObserver {
  void on_step(const StepFacts&, const StepPlan& plan) override {
    const auto [found, fresh_plan] = books.try_emplace(plan.id(), plan);
    PriceBook& book = found->second;
    std::vector<PriceBook::Group> varying;  // as of this step
    for (const size_t i : book.varying()) varying.push_back(price(book, plan, i));
    for (size_t i = 0; i < plan.calls().size(); ++i) {
      const PlannedCall& planned = plan.calls()[i];
      // Of a group, the call that is priced stands for all, and those that never change for all steps.
      const size_t place = book.place_of(i);
      if (place == PriceBook::kNone && fresh_plan) constant[plan.id()].emplace(i, price(book, plan, i));
      const PriceBook::Group& stands =
          place == PriceBook::kNone ? constant[plan.id()].at(i) : varying.at(place);
      EXPECT_EQ(*stands.cost, plan.cost(i)) << planned.call.label;
      PriceBook::Group& priced = price(book, plan, i);
      EXPECT_EQ(*priced.cost, plan.cost(i)) << planned.call.label;
      EXPECT_EQ(priced.shape, planned.call.op->shape(planned.call.args.get()));
      EXPECT_EQ(priced.kernel, planned.call.op->kernel_name(planned.selection));
      const CallName& name = *book.name_of(i, priced.shape);
      EXPECT_EQ(name.label, planned.call.label);
      EXPECT_EQ(name.op, planned.call.op->name());
      EXPECT_EQ(name.shape, priced.shape);
      EXPECT_EQ(name.kernel, priced.kernel);
      ++calls;
      fresh += priced.row == PriceBook::kNone;
      priced.row = 0;
    }
    EXPECT_LE(varying.size(), plan.calls().size() / 4) << "one call of a group is enough";
    ++steps;
  }
  void on_stage(int64_t, Stage, int64_t, int64_t) override {}
  std::map<uint64_t, PriceBook> books;
  std::map<uint64_t, std::map<size_t, PriceBook::Group>> constant;  // by plan and call
  int64_t calls = 0, steps = 0, fresh = 0;
};

void compare(const TinySpec& spec) {
  TinyModel tiny(spec);
  EngineOptions o;
  o.kv.context = 300, o.max_sequences = 3, o.prefill_tokens = 16;
  const auto engine = engine_for(tiny, o);
  Comparison comparison;
  engine->set_observer(&comparison);
  generate(*engine, {request(random_prompt(3, 1), 40), request(random_prompt(40, 2), 9),
                     request(random_prompt(70, 3), 120)});
  EXPECT_GT(comparison.steps, 100);
  EXPECT_GT(comparison.books.size(), 3u) << "prefill, decode and mixed steps have plans of their own";
  EXPECT_LT(comparison.fresh, comparison.calls / 4) << "the book spares nothing";
}

TEST(PriceBook, equals_the_descriptions_on_ragged_steps) {
  compare({});
}

TEST(PriceBook, equals_them_where_windowed_and_global_layers_have_counts_of_their_own) {
  TinySpec spec;
  spec.architecture = "gemma3", spec.layers = 4;  // both counts are the same until the window is full
  compare(spec);
}

/// Prices each call of each step by its description, beside a Profiler that sees the same steps.
struct Beside final : StepObserver {
  using Key = std::array<std::string, 4>;
  struct Sum {
    int64_t calls = 0;
    Cost cost;
  };
  struct Call {
    std::string op, label, shape;
    Cost cost;
    int64_t end_ns = 0;
  };
  void on_step(const StepFacts& facts, const StepPlan& plan) override {
    profiler.on_step(facts, plan);
    for (size_t i = 0; i < plan.calls().size(); ++i) {
      const PlannedCall& planned = plan.calls()[i];
      const std::string op = planned.call.op->name(), shape = planned.call.op->shape(planned.call.args.get());
      Sum& sum = rows[{phase_name(facts.phase), op, planned.call.op->kernel_name(planned.selection), shape}];
      ++sum.calls, sum.cost += plan.cost(i);
      calls.push_back({op, planned.call.label, shape, plan.cost(i), facts.calls[i].end_ns});
    }
  }
  void on_stage(int64_t, Stage, int64_t, int64_t) override {}
  Profiler profiler;
  std::map<Key, Sum> rows;
  std::vector<Call> calls;
};

TEST(Profile, holds_of_every_call_of_every_step_what_its_description_says) {
  for (const char* architecture : {"llama", "gemma3"}) {
    SCOPED_TRACE(architecture);
    TinySpec spec;
    spec.architecture = architecture, spec.layers = 4;
    TinyModel tiny(spec);
    EngineOptions o;
    o.kv.context = 300, o.max_sequences = 3, o.prefill_tokens = 16;
    const auto engine = engine_for(tiny, o);
    Beside beside;
    engine->set_observer(&beside);
    generate(*engine, {request(random_prompt(3, 1), 40), request(random_prompt(70, 3), 120)});
    const Profile profile = beside.profiler.finish(flat_machine(1e10, 1e11), 1);
    std::map<Beside::Key, Beside::Sum> rows;
    for (const ProfilePhase& phase : profile.phases)
      for (const ProfileRow& r : phase.rows)
        if (r.op != "host") {
          Beside::Sum& sum = rows[{phase_name(phase.phase), r.op, r.kernel, r.shape}];
          sum.calls += r.calls, sum.cost += r.cost;  // formats apart
        }
    ASSERT_EQ(rows.size(), beside.rows.size());
    for (const auto& [key, sum] : beside.rows) {
      EXPECT_EQ(rows[key].calls, sum.calls) << key[1] << " " << key[3];
      EXPECT_EQ(rows[key].cost, sum.cost) << key[1] << " " << key[3];
    }
    size_t at = 0;
    for (const StepSlice& step : profile.steps)
      for (const CallSlice& slice : step.calls) {
        ASSERT_LT(at, beside.calls.size());
        const Beside::Call& call = beside.calls[at++];
        EXPECT_EQ(slice.name->op, call.op);
        EXPECT_EQ(slice.name->label, call.label);
        EXPECT_EQ(slice.name->shape, call.shape);
        EXPECT_EQ(*slice.cost, call.cost) << call.label;
        EXPECT_EQ(slice.end_ns, call.end_ns) << call.label;
      }
    EXPECT_EQ(at, beside.calls.size());
  }
}

TEST(Profile, chunks_of_a_prompt_are_rows_of_their_own_by_what_lies_before_them) {
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 300, o.prefill_tokens = 16;
  const auto engine = engine_for(tiny, o);
  Profiler profiler;
  engine->set_observer(&profiler);
  generate(*engine, {request(random_prompt(40, 1), 1)});
  const Profile profile = profiler.finish(flat_machine(1e10, 1e11), 1);
  ASSERT_EQ(profile.phases.size(), 1u);
  std::vector<std::string> seen;
  for (const ProfileRow& r : profile.phases[0].rows)
    if (r.op == "attention_prefill") seen.push_back(r.shape.substr(r.shape.rfind(", ") + 2));
  EXPECT_EQ(seen, (std::vector<std::string>{"16 after 0", "16 after 16", "8 after 32"}));
}

TEST(StepPlan, ids_are_never_shared) {
  TinyModel tiny;
  EngineOptions o;
  o.kv.context = 64;
  const auto one = engine_for(tiny, o), other = engine_for(tiny, o);
  Comparison first, second;
  one->set_observer(&first), other->set_observer(&second);
  generate(*one, {request(random_prompt(3, 1), 4)});
  generate(*other, {request(random_prompt(3, 1), 4)});
  for (const auto& [id, book] : first.books) EXPECT_EQ(second.books.count(id), 0u);
}

}  // namespace
}  // namespace ridge
