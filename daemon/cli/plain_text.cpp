#include "daemon/cli/plain_text.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace busbar::cli {

std::size_t not_text_at(std::string_view bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto byte = [bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
    const unsigned lead = byte(at);
    const std::size_t length = lead < 0x80   ? 1
                               : lead < 0xC2 ? 0
                               : lead < 0xE0 ? 2
                               : lead < 0xF0 ? 3
                               : lead < 0xF5 ? 4
                                             : 0;
    if (lead == 0 || length == 0 || at + length > bytes.size()) return at;
    for (std::size_t i = 1; i < length; ++i) {
      if ((byte(at + i) & 0xC0U) != 0x80U) return at;
    }
    if (length > 1) {
      const unsigned second = byte(at + 1);
      const bool wrong = (lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
                         (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F);
      if (wrong) return at;
    }
    at += length;
  }
  return std::string_view::npos;
}

std::string shown(const std::string& path) {
  if (not_text_at(path) == std::string_view::npos) return path;
  std::string text;
  for (const char c : path)
    text +=
        c >= ' ' && c <= '~' ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text;
}

std::string wrong_text(const options& said) {
  std::vector<std::pair<std::string_view, std::string_view>> texts{
      {"--reason", said.reason},     {"--filter", said.filter},   {"--for", said.condition},
      {"--from", said.from_step},    {"--pin", said.pin},         {"--request-id", said.request_id},
      {"--etag", said.etag},         {"--members", said.members}, {"the kind", said.kind_word},
      {"--endpoint", said.endpoint}, {"--user", said.user}};
  const bool files = said.command == "manifest apply" || said.command == "manifest diff";
  if (!files) {
    for (const std::string& name : said.names) texts.emplace_back("a name", name);
  }
  for (const auto& [what, text] : texts) {
    if (text.size() > longest_text)
      return fmt::format("{} is {} bytes long; {} are taken at most", what, text.size(), longest_text);
    if (const std::size_t at = not_text_at(text); at != std::string_view::npos) {
      return fmt::format("{} is no UTF-8 text at byte {}: {}; give it as UTF-8", what, at + 1,
                         shown(std::string(text)));
    }
  }
  return {};
}

}  // namespace busbar::cli
