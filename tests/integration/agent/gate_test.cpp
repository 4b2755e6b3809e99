#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "tests/integration/agent/gate_fixture.hpp"

namespace busbar::test {
namespace {

using agent_client::agent_phase;
using kind = agent_event::kind;

class agent_gate : public gate_test {};

TEST_F(agent_gate, admits_an_agent_born_of_its_token_and_names_it_by_the_certificate) {
  open_gate();
  const auto token = gate_->issue_token("r01/c07", "SN7");
  EXPECT_FALSE(gate_->connected("r01/c07"));
  start_agent(options_for(token, "SN7"), {std::make_shared<held_engine>()}, nullptr);
  const auto hello = events_.next();
  ASSERT_EQ(hello.what, kind::hello);
  EXPECT_EQ(hello.member, "r01/c07");
  EXPECT_EQ(hello.hello.dmi_serial(), "SN7");
  EXPECT_EQ(hello.hello.engines(0).name(), "held");
  EXPECT_TRUE(gate_->connected("r01/c07"));
  EXPECT_FALSE(gate_->connected("r01/c08"));
}

TEST_F(agent_gate, carries_orders_and_results_both_ways) {
  open_gate();
  auto engine = std::make_shared<held_engine>();
  start_agent(options_for(gate_->issue_token("r01/c07", "SN7"), "SN7"), {engine}, nullptr);
  ASSERT_EQ(events_.next().what, kind::hello);
  ASSERT_TRUE(gate_->run("r01/c07", run_of("run-1", "diag", "diagnostics")));
  auto report = engine->wait_for_run();
  report.progress(0.5);
  agent::Measurement measured;
  measured.set_metric("ecc_uncorrected");
  measured.set_gpu(3);
  measured.set_value(0);
  measured.set_quality(agent::GOOD);
  report.measurement(measured);
  engine->end(true, "");
  const auto progress = events_.next();
  ASSERT_EQ(progress.what, kind::progress);
  EXPECT_DOUBLE_EQ(progress.progress.fraction(), 0.5);
  const auto result = events_.next();
  ASSERT_EQ(result.what, kind::measurement);
  EXPECT_EQ(result.measurement.run_id(), "run-1");
  EXPECT_EQ(result.measurement.test(), "diag");
  EXPECT_EQ(result.measurement.gpu(), 3u);
  const auto done = events_.next();
  ASSERT_EQ(done.what, kind::test_done);
  EXPECT_TRUE(done.test_done.ok());
}

TEST_F(agent_gate, says_that_nothing_was_sent_to_a_member_without_an_agent) {
  open_gate();
  EXPECT_FALSE(gate_->run("r01/c09", run_of("run-1", "diag", "diagnostics")));
  EXPECT_FALSE(gate_->cancel("r01/c09", "run-1"));
  EXPECT_FALSE(gate_->renew_lease("r01/c09", "run-1"));
}

TEST_F(agent_gate, refuses_a_serial_that_redfish_did_not_show_and_burns_the_token) {
  open_gate();
  const auto token = gate_->issue_token("r01/c07", "SN7");
  phase_box wrong;
  auto& stranger = start_agent(options_for(token, "SN8"), {}, &wrong);
  EXPECT_NE(wrong.wait(agent_phase::refused).find("AGENT_SERIAL_MISMATCH"), std::string::npos);
  const auto refused = events_.next();
  ASSERT_EQ(refused.what, kind::refused);
  EXPECT_EQ(refused.member, "r01/c07");
  EXPECT_NE(refused.reason.find("SN7"), std::string::npos);
  EXPECT_NE(refused.reason.find("SN8"), std::string::npos);
  stranger.stop("");
  phase_box late;
  start_agent(options_for(token, "SN7"), {}, &late);
  EXPECT_NE(late.wait(agent_phase::refused).find("unknown"), std::string::npos);
  EXPECT_FALSE(gate_->connected("r01/c07"));
}

TEST_F(agent_gate, gives_a_token_to_one_key_only) {
  open_gate();
  const auto token = gate_->issue_token("r01/c07", "SN7");
  start_agent(options_for(token, "SN7"), {}, nullptr);
  ASSERT_EQ(events_.next().what, kind::hello);
  phase_box second;
  start_agent(options_for(token, "SN7"), {}, &second);
  EXPECT_NE(second.wait(agent_phase::refused).find("used already"), std::string::npos);
  EXPECT_TRUE(gate_->connected("r01/c07"));
}

TEST_F(agent_gate, refuses_a_token_of_a_replaced_or_revoked_boot) {
  open_gate();
  const auto first = gate_->issue_token("r01/c07", "SN7");
  const auto second = gate_->issue_token("r01/c07", "SN7");
  phase_box replaced;
  start_agent(options_for(first, "SN7"), {}, &replaced).start();
  EXPECT_NE(replaced.wait(agent_phase::refused).find("unknown"), std::string::npos);
  gate_->revoke("r01/c07");
  phase_box revoked;
  start_agent(options_for(second, "SN7"), {}, &revoked);
  EXPECT_NE(revoked.wait(agent_phase::refused).find("unknown"), std::string::npos);
}

TEST_F(agent_gate, ends_the_stream_of_a_revoked_member_and_lets_its_certificate_in_no_more) {
  open_gate();
  phase_box phases;
  start_agent(options_for(gate_->issue_token("r01/c07", "SN7"), "SN7"), {}, &phases);
  ASSERT_EQ(events_.next().what, kind::hello);
  gate_->revoke("r01/c07");
  const auto lost = events_.next();
  ASSERT_EQ(lost.what, kind::lost);
  EXPECT_EQ(lost.reason, "revoked");
  EXPECT_NE(phases.wait(agent_phase::refused), "never");
  EXPECT_NE(phases.wait(agent_phase::refused), "never");
  EXPECT_FALSE(gate_->connected("r01/c07"));
}

TEST_F(agent_gate, replaces_an_older_stream_of_the_same_member) {
  open_gate();
  auto options = options_for(gate_->issue_token("r01/c07", "SN7"), "SN7");
  options.identity_file = folder_ / "identity";
  start_agent(options, {}, nullptr);
  ASSERT_EQ(events_.next().what, kind::hello);
  // The same identity once more, as an agent that was started twice on one tray.
  options.boot_id = "boot-2";
  options.first_wait = std::chrono::seconds(60);
  options.longest_wait = std::chrono::seconds(60);
  start_agent(options, {}, nullptr);
  const auto lost = events_.next();
  ASSERT_EQ(lost.what, kind::lost);
  EXPECT_NE(lost.reason.find("replaced"), std::string::npos);
  const auto hello = events_.next();
  ASSERT_EQ(hello.what, kind::hello);
}

TEST_F(agent_gate, tells_of_a_cut_connection_and_of_a_parting_word) {
  open_gate();
  auto& first = start_agent(options_for(gate_->issue_token("r01/c07", "SN7"), "SN7"), {}, nullptr);
  ASSERT_EQ(events_.next().what, kind::hello);
  first.stop("the host shuts down");
  const auto left = events_.next();
  ASSERT_EQ(left.what, kind::lost);
  EXPECT_NE(left.reason.find("the host shuts down"), std::string::npos);
  auto& second = start_agent(options_for(gate_->issue_token("r01/c08", ""), "any"), {}, nullptr);
  ASSERT_EQ(events_.next().what, kind::hello);
  second.stop("");
  const auto cut = events_.next();
  EXPECT_EQ(cut.what, kind::lost);
  EXPECT_EQ(cut.member, "r01/c08");
}

TEST_F(agent_gate, takes_an_agent_back_with_its_certificate_after_a_restart) {
  open_gate();
  start_agent(options_for(gate_->issue_token("r01/c07", "SN7"), "SN7"), {}, nullptr);
  ASSERT_EQ(events_.next().what, kind::hello);
  gate_->stop();
  EXPECT_TRUE(events_.empty());
  gate_.reset();
  open_gate();
  EXPECT_EQ(events_.next().what, kind::hello);
  EXPECT_TRUE(gate_->connected("r01/c07"));
}

TEST_F(agent_gate, keeps_an_unused_token_and_its_serial_over_a_restart) {
  open_gate();
  const auto token = gate_->issue_token("r01/c07", "SN7");
  gate_.reset();
  open_gate();
  phase_box wrong;
  start_agent(options_for(gate_->issue_token("r01/c08", "SN8"), "SN9"), {}, &wrong);
  EXPECT_NE(wrong.wait(agent_phase::refused), "never");
  ASSERT_EQ(events_.next().what, kind::refused);
  start_agent(options_for(token, "SN7"), {}, nullptr);
  EXPECT_EQ(events_.next().what, kind::hello);
}

TEST_F(agent_gate, keeps_no_token_in_its_state_folder) {
  open_gate();
  const auto token = gate_->issue_token("r01/c07", "SN7");
  const auto secret = token.substr(0, token.find('.'));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    std::ifstream in(entry.path());
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    EXPECT_EQ(text.find(secret), std::string::npos) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST_F(agent_gate, renews_a_certificate_over_the_open_stream) {
  // Three seconds of life: were it not renewed at two, the gate would end the stream with its expiry.
  open_gate([](rpc::agent_gate_options& options) { options.certificate_life = std::chrono::seconds(3); });
  auto options = options_for(gate_->issue_token("r01/c07", "SN7"), "SN7");
  options.identity_file = folder_ / "identity";
  auto engine = std::make_shared<held_engine>();
  start_agent(options, {engine}, nullptr);
  ASSERT_EQ(events_.next().what, kind::hello);
  std::string first;
  const auto certificate = [&options] {
    std::ifstream in(options.identity_file);
    return std::string((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  };
  first = certificate();
  while (certificate() == first) std::this_thread::yield();
  ASSERT_TRUE(gate_->run("r01/c07", run_of("run-1", "diag", "diagnostics")));
  engine->wait_for_run();
  engine->end(true, "");
  EXPECT_EQ(events_.next().what, kind::test_done);
}

TEST_F(agent_gate, ends_a_run_whose_lease_is_not_renewed) {
  open_gate();
  auto engine = std::make_shared<held_engine>();
  start_agent(options_for(gate_->issue_token("r01/c07", "SN7"), "SN7"), {engine}, nullptr);
  ASSERT_EQ(events_.next().what, kind::hello);
  auto run = run_of("run-1", "diag", "diagnostics");
  run.mutable_lease()->set_seconds(0);
  run.mutable_lease()->set_nanos(50'000'000);
  ASSERT_TRUE(gate_->run("r01/c07", run));
  const auto done = events_.next();
  ASSERT_EQ(done.what, kind::test_done);
  EXPECT_FALSE(done.test_done.ok());
  EXPECT_EQ(done.test_done.error(), "the lease was not renewed");
}

TEST_F(agent_gate, runs_no_engine_of_another_digest_or_name) {
  open_gate();
  auto engine = std::make_shared<held_engine>();
  start_agent(options_for(gate_->issue_token("r01/c07", "SN7"), "SN7"), {engine}, nullptr);
  ASSERT_EQ(events_.next().what, kind::hello);
  auto run = run_of("run-1", "diag", "diagnostics");
  run.set_engine_sha256(std::string(64, 'b'));
  ASSERT_TRUE(gate_->run("r01/c07", run));
  EXPECT_NE(events_.next().test_done.error().find("digest"), std::string::npos);
  ASSERT_TRUE(gate_->run("r01/c07", run_of("run-2", "burn", "matrix_burn")));
  EXPECT_NE(events_.next().test_done.error().find("no engine"), std::string::npos);
}

TEST_F(agent_gate, is_not_taken_for_the_gate_of_another_rack) {
  open_gate();
  const auto token = gate_->issue_token("r01/c07", "SN7");
  ca_pair_ = *rpc::agent_ca::create("r02");
  gate_.reset();
  open_gate();
  phase_box phases;
  start_agent(options_for(token, "SN7"), {}, &phases);
  EXPECT_NE(phases.wait(agent_phase::waiting), "never");
  EXPECT_TRUE(events_.empty());
}

TEST_F(agent_gate, carries_thirty_six_agents_of_one_process) {
  open_gate();
  for (int i = 1; i <= 36; ++i) {
    const auto member = "r01/c" + std::to_string(i);
    start_agent(options_for(gate_->issue_token(member, member), member), {std::make_shared<held_engine>()},
                nullptr);
  }
  for (int i = 1; i <= 36; ++i) EXPECT_EQ(events_.next().what, kind::hello);
  for (int i = 1; i <= 36; ++i) {
    EXPECT_TRUE(gate_->run("r01/c" + std::to_string(i), run_of("run-1", "burn", "matrix_burn")));
  }
  for (int i = 1; i <= 36; ++i) EXPECT_EQ(events_.next().what, kind::test_done);
}

}  // namespace
}  // namespace busbar::test
