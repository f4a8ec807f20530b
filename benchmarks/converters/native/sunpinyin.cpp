// SunPinyin 3 by its session interface, all keys at once: sunpinyin STATE_FOLDER
#include <cstdlib>
#include <sunpinyin.h>

#include "lines.h"

static std::string utf8(const wstring &text) {
    std::string bytes(4 * text.size() + 1, '\0');
    WCSTOMBS(&bytes[0], text.c_str(), bytes.size());
    return bytes.c_str();
}

int main(int, char **values) {
    setenv("HOME", values[1], 1);  // it saves choices there
    CIMIView *view = CSunpinyinSessionFactory::getFactory().createSession();
    if (!view) return 1;
    IPySegmentor *segmentor = view->getPySegmentor();
    CIMIContext *context = view->getIC();
    answer_lines([&](const Syllables &syllables) {
        // Otherwise the sentence would be searched again after each key. The search begins where the
        // last key has changed something, so the first letter comes last.
        segmentor->clear();
        context->clear();
        const std::string typed = joined(syllables, '\'');
        for (size_t place = 1; place < typed.size(); ++place) segmentor->push(typed[place]);
        segmentor->insertAt(0, typed[0]);
        wstring sentence;
        if (context->buildLattice(segmentor)) context->getBestSentence(sentence, 0);
        return utf8(sentence);
    });
}
