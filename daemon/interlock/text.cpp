#include "daemon/interlock/text.hpp"

#include <vector>

namespace busbar::interlock {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

unsigned byte_at(std::string_view text, std::size_t index) {
  return static_cast<unsigned char>(text[index]);
}

bool is_continuation(unsigned byte) {
  return (byte & 0xC0U) == 0x80U;
}

// Bytes of the character that the text begins with; 0: it begins with none (not shortest form, a surrogate,
// beyond U+10FFFF and a cut character are none).
std::size_t character_size(std::string_view text) {
  const unsigned first = byte_at(text, 0);
  if (first < 0x80U) return 1;
  const std::size_t size = first >= 0xC2U && first <= 0xDFU   ? 2U
                           : (first & 0xF0U) == 0xE0U         ? 3U
                           : first >= 0xF0U && first <= 0xF4U ? 4U
                                                              : 0U;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t index = 1; index < size; ++index) {
    if (!is_continuation(byte_at(text, index))) return 0;
  }
  const unsigned second = byte_at(text, 1);
  const bool outside = (first == 0xE0U && second < 0xA0U) || (first == 0xEDU && second > 0x9FU) ||
                       (first == 0xF0U && second < 0x90U) || (first == 0xF4U && second > 0x8FU);
  return outside ? 0 : size;
}

void mend_field(google::protobuf::Message* message, const google::protobuf::FieldDescriptor* field) {
  const google::protobuf::Reflection* access = message->GetReflection();
  const int count = field->is_repeated() ? access->FieldSize(*message, field) : 1;
  for (int index = 0; index < count; ++index) {
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      mend_texts(field->is_repeated() ? access->MutableRepeatedMessage(message, field, index)
                                      : access->MutableMessage(message, field));
    } else if (field->type() == google::protobuf::FieldDescriptor::TYPE_STRING) {
      const std::string text = field->is_repeated() ? access->GetRepeatedString(*message, field, index)
                                                    : access->GetString(*message, field);
      if (is_utf8(text)) continue;
      if (field->is_repeated()) {
        access->SetRepeatedString(message, field, index, mend_text(text));
      } else {
        access->SetString(message, field, mend_text(text));
      }
    }
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string_view cut_text(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  std::size_t end = bytes_max;
  // Of bytes that are no text at all no more than a character's length is given up.
  for (int back = 0; back < 3 && end > 0 && is_continuation(byte_at(text, end)); ++back) --end;
  return text.substr(0, is_continuation(byte_at(text, end)) ? bytes_max : end);
}

std::string mend_text(std::string_view text) {
  std::string mended;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    mended += size == 0 ? replacement : text.substr(0, size);
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return mended;
}

void mend_texts(google::protobuf::Message* message) {
  std::vector<const google::protobuf::FieldDescriptor*> present;
  message->GetReflection()->ListFields(*message, &present);
  for (const auto* field : present) mend_field(message, field);
}

}  // namespace busbar::interlock
