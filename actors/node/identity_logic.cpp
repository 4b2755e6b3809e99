#include "actors/node/identity_logic.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "actors/node/node_logic.hpp"

namespace busbar::node {
namespace {

std::string upper(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return out;
}

bool is_owner_account(std::string_view name) {
  constexpr std::string_view prefix = "busbar-";
  if (!name.starts_with(prefix) || name.size() < prefix.size() + 8) return false;
  const std::string_view hex = name.substr(prefix.size(), 8);
  return std::all_of(hex.begin(), hex.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace

bool is_placeholder_serial(std::string_view serial) {
  static constexpr std::array placeholders = {"",
                                              "NA",
                                              "N/A",
                                              "NONE",
                                              "NULL",
                                              "UNKNOWN",
                                              "DEFAULT STRING",
                                              "TBD",
                                              "0",
                                              "TO BE FILLED BY O.E.M.",
                                              "CPLDSERIALNUMBER"};
  const std::string text = upper(serial);
  if (std::find(placeholders.begin(), placeholders.end(), text) != placeholders.end()) return true;
  if (text.starts_with("0123456789")) return true;
  return std::all_of(text.begin(), text.end(), [&text](char c) { return c == text.front(); });
}

std::optional<difference> compare_identity(const journal::Member& declared,
                                           const devices::identity_facts& seen) {
  if (seen.slot.has_value() && !declared.slot().empty() && *seen.slot != declared.slot()) {
    return difference{core::fault::IDENTITY_WRONG_SLOT,
                      "the tray says it sits in another slot than its manifest row", declared.slot(),
                      *seen.slot};
  }
  if (declared.serial().empty()) return std::nullopt;
  const std::string serial = seen.serial.value_or("");
  if (is_placeholder_serial(serial)) {
    return difference{core::fault::IDENTITY_SERIAL_PLACEHOLDER, "the BMC gives no real serial number",
                      declared.serial(), seen.serial.has_value() ? "\"" + serial + "\"" : "nothing"};
  }
  if (serial != declared.serial()) {
    return difference{core::fault::IDENTITY_SERIAL_MISMATCH, "the BMC's serial number is not the manifest's",
                      declared.serial(), serial};
  }
  return std::nullopt;
}

std::optional<difference> declared_difference(const journal::Node& node) {
  const auto told = [](const std::string& text) {
    return text.empty() ? std::optional<std::string>() : std::optional<std::string>(text);
  };
  devices::identity_facts read;
  read.serial = told(node.identity().serial());
  read.slot = told(node.identity().slot());
  return compare_identity(node.spec(), read);
}

std::optional<std::string> foreign_owner(const std::vector<devices::account_facts>& accounts,
                                         std::string_view rack_uid) {
  const std::string own = own_account(rack_uid);
  for (const devices::account_facts& account : accounts) {
    if (is_owner_account(account.name) && !account.name.starts_with(own)) return account.name;
  }
  return std::nullopt;
}

}  // namespace busbar::node
