/* Ridge's C API, second part: every operator by name over the caller's memory. Included by ridge.h, whose
 * conventions hold here. EXPERIMENTAL.
 *
 *   ridge_device -> ridge_stream      where and in which order
 *   ridge_call                        one operator with its operands and parameters
 *   ridge_call_workspace, then ridge_call_run with that much memory of the caller's
 */
#ifndef RIDGE_OPERATORS_H
#define RIDGE_OPERATORS_H

#include "../ridge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tensors: the layout of DLPack's DLTensor ---- */

/* Source: DLPack 1.0 (dmlc/dlpack, include/dlpack/dlpack.h), structs DLTensor, DLDevice and DLDataType. Where
 * that header was included before this one, its own types are taken. */
#ifdef DLPACK_DLPACK_H_
typedef DLDataType ridge_tensor_type;
typedef DLTensor ridge_tensor;
#else
typedef struct ridge_tensor_device {
  int32_t device_type; /* RIDGE_TENSOR_CPU */
  int32_t device_id;
} ridge_tensor_device;
typedef struct ridge_tensor_type {
  uint8_t code; /* RIDGE_TENSOR_INT, ... */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} ridge_tensor_type;
typedef struct ridge_tensor {
  void* data;
  ridge_tensor_device device;
  int32_t ndim; /* 1 to 5 */
  ridge_tensor_type dtype;
  int64_t* shape;   /* [ndim] */
  int64_t* strides; /* [ndim] in elements, 0 or more; null: dense */
  uint64_t byte_offset;
} ridge_tensor;
#endif
enum { RIDGE_TENSOR_CPU = 1 };
enum {
  RIDGE_TENSOR_INT = 0,
  RIDGE_TENSOR_UINT = 1,
  RIDGE_TENSOR_FLOAT = 2,
  RIDGE_TENSOR_BFLOAT = 4,
  RIDGE_TENSOR_BOOL = 6
};

/* Element types of operands; functions take them as int32_t, so that any number has a defined meaning. The
 * block-quantized ones have no DLPack code: they come as bytes. */
typedef enum ridge_dtype {
  RIDGE_F32 = 0,
  RIDGE_F16 = 1,
  RIDGE_BF16 = 2,
  RIDGE_I8 = 3,
  RIDGE_U8 = 4,
  RIDGE_I32 = 5,
  RIDGE_I64 = 6,
  RIDGE_BOOL = 7,
  RIDGE_Q8_0 = 8,  /* 32 weights in 34 bytes, as GGUF files hold them; so the others */
  RIDGE_Q4_0 = 9,  /* 32 in 18 */
  RIDGE_Q4_1 = 10, /* 32 in 20 */
  RIDGE_Q5_0 = 11, /* 32 in 22 */
  RIDGE_Q4_K = 12, /* 256 in 144 */
  RIDGE_Q6_K = 13  /* 256 in 210 */
} ridge_dtype;
/* "f32", "q4_1", ...; null for other numbers. Any thread. */
const char* ridge_dtype_name(int32_t dtype);
/* Elements and bytes of a block; 1 element for plain types. Any thread. */
ridge_status ridge_dtype_block(int32_t dtype, int64_t* elements, int64_t* bytes);

/* ---- What there is ---- */

size_t ridge_operator_count(void); /* Any thread. */
/* Name of an operator; null when `index` is not below the count. Any thread. */
const char* ridge_operator_name(size_t index);

typedef struct ridge_operator_info {
  size_t struct_size;
  size_t operands, params;
} ridge_operator_info;
#define RIDGE_OPERATOR_INFO_INIT \
  { sizeof(ridge_operator_info), 0, 0 }
/* Errors: RIDGE_NOT_FOUND naming the operators that there are. Any thread. */
ridge_status ridge_operator_describe(const char* op, ridge_operator_info* info);

typedef enum ridge_role { RIDGE_IN = 0, RIDGE_OUT = 1, RIDGE_IN_OUT = 2 } ridge_role;
typedef enum ridge_data_class {
  RIDGE_WEIGHTS = 0,
  RIDGE_KV = 1,
  RIDGE_ACTIVATIONS = 2,
  RIDGE_SCALES = 3,
  RIDGE_INDICES = 4
} ridge_data_class;
#define RIDGE_DATA_CLASSES 5

typedef struct ridge_operand_info {
  size_t struct_size;
  const char* name;    /* valid as long as the program; so the others */
  const char* dims;    /* symbolic, outermost first: "tokens hidden" */
  const char* same_as; /* takes the dtype of that operand; null: one of dtypes */
  uint64_t dtypes;     /* bit 1 << ridge_dtype for each that it takes */
  int32_t role;        /* a ridge_role */
  int32_t data_class;  /* a ridge_data_class */
  int32_t optional;    /* not 0: may be absent */
} ridge_operand_info;
#define RIDGE_OPERAND_INFO_INIT \
  { sizeof(ridge_operand_info), NULL, NULL, NULL, 0, 0, 0, 0 }
/* Any thread. */
ridge_status ridge_operator_operand(const char* op, size_t index, ridge_operand_info* info);
/* The name of a scalar argument, or of a count: a number of the real batch that shapes do not tell, for the
 * account alone. *name is valid as long as the program. Any thread. */
ridge_status ridge_operator_param(const char* op, size_t index, const char** name);

/* ---- Where it runs ---- */

typedef struct ridge_device ridge_device;
typedef struct ridge_device_options {
  size_t struct_size;
  int32_t threads; /* as in ridge_model_options */
  const char* isa;
} ridge_device_options;
#define RIDGE_DEVICE_OPTIONS_INIT \
  { sizeof(ridge_device_options), 0, NULL }
/* A CPU with threads of its own; `options` may be null. Any thread. */
ridge_status ridge_device_create(const ridge_device_options* options, ridge_device** device);
void ridge_device_destroy(ridge_device* device);

/* An ordered queue of calls. A CPU's stream runs each before ridge_call_run returns, on the calling thread
 * and the device's own. */
typedef struct ridge_stream ridge_stream;
ridge_status ridge_stream_create(ridge_device* device, ridge_stream** stream); /* Any thread. */
void ridge_stream_destroy(ridge_stream* stream);

/* ---- One call ---- */

typedef struct ridge_call ridge_call; /* one thread at a time */
/* Errors: RIDGE_NOT_FOUND naming the operators that there are. Any thread. */
ridge_status ridge_call_create(ridge_device* device, const char* op, ridge_call** call);
void ridge_call_destroy(ridge_call* call);

/* Views the caller's memory, which must live as long as the call uses it; the tensor struct itself is not
 * kept. null takes the operand away. Errors: no such operand; another device; a dtype without a ridge_dtype;
 * sizes that overflow; data that is not aligned to its elements. */
ridge_status ridge_call_set_operand(ridge_call* call, const char* operand, const ridge_tensor* tensor);
/* Block-quantized rows: `bytes` is dense uint8 [rows, bytes of a row], seen as [rows, columns] of `dtype`. */
ridge_status ridge_call_set_blocks(ridge_call* call, const char* operand, int32_t dtype,
                                   const ridge_tensor* bytes);
/* What ridge_pack made with `packer` of weights [rows, columns] of `dtype`. Weight operands only. `packed` is
 * as ridge_pack wrote it, `packed_bytes` at least what ridge_packed_bytes says. */
ridge_status ridge_call_set_packed(ridge_call* call, const char* operand, const char* packer, int32_t dtype,
                                   int64_t rows, int64_t columns, void* packed, int64_t packed_bytes);
/* A scalar argument or count by name; booleans are 0 or 1. Errors: an integer argument that is none, or
 * beyond 2^53. */
ridge_status ridge_call_set_param(ridge_call* call, const char* param, double value);
ridge_status ridge_call_get_param(const ridge_call* call, const char* param, double* value);

/* Checks the call as it stands and stores the workspace that ridge_call_run wants, often 0. Errors: operands
 * that are missing or do not fit, naming operand, value found and value wanted; RIDGE_DECLINED: no kernel
 * takes it. */
ridge_status ridge_call_workspace(const ridge_call* call, int64_t* bytes);
/* Checks and runs. `workspace`: at least that much memory, aligned to 64 bytes; null when it is 0. A call may
 * run again, with other operands too. Any thread for different calls: those on streams of one device run one
 * after another. Not checked, as it would cost a pass over them: values of index operands, and memory that
 * overlaps where the operator's documentation does not allow it. */
ridge_status ridge_call_run(ridge_call* call, ridge_stream* stream, void* workspace, int64_t workspace_bytes);

typedef struct ridge_cost {
  size_t struct_size;
  const char* kernel;            /* that dispatch takes; valid as long as the program */
  int64_t flops, executed_flops; /* useful; with padding and masked parts */
  int64_t read_bytes[RIDGE_DATA_CLASSES], written_bytes[RIDGE_DATA_CLASSES]; /* by ridge_data_class */
} ridge_cost;
#define RIDGE_COST_INIT                    \
  {                                        \
    sizeof(ridge_cost), NULL, 0, 0, {0}, { \
      0                                    \
    }                                      \
  }
/* What the call computes and moves: the account's own figures. Errors as of ridge_call_workspace. */
ridge_status ridge_call_cost(const ridge_call* call, ridge_cost* cost);

/* ---- Packed weights ---- */

/* Bytes of weights [rows, columns] of `dtype` as `packer`'s kernels on this device want them; 0: they take
 * the rows as they are, as do operators that pack nothing. Any thread. */
ridge_status ridge_packed_bytes(const ridge_device* device, const char* packer, int32_t dtype, int64_t rows,
                                int64_t columns, int64_t* bytes);
/* Packs dense rows [rows, columns] (`from_bytes` in all) into the caller's memory, which is aligned to
 * 64 bytes. Any thread. */
ridge_status ridge_pack(ridge_device* device, const char* packer, int32_t dtype, int64_t rows,
                        int64_t columns, const void* from, int64_t from_bytes, void* packed,
                        int64_t packed_bytes);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* RIDGE_OPERATORS_H */
