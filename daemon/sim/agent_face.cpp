// The agents of a simulated site: the real client library over the real protocol, with an engine that answers
// from the simulator's performance model. All agents of the process share one loop; what must wait for the
// model loop runs on a second.
#include "daemon/sim/agent_face.hpp"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "daemon/agent/agent_client.hpp"
#include "daemon/agent/event_loop.hpp"
#include "daemon/agent/token.hpp"
#include "daemon/agent/x509.hpp"
#include "gpu/judge/golden_table.hpp"

namespace busbar::sim {
namespace {

using agent_client::event_loop;
using agent_client::run_callbacks;

constexpr int progress_steps = 4;

struct probe_row {
  std::string_view probe;
  double load;  // of the tray while it runs
};
constexpr probe_row probes[] = {{"diagnostics", 0.1}, {"memory_copy", 0.6}, {"host_device", 0.3},
                                {"matrix_burn", 1.0}, {"training", 1.0},    {"collective", 0.8}};

const probe_row* find_probe(std::string_view name) {
  const auto* found = std::find_if(std::begin(probes), std::end(probes),
                                   [name](const probe_row& row) { return row.probe == name; });
  return found == std::end(probes) ? nullptr : found;
}

// One tray's model engine. A test takes the time its order names; then every asked metric of every GPU is
// read from the model.
class model_engine final : public agent_client::engine, public std::enable_shared_from_this<model_engine> {
 public:
  model_engine(event_loop& work, const agent_services& services, std::string member)
      : work_(work), services_(services), member_(std::move(member)) {}

  std::string name() const override { return "model"; }
  std::string sha256() const override { return agent_client::sha256_hex("model of " + services_.sku); }
  bool offers(const std::string& probe) const override { return find_probe(probe) != nullptr; }

  void start(const agent::Run& run, run_callbacks report) override {
    std::uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      number = ++number_;
      report_ = std::move(report);
    }
    const auto length =
        std::chrono::seconds(run.duration().seconds()) + std::chrono::nanoseconds(run.duration().nanos());
    work_.post([me = shared_from_this(), run] {
      me->services_.set_load(me->member_, find_probe(run.probe())->load);
    });
    for (int step = 1; step < progress_steps; ++step) {
      work_.post_after(length * step / progress_steps,
                       [me = shared_from_this(), number, step] { me->tell_progress(number, step); });
    }
    work_.post_after(length, [me = shared_from_this(), number, run] { me->finish(number, run); });
  }

  void cancel() override { end(0, false, "cancelled"); }

 private:
  // The callbacks of test `number` (0: whichever runs), taken if `last`. Empty functions: it has ended
  // already.
  run_callbacks callbacks_of(std::uint64_t number, bool last) {
    const std::lock_guard lock(mutex_);
    if ((number != 0 && number != number_) || !report_.done) return {};
    return last ? std::exchange(report_, {}) : report_;
  }

  void tell_progress(std::uint64_t number, int step) {
    const auto report = callbacks_of(number, false);
    if (report.progress) report.progress(static_cast<double>(step) / progress_steps);
  }

  void finish(std::uint64_t number, const agent::Run& run) {
    const auto report = callbacks_of(number, false);
    if (!report.done) return;
    for (int gpu = 0; gpu < services_.gpus; ++gpu) {
      for (const auto& metric : run.metrics()) report.measurement(measure(run, gpu, metric));
    }
    end(number, true, "");
  }

  agent::Measurement measure(const agent::Run& run, int gpu, const std::string& metric) const {
    const performance seen = services_.measure(member_, gpu, run.probe(), metric);
    agent::Measurement out;
    out.set_gpu(static_cast<std::uint32_t>(gpu));
    out.set_metric(metric);
    out.set_unit(seen.unit);
    if (seen.value) out.set_value(*seen.value);
    if (seen.text == "golden") {  // the model's word for a GPU that computes rightly
      const std::map<std::string, std::string> parameters(run.parameters().begin(), run.parameters().end());
      const auto golden = gpu::golden_text(services_.sku, run.probe(), metric, parameters);
      out.set_text(golden ? std::string(*golden) : seen.text);
    } else {
      out.set_text(seen.text);
    }
    out.set_quality(seen.value || !seen.text.empty() ? agent::GOOD : agent::BAD);
    return out;
  }

  void end(std::uint64_t number, bool ok, const std::string& error) {
    const auto report = callbacks_of(number, true);
    if (!report.done) return;
    work_.post([me = shared_from_this()] { me->rest(); });
    report.done(ok, error);
  }

  // Idle, unless the next test has begun already.
  void rest() {
    {
      const std::lock_guard lock(mutex_);
      if (report_.done) return;
    }
    services_.set_load(member_, 0);
  }

  event_loop& work_;
  const agent_services& services_;
  const std::string member_;
  std::mutex mutex_;
  std::uint64_t number_ = 0;
  run_callbacks report_;  // of the test in progress
};

class model_agents final : public agent_face {
 public:
  explicit model_agents(agent_services services) : services_(std::move(services)) {}
  ~model_agents() override { stop(); }

  void host_booted(const std::string& member, const std::string& boot_uri) override {
    work_.post([this, member, boot_uri] { boot(member, boot_uri); });
  }

  void host_off(const std::string& member) override {
    work_.post([this, member] { agents_.erase(member); });  // cut, as by a host that loses power
  }

  void stop() override {
    if (stopped_.exchange(true)) return;
    work_.post([this] {
      for (auto& [member, one] : agents_) one->begin_stop("");
      agents_.clear();
    });
    work_.stop();
    loop_.stop();
  }

 private:
  // On the work loop: the services wait for the model loop.
  void boot(const std::string& member, const std::string& boot_uri) {
    agents_.erase(member);
    if (services_.silent(member)) return;
    const auto born = agent_client::parse_boot_parameters(boot_uri);
    agent_client::agent_options options;
    options.token = born.token;
    options.endpoint =
        born.endpoint.empty() ? services_.endpoint(member.substr(0, member.find('/'))) : born.endpoint;
    options.boot_id = absl::BytesToHexString(agent_client::random_bytes(16));
    options.dmi_serial = services_.dmi_serial(member);
    options.gpu_serials = services_.gpu_serials(member);
    options.limits = services_.sku;
    options.software_version = "simulated";
    options.seed = services_.seed + std::hash<std::string>{}(member);
    options.first_wait = std::chrono::milliseconds(50);
    options.longest_wait = std::chrono::seconds(2);
    if (!services_.state_dir.empty()) {
      std::string file = member;
      std::replace(file.begin(), file.end(), '/', '-');
      options.identity_file = std::filesystem::path(services_.state_dir) / "agents" / file;
    }
    // A local boot has no token: the agent comes back with the certificate it kept, and stays away if it has
    // none.
    if (options.token.empty() &&
        (options.identity_file.empty() || !std::filesystem::exists(options.identity_file)))
      return;
    auto& mine = agents_[member];
    mine = std::make_unique<agent_client::agent_client>(
        loop_, options,
        std::vector<std::shared_ptr<agent_client::engine>>{
            std::make_shared<model_engine>(work_, services_, member)},
        nullptr);
    mine->start();
  }

  const agent_services services_;
  std::atomic<bool> stopped_ = false;
  event_loop loop_;  // the agents' own
  event_loop work_;  // boots, tests, calls into the model
  std::map<std::string, std::unique_ptr<agent_client::agent_client>> agents_;  // on the work loop only
};

}  // namespace

std::unique_ptr<agent_face> make_agent_face(agent_services services) {
  return std::make_unique<model_agents>(std::move(services));
}

}  // namespace busbar::sim
