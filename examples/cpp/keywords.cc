// Detects keywords in a WAV file: prints seconds, keyword and score (see stream.h).
#include <cmath>
#include <deque>
#include "stream.h"

int main(int count, char** arguments) {
  if (count != 3) fail("give a bundle and a WAV file");
  const std::string folder = arguments[1], json = read(folder + "/bundle.json");
  const std::vector<std::string> labels = read_lines(folder + "/labels.txt");
  Stream stream(folder + "/onnx/stream_external_float.onnx");
  const double rate = setting(json, "sample_rate"), threshold = setting(json, "threshold");
  const long chunk = stream.shapes["input"][1];
  const double call = chunk / rate;  // seconds
  const long averaged = std::max(1L, std::lrint(setting(json, "smoothing_ms") / 1000 / call));
  const long silent = long(std::ceil(setting(json, "due") / chunk)) + averaged;  // to fill window and mean
  std::vector<float> samples = read_wav(arguments[2], rate);
  samples.insert(samples.begin(), silent * chunk, 0.0f);
  samples.resize(samples.size() + silent * chunk);
  std::deque<std::vector<double>> recent;  // probabilities
  double ignored_until = call;
  for (long number = 1 - silent, start = 0; start + chunk <= long(samples.size()); ++number, start += chunk) {
    const std::vector<float>& logits = stream.step(&samples[start]);
    std::vector<double> odds, mean(labels.size());
    double sum = 0;
    for (float logit : logits) sum += odds.emplace_back(std::exp(double(logit)));
    for (double& value : odds) value /= sum;
    recent.push_back(odds);
    if (long(recent.size()) > averaged) recent.pop_front();
    for (size_t label = 0; label < labels.size(); ++label)
      for (const std::vector<double>& row : recent)
        if (labels[label].front() != '_') mean[label] += row[label] / recent.size();  // not silence, unknown
    const size_t best = std::max_element(mean.begin(), mean.end()) - mean.begin();
    if (number * call < ignored_until || mean[best] < threshold) continue;
    std::printf("%.2f\t%s\t%.3f\n", number * call, labels[best].c_str(), mean[best]);
    ignored_until = number * call + setting(json, "refractory_ms") / 1000;
  }
}
