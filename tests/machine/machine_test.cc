// The machine file: it returns what was saved, and one of another processor, build or version is refused.

#include "machine/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>

#include "base/files.h"
#include "machine/plausible.h"

namespace ridge {
namespace {

Machine small() {
  Machine m;
  m.cpu = "A", m.isa = "avx2", m.build = "b", m.cores = 2;
  for (const int threads : {1, 4}) {
    ThreadCeilings c;
    c.threads = threads;
    c.curve = {{1 << 15, 100, 50, 60}, {1 << 29, 20, 10, 12}};
    c.pieces = {{1 << 14, 9}, {1 << 24, 18}};
    c.flops[size_t(Engine::kF32)] = 1e11 * (threads == 1 ? 1 : 3);
    m.by_threads.push_back(c);
  }
  m.kernels = {{"linear", "linear_x", "q4_1", {1, 512}, {{1000, 2}, {3000, 4}}, 0.25, 0.5},
               {"linear", "linear_x", "q4_1", {128, 512}, {{1e6, 100}}},
               {"linear", "linear_y", "i8 q4_1", {1, 512}, {{1000, 1}}}};
  return m;
}

class MachineFile : public testing::Test {
 protected:
  std::string path_ = text(testing::TempDir(), "/machine-", getpid(), ".json");
  void SetUp() override { ASSERT_TRUE(save_machine(path_, small()).ok()); }
  void TearDown() override { std::remove(path_.c_str()); }
  Status load(const MachineIdentity& expected) { return load_machine(path_, expected).status(); }
};

TEST_F(MachineFile, returns_what_was_saved) {
  const auto loaded = load_machine(path_, {"A", "avx2", "b"});
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  ASSERT_EQ(loaded->by_threads.size(), 2u);
  EXPECT_EQ(loaded->by_threads[1].threads, 4);
  EXPECT_EQ(loaded->by_threads[0].curve[1].bytes, 1 << 29);
  EXPECT_EQ(loaded->by_threads[0].flops[0], 1e11);
  ASSERT_EQ(loaded->kernels.size(), 3u);
  EXPECT_EQ(loaded->kernels[0].formats, "q4_1");
  EXPECT_EQ(loaded->kernels[0].dims, (std::vector<int64_t>{1, 512}));
  ASSERT_EQ(loaded->kernels[0].points.size(), 2u);
  EXPECT_EQ(loaded->kernels[0].points[1].work, 3000);
  EXPECT_EQ(loaded->kernels[0].points[1].us, 4);
  EXPECT_EQ(loaded->kernels[0].start_us, 0.25);
  EXPECT_EQ(loaded->kernels[0].exposed, 0.5);
  EXPECT_EQ(nearest_pace(*loaded, {"linear", "linear_x", "q4_1", {1, 600}}), &loaded->kernels[0]);
  EXPECT_EQ(nearest_pace(*loaded, {"linear", "linear_x", "q5_0", {1, 600}}), nullptr);
}

TEST_F(MachineFile, of_another_processor_set_build_or_version_is_refused) {
  EXPECT_EQ(load({"B", "avx2", "b"}).code(), Code::kDeclined);
  EXPECT_EQ(load({"A", "avx512", "b"}).code(), Code::kDeclined);
  EXPECT_EQ(load({"A", "avx2", "c"}).code(), Code::kDeclined);
  // A file as it was before kernels had a pace: its rates were another thing.
  const std::string content = *read_file(path_, 1 << 20);
  const size_t at = content.find("\"format\": 4,");
  ASSERT_NE(at, std::string::npos);
  std::ofstream(path_) << (std::string(content).erase(at, 12));
  const Status s = load({"A", "avx2", "b"});
  EXPECT_EQ(s.code(), Code::kDeclined);
  EXPECT_NE(s.message().find("run 'ridge probe' again"), std::string::npos) << s.message();
}

TEST_F(MachineFile, that_is_none_is_corrupt) {
  std::ofstream(path_) << "{\"format\": 4, \"cpu\": 3}";
  EXPECT_EQ(load({"A", "avx2", "b"}).code(), Code::kCorrupt);
  std::ofstream(path_) << "{\"format\": \"new\"}";
  EXPECT_EQ(load({"A", "avx2", "b"}).code(), Code::kCorrupt);
  std::ofstream(path_) << "[]";
  EXPECT_EQ(load({"A", "avx2", "b"}).code(), Code::kCorrupt);
}

TEST(Pace, is_a_line_between_and_beyond_the_points) {
  const Machine m = small();
  const PaceQuery q{"linear", "linear_x", "q4_1", {1, 512}};
  EXPECT_DOUBLE_EQ(kernel_us(m, q, 1000, 1), 2);
  EXPECT_DOUBLE_EQ(kernel_us(m, q, 2000, 1), 3);
  EXPECT_DOUBLE_EQ(kernel_us(m, q, 5000, 1), 6);
  EXPECT_DOUBLE_EQ(kernel_us(m, q, 500, 1), 1.5);  // 1 of it is the call's fixed part
  EXPECT_EQ(kernel_us(m, q, 0, 1), 0);
  // One point alone: time goes with the work.
  EXPECT_DOUBLE_EQ(kernel_us(m, {"linear", "linear_x", "q4_1", {128, 512}}, 5e5, 1), 50);
}

TEST(Pace, is_that_of_the_nearest_dims_of_the_same_kernel_and_formats) {
  const Machine m = small();
  EXPECT_DOUBLE_EQ(kernel_us(m, {"linear", "linear_x", "q4_1", {64, 600}}, 1e6, 1), 100);
  EXPECT_DOUBLE_EQ(kernel_us(m, {"linear", "", "i8 q4_1", {7, 512}}, 1000, 1), 1);
  EXPECT_EQ(kernel_us(m, {"linear", "linear_x", "i8 q4_1", {1, 512}}, 1000, 1), 0);
  EXPECT_EQ(kernel_us(m, {"linear", "linear_x", "q8_0", {1, 512}}, 1000, 1), 0);
  EXPECT_EQ(kernel_us(m, {"linear", "linear_x", "q4_1", {1}}, 1000, 1), 0);
  EXPECT_EQ(kernel_us(m, {"rope", "linear_x", "q4_1", {1, 512}}, 1000, 1), 0);
}

TEST(Pace, of_larger_dims_pays_the_fixed_part_as_often) {
  // 4 tokens of 512: four calls of 500, each 1 and 0.5.
  EXPECT_DOUBLE_EQ(kernel_us(small(), {"linear", "linear_x", "q4_1", {4, 512}}, 2000, 1), 6);
  // Half as wide: half of the fixed part.
  EXPECT_DOUBLE_EQ(kernel_us(small(), {"linear", "linear_x", "q4_1", {1, 256}}, 1000, 1), 1.5);
}

TEST(Pace, of_several_threads_is_as_much_faster_as_their_arithmetic) {
  EXPECT_DOUBLE_EQ(kernel_us(small(), {"linear", "linear_x", "q4_1", {1, 512}}, 1000, 4), 2.0 / 3);
}

TEST(Pace, a_fixed_part_below_nothing_is_not_believed) {
  Machine m = small();
  m.kernels = {{"rope", "r", "", {}, {{100, 1}, {200, 4}}}};
  EXPECT_DOUBLE_EQ(kernel_us(m, {"rope", "r", "", {}}, 50, 1), 0.5);
  m.kernels[0].points = {{100, 4}, {200, 3}};  // more work in less time: noise
  EXPECT_DOUBLE_EQ(kernel_us(m, {"rope", "r", "", {}}, 400, 1), 4);
}

TEST_F(MachineFile, a_figure_that_no_machine_has_is_refused_by_field_and_value) {
  const struct {
    void (*break_it)(Machine*);
    const char* says;
  } cases[] = {
      {[](Machine* m) { m->by_threads[0].curve[1].read = -3; }, "by_threads[0].bandwidth_gbs[1].read is -3"},
      {[](Machine* m) { m->by_threads[1].curve[0].copy = 1e300; },
       "by_threads[1].bandwidth_gbs[0].copy is 1e+300"},
      {[](Machine* m) { m->by_threads[0].curve[1].bytes = 1 << 15; }, "not above 32768"},
      {[](Machine* m) { m->by_threads[0].flops[size_t(Engine::kF32)] = -1; },
       "by_threads[0].flops.f32 is -1"},
      {[](Machine* m) { m->by_threads[0].barrier_us = -3; }, "barrier_us is -3"},
      {[](Machine* m) { m->by_threads[0].threads = 0; }, "by_threads[0].threads is 0"},
      {[](Machine* m) { m->by_threads[1].threads = 1; }, "by_threads[1].threads is 1"},
      {[](Machine* m) { m->by_threads[0].pieces[0].read = 0; }, "piece_read_gbs[0].read is 0"},
      {[](Machine* m) { m->kernels[1].points[0].us = -1; }, "kernels[1].points[0].us is -1"},
      {[](Machine* m) { m->kernels[0].start_us = -2; }, "kernels[0].start_us is -2"},
      {[](Machine* m) { m->kernels[0].exposed = 1.5; }, "kernels[0].exposed is 1.5"},
  };
  for (const auto& c : cases) {
    Machine m = small();
    c.break_it(&m);
    ASSERT_TRUE(save_machine(path_, m).ok());
    const Status refused = load({"A", "avx2", "b"});
    EXPECT_EQ(refused.code(), Code::kCorrupt) << c.says;
    EXPECT_NE(refused.message().find(c.says), std::string::npos) << refused.message();
  }
}

TEST(MachineProbe, shows_when_it_did_not_have_the_machine_to_itself) {
  Machine m = small();
  EXPECT_EQ(disturbed(m), "");
  m.pressure = 0.05;
  EXPECT_EQ(disturbed(m), "");
  m.pressure = 0.4;
  EXPECT_NE(disturbed(m).find("40 %"), std::string::npos);
  m = small();
  m.seconds = 39;
  EXPECT_EQ(disturbed(m), "");
  m.seconds = 47;  // where the kernel does not tell who waited
  EXPECT_NE(disturbed(m).find("took 47 s"), std::string::npos);
  m = small();
  m.by_threads[1].flops[size_t(Engine::kF32)] = 0.5e11;  // four threads with half of what one has
  EXPECT_NE(disturbed(m).find("4 threads"), std::string::npos);
}

}  // namespace
}  // namespace ridge
