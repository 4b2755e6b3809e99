// The reference probes against arithmetic done another way, and the golden table against the probes.
#include <gtest/gtest.h>

#include <limits>

#include "gpu/judge/golden_table.hpp"
#include "gpu/probe/numbers.hpp"
#include "gpu/probe/reference.hpp"

namespace busbar::probe {
namespace {

TEST(reference_numbers, agree_with_the_golden_table) {
  EXPECT_EQ(gpu::golden_text("reference", "matrix_burn", "result_hash", {}), multiply_and_hash(96, 1));
  EXPECT_EQ(gpu::golden_text("vr-nvl72", "matrix_burn", "result_hash", {{"size", "96"}}),
            multiply_and_hash(96, 1));
  EXPECT_EQ(gpu::golden_text("reference", "training", "loss_curve", {}), train(1, 200).curve_hash);
  EXPECT_FALSE(gpu::golden_text("reference", "training", "loss_curve", {{"seed", "2"}}).has_value());
  EXPECT_FALSE(gpu::golden_text("reference", "matrix_burn", "loss_curve", {}).has_value());
}

TEST(reference_numbers, multiply_as_the_schoolbook_does) {
  constexpr std::uint32_t n = 13;
  sequence source(5);
  std::vector<std::int8_t> a(n * n);
  std::vector<std::int8_t> b(n * n);
  for (auto& value : a) value = static_cast<std::int8_t>(source.next() & 0xff);
  for (auto& value : b) value = static_cast<std::int8_t>(source.next() & 0xff);
  result_hash hash;
  for (std::uint32_t i = 0; i < n; ++i) {
    for (std::uint32_t j = 0; j < n; ++j) {
      std::int64_t sum = 0;
      for (std::uint32_t k = 0; k < n; ++k) sum += std::int64_t{a[i * n + k]} * b[k * n + j];
      hash.add(static_cast<std::uint32_t>(static_cast<std::int32_t>(sum)));
    }
  }
  EXPECT_EQ(multiply_and_hash(n, 5), hash.hex());
  EXPECT_NE(multiply_and_hash(n, 6), hash.hex());
}

TEST(reference_numbers, learn_and_differ_by_seed) {
  const auto first = train(1, 200);
  EXPECT_GT(first.loss_at_200, 0);
  EXPECT_LT(first.loss_at_200, 2.1);
  EXPECT_NE(first.curve_hash, train(2, 200).curve_hash);
  EXPECT_NE(first.curve_hash, train(1, 201).curve_hash);
}

TEST(reference_numbers, exchange_to_the_right_result_on_every_rank) {
  for (const auto operation :
       {ring_operation::all_reduce, ring_operation::reduce_scatter, ring_operation::all_gather}) {
    for (const std::uint32_t ranks : {1u, 2u, 4u, 7u}) {
      const auto outcome = run_ring(operation, ranks, 1000, 3);
      ASSERT_EQ(outcome.wrong.size(), ranks);
      for (const auto wrong : outcome.wrong) EXPECT_EQ(wrong, 0u);
    }
  }
}

struct collected {
  std::vector<result> rows;
  std::string error;
};

collected run(request asked) {
  collected out;
  out.error = run_reference(asked, {[&out](const result& one) { out.rows.push_back(one); }, [](double) {}});
  return out;
}

TEST(reference_engine, reports_every_metric_once_for_every_device) {
  const std::map<std::string, std::size_t> metrics = {{"diagnostics", 2}, {"memory_copy", 1},
                                                      {"host_device", 1}, {"matrix_burn", 2},
                                                      {"training", 2},    {"collective", 3}};
  for (const auto& probe : reference_probes()) {
    request asked;
    asked.probe = probe;
    asked.gpus = 2;
    asked.parameters = probe == "memory_copy" || probe == "host_device"
                           ? std::map<std::string, std::string>{{"bytes", "65536"}}
                           : std::map<std::string, std::string>{};
    const auto out = run(asked);
    EXPECT_EQ(out.error, "") << probe;
    EXPECT_EQ(out.rows.size(), 2 * metrics.at(probe)) << probe;
  }
}

TEST(reference_engine, reports_only_what_was_asked_for) {
  request asked;
  asked.probe = "matrix_burn";
  asked.metrics = {"result_hash"};
  const auto out = run(asked);
  ASSERT_EQ(out.rows.size(), 1u);
  EXPECT_EQ(out.rows[0].text, multiply_and_hash(96, 1));
}

TEST(reference_engine, refuses_what_it_cannot_do) {
  request asked;
  asked.probe = "warp_drive";
  EXPECT_NE(run(asked).error, "");
  asked.probe = "matrix_burn";
  asked.parameters = {{"size", "many"}};
  EXPECT_NE(run(asked).error, "");
  asked.probe = "collective";
  asked.parameters = {{"operation", "all_to_none"}};
  EXPECT_NE(run(asked).error, "");
  asked.parameters = {{"operation", "all_gather"}};
  EXPECT_EQ(run(asked).error, "");
  asked.gpus = 4;
  asked.size = 72;
  EXPECT_NE(run(asked).error, "");
  EXPECT_TRUE(run(asked).rows.empty());
}

TEST(probe_request, is_read_strictly) {
  std::string error;
  EXPECT_TRUE(parse_request(
      R"({"probe":"training","duration_s":1.5,"gpus":4,"metrics":["a"],"parameters":{"seed":"1"}})", &error));
  for (const char* wrong :
       {"", "[]", "{}", "null", R"({"probe":1})", R"({"probe":"a","gpus":0})", R"({"probe":"a","gpus":-1})",
        R"({"probe":"a","duration_s":"1"})", R"({"probe":"a","parameters":{"x":1}})",
        R"({"probe":"a","unknown":1})", R"({"probe":"a"} trailing)"}) {
    EXPECT_FALSE(parse_request(wrong, &error)) << wrong;
  }
}

TEST(probe_result, never_shows_a_number_that_is_none_as_good) {
  EXPECT_EQ(to_line({0, "rate", 0.0 / 1.0, "", "GB/s"}),
            "{\"gpu\":0,\"metric\":\"rate\",\"quality\":\"good\",\"unit\":\"GB/s\",\"value\":0.0}\n");
  const auto line = to_line({0, "rate", std::numeric_limits<double>::quiet_NaN(), "", "GB/s"});
  EXPECT_EQ(line.find("value"), std::string::npos);
  EXPECT_NE(line.find("\"quality\":\"bad\""), std::string::npos);
}

}  // namespace
}  // namespace busbar::probe
