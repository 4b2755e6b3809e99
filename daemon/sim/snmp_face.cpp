#include "daemon/sim/snmp_face.hpp"

#include <net-snmp/library/large_fd_set.h>
#include <net-snmp/library/snmpusm.h>
#include <net-snmp/net-snmp-config.h>
#include <net-snmp/net-snmp-includes.h>

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace busbar::sim {

namespace {

constexpr int most_repetitions = 64;

void prepare_library(const std::string& secret) {
  for (const int option : {NETSNMP_DS_LIB_DONT_READ_CONFIGS, NETSNMP_DS_LIB_DONT_PERSIST_STATE,
                           NETSNMP_DS_LIB_DISABLE_PERSISTENT_LOAD, NETSNMP_DS_LIB_DISABLE_PERSISTENT_SAVE}) {
    netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, option, 1);
  }
  // It makes folders in its state folder, whatever is asked of it: one that cannot be made.
  netsnmp_ds_set_string(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_PERSISTENT_DIR, "/proc/none");
  netsnmp_set_mib_directory("");
  ::setenv("MIBS", "", 0);
  snmp_disable_log();
  init_snmp("busbar-sim");
  // Without configuration files nobody has told the library that they are read: the engine gets its id and
  // its clock then.
  snmp_call_callbacks(SNMP_CALLBACK_LIBRARY, SNMP_CALLBACK_POST_READ_CONFIG, nullptr);
  std::string line = std::string(snmp_user) + " SHA \"" + secret + "\" AES \"" + secret + "\"";
  usm_parse_create_usmUser("createUser", line.data());
}

std::vector<oid> native(const oid_path& path) {
  return {path.begin(), path.end()};
}

oid_path path_of(const netsnmp_variable_list& variable) {
  oid_path path;
  for (std::size_t each = 0; each < variable.name_length; ++each)
    path.push_back(static_cast<std::uint32_t>(variable.name[each]));
  return path;
}

void put(netsnmp_pdu* to, const oid_path& path, const mib_value& value) {
  const std::vector<oid> name = native(path);
  if (const auto* number = std::get_if<std::int32_t>(&value)) {
    snmp_pdu_add_variable(to, name.data(), name.size(), ASN_INTEGER, number, sizeof *number);
  } else if (const auto* gauge = std::get_if<mib_gauge>(&value)) {
    snmp_pdu_add_variable(to, name.data(), name.size(), ASN_GAUGE, &gauge->value, sizeof gauge->value);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    snmp_pdu_add_variable(to, name.data(), name.size(), ASN_OCTET_STR, text->data(), text->size());
  } else {
    const std::vector<oid> held = native(std::get<oid_path>(value));
    snmp_pdu_add_variable(to, name.data(), name.size(), ASN_OBJECT_ID, held.data(),
                          held.size() * sizeof(oid));
  }
}

void put_nothing(netsnmp_pdu* to, const oid_path& path, int type) {
  const std::vector<oid> name = native(path);
  snmp_pdu_add_variable(to, name.data(), name.size(), static_cast<u_char>(type), nullptr, 0);
}

}  // namespace

class snmp_face::impl {
 public:
  impl(model_loop& loop, snmp_backend backend, std::string secret)
      : loop_(loop),
        backend_(std::move(backend)),
        secret_(std::move(secret)),
        bell_(::eventfd(0, EFD_CLOEXEC)) {}
  ~impl() {
    for (const auto& each : agents_) {
      if (each->handle != nullptr) snmp_sess_close(each->handle);
    }
    ::close(bell_);
  }

  absl::Status listen(const std::string& address, std::uint16_t port);
  void start() {
    thread_ = std::thread([this] { run(); });
  }
  void stop() {
    if (!thread_.joinable()) return;
    ending_ = true;
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t rung = ::write(bell_, &one, sizeof one);
    thread_.join();
  }

 private:
  struct agent {
    impl* self = nullptr;
    std::string address;
    void* handle = nullptr;
  };

  static int on_message(int operation, netsnmp_session*, int, netsnmp_pdu* came, void* magic);
  void run();
  bool admitted(const netsnmp_pdu& came) const;
  void answer(const agent& by, netsnmp_pdu* came);
  void read(const agent& by, const netsnmp_pdu& came, netsnmp_pdu* to);
  void set(const agent& by, const netsnmp_pdu& came, netsnmp_pdu* to, const std::string& peer);

  model_loop& loop_;
  const snmp_backend backend_;
  const std::string secret_;
  const int bell_;
  std::atomic<bool> ending_{false};
  std::vector<std::unique_ptr<agent>> agents_;
  bool prepared_ = false;
  std::thread thread_;
};

absl::Status snmp_face::impl::listen(const std::string& address, std::uint16_t port) {
  if (!prepared_) prepare_library(secret_);
  prepared_ = true;
  const std::string where = "udp:" + address + ":" + std::to_string(port);
  netsnmp_transport* const transport = netsnmp_transport_open_server("snmp", where.c_str());
  if (transport == nullptr) return absl::UnavailableError("cannot listen for SNMP on " + where);
  auto made = std::make_unique<agent>();
  made->self = this;
  made->address = address;
  netsnmp_session wanted{};
  snmp_sess_init(&wanted);
  wanted.version = SNMP_DEFAULT_VERSION;
  wanted.callback = on_message;
  wanted.callback_magic = made.get();
  wanted.isAuthoritative = SNMP_SESS_AUTHORITATIVE;
  made->handle = snmp_sess_add(&wanted, transport, nullptr, nullptr);
  if (made->handle == nullptr) return absl::UnavailableError("net-snmp gives no session for " + where);
  agents_.push_back(std::move(made));
  return absl::OkStatus();
}

void snmp_face::impl::run() {
  while (!ending_) {
    netsnmp_large_fd_set readable;
    netsnmp_large_fd_set_init(&readable, FD_SETSIZE);
    netsnmp_large_fd_setfd(bell_, &readable);
    int highest = bell_ + 1;
    for (const auto& each : agents_) {
      int block = 1;
      timeval unused{};
      snmp_sess_select_info2(each->handle, &highest, &readable, &unused, &block);
    }
    const int ready = netsnmp_large_fd_set_select(highest, &readable, nullptr, nullptr, nullptr);
    for (const auto& each : agents_) {
      if (ready > 0 && !ending_) snmp_sess_read2(each->handle, &readable);
    }
    netsnmp_large_fd_set_cleanup(&readable);
  }
}

int snmp_face::impl::on_message(int operation, netsnmp_session*, int, netsnmp_pdu* came, void* magic) {
  auto* const by = static_cast<agent*>(magic);
  if (operation == NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE && came != nullptr && by->self->admitted(*came)) {
    by->self->answer(*by, came);
  }
  return 1;
}

// A wrong community is not answered; what v3 refuses, the library has refused before.
bool snmp_face::impl::admitted(const netsnmp_pdu& came) const {
  if (came.version == SNMP_VERSION_2c) {
    return std::string(reinterpret_cast<const char*>(came.community), came.community_len) == secret_;
  }
  return came.version == SNMP_VERSION_3 && came.securityLevel == SNMP_SEC_LEVEL_AUTHPRIV &&
         std::string(came.securityName, came.securityNameLen) == snmp_user;
}

void snmp_face::impl::answer(const agent& by, netsnmp_pdu* came) {
  netsnmp_pdu* const made = snmp_clone_pdu(came);
  if (made == nullptr) return;
  snmp_free_varbind(made->variables);
  made->variables = nullptr;
  made->command = SNMP_MSG_RESPONSE;
  made->errstat = SNMP_ERR_NOERROR;
  made->errindex = 0;
  switch (came->command) {
    case SNMP_MSG_GET:
    case SNMP_MSG_GETNEXT:
    case SNMP_MSG_GETBULK:
      read(by, *came, made);
      break;
    case SNMP_MSG_SET:
      set(by, *came, made, by.address);
      break;
    default:
      snmp_free_pdu(made);
      return;
  }
  if (snmp_sess_send(by.handle, made) == 0) snmp_free_pdu(made);
}

void snmp_face::impl::read(const agent& by, const netsnmp_pdu& came, netsnmp_pdu* to) {
  const auto objects = loop_.call([this, &by] { return backend_.objects(by.address); });
  const bool bulk = came.command == SNMP_MSG_GETBULK;
  long left = bulk ? std::max(0L, came.errstat) : 0;  // non-repeaters
  for (const netsnmp_variable_list* each = came.variables; each != nullptr; each = each->next_variable) {
    const oid_path asked = path_of(*each);
    if (came.command == SNMP_MSG_GET) {
      const auto found = objects.find(asked);
      if (found == objects.end()) {
        put_nothing(to, asked, SNMP_NOSUCHINSTANCE);
      } else {
        put(to, found->first, found->second);
      }
      continue;
    }
    const long times = bulk && left-- <= 0 ? std::clamp(came.errindex, 0L, long{most_repetitions}) : 1;
    auto at = objects.upper_bound(asked);
    for (long round = 0; round < times; ++round) {
      if (at == objects.end()) {
        put_nothing(to, objects.empty() ? asked : std::max(asked, objects.rbegin()->first),
                    SNMP_ENDOFMIBVIEW);
        break;
      }
      put(to, at->first, at->second);
      ++at;
    }
  }
}

void snmp_face::impl::set(const agent& by, const netsnmp_pdu& came, netsnmp_pdu* to,
                          const std::string& peer) {
  const std::string user = came.version == SNMP_VERSION_3
                               ? std::string(came.securityName, came.securityNameLen)
                               : std::string("v2c");
  long index = 0;
  for (const netsnmp_variable_list* each = came.variables; each != nullptr; each = each->next_variable) {
    ++index;
    const oid_path asked = path_of(*each);
    const bool number = each->type == ASN_INTEGER;
    if (number) {
      put(to, asked, static_cast<std::int32_t>(*each->val.integer));
    } else {
      put_nothing(to, asked, ASN_NULL);
    }
    if (to->errstat != SNMP_ERR_NOERROR) continue;
    const absl::Status done = number ? loop_.call([this, &by, &asked, &each, &peer, &user] {
      return backend_.set(by.address, asked, *each->val.integer, peer, user);
    })
                                     : absl::FailedPreconditionError("an INTEGER is wanted");
    if (done.ok()) continue;
    to->errstat = !number                                             ? SNMP_ERR_WRONGTYPE
                  : done.code() == absl::StatusCode::kInvalidArgument ? SNMP_ERR_WRONGVALUE
                                                                      : SNMP_ERR_NOTWRITABLE;
    to->errindex = index;
  }
}

snmp_face::snmp_face(model_loop& loop, snmp_backend backend, std::string secret)
    : impl_(std::make_unique<impl>(loop, std::move(backend), std::move(secret))) {}
snmp_face::~snmp_face() {
  stop();
}
absl::Status snmp_face::listen(const std::string& address, std::uint16_t port) {
  return impl_->listen(address, port);
}
void snmp_face::start() {
  impl_->start();
}
void snmp_face::stop() {
  impl_->stop();
}

}  // namespace busbar::sim
