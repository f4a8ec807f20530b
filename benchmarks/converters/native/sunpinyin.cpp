// SunPinyin 3 by its session interface, keys typed one by one: sunpinyin STATE_FOLDER
#include <cstdlib>
#include <sunpinyin.h>

#include "lines.h"

class Silent : public CIMIWinHandler {
public:
    void commit(const TWCHAR *) override {}
    void updatePreedit(const IPreeditString *) override {}
    void updateCandidates(const ICandidateList *) override {}
};

static std::string utf8(const wstring &text) {
    std::string bytes(4 * text.size() + 1, '\0');
    WCSTOMBS(&bytes[0], text.c_str(), bytes.size());
    return bytes.c_str();
}

int main(int, char **values) {
    setenv("HOME", values[1], 1);  // where it keeps what was chosen
    CIMIView *view = CSunpinyinSessionFactory::getFactory().createSession();
    if (!view) return 1;
    Silent window;
    view->attachWinHandler(&window);
    answer_lines([&](const Syllables &syllables) {
        view->clearIC();
        for (char letter : joined(syllables, '\'')) view->onKeyEvent(CKeyEvent(letter, letter, 0));
        wstring sentence;
        view->getIC()->getBestSentence(sentence, 0);
        return utf8(sentence);
    });
}
