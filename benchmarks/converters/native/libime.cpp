// libime (the engine of fcitx 5): libime STATE_FOLDER DICTIONARY LANGUAGE_MODEL
#include <libime/core/userlanguagemodel.h>
#include <libime/pinyin/pinyincontext.h>
#include <libime/pinyin/pinyindictionary.h>
#include <libime/pinyin/pinyinime.h>

#include "lines.h"

int main(int, char **values) {
    auto dictionary = std::make_unique<libime::PinyinDictionary>();
    dictionary->load(libime::PinyinDictionary::SystemDict, values[2], libime::PinyinDictFormat::Binary);
    libime::PinyinIME engine(std::move(dictionary), std::make_unique<libime::UserLanguageModel>(values[3]));
    libime::PinyinContext context(&engine);
    answer_lines([&](const Syllables &syllables) {
        context.clear();
        context.type(joined(syllables, '\''));
        return context.sentence();
    });
}
