#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu/judge/suite_judge.hpp"

namespace busbar::gpu {
namespace {

using journal::SuiteResult;

// Three tests, five metrics, over `count` trays of 4 GPUs.
class suite_judge : public ::testing::Test {
 protected:
  suite_judge() {
    suite_.set_name("node-quick");
    auto* diag = add_test("diag", "diagnostics");
    add_rule(diag, "ecc_uncorrected", "count")->mutable_max()->insert({"", 0});
    add_rule(diag, "pcie_width", "lanes")->set_equal("16");
    auto* hbm = add_test("hbm", "memory_copy");
    auto* rate = add_rule(hbm, "hbm_copy", "GB/s");
    rate->mutable_min()->insert({"vr-nvl72", 15000});
    rate->mutable_min()->insert({"reference", 0.1});
    auto* burn = add_test("burn", "matrix_burn");
    add_rule(burn, "gpu_temperature", "Cel")->mutable_max()->insert({"", 87});
    add_rule(burn, "result_hash", "")->set_equal("golden");
  }

  journal::SuiteTest* add_test(const std::string& name, const std::string& probe) {
    auto* test = suite_.add_tests();
    test->set_name(name);
    test->set_probe(probe);
    return test;
  }
  static journal::MetricRule* add_rule(journal::SuiteTest* test, const std::string& name,
                                       const std::string& unit) {
    auto* rule = test->add_metrics();
    rule->set_name(name);
    rule->set_unit(unit);
    return rule;
  }

  // A run in which everything is as it should be.
  judge_request healthy(int trays) {
    judge_request request;
    request.suite = &suite_;
    request.run_id = "run-1";
    request.gpus_per_member = 4;
    for (int tray = 1; tray <= trays; ++tray) {
      const std::string member = "r01/c" + std::to_string(tray);
      request.members.push_back(member);
      request.limits[member] = "vr-nvl72";
      for (std::uint32_t gpu = 0; gpu < 4; ++gpu) {
        request.measured.push_back({member, "diag", gpu, "ecc_uncorrected", 0.0, "", "count", true});
        request.measured.push_back({member, "diag", gpu, "pcie_width", 16.0, "", "lanes", true});
        request.measured.push_back({member, "hbm", gpu, "hbm_copy", 16300.0, "", "GB/s", true});
        request.measured.push_back({member, "burn", gpu, "gpu_temperature", 61.5, "", "Cel", true});
        request.measured.push_back(
            {member, "burn", gpu, "result_hash", std::nullopt, "c6330a1df9039cf7", "", true});
      }
    }
    return request;
  }

  static measurement& find(judge_request& request, const std::string& metric, const std::string& member,
                           std::uint32_t gpu) {
    for (auto& one : request.measured) {
      if (one.metric == metric && one.member == member && one.gpu == gpu) return one;
    }
    ADD_FAILURE() << "no such measurement";
    return request.measured.front();
  }

  static void expect_one(const judgement& judged, SuiteResult::Verdict verdict, const std::string& metric,
                         const std::string& member, std::uint32_t gpu) {
    EXPECT_EQ(judged.result.verdict(), verdict);
    ASSERT_EQ(judged.result.failures_size(), 1) << judged.result.DebugString();
    EXPECT_EQ(judged.result.failures(0).metric(), metric);
    EXPECT_EQ(judged.result.failures(0).member(), member);
    EXPECT_EQ(judged.result.failures(0).gpu(), gpu);
    EXPECT_FALSE(judged.result.failures(0).passed());
    EXPECT_FALSE(judged.result.failures(0).limit().empty());
  }

  journal::Suite suite_;
};

TEST_F(suite_judge, passes_a_whole_run_within_its_limits) {
  const auto judged = judge(healthy(18));
  EXPECT_EQ(judged.result.verdict(), SuiteResult::PASS);
  EXPECT_EQ(judged.result.expected(), 18u * 4 * 5);
  EXPECT_EQ(judged.result.results(), 18u * 4 * 5);
  EXPECT_EQ(judged.result.failures_size(), 0);
  EXPECT_EQ(judged.rows.size(), 18u * 4 * 5);
  EXPECT_EQ(judged.result.members_size(), 18);
  EXPECT_EQ(judged.result.suite(), "node-quick");
  EXPECT_EQ(judged.result.run_id(), "run-1");
}

TEST_F(suite_judge, calls_seventeen_of_eighteen_machines_incomplete) {
  auto request = healthy(17);
  request.members.push_back("r01/c18");
  request.limits["r01/c18"] = "vr-nvl72";
  const auto judged = judge(request);
  EXPECT_EQ(judged.result.verdict(), SuiteResult::INCOMPLETE);
  EXPECT_EQ(judged.result.results(), 17u * 4 * 5);
  EXPECT_EQ(judged.result.expected(), 18u * 4 * 5);
  ASSERT_EQ(judged.result.failures_size(), 4 * 5);
  for (const auto& row : judged.result.failures()) EXPECT_EQ(row.member(), "r01/c18");
}

TEST_F(suite_judge, never_passes_nothing) {
  EXPECT_EQ(judge({}).result.verdict(), SuiteResult::INCOMPLETE);
  auto no_members = healthy(0);
  EXPECT_EQ(judge(no_members).result.verdict(), SuiteResult::INCOMPLETE);
  auto no_results = healthy(1);
  no_results.measured.clear();
  EXPECT_EQ(judge(no_results).result.verdict(), SuiteResult::INCOMPLETE);
  EXPECT_EQ(judge(no_results).result.failures_size(), 4 * 5);
  auto no_gpus = healthy(1);
  no_gpus.gpus_per_member = 0;
  no_gpus.measured.clear();
  EXPECT_EQ(judge(no_gpus).result.verdict(), SuiteResult::INCOMPLETE);
  journal::Suite empty;
  judge_request nothing_asked = {&empty, "run-1", {"r01/c1"}, 4, {{"r01/c1", "vr-nvl72"}}, {}};
  EXPECT_EQ(judge(nothing_asked).result.verdict(), SuiteResult::INCOMPLETE);
}

TEST_F(suite_judge, never_passes_a_test_without_a_metric) {
  auto request = healthy(1);
  add_test("nothing", "training");
  EXPECT_EQ(judge(request).result.verdict(), SuiteResult::INCOMPLETE);
}

TEST_F(suite_judge, names_a_value_outside_its_limit) {
  auto request = healthy(2);
  find(request, "hbm_copy", "r01/c2", 3).value = 14999.9;
  const auto judged = judge(request);
  expect_one(judged, SuiteResult::FAIL, "hbm_copy", "r01/c2", 3);
  EXPECT_EQ(judged.result.failures(0).limit(), ">= 15000");
  EXPECT_DOUBLE_EQ(judged.result.failures(0).value(), 14999.9);
  EXPECT_EQ(judged.result.failures(0).unit(), "GB/s");
  EXPECT_EQ(judged.result.results(), judged.result.expected());
}

TEST_F(suite_judge, holds_the_limit_itself_to_be_within) {
  auto request = healthy(1);
  find(request, "hbm_copy", "r01/c1", 0).value = 15000.0;
  find(request, "gpu_temperature", "r01/c1", 0).value = 87.0;
  EXPECT_EQ(judge(request).result.verdict(), SuiteResult::PASS);
  find(request, "gpu_temperature", "r01/c1", 0).value = std::nextafter(87.0, 100.0);
  expect_one(judge(request), SuiteResult::FAIL, "gpu_temperature", "r01/c1", 0);
}

TEST_F(suite_judge, never_passes_a_value_that_is_no_number) {
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    auto request = healthy(1);
    find(request, "hbm_copy", "r01/c1", 2).value = value;
    const auto judged = judge(request);
    expect_one(judged, SuiteResult::INCOMPLETE, "hbm_copy", "r01/c1", 2);
    EXPECT_FALSE(judged.result.failures(0).has_value());
  }
}

TEST_F(suite_judge, never_passes_a_missing_result_or_value) {
  auto request = healthy(1);
  std::erase_if(request.measured,
                [](const measurement& one) { return one.metric == "ecc_uncorrected" && one.gpu == 1; });
  expect_one(judge(request), SuiteResult::INCOMPLETE, "ecc_uncorrected", "r01/c1", 1);
  request = healthy(1);
  find(request, "ecc_uncorrected", "r01/c1", 1).value.reset();
  expect_one(judge(request), SuiteResult::INCOMPLETE, "ecc_uncorrected", "r01/c1", 1);
}

TEST_F(suite_judge, never_passes_a_result_given_twice_even_if_equal) {
  auto request = healthy(1);
  request.measured.push_back(find(request, "pcie_width", "r01/c1", 0));
  expect_one(judge(request), SuiteResult::INCOMPLETE, "pcie_width", "r01/c1", 0);
}

TEST_F(suite_judge, never_passes_what_the_engine_does_not_vouch_for) {
  auto request = healthy(1);
  find(request, "gpu_temperature", "r01/c1", 0).good = false;
  expect_one(judge(request), SuiteResult::INCOMPLETE, "gpu_temperature", "r01/c1", 0);
}

TEST_F(suite_judge, never_passes_a_text_for_a_number_nor_a_number_for_a_text) {
  auto request = healthy(1);
  auto& width = find(request, "pcie_width", "r01/c1", 0);
  width.value.reset();
  width.text = "16";
  expect_one(judge(request), SuiteResult::INCOMPLETE, "pcie_width", "r01/c1", 0);
  request = healthy(1);
  auto& rate = find(request, "hbm_copy", "r01/c1", 0);
  rate.value.reset();
  rate.text = "16300";
  expect_one(judge(request), SuiteResult::INCOMPLETE, "hbm_copy", "r01/c1", 0);
  request = healthy(1);
  auto& hash = find(request, "result_hash", "r01/c1", 0);
  hash.value = 7;
  expect_one(judge(request), SuiteResult::INCOMPLETE, "result_hash", "r01/c1", 0);
}

TEST_F(suite_judge, never_passes_another_unit) {
  auto request = healthy(1);
  find(request, "hbm_copy", "r01/c1", 0).unit = "GiB/s";
  expect_one(judge(request), SuiteResult::INCOMPLETE, "hbm_copy", "r01/c1", 0);
}

TEST_F(suite_judge, never_passes_a_metric_without_a_limit_for_these_limits) {
  auto request = healthy(1);
  request.limits["r01/c1"] = "vr-unknown";
  const auto judged = judge(request);
  EXPECT_EQ(judged.result.verdict(), SuiteResult::INCOMPLETE);
  EXPECT_EQ(judged.result.failures_size(), 4);
  EXPECT_NE(judged.result.failures(0).limit().find("vr-unknown"), std::string::npos);
  request.limits.clear();
  EXPECT_EQ(judge(request).result.verdict(), SuiteResult::INCOMPLETE);
}

TEST_F(suite_judge, never_passes_a_metric_without_any_rule) {
  auto request = healthy(1);
  suite_.mutable_tests(0)->mutable_metrics(0)->clear_max();
  EXPECT_EQ(judge(request).result.verdict(), SuiteResult::INCOMPLETE);
}

TEST_F(suite_judge, never_passes_results_that_were_not_asked_for) {
  for (const auto& stray : {measurement{"r01/c9", "diag", 0, "pcie_width", 16.0, "", "lanes", true},
                            measurement{"r01/c1", "diag", 4, "pcie_width", 16.0, "", "lanes", true},
                            measurement{"r01/c1", "diag", 0, "unheard_of", 1.0, "", "", true},
                            measurement{"r01/c1", "other", 0, "pcie_width", 16.0, "", "lanes", true}}) {
    auto request = healthy(1);
    request.measured.push_back(stray);
    expect_one(judge(request), SuiteResult::INCOMPLETE, stray.metric, stray.member, stray.gpu);
  }
}

TEST_F(suite_judge, never_passes_a_member_declared_twice) {
  auto request = healthy(1);
  request.members.push_back("r01/c1");
  EXPECT_NE(judge(request).result.verdict(), SuiteResult::PASS);
}

TEST_F(suite_judge, judges_each_member_by_its_own_limits) {
  auto request = healthy(2);
  request.limits["r01/c2"] = "reference";
  for (std::uint32_t gpu = 0; gpu < 4; ++gpu) find(request, "hbm_copy", "r01/c2", gpu).value = 3.0;
  EXPECT_EQ(judge(request).result.verdict(), SuiteResult::PASS);
  request.limits["r01/c1"] = "reference";
  find(request, "hbm_copy", "r01/c1", 0).value = 0.0;
  expect_one(judge(request), SuiteResult::FAIL, "hbm_copy", "r01/c1", 0);
}

TEST_F(suite_judge, fails_another_hash_than_the_golden_one) {
  auto request = healthy(1);
  find(request, "result_hash", "r01/c1", 2).text = "c6330a1df9039cf8";
  expect_one(judge(request), SuiteResult::FAIL, "result_hash", "r01/c1", 2);
}

TEST_F(suite_judge, decides_nothing_by_a_golden_value_it_does_not_hold) {
  auto request = healthy(1);
  suite_.mutable_tests(2)->mutable_parameters()->insert({"size", "77"});
  const auto judged = judge(request);
  EXPECT_EQ(judged.result.verdict(), SuiteResult::INCOMPLETE);
  EXPECT_EQ(judged.result.failures_size(), 4);
}

TEST_F(suite_judge, fails_rather_than_calls_incomplete_where_a_bad_value_is_known) {
  auto request = healthy(2);
  find(request, "hbm_copy", "r01/c2", 0).value = 1.0;
  std::erase_if(request.measured, [](const measurement& one) { return one.member == "r01/c1"; });
  const auto judged = judge(request);
  EXPECT_EQ(judged.result.verdict(), SuiteResult::FAIL);
  EXPECT_EQ(judged.result.failures(0).member(), "r01/c2");
  EXPECT_EQ(judged.result.failures_size(), 1 + 4 * 5);
}

TEST_F(suite_judge, writes_the_same_evidence_for_results_in_another_order) {
  auto request = healthy(2);
  const std::string first = evidence_text(judge(request));
  std::reverse(request.measured.begin(), request.measured.end());
  EXPECT_EQ(evidence_text(judge(request)), first);
  EXPECT_NE(first.find("\"verdict\":\"PASS\""), std::string::npos);
  find(request, "hbm_copy", "r01/c2", 0).value = 1.0;
  EXPECT_NE(evidence_text(judge(request)), first);
}

}  // namespace
}  // namespace busbar::gpu
