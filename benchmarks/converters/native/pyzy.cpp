// PyZy (the engine of ibus-pinyin): pyzy STATE_FOLDER. Always takes the first candidate.
#include <PyZy/InputContext.h>

#include "lines.h"

class Silent : public PyZy::InputContext::Observer {
public:
    void commitText(PyZy::InputContext *, const std::string &) override {}
    void inputTextChanged(PyZy::InputContext *) override {}
    void cursorChanged(PyZy::InputContext *) override {}
    void preeditTextChanged(PyZy::InputContext *) override {}
    void auxiliaryTextChanged(PyZy::InputContext *) override {}
    void candidatesChanged(PyZy::InputContext *) override {}
};

static size_t hanzi(const std::string &text) {
    size_t count = 0;
    for (unsigned char byte : text) count += (byte & 0xc0) != 0x80;
    return count;
}

int main(int, char **values) {
    PyZy::InputContext::init(values[1], values[1]);
    Silent observer;
    PyZy::InputContext *context = PyZy::InputContext::create(PyZy::InputContext::FULL_PINYIN, &observer);
    answer_lines([&](const Syllables &syllables) {
        std::string result;
        for (size_t first = 0; first < syllables.size();) {
            // It accepts 16 syllables or 64 letters at once. The last candidate of a piece is read, not chosen:
            // choosing it would commit the piece, and the engine would learn it.
            const size_t count = std::min<size_t>(8, syllables.size() - first);
            Syllables piece(syllables.begin() + first, syllables.begin() + first + count);
            context->reset();
            for (char letter : joined(piece, '\'')) context->insert(letter);
            size_t done = 0;
            PyZy::Candidate candidate;
            while (done < count && context->getCandidate(0, candidate)) {
                result += candidate.text;
                done += hanzi(candidate.text);
                if (done >= count || !context->selectCandidate(0)) break;
            }
            first += count;
        }
        return result;
    });
}
