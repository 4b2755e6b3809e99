// What reading from the edge costs over the least that the same server can do: Get and List of 27 nodes against an echo whose
// request and response have the same sizes and whose response bytes lie ready. All four are called in turn, so that what else
// the machine does hits them alike; first at rest, then while a writer publishes changes as a bring-up does.
// bench_api [--calls N] [--commits-per-second N] [--raw DIR]
#include <fmt/format.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/server_callback_handlers.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/security/credentials.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/busbard/rpc/edge_server.hpp"

namespace busbar::bench {
namespace {

using steady = std::chrono::steady_clock;

constexpr const char* echo_method = "/busbar.bench.Echo/Echo";

// Answers with as many ready bytes as the request's first number says; knows no message.
class echo_service final : public grpc::Service {
 public:
  echo_service() {
    AddMethod(new grpc::internal::RpcServiceMethod(echo_method, grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
    MarkMethodRawCallback(
        0, new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, grpc::ByteBuffer>(
               [this](grpc::CallbackServerContext* context, const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
                 return answer(context, request, response);
               }));
  }
  // Before the server starts: what a request of so many bytes is answered with.
  void learn(std::size_t request_bytes, std::size_t response_bytes) {
    answers_[request_bytes] = grpc::Slice(std::string(response_bytes, 'x'));
  }

 private:
  grpc::ServerUnaryReactor* answer(grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) const {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const auto known = answers_.find(request->Length());
    if (known != answers_.end()) *response = grpc::ByteBuffer(&known->second, 1);
    reactor->Finish(known != answers_.end() ? grpc::Status::OK : grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "size"));
    return reactor;
  }
  std::map<std::size_t, grpc::Slice> answers_;
};

// A tray in production, with everything that the journal knows of it.
std::shared_ptr<const journal::Node> tray(const std::string& name, journal::MemberKind kind, int turn) {
  auto node = std::make_shared<journal::Node>();
  node->set_name(name);
  node->mutable_spec()->set_kind(kind);
  node->mutable_spec()->set_slot(name.substr(4));
  node->mutable_spec()->set_bmc_mac("02:00:00:00:00:07");
  node->set_step(turn % 2 == 0 ? journal::CONFIGURED : journal::VALIDATED);
  node->set_waits_for(fmt::format("node suite, {} s", turn));
  node->mutable_identity()->set_serial("SN-000123456");
  node->mutable_identity()->set_pin_sha256(std::string(64, 'a'));
  node->mutable_power()->set_observed(journal::POWER_ON);
  for (int i = 0; i < 40; ++i) {
    journal::Part& part = *node->add_parts();
    part.set_kind(i < 4 ? "gpu" : "dimm");
    part.set_id(fmt::format("PART{}", i));
    part.set_model("MODEL-288GB-A");
    part.set_serial(fmt::format("G{:010}", i));
    part.set_memory_gib(288);
    part.set_pcie_generation(6);
  }
  for (int i = 0; i < 12; ++i) {
    journal::FirmwareProgress& row = *node->add_firmware();
    row.set_component(fmt::format("component{}", i));
    row.set_wanted("1.2.3-456");
    row.set_seen("1.2.3-456");
    row.set_state(journal::FirmwareProgress::CURRENT);
    journal::Detector& detector = *node->add_detectors();
    detector.set_name(fmt::format("detector{}", i));
    detector.set_verdict(journal::Detector::DRY);
  }
  return node;
}

std::string member_name(int i) {
  if (i < 18) return fmt::format("r01/c{:02}", i + 1);
  return fmt::format("r01/s{:02}", i - 17);
}

// Publishes without a store: what is measured is the edge's side of a commit.
class writer {
 public:
  explicit writer(core::snapshot_hub& hub) : hub_(hub) { position_ = hub.read()->position; }
  ~writer() { stop(); }

  void change(int member) {
    auto batch = std::make_shared<core::journal_batch>();
    batch->put(tray(member_name(member), member < 18 ? journal::COMPUTE_TRAY : journal::SWITCH_TRAY, ++turn_));
    auto event = std::make_shared<journal::Event>();
    event->set_object(member_name(member));
    position_.set_revision(position_.revision() + 1);
    *event->mutable_position() = position_;
    const std::array commits = {core::committed_batch{position_, batch, {event}}};
    hub_.publish(commits);
  }
  void start(int per_second) {
    thread_ = std::thread([this, per_second] {
      const auto pause = std::chrono::microseconds(1'000'000 / per_second);
      for (auto next = steady::now(); !stop_.load(); next += pause) {
        change(turn_ % 27);
        std::this_thread::sleep_until(next + pause);
      }
    });
  }
  void stop() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
  }

 private:
  core::snapshot_hub& hub_;
  journal::Position position_;
  int turn_ = 0;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Sends and takes bytes only: what a client does with them is its own affair, and the same for all four.
class client {
 public:
  explicit client(const std::string& socket)
      : stub_(grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments())) {}

  double call(const std::string& method, const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    const auto begin = steady::now();
    const auto reader = stub_.PrepareUnaryCall(&context, method, request, &queue_);
    reader->StartCall();
    grpc::Status status;
    reader->Finish(response, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    const double took = std::chrono::duration<double, std::micro>(steady::now() - begin).count();
    if (!status.ok()) {
      std::cerr << method << ": " << status.error_message() << '\n';
      std::exit(1);
    }
    return took;
  }

 private:
  static grpc::ChannelArguments arguments() {
    grpc::ChannelArguments made;
    made.SetMaxReceiveMessageSize(-1);
    return made;
  }
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

struct probe {
  std::string name;
  std::string method;
  grpc::ByteBuffer request;
  std::vector<double> rest_us;
  std::vector<double> load_us;
};

grpc::ByteBuffer bytes_of(const std::string& text) {
  const grpc::Slice slice(text);
  return grpc::ByteBuffer(&slice, 1);
}

double percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(static_cast<double>(values.size() - 1) * share);
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

void run(client& on, std::vector<probe>& probes, int calls, std::vector<double> probe::* into) {
  grpc::ByteBuffer response;
  for (int i = 0; i < calls; ++i) {
    for (probe& each : probes) (each.*into).push_back(on.call(each.method, each.request, &response));
  }
}

void report(const std::vector<probe>& probes, const std::string& raw) {
  fmt::print("{:<12}{:>12}{:>12}{:>12}{:>12}\n", "us", "rest p50", "rest p99", "load p50", "load p99");
  for (const probe& each : probes) {
    fmt::print("{:<12}{:>12.0f}{:>12.0f}{:>12.0f}{:>12.0f}\n", each.name, percentile(each.rest_us, 0.5),
               percentile(each.rest_us, 0.99), percentile(each.load_us, 0.5), percentile(each.load_us, 0.99));
  }
  if (!raw.empty()) {
    std::filesystem::create_directories(raw);
    std::ofstream file(raw + "/api.csv");
    file << "call,phase,us\n";
    for (const probe& each : probes) {
      for (const double us : each.rest_us) file << fmt::format("{},rest,{:.1f}\n", each.name, us);
      for (const double us : each.load_us) file << fmt::format("{},load,{:.1f}\n", each.name, us);
    }
  }
  const auto ratio = [](const probe& a, const probe& b) { return percentile(a.load_us, 0.99) / percentile(b.load_us, 0.99); };
  fmt::print("{{\"get_p99_over_echo\":{:.2f},\"list27_p99_over_echo\":{:.2f},\"get_rest_p99_ms\":{:.3f},"
             "\"list27_rest_p99_ms\":{:.3f}}}\n",
             ratio(probes[0], probes[1]), ratio(probes[2], probes[3]), percentile(probes[0].rest_us, 0.99) / 1000,
             percentile(probes[2].rest_us, 0.99) / 1000);
}

int measure(const std::string& folder, int calls, int per_second, const std::string& raw) {
  auto initial = std::make_shared<core::snapshot>();
  initial->position.set_journal_id("bench");
  auto hub = std::make_shared<core::snapshot_hub>(initial);
  writer changes(*hub);
  for (int i = 0; i < 27; ++i) changes.change(i);

  v1::GetRequest get;
  get.set_name("racks/r01/nodes/c07");
  v1::ListRequest list;
  list.set_page_size(100);

  rpc::edge_dependencies needs;
  needs.instance = "r01";
  needs.hub = hub;
  needs.events = [](const journal::Position&, std::uint64_t, std::size_t) {
    return std::vector<std::shared_ptr<const journal::Event>>();
  };
  needs.submit = [](std::shared_ptr<const core::command>, core::answer_ptr) {};
  needs.degraded = [] { return std::vector<std::string>(); };
  echo_service echo;
  rpc::edge_options options;
  options.socket_path = folder + "/busbard.sock";
  options.own_uid = geteuid();
  options.more_services = {&echo};
  auto edge = rpc::edge_server::start(std::move(needs), options);
  if (!edge.ok()) {
    std::cerr << std::string(edge.status().message()) << '\n';
    return 1;
  }
  client on(options.socket_path);
  std::vector<probe> probes = {{"get", "/busbar.v1.Busbar/GetNode", bytes_of(get.SerializeAsString()), {}, {}},
                               {"get echo", echo_method, bytes_of(get.SerializeAsString()), {}, {}},
                               {"list27", "/busbar.v1.Busbar/ListNodes", bytes_of(list.SerializeAsString()), {}, {}},
                               {"list27 echo", echo_method, bytes_of(list.SerializeAsString()), {}, {}}};
  // No call of the echo runs yet: it learns the sizes from the answers themselves.
  for (const std::size_t i : {std::size_t{0}, std::size_t{2}}) {
    grpc::ByteBuffer response;
    on.call(probes[i].method, probes[i].request, &response);
    echo.learn(probes[i].request.Length(), response.Length());
    fmt::print("{}: request {} B, response {} B\n", probes[i].name, probes[i].request.Length(), response.Length());
  }
  std::vector<probe> warm = probes;
  run(on, warm, calls / 10, &probe::rest_us);
  run(on, probes, calls, &probe::rest_us);
  changes.start(per_second);
  run(on, probes, calls, &probe::load_us);
  changes.stop();
  report(probes, raw);
  (*edge)->stop_admission();
  (*edge)->stop_streams(std::chrono::milliseconds(1000));
  return 0;
}

}  // namespace
}  // namespace busbar::bench

int main(int argc, char** argv) {
  int calls = 10'000;
  int per_second = 100;  // a rack of 27 trays in bring-up writes some tens of batches a second
  std::string raw;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    if (word == "--calls") calls = std::max(100, std::atoi(argv[i + 1]));
    if (word == "--commits-per-second") per_second = std::max(1, std::atoi(argv[i + 1]));
    if (word == "--raw") raw = argv[i + 1];
  }
  std::string folder = (std::filesystem::temp_directory_path() / "bench-api-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::cerr << "cannot make " << folder << '\n';
    return 1;
  }
  const int result = busbar::bench::measure(folder, calls, per_second, raw);
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return result;
}
