// The driver against agents nobody here wrote: snmpsim plays a recording for each dialect, writable where the
// family is.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "actors/devices/snmp/snmp_outlets.hpp"

extern char** environ;

namespace busbar::devices::snmp {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

dialect shipped(std::string_view name) {
  return *parse_dialect(*shipped_dialect(name), name);
}

int free_udp_port() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ::bind(socket, reinterpret_cast<const sockaddr*>(&here), sizeof here);
  socklen_t size = sizeof here;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&here), &size);
  ::close(socket);
  return ntohs(here.sin_port);
}

// One snmpsimd over a folder of recordings; the community names the recording.
class simulator {
 public:
  simulator() {
    std::string pattern = (fs::temp_directory_path() / "busbar-snmp-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directories(folder_ / "data");
    fs::create_directories(folder_ / "cache");
    fs::permissions(folder_, fs::perms::all);
    for (const char* sub : {"data", "cache"}) fs::permissions(folder_ / sub, fs::perms::all);
  }
  ~simulator() {
    if (process_ > 0) {
      ::kill(process_, SIGTERM);
      ::waitpid(process_, nullptr, 0);
    }
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  simulator(const simulator&) = delete;
  simulator& operator=(const simulator&) = delete;

  void record(const std::string& community, const std::string& rows) {
    std::ofstream(folder_ / "data" / (community + ".snmprec")) << rows;
  }

  // True when it answers.
  bool start(client& with) {
    address_ = fmt::format("127.0.0.1:{}", free_udp_port());
    const std::string data = "--data-dir=" + (folder_ / "data").string();
    const std::string cache = "--cache-dir=" + (folder_ / "cache").string();
    const std::string endpoint = "--agent-udpv4-endpoint=" + address_;
    std::vector<std::string> words = {BUSBAR_SNMPSIMD, data, cache, endpoint};
    const std::vector<std::string> v3 = {"--v3-user=busbar", "--v3-auth-key=authority", "--v3-auth-proto=SHA",
                                         "--v3-priv-key=privately", "--v3-priv-proto=AES"};
    words.insert(words.end(), v3.begin(), v3.end());
    // As root it insists on another user.
    if (::getuid() == 0) {
      words.push_back("--process-user=nobody");
      words.push_back("--process-group=nogroup");
    }
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    const std::string log = (folder_ / "log").string();
    posix_spawn_file_actions_addopen(&quiet, 1, log.c_str(), O_CREAT | O_WRONLY, 0644);
    posix_spawn_file_actions_adddup2(&quiet, 1, 2);
    if (::posix_spawn(&process_, BUSBAR_SNMPSIMD, &quiet, nullptr, arguments.data(), environ) != 0)
      process_ = -1;
    posix_spawn_file_actions_destroy(&quiet);
    const auto wire = *with.open(address_, {"public", "", "", "", ""}, 250ms, 0);
    for (int attempt = 0; attempt < 120; ++attempt) {
      if (get(*wire, {"1.3.6.1.2.1.1.1.0"}).ok()) return true;
      if (::waitpid(process_, nullptr, WNOHANG) == process_) break;
    }
    process_ = -1;
    return false;
  }
  const std::string& address() const { return address_; }
  std::string log() const {
    std::ifstream in(folder_ / "log");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  static absl::StatusOr<std::vector<variable>> get(agent& wire, std::vector<std::string> oids) {
    std::promise<absl::StatusOr<std::vector<variable>>> promise;
    wire.get(std::move(oids),
             [&promise](absl::StatusOr<std::vector<variable>> got) { promise.set_value(std::move(got)); });
    return promise.get_future().get();
  }

 private:
  fs::path folder_;
  std::string address_;
  pid_t process_ = -1;
};

// snmpsim's rows: OID|tag|value, in order; 2 is INTEGER, 4 a text; ":writecache" takes a SET and keeps it.
std::string row(const std::string& oid, std::string_view tag, const std::string& value) {
  return fmt::format("{}|{}|{}\n", oid, std::string(tag), value);
}

std::string recording_of(const dialect& spoken) {
  std::vector<std::pair<std::vector<unsigned>, std::string>> rows;
  const auto put = [&rows](const std::string& oid, std::string_view tag, const std::string& value) {
    std::vector<unsigned> numbers;
    std::stringstream parts(oid);
    for (std::string part; std::getline(parts, part, '.');)
      numbers.push_back(static_cast<unsigned>(std::stoul(part)));
    rows.emplace_back(numbers, row(oid, tag, value));
  };
  put("1.3.6.1.2.1.1.1.0", "4", "a PDU");
  for (int outlet = 1; outlet <= 3; ++outlet) {
    const std::int64_t state = outlet == 2 ? spoken.state_off.front() : spoken.state_on.front();
    put(oid_of(spoken, spoken.state_oid, 1, outlet), "2:writecache", fmt::format("value={}", state));
    if (spoken.control_oid != spoken.state_oid) {
      put(oid_of(spoken, spoken.control_oid, 1, outlet), "2:writecache",
          fmt::format("value={}", spoken.control_on));
    }
    if (!spoken.name_oid.empty())
      put(oid_of(spoken, spoken.name_oid, 1, outlet), "4", fmt::format("feed {}", outlet));
  }
  std::sort(rows.begin(), rows.end());
  std::string text;
  for (const auto& [numbers, line] : rows) text += line;
  return text;
}

absl::StatusOr<std::vector<outlet_facts>> read(outlet_bank& bank) {
  std::promise<absl::StatusOr<std::vector<outlet_facts>>> promise;
  bank.read([&promise](absl::StatusOr<std::vector<outlet_facts>> got) { promise.set_value(std::move(got)); });
  return promise.get_future().get();
}

absl::Status ask(outlet_bank& bank, const std::string& outlet, outlet_act act) {
  std::promise<absl::Status> promise;
  bank.ask(outlet, act, [&promise](absl::Status got) { promise.set_value(std::move(got)); });
  return promise.get_future().get();
}

class snmp_peer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string(BUSBAR_SNMPSIMD).empty()) GTEST_SKIP() << "snmpsimd is not installed";
    peer_.record("public", row("1.3.6.1.2.1.1.1.0", "4", "a PDU"));
    for (const std::string_view name : shipped_dialects())
      peer_.record(std::string(name), recording_of(shipped(name)));
    ASSERT_TRUE(peer_.start(client_)) << peer_.log();
  }
  std::shared_ptr<agent> wire(const std::string& community) {
    return *client_.open(peer_.address(), {community, "", "", "", ""}, 2s, 1);
  }
  simulator peer_;
  client client_;
};

TEST_F(snmp_peer, reads_outlets_in_every_dialect) {
  for (const std::string_view name : shipped_dialects()) {
    const auto bank = make_snmp_outlets(wire(std::string(name)), shipped(name));
    const auto outlets = read(*bank);
    ASSERT_TRUE(outlets.ok()) << name << ": " << outlets.status();
    ASSERT_EQ(outlets->size(), 3U) << name;
    EXPECT_EQ((*outlets)[0].state, outlet_state::on) << name;
    EXPECT_EQ((*outlets)[1].state, outlet_state::off) << name;
    EXPECT_EQ((*outlets)[1].id, "2");
    if (!shipped(name).name_oid.empty()) {
      EXPECT_EQ((*outlets)[2].name, "feed 3") << name;
    }
  }
}

TEST_F(snmp_peer, asks_with_the_code_of_each_dialect) {
  for (const std::string_view name : shipped_dialects()) {
    const dialect spoken = shipped(name);
    const auto agent = wire(std::string(name));
    const auto bank = make_snmp_outlets(agent, spoken);
    for (const auto& [act, code] :
         {std::pair(outlet_act::off, spoken.control_off), std::pair(outlet_act::on, spoken.control_on)}) {
      ASSERT_TRUE(ask(*bank, "3", act).ok()) << name;
      const auto there = simulator::get(*agent, {oid_of(spoken, spoken.control_oid, 1, 3)});
      ASSERT_TRUE(there.ok()) << there.status();
      EXPECT_EQ(there->front().number(), code) << name;
    }
  }
}

// snmpsim gives a v3 user the recording that the context names.
TEST_F(snmp_peer, version_3_is_answered_only_to_the_right_passwords) {
  const auto good = *client_.open(peer_.address(), {"", "busbar", "authority", "privately", "public"}, 2s, 1);
  const auto got = simulator::get(*good, {"1.3.6.1.2.1.1.1.0"});
  ASSERT_TRUE(got.ok()) << got.status();
  for (const login& wrong : {login{"", "busbar", "authorita", "privately", "public"},
                             login{"", "busbar", "authority", "privatelx", "public"},
                             login{"", "stranger", "authority", "privately", "public"}}) {
    const auto wire = *client_.open(peer_.address(), wrong, 300ms, 0);
    EXPECT_FALSE(simulator::get(*wire, {"1.3.6.1.2.1.1.1.0"}).ok()) << wrong.user << wrong.auth_password;
  }
}

TEST_F(snmp_peer, an_object_that_is_not_there_is_no_number) {
  const auto got = simulator::get(*wire("public"), {"1.3.6.1.2.1.1.1.0", "1.3.6.1.4.1.99999.1.0"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ((*got)[0].text(), "a PDU");
  EXPECT_EQ((*got)[1].number(), std::nullopt);
  EXPECT_EQ((*got)[1].text(), std::nullopt);
}

TEST_F(snmp_peer, another_dialect_than_the_pdu_speaks_is_said_and_never_read_as_off) {
  const auto bank = make_snmp_outlets(wire("apc_rpdu"), shipped("raritan_pdu2"));
  EXPECT_EQ(read(*bank).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(snmp_peer, a_captured_pdu_is_read_outlet_by_outlet) {
  const char* const named = std::getenv("BUSBAR_FIELD_DATA");
  const fs::path data = named == nullptr ? fs::path(BUSBAR_SOURCE_DIR) / "../shared/data" : fs::path(named);
  std::ifstream walk(data / "field-outputs/snmp/pdu-cyberpower.snmpwalk");
  if (!walk) GTEST_SKIP() << "no field data";
  const dialect spoken = shipped("cyberpower");
  std::string rows;
  for (std::string line; std::getline(walk, line);) {
    const std::size_t equals = line.find(" = ");
    if (!line.starts_with(".1.3.6.1.4.1.3808.1.1.3.3.3.1.1.") || equals == std::string::npos) continue;
    const std::string value = line.substr(line.find(": ", equals) + 2);
    const bool text = line.find("STRING", equals) != std::string::npos;
    rows +=
        row(line.substr(1, equals - 1), text ? "4" : "2", text ? value.substr(1, value.size() - 2) : value);
  }
  simulator captured;
  captured.record("public", row("1.3.6.1.2.1.1.1.0", "4", "a PDU") + rows);
  ASSERT_TRUE(captured.start(client_)) << captured.log();
  const auto bank =
      make_snmp_outlets(*client_.open(captured.address(), {"public", "", "", "", ""}, 2s, 1), spoken);
  const auto outlets = read(*bank);
  ASSERT_TRUE(outlets.ok()) << outlets.status();
  EXPECT_EQ(outlets->size(), 10U);
  for (const outlet_facts& one : *outlets) {
    EXPECT_EQ(one.state, outlet_state::on);
    EXPECT_EQ(one.name, "Outlet" + one.id);
  }
}

TEST(snmp_client, nobody_there_is_said_after_the_timeout_with_the_address) {
  client ours;
  const std::string address = fmt::format("127.0.0.1:{}", free_udp_port());
  const auto wire = *ours.open(address, {"public", "", "", "", ""}, 50ms, 1);
  const auto got = simulator::get(*wire, {"1.3.6.1.2.1.1.1.0"});
  EXPECT_FALSE(got.ok());
  EXPECT_THAT(std::string(got.status().message()), ::testing::HasSubstr(address));
}

// An agent that hears and never answers: what was sent lies in its socket.
TEST(snmp_client, a_lost_read_is_asked_again_and_a_lost_change_is_not) {
  const int deaf = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(::bind(deaf, reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
  socklen_t size = sizeof here;
  ::getsockname(deaf, reinterpret_cast<sockaddr*>(&here), &size);
  const auto heard = [deaf] {
    int count = 0;
    char byte = 0;
    while (::recv(deaf, &byte, 1, MSG_TRUNC) >= 0) ++count;
    return count;
  };
  client ours;
  const auto wire =
      *ours.open(fmt::format("127.0.0.1:{}", ntohs(here.sin_port)), {"public", "", "", "", ""}, 40ms, 2);
  EXPECT_FALSE(simulator::get(*wire, {"1.3.6.1.2.1.1.1.0"}).ok());
  EXPECT_EQ(heard(), 3);
  std::promise<absl::Status> promise;
  wire->set(
      "1.3.6.1.4.1.318.1.1.12.3.3.1.1.4.1", 2,
      [&promise](const absl::StatusOr<std::vector<variable>>& got) { promise.set_value(got.status()); });
  EXPECT_FALSE(promise.get_future().get().ok());
  EXPECT_EQ(heard(), 1);
  EXPECT_FALSE(simulator::get(*wire, {"1.3.6.1.2.1.1.1.0"}).ok());
  EXPECT_EQ(heard(), 3);
  ::close(deaf);
}

TEST(snmp_client, what_is_open_when_the_client_ends_is_answered) {
  std::promise<absl::Status> promise;
  {
    client ours;
    const auto wire =
        *ours.open(fmt::format("127.0.0.1:{}", free_udp_port()), {"public", "", "", "", ""}, 30s, 0);
    wire->get({"1.3.6.1.2.1.1.1.0"}, [&promise](const absl::StatusOr<std::vector<variable>>& got) {
      promise.set_value(got.status());
    });
  }
  EXPECT_FALSE(promise.get_future().get().ok());
}

TEST(snmp_client, refuses_a_login_that_cannot_work_and_an_oid_that_is_none) {
  client ours;
  EXPECT_FALSE(ours.open("127.0.0.1:161", {}).ok());
  EXPECT_FALSE(ours.open("127.0.0.1:161", {"", "busbar", "short", "short", ""}).ok());
  const auto wire = *ours.open("127.0.0.1:161", {"public", "", "", "", ""}, 50ms, 0);
  EXPECT_EQ(simulator::get(*wire, {"1.3.x"}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(simulator::get(*wire, {}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace busbar::devices::snmp
