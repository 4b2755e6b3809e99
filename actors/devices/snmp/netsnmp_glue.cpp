#include "actors/devices/snmp/netsnmp_glue.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <mutex>

namespace busbar::devices::snmp {
namespace {

std::string text_of(const oid* name, std::size_t length) {
  std::string text;
  for (std::size_t at = 0; at < length; ++at) text += fmt::format("{}{}", at == 0 ? "" : ".", name[at]);
  return text;
}

}  // namespace

bool parse_oid(const std::string& text, oid* out, std::size_t& length) {
  length = MAX_OID_LEN;
  return read_objid(text.c_str(), out, &length) != 0;
}

variable read_variable(const netsnmp_variable_list& from) {
  variable to{text_of(from.name, from.name_length), {}};
  switch (from.type) {
    case ASN_INTEGER:
      to.value = std::int64_t{*from.val.integer};
      break;
    case ASN_COUNTER:
    case ASN_GAUGE:
    case ASN_TIMETICKS:
      to.value = static_cast<std::int64_t>(static_cast<std::uint32_t>(*from.val.integer));
      break;
    case ASN_COUNTER64:
      to.value =
          static_cast<std::int64_t>(std::uint64_t{from.val.counter64->high} << 32 | from.val.counter64->low);
      break;
    case ASN_OCTET_STR:
      to.value = std::string(reinterpret_cast<const char*>(from.val.string), from.val_len);
      break;
    case ASN_OBJECT_ID:
      to.value = text_of(from.val.objid, from.val_len / sizeof(oid));
      break;
    default:
      break;  // noSuchObject, noSuchInstance, endOfMibView, or a type that says nothing to us
  }
  return to;
}

bool use_v3(netsnmp_session& wanted, std::string& user, const login& as) {
  wanted.version = SNMP_VERSION_3;
  wanted.retries = 0;  // of the question for the engine
  wanted.securityName = user.data();
  wanted.securityNameLen = user.size();
  wanted.securityLevel = SNMP_SEC_LEVEL_AUTHPRIV;
  wanted.securityAuthProto = usmHMACSHA1AuthProtocol;
  wanted.securityAuthProtoLen = USM_AUTH_PROTO_SHA_LEN;
  wanted.securityPrivProto = usmAESPrivProtocol;
  wanted.securityPrivProtoLen = USM_PRIV_PROTO_AES_LEN;
  wanted.securityAuthKeyLen = USM_AUTH_KU_LEN;
  wanted.securityPrivKeyLen = USM_PRIV_KU_LEN;
  const auto key = [&wanted](const std::string& from, u_char* to, std::size_t* length) {
    return generate_Ku(wanted.securityAuthProto, static_cast<u_int>(wanted.securityAuthProtoLen),
                       reinterpret_cast<const u_char*>(from.data()), from.size(), to,
                       length) == SNMPERR_SUCCESS;
  };
  return key(as.auth_password, wanted.securityAuthKey, &wanted.securityAuthKeyLen) &&
         key(as.privacy_password, wanted.securityPrivKey, &wanted.securityPrivKeyLen);
}

// after the passwords were changed.
void forget_user(const std::string& engine, const std::string& user) {
  usmUser* const old =
      usm_get_user(reinterpret_cast<const u_char*>(engine.data()), engine.size(), user.c_str());
  if (old == nullptr) return;
  usm_remove_user(old);
  usm_free_user(old);
}

void prepare_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (const int option :
         {NETSNMP_DS_LIB_DONT_READ_CONFIGS, NETSNMP_DS_LIB_DONT_PERSIST_STATE,
          NETSNMP_DS_LIB_DISABLE_PERSISTENT_LOAD, NETSNMP_DS_LIB_DISABLE_PERSISTENT_SAVE}) {
      netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, option, 1);
    }
    netsnmp_ds_set_int(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_OID_OUTPUT_FORMAT, NETSNMP_OID_OUTPUT_NUMERIC);
    // It makes folders for certificates in its state folder, whatever is asked of it: one that cannot be
    // made.
    netsnmp_ds_set_string(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_PERSISTENT_DIR, "/proc/none");
    netsnmp_set_mib_directory("");
    ::setenv("MIBS", "", 0);
    snmp_disable_log();
    init_snmp("busbar");
  });
}

}  // namespace busbar::devices::snmp
