// The line protocol of a converter in a process of its own: lines of syllables in, lines of hanzi out.
//
// A line has syllables separated by spaces; its output is one line, empty if nothing was found. An empty
// line requests all pending output. benchmarks/converters/process.py is the other end.
#pragma once

#include <functional>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

using Syllables = std::vector<std::string>;

inline std::string joined(const Syllables &syllables, char between) {
    std::string text;
    for (const auto &syllable : syllables) {
        if (!text.empty()) text += between;
        text += syllable;
    }
    return text;
}

inline void answer_lines(const std::function<std::string(const Syllables &)> &convert) {
    std::ios::sync_with_stdio(false);
    std::cin.tie(nullptr);
    std::string line;
    while (std::getline(std::cin, line)) {
        if (line.empty()) {
            std::cout.flush();
            continue;
        }
        std::istringstream words(line);
        Syllables syllables;
        for (std::string word; words >> word;) syllables.push_back(word);
        std::cout << convert(syllables) << '\n';
    }
}
