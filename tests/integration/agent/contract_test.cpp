// What a rack daemon may rely on, whoever answers: the agent's own program with the reference engine, and the
// simulator's agents with their model. A node suite goes over the wire and is judged.
#include <gtest/gtest.h>

#include "daemon/agent/child_engine.hpp"
#include "daemon/sim/agent_face.hpp"
#include "gpu/judge/agent_results.hpp"
#include "tests/integration/agent/gate_fixture.hpp"

namespace busbar::test {
namespace {

using kind = agent_event::kind;

constexpr std::uint32_t gpus = 4;

// An agent of one kind, on a tray that the test calls into being.
class agent_maker {
 public:
  virtual ~agent_maker() = default;
  virtual void boot(const std::string& member, const std::string& token, const std::string& endpoint) = 0;
  virtual void lose_power(const std::string& member) = 0;
  virtual std::string limits() const = 0;
};

class reference_maker final : public agent_maker {
 public:
  void boot(const std::string& member, const std::string& token, const std::string& endpoint) override {
    std::vector<std::string> problems;
    agent_client::agent_options options;
    options.endpoint = endpoint;
    options.token = token;
    options.boot_id = "boot";
    options.dmi_serial = "SN-" + member;
    options.limits = limits();
    options.first_wait = std::chrono::milliseconds(5);
    agents_[member] = std::make_unique<agent_client::agent_client>(
        loop_, options, agent_client::child_engine::open_all(BUSBAR_PROGRAM_FOLDER, gpus, &problems),
        nullptr);
    agents_[member]->start();
    EXPECT_TRUE(problems.empty());
  }
  void lose_power(const std::string& member) override { agents_.erase(member); }
  std::string limits() const override { return "reference"; }

 private:
  agent_client::event_loop loop_;
  std::map<std::string, std::unique_ptr<agent_client::agent_client>> agents_;
};

class model_maker final : public agent_maker {
 public:
  model_maker() {
    sim::agent_services services;
    services.measure = [](const std::string&, int, const std::string&, const std::string& metric) {
      sim::performance seen;
      if (metric == "ecc_uncorrected") seen = {0.0, "", "count"};
      if (metric == "pcie_width") seen = {16.0, "", "lanes"};
      if (metric == "hbm_copy") seen = {16304.0, "", "GB/s"};
      if (metric == "h2d") seen = {196.0, "", "GB/s"};
      if (metric == "gpu_temperature") seen = {61.0, "", "Cel"};
      if (metric == "loss_at_200") seen = {1.92, "", "1"};
      if (metric == "result_hash" || metric == "loss_curve") seen.text = "golden";
      return seen;
    };
    services.set_load = [](const std::string&, double) {};
    services.dmi_serial = [](const std::string& member) { return "SN-" + member; };
    services.gpu_serials = [](const std::string&) {
      return std::vector<std::string>{"g0", "g1", "g2", "g3"};
    };
    services.silent = [](const std::string&) { return false; };
    services.endpoint = [](const std::string&) { return std::string(); };
    services.sku = limits();
    services.gpus = gpus;
    face_ = sim::make_agent_face(services);
  }
  ~model_maker() override { face_->stop(); }
  void boot(const std::string& member, const std::string& token, const std::string& endpoint) override {
    face_->host_booted(member, "https://images.site/staging-1.efi?token=" + token + "&endpoint=" + endpoint);
  }
  void lose_power(const std::string& member) override { face_->host_off(member); }
  std::string limits() const override { return "vr-nvl72"; }

 private:
  std::unique_ptr<sim::agent_face> face_;
};

struct maker_kind {
  const char* name;
  std::unique_ptr<agent_maker> (*make)();
};

class agent_contract : public gate_test, public ::testing::WithParamInterface<maker_kind> {
 protected:
  agent_contract() {
    open_gate();
    maker_ = GetParam().make();
  }
  ~agent_contract() override { maker_.reset(); }

  agent::Hello boot(const std::string& member) {
    maker_->boot(member, gate_->issue_token(member, "SN-" + member), endpoint());
    const auto event = events_.next();
    EXPECT_EQ(event.what, kind::hello);
    EXPECT_EQ(event.member, member);
    return event.hello;
  }

  static void add_test(journal::Suite& suite, const std::string& name, const std::string& probe,
                       const std::vector<journal::MetricRule>& rules) {
    auto* test = suite.add_tests();
    test->set_name(name);
    test->set_probe(probe);
    test->mutable_duration()->set_nanos(20'000'000);
    for (const auto& rule : rules) *test->add_metrics() = rule;
  }
  static journal::MetricRule rule(const std::string& name, const std::string& unit,
                                  const std::map<std::string, double>& min,
                                  const std::map<std::string, double>& max, const std::string& equal) {
    journal::MetricRule out;
    out.set_name(name);
    out.set_unit(unit);
    out.mutable_min()->insert(min.begin(), min.end());
    out.mutable_max()->insert(max.begin(), max.end());
    out.set_equal(equal);
    return out;
  }
  // The node suite as sites have it.
  static journal::Suite node_suite() {
    journal::Suite suite;
    suite.set_name("node-quick");
    add_test(
        suite, "diag", "diagnostics",
        {rule("ecc_uncorrected", "count", {}, {{"", 0}}, ""), rule("pcie_width", "lanes", {}, {}, "16")});
    add_test(suite, "hbm", "memory_copy",
             {rule("hbm_copy", "GB/s", {{"vr-nvl72", 15000}, {"reference", 0.01}}, {}, "")});
    add_test(suite, "h2d", "host_device",
             {rule("h2d", "GB/s", {{"vr-nvl72", 180}, {"reference", 0.01}}, {}, "")});
    add_test(suite, "burn", "matrix_burn",
             {rule("gpu_temperature", "Cel", {}, {{"", 87}}, ""), rule("result_hash", "", {}, {}, "golden")});
    add_test(suite, "train", "training",
             {rule("loss_at_200", "", {}, {{"", 2.1}}, ""), rule("loss_curve", "", {}, {}, "golden")});
    return suite;
  }

  std::vector<agent::Measurement> run_test(const std::string& member, const journal::SuiteTest& test) {
    auto run = run_of("run-1", test.name(), test.probe());
    *run.mutable_duration() = test.duration();
    for (const auto& metric : test.metrics()) run.add_metrics(metric.name());
    EXPECT_TRUE(gate_->run(member, run));
    std::vector<agent::Measurement> rows;
    auto event = events_.next_result();
    for (; event.what == kind::measurement; event = events_.next_result()) rows.push_back(event.measurement);
    EXPECT_EQ(event.what, kind::test_done);
    EXPECT_TRUE(event.test_done.ok()) << event.test_done.error();
    return rows;
  }

  std::unique_ptr<agent_maker> maker_;
};

TEST_P(agent_contract, says_hello_with_serial_engines_and_limits) {
  const auto hello = boot("r01/c07");
  EXPECT_EQ(hello.dmi_serial(), "SN-r01/c07");
  EXPECT_EQ(hello.limits(), maker_->limits());
  EXPECT_FALSE(hello.boot_id().empty());
  ASSERT_GE(hello.engines_size(), 1);
  EXPECT_EQ(hello.engines(0).sha256().size(), 64u);
}

TEST_P(agent_contract, passes_the_node_suite_with_every_gpu_and_metric) {
  const auto hello = boot("r01/c07");
  const auto suite = node_suite();
  std::map<std::string, std::vector<agent::Measurement>> measured;
  for (const auto& test : suite.tests()) {
    const auto rows = run_test("r01/c07", test);
    EXPECT_EQ(rows.size(), gpus * static_cast<std::size_t>(test.metrics_size())) << test.name();
    measured["r01/c07"].insert(measured["r01/c07"].end(), rows.begin(), rows.end());
  }
  const auto judged =
      gpu::judge_agents(suite, "run-1", {"r01/c07"}, gpus, {{"r01/c07", hello.limits()}}, measured);
  EXPECT_EQ(judged.result.verdict(), journal::SuiteResult::PASS) << judged.result.DebugString();
  EXPECT_EQ(judged.result.results(), 32u);
}

TEST_P(agent_contract, ends_a_run_that_is_cancelled) {
  boot("r01/c07");
  auto run = run_of("run-1", "burn", "matrix_burn");
  run.mutable_duration()->set_seconds(3600);
  run.mutable_deadline()->set_seconds(7200);
  ASSERT_TRUE(gate_->run("r01/c07", run));
  ASSERT_TRUE(gate_->cancel("r01/c07", "run-1"));
  const auto event = events_.next_result();
  ASSERT_EQ(event.what, kind::test_done);
  EXPECT_FALSE(event.test_done.ok());
  EXPECT_EQ(event.test_done.error(), "cancelled");
}

TEST_P(agent_contract, ends_a_test_at_its_deadline_and_takes_the_next) {
  boot("r01/c07");
  auto run = run_of("run-1", "burn", "matrix_burn");
  run.mutable_duration()->set_seconds(3600);
  run.mutable_deadline()->set_seconds(0);
  run.mutable_deadline()->set_nanos(50'000'000);
  ASSERT_TRUE(gate_->run("r01/c07", run));
  const auto event = events_.next_result();
  ASSERT_EQ(event.what, kind::test_done);
  EXPECT_EQ(event.test_done.error(), "the deadline passed");
  EXPECT_EQ(run_test("r01/c07", node_suite().tests(0)).size(), 2 * gpus);
}

TEST_P(agent_contract, refuses_a_probe_nobody_offers) {
  boot("r01/c07");
  ASSERT_TRUE(gate_->run("r01/c07", run_of("run-1", "warp", "warp_drive")));
  const auto event = events_.next_result();
  ASSERT_EQ(event.what, kind::test_done);
  EXPECT_FALSE(event.test_done.ok());
}

TEST_P(agent_contract, is_lost_with_its_host_and_comes_back_with_the_next_boot) {
  const auto first = boot("r01/c07");
  maker_->lose_power("r01/c07");
  EXPECT_EQ(events_.next().what, kind::lost);
  EXPECT_FALSE(gate_->connected("r01/c07"));
  boot("r01/c07");
  EXPECT_TRUE(gate_->connected("r01/c07"));
}

TEST_P(agent_contract, runs_eighteen_trays_at_once) {
  for (int i = 1; i <= 18; ++i) boot("r01/c" + std::to_string(i));
  const auto test = node_suite().tests(0);
  for (int i = 1; i <= 18; ++i) {
    auto run = run_of("run-1", test.name(), test.probe());
    *run.mutable_duration() = test.duration();
    for (const auto& metric : test.metrics()) run.add_metrics(metric.name());
    ASSERT_TRUE(gate_->run("r01/c" + std::to_string(i), run));
  }
  std::map<std::string, int> rows;
  int done = 0;
  while (done < 18) {
    const auto event = events_.next_result();
    if (event.what == kind::test_done) {
      EXPECT_TRUE(event.test_done.ok()) << event.test_done.error();
      ++done;
    } else {
      ASSERT_EQ(event.what, kind::measurement);
      ++rows[event.member];
    }
  }
  EXPECT_EQ(rows.size(), 18u);
  for (const auto& [member, count] : rows) EXPECT_EQ(count, 8) << member;
}

INSTANTIATE_TEST_SUITE_P(
    engines, agent_contract,
    ::testing::Values(maker_kind{"reference",
                                 [] { return std::unique_ptr<agent_maker>(new reference_maker); }},
                      maker_kind{"model", [] { return std::unique_ptr<agent_maker>(new model_maker); }}),
    [](const ::testing::TestParamInfo<maker_kind>& which) { return std::string(which.param.name); });

}  // namespace
}  // namespace busbar::test
