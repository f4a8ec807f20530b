// Writes the syllables of a WAV file as they are known: prints seconds and syllable (see stream.h).
#include "stream.h"

int main(int count, char** arguments) {
  if (count != 3) fail("give a bundle and a WAV file");
  const std::string folder = arguments[1], json = read(folder + "/bundle.json");
  const std::vector<std::string> labels = read_lines(folder + "/labels.txt");
  Stream stream(folder + "/onnx/stream_external_float.onnx");
  const double rate = setting(json, "sample_rate");
  const long chunk = stream.shapes["input"][1];
  // Rows of logits before those of the sound; as much silence brings out the last ones.
  long late = setting(json, "delay") + setting(json, "look_ahead") / setting(json, "time_stride");
  std::vector<float> samples = read_wav(arguments[2], rate);
  samples.resize((samples.size() / chunk + late + 2) * chunk);
  std::string previous = "_";  // the blank of CTC
  for (size_t end = chunk; end <= samples.size(); end += chunk) {
    const std::vector<float>& logits = stream.step(&samples[end - chunk]);
    for (auto row = logits.begin(); row != logits.end(); row += labels.size()) {
      if (late-- > 0) continue;
      const std::string& best = labels[std::max_element(row, row + labels.size()) - row];
      if (best != previous && best != "_" && best != " ") std::printf("%.2f\t%s\n", end / rate, best.c_str());
      previous = best;
    }
  }
}
