// The book of prices says of every call of every step what its description says.

#include "lab/price_book.h"

#include "engine/generate.h"

namespace ridge {
namespace {

/// Compares a book kept over steps with the descriptions, after each step.
struct Comparison final : StepObserver {
  void on_step(const StepFacts&, const StepPlan& plan) override {
    PriceBook& book = books.try_emplace(plan.id(), plan).first->second;
    for (size_t i = 0; i < plan.calls().size(); ++i) {
      const PlannedCall& planned = plan.calls()[i];
      PriceBook::Group& priced = book.price(plan, i);
      EXPECT_EQ(*priced.cost, plan.cost(i)) << planned.call.label;
      EXPECT_EQ(priced.shape, planned.call.op->shape(planned.call.args.get()));
      EXPECT_EQ(priced.kernel, planned.call.op->kernel_name(planned.selection));
      const CallName& name = *book.name_of(plan, i, priced);
      EXPECT_EQ(name.label, planned.call.label);
      EXPECT_EQ(name.op, planned.call.op->name());
      EXPECT_EQ(name.shape, priced.shape);
      EXPECT_EQ(name.kernel, priced.kernel);
      ++calls;
      fresh += priced.row == PriceBook::kNone;
      priced.row = 0;
    }
    ++steps;
  }
  void on_stage(int64_t, Stage, int64_t, int64_t) override {}
  std::map<uint64_t, PriceBook> books;
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
