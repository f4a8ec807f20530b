// Google Pinyin of Android (libgooglepinyin): googlepinyin STATE_FOLDER DICTIONARY
#include <googlepinyin/pinyinime.h>

#include "lines.h"

using namespace ime_pinyin;

static void append_utf8(std::string &text, char16 code) {  // the dictionary has no hanzi beyond U+FFFF
    if (code < 0x80) {
        text += char(code);
    } else {
        text += char(0xe0 | code >> 12);
        text += char(0x80 | (code >> 6 & 0x3f));
        text += char(0x80 | (code & 0x3f));
    }
}

static void append_best(std::string &text, const std::string &typed) {
    char16 found[kMaxSearchSteps + 1] = {0};
    im_reset_search();
    if (!im_search(typed.c_str(), typed.size()) || !im_get_candidate(0, found, kMaxSearchSteps)) return;
    for (const char16 *code = found; *code; ++code) append_utf8(text, *code);
}

int main(int, char **values) {
    const std::string own_words = std::string(values[1]) + "/user.dat";
    if (!im_open_decoder(values[2], own_words.c_str())) return 1;
    answer_lines([&](const Syllables &syllables) {
        // It accepts this many letters at once: longer sentences are divided.
        const size_t longest = kMaxSearchSteps - 1;
        std::string result, typed;
        for (const auto &syllable : syllables) {
            if (typed.size() + 1 + syllable.size() > longest) {
                append_best(result, typed);
                typed.clear();
            }
            typed += (typed.empty() ? "" : "'") + syllable;
        }
        append_best(result, typed);
        return result;
    });
    im_close_decoder();
}
