// What of the CUDA runtime needs no GPU.

#include <gtest/gtest.h>

#include "runtime/cuda/fault_text.h"
#include "runtime/cuda/usable_gpu.h"

namespace ridge {
namespace {

TEST(UsableGpu, one_of_another_architecture_is_declined_by_name) {
  struct Card {
    const char* name;
    int major, minor;
  };
  for (const Card& c :
       {Card{"NVIDIA A100-SXM4-80GB", 8, 0}, Card{"NVIDIA L4", 8, 9}, Card{"NVIDIA B200", 10, 0},
        Card{"NVIDIA GeForce RTX 5090", 12, 0}, Card{"a card of 9.1", 9, 1}}) {
    const Status s = usable_gpu(c.name, c.major, c.minor);
    EXPECT_EQ(s.code(), Code::kDeclined) << c.name;
    for (const std::string& part :
         {std::string(c.name), text("capability ", c.major, ".", c.minor), std::string("need 9.0")})
      EXPECT_NE(s.message().find(part), std::string::npos) << s.message();
  }
}

TEST(UsableGpu, one_of_the_kernels_architecture_is_taken) {
  for (const char* name : {"NVIDIA H100 80GB HBM3", "NVIDIA H200"}) EXPECT_TRUE(usable_gpu(name, 9, 0).ok());
}

TEST(Faults, each_names_operand_place_value_and_range) {
  const auto says = [](FaultKind kind, int64_t row, int64_t column, int64_t value, int64_t least,
                       int64_t most) {
    Fault f;
    f.kind = kind, f.row = row, f.column = column, f.value = value, f.least = least, f.most = most;
    return fault_text(f);
  };
  EXPECT_EQ(says(FaultKind::kPage, 1, 2, 99, 0, 5),
            "page_table[1, 2] is 99, needs 0 to 5: the pages of the cache");
  EXPECT_EQ(says(FaultKind::kSlot, 3, 0, -2, -1, 63),
            "slots[3] is -2, needs -1 to 63: the places of the cache, or -1 for none");
  EXPECT_NE(says(FaultKind::kLength, 0, 0, 49, 0, 48).find("kv_length[0] is 49, needs 0 to 48"),
            std::string::npos);
  EXPECT_NE(says(FaultKind::kQueryRows, 4, 0, 7, 0, 6).find("query_start[4] is 7"), std::string::npos);
  EXPECT_NE(says(FaultKind::kPosition, 5, 0, -1, 0, kMostPosition).find("positions[5] is -1"),
            std::string::npos);
}

}  // namespace
}  // namespace ridge
