// libpinyin 2 by its C interface: libpinyin STATE_FOLDER DATA_FOLDER [tones]
#include <pinyin.h>

#include "lines.h"

int main(int count, char **values) {
    pinyin_context_t *context = pinyin_init(values[2], values[1]);
    if (!context) return 1;
    // Earlier choices and unfinished syllables are not used.
    pinyin_option_t options = IS_PINYIN | USE_RESPLIT_TABLE | USE_DIVIDED_TABLE;
    if (count > 3) options |= USE_TONE | FORCE_TONE;
    pinyin_set_options(context, options);
    pinyin_instance_t *instance = pinyin_alloc_instance(context);
    answer_lines([&](const Syllables &syllables) {
        const std::string typed = joined(syllables, '\'');
        std::string result;
        pinyin_parse_more_full_pinyins(instance, typed.c_str());
        char *sentence = nullptr;
        if (pinyin_guess_sentence(instance) && pinyin_get_sentence(instance, 0, &sentence) && sentence)
            result = sentence;
        g_free(sentence);
        pinyin_reset(instance);
        return result;
    });
    pinyin_free_instance(instance);
    pinyin_fini(context);
}
