// A streamed model with ONNX Runtime alone, for keywords.cc, syllables.cc, or a program on a device, which
// gives `Stream::step` the samples of its microphone. Export a model that takes samples:
//   python export.py RUN --input samples --format onnx --mode stream_external --precision float
//   g++ -std=c++17 -O2 examples/cpp/keywords.cc -I ORT/include -L ORT/lib -Wl,-rpath,ORT/lib -lonnxruntime -o find_keywords
//   ./find_keywords RUN/export recording.wav
// ORT is the folder of an ONNX Runtime release; for Android take the same two parts from its package.

#pragma once
#include <onnxruntime_c_api.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

[[noreturn]] inline void fail(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  std::exit(2);
}

inline std::string read(const std::string& path) {
  std::ostringstream content;
  if (!(content << std::ifstream(path, std::ios::binary).rdbuf())) fail(path + ": can't be read");
  return content.str();
}

// A number of bundle.json, in which each of the names that are used here occurs once.
inline double setting(const std::string& json, const std::string& name) {
  const size_t at = json.find("\"" + name + "\":");
  if (at == std::string::npos) fail("bundle.json has no '" + name + "'");
  return std::strtod(&json[at + name.size() + 3], nullptr);
}

// Samples in [-1, 1) of a 16-bit mono WAV file; its other chunks, such as tags, are skipped.
inline std::vector<float> read_wav(const std::string& path, unsigned rate) {
  const std::string file = read(path);
  uint16_t header[8] = {};  // format, channels, rate (2), bytes a second (2), bytes a frame, bits
  uint32_t size = 0;
  for (size_t at = 12; at + 8 <= file.size(); at += 8 + size + size % 2) {
    std::memcpy(&size, &file[at + 4], sizeof size);
    if (file.compare(at, 4, "fmt ") == 0 && size >= sizeof header && at + 8 + size <= file.size())
      std::memcpy(header, &file[at + 8], sizeof header);
    if (file.compare(at, 4, "data") != 0) continue;
    if (header[1] != 1 || header[7] != 16 || header[2] + 65536u * header[3] != rate) break;
    if (at + 8 + size > file.size()) fail(path + ": the file is cut off");
    std::vector<float> samples;
    for (size_t i = at + 8; i + 2 <= at + 8 + size; i += 2)
      samples.push_back(static_cast<int16_t>((file[i] & 255) | file[i + 1] << 8) / 32768.0f);
    return samples;
  }
  fail(path + ": the model takes mono 16-bit WAV of " + std::to_string(rate) + " Hz");
}

inline std::vector<std::string> read_lines(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream text(read(path));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

// A model with external states. Each input and output has one buffer, at first zeros, which all calls use.
struct Stream {
  explicit Stream(const std::string& path) : ort(OrtGetApiBase()->GetApi(ORT_API_VERSION)) {
    auto options = get<OrtSessionOptions*>(ort->CreateSessionOptions);
    check(ort->SetIntraOpNumThreads(options, 1));
    auto environment = get<OrtEnv*>(ort->CreateEnv, ORT_LOGGING_LEVEL_ERROR, "stream");
    session = get<OrtSession*>(ort->CreateSession, environment, path.c_str(), options);
    for (size_t i = 0; i < get<size_t>(ort->SessionGetInputCount, session); ++i)
      add(given, i, ort->SessionGetInputName, ort->SessionGetInputTypeInfo);
    for (size_t i = 0; i < get<size_t>(ort->SessionGetOutputCount, session); ++i)
      add(made, i, ort->SessionGetOutputName, ort->SessionGetOutputTypeInfo);
    if (shapes["input"].size() != 2) fail(path + ": it takes features; export it with --input samples");
  }

  // shapes["input"][1] samples -> logits, of shapes["output"]. The states stay for the next call.
  const std::vector<float>& step(const float* samples) {
    std::copy_n(samples, shapes["input"][1], values["input"].begin());
    check(ort->Run(session, nullptr, given.names.data(), given.tensors.data(), given.names.size(),
                   made.names.data(), made.names.size(), made.tensors.data()));
    for (const std::string name : given.names)
      if (name != "input") std::copy_n(&values[name + "_next"][0], values[name].size(), &values[name][0]);
    return values["output"];
  }

  struct Side { std::vector<const char*> names; std::vector<OrtValue*> tensors; };

  template <class Name, class Type> void add(Side& side, size_t index, Name get_name, Type get_type) {
    auto allocator = get<OrtAllocator*>(ort->GetAllocatorWithDefaultOptions);
    auto memory = get<OrtMemoryInfo*>(ort->CreateCpuMemoryInfo, OrtArenaAllocator, OrtMemTypeDefault);
    char* name = get<char*>(get_name, session, index, allocator);
    auto type = get<OrtTypeInfo*>(get_type, session, index);
    auto info = get<const OrtTensorTypeAndShapeInfo*>(ort->CastTypeInfoToTensorInfo, type);
    auto& shape = shapes[name] = std::vector<int64_t>(get<size_t>(ort->GetDimensionsCount, info));
    auto& own = values[name] = std::vector<float>(get<size_t>(ort->GetTensorShapeElementCount, info));
    check(ort->GetDimensions(info, shape.data(), shape.size()));
    side.names.push_back(name);
    side.tensors.push_back(get<OrtValue*>(ort->CreateTensorWithDataAsOrtValue, memory, own.data(),
                                          own.size() * sizeof(float), shape.data(), shape.size(),
                                          ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT));
  }

  // A function of ONNX Runtime writes its result to its last argument.
  template <class Result, class F, class... Arguments> Result get(F function, Arguments... arguments) {
    Result result{};
    check(function(arguments..., &result));
    return result;
  }
  void check(OrtStatus* status) { if (status) fail(ort->GetErrorMessage(status)); }

  const OrtApi* ort;
  OrtSession* session = nullptr;
  Side given, made;
  std::map<std::string, std::vector<int64_t>> shapes;
  std::map<std::string, std::vector<float>> values;
};
