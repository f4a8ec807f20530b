/* The part of ONNX Runtime's C interface that examples/cpp uses, for machines with its Python package only: the
 * package has the library without headers. The library gives its functions as a table to which new ones are only
 * ever appended; the numbers here are the places in it, and 11 the version of the interface that has them. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define ORT_API_VERSION 11

typedef struct OrtStatus OrtStatus;
typedef struct OrtEnv OrtEnv;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtSession OrtSession;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtValue OrtValue;
typedef enum { ORT_LOGGING_LEVEL_ERROR = 3 } OrtLoggingLevel;
typedef enum { OrtArenaAllocator = 1 } OrtAllocatorType;
typedef enum { OrtMemTypeDefault = 0 } OrtMemType;
typedef enum { ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1 } ONNXTensorElementDataType;

typedef OrtStatus* (*OrtGetName)(const OrtSession*, size_t, OrtAllocator*, char**);
typedef OrtStatus* (*OrtGetType)(const OrtSession*, size_t, OrtTypeInfo**);

typedef struct OrtApi {
  void* places_0_to_1[2];
  const char* (*GetErrorMessage)(const OrtStatus*);
  OrtStatus* (*CreateEnv)(OrtLoggingLevel, const char*, OrtEnv**);
  void* places_4_to_6[3];
  OrtStatus* (*CreateSession)(const OrtEnv*, const char*, const OrtSessionOptions*, OrtSession**);
  void* place_8;
  OrtStatus* (*Run)(OrtSession*, const OrtRunOptions*, const char* const*, const OrtValue* const*, size_t,
                    const char* const*, size_t, OrtValue**);
  OrtStatus* (*CreateSessionOptions)(OrtSessionOptions**);
  void* places_11_to_23[13];
  OrtStatus* (*SetIntraOpNumThreads)(OrtSessionOptions*, int);
  void* places_25_to_29[5];
  OrtStatus* (*SessionGetInputCount)(const OrtSession*, size_t*);
  OrtStatus* (*SessionGetOutputCount)(const OrtSession*, size_t*);
  void* place_32;
  OrtGetType SessionGetInputTypeInfo;
  OrtGetType SessionGetOutputTypeInfo;
  void* place_35;
  OrtGetName SessionGetInputName;
  OrtGetName SessionGetOutputName;
  void* places_38_to_48[11];
  OrtStatus* (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo*, void*, size_t, const int64_t*, size_t,
                                               ONNXTensorElementDataType, OrtValue**);
  void* places_50_to_54[5];
  OrtStatus* (*CastTypeInfoToTensorInfo)(const OrtTypeInfo*, const OrtTensorTypeAndShapeInfo**);
  void* places_56_to_60[5];
  OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo*, size_t*);
  OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo*, int64_t*, size_t);
  void* place_63;
  OrtStatus* (*GetTensorShapeElementCount)(const OrtTensorTypeAndShapeInfo*, size_t*);
  void* places_65_to_68[4];
  OrtStatus* (*CreateCpuMemoryInfo)(OrtAllocatorType, OrtMemType, OrtMemoryInfo**);
  void* places_70_to_77[8];
  OrtStatus* (*GetAllocatorWithDefaultOptions)(OrtAllocator**);
} OrtApi;

typedef struct OrtApiBase {
  const OrtApi* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)(void);
} OrtApiBase;

#ifdef __cplusplus
extern "C"
#endif
const OrtApiBase* OrtGetApiBase(void);
