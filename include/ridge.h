/* Ridge's C API: models, requests, the account, and every operator over the caller's memory.
 *
 * EXPERIMENTAL: names and layouts may change in any release until RIDGE_API_VERSION is 1.
 *
 * Conventions, which hold for every function below:
 * Status. Functions that can fail return a ridge_status. ridge_error_message() then says, in one line, which
 * value was wrong and what to do. No C++ exception and no exit() leaves the library. A null pointer where a
 * value is needed is RIDGE_INVALID_ARGUMENT naming the argument. Outputs of a function that failed are
 * untouched, unless it says otherwise.
 *
 * Versioned structs begin with struct_size, which the caller sets to sizeof its own struct: the
 * RIDGE_..._INIT macros do. Fields that a newer header added and this library does not know must be zero;
 * those that an older header did not have yet are taken as zero. A zero field means its default.
 * ridge_message, ridge_tensor and ridge_tensor_type are not versioned: they will not change.
 *
 * Buffers of unknown size are asked for first: with capacity 0 (the buffer may then be null) a function
 * succeeds and stores the size needed; with a capacity that is too small it also stores the size, writes
 * nothing, and returns RIDGE_BUFFER_TOO_SMALL.
 *
 * Handles (ridge_model, ridge_device, ridge_stream, ridge_call) are made by ..._create or ridge_model_load
 * and given back by ..._destroy, which take null. Whatever a handle was made from may be destroyed before it.
 *
 * Threads. "Any thread" means: from several threads at once, on the same handle too. No thread may use a
 * handle that another is destroying.
 *
 * Shapes are outermost first. Sizes are in bytes where the name says so, else in elements.
 */
#ifndef RIDGE_H
#define RIDGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RIDGE_API_VERSION 0

typedef enum ridge_status {
  RIDGE_OK = 0,
  RIDGE_INVALID_ARGUMENT = 1,   /* the caller's value is wrong */
  RIDGE_DECLINED = 2,           /* valid, but no kernel or feature here takes it */
  RIDGE_NOT_FOUND = 3,          /* a file, operator, request or tensor that should exist does not */
  RIDGE_CORRUPT = 4,            /* a file contradicts itself or its format */
  RIDGE_RESOURCE_EXHAUSTED = 5, /* memory, disk, a limit on input */
  RIDGE_IO = 6,                 /* the operating system refused */
  RIDGE_CANCELLED = 7,          /* the caller's callback asked to stop */
  RIDGE_INTERNAL = 8,           /* a defect of the library */
  RIDGE_BUFFER_TOO_SMALL = 9    /* the size needed was stored */
} ridge_status;

/* "0.1.0". Any thread. */
const char* ridge_version(void);
/* "invalid argument", ... for people; "unknown status" for other numbers. Any thread. */
const char* ridge_status_name(int32_t status);
/* Why the last call on this thread that failed did so; "" before the first. Valid until this thread's next
 * call that fails. At most 1023 bytes. Any thread. */
const char* ridge_error_message(void);

typedef enum ridge_log_level {
  RIDGE_LOG_DEBUG = 0,
  RIDGE_LOG_INFO = 1,
  RIDGE_LOG_WARNING = 2,
  RIDGE_LOG_ERROR = 3
} ridge_log_level;
/* `line` is not terminated by NUL and valid during the call alone. Called from any thread, by one at a time.
 * It must not call ridge_set_log. */
typedef void (*ridge_log_callback)(void* user, ridge_log_level level, const char* line, size_t line_bytes);
/* Sends lines of `least` (a ridge_log_level) and above to `callback`; null: back to stderr (which shows
 * warnings and errors at first). Process-wide. Any thread; when it returns, the callback before it is no
 * longer running. */
ridge_status ridge_set_log(ridge_log_callback callback, void* user, int32_t least);

/* Gives back a string that the library made; null is taken. Any thread. */
void ridge_string_destroy(char* string);

/* ---- Models ---- */

typedef struct ridge_model ridge_model;

typedef struct ridge_model_options {
  size_t struct_size;
  int32_t threads;         /* 0: the cores that affinity mask and CPU quota allow */
  int32_t max_sequences;   /* that run at once; 0: 1 */
  const char* isa;         /* "scalar", "avx2", "avx512"; null: the best that this processor has */
  const char* activations; /* "int8" (null: this; where weights are quantized), "bf16" or "f32" */
  const char* kv;          /* cache format: "f32", "f16", "bf16", "q8"; null: f16, f32 with f32 activations */
  const char* assume_pre;  /* pre-tokenizer of a file that names none or an unknown one; null: the file's */
  const char* without_fusions; /* fused operators to leave apart, "a,b" or "all"; null: none */
  int64_t context;             /* tokens of prompt and answer together; 0: what the model was made for */
  int64_t page_size;           /* tokens a KV page holds; 0: 64 */
  int64_t prefill_tokens;      /* prompt tokens a step, over all requests; 0: 512 */
} ridge_model_options;
#define RIDGE_MODEL_OPTIONS_INIT \
  { sizeof(ridge_model_options), 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0, 0 }

/* Opens a GGUF file, checks it as hostile input and loads it. `options` may be null: defaults. Any thread. */
ridge_status ridge_model_load(const char* path, const ridge_model_options* options, ridge_model** model);
/* Ends what it runs. No other call on the model may be running. */
void ridge_model_destroy(ridge_model* model);

typedef struct ridge_model_info {
  size_t struct_size;
  const char* architecture; /* "llama"; valid as long as the model */
  int64_t layers, hidden, heads, kv_heads, vocab;
  int64_t context;      /* as loaded, not the model's longest */
  int64_t weight_bytes; /* as they lie in memory */
  int64_t kv_bytes;     /* of the cache, all pages */
  int32_t threads;
  int32_t bos, eos; /* token ids; -1: none */
  int32_t has_chat_template;
} ridge_model_info;
#define RIDGE_MODEL_INFO_INIT \
  { sizeof(ridge_model_info), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
/* Any thread. */
ridge_status ridge_model_get_info(const ridge_model* model, ridge_model_info* info);

/* ---- Text ---- */

enum {
  /* The beginning-of-text token first, where the model's file asks for it. */
  RIDGE_TOKENIZE_BOS = 1,
  /* Control tokens written out in the text become their ids; else they stay text. */
  RIDGE_TOKENIZE_SPECIAL = 2
};
/* Ids of `text` (any bytes, `text_bytes` of them). ids [*count], see Buffers. Any thread. */
ridge_status ridge_tokenize(const ridge_model* model, const char* text, size_t text_bytes, unsigned flags,
                            int32_t* ids, size_t capacity, size_t* count);

enum { RIDGE_DETOKENIZE_CONTROL = 1 /* control tokens as their text; else they give nothing */ };
/* Text of ids [count], with NUL at its end, which `*text_bytes` counts and `capacity` needs room for. Invalid
 * UTF-8 becomes U+FFFD. Errors: an id outside the vocabulary. Any thread. */
ridge_status ridge_detokenize(const ridge_model* model, const int32_t* ids, size_t count, unsigned flags,
                              char* text, size_t capacity, size_t* text_bytes);

/* One message of a chat, UTF-8 ended by NUL. Roles are the chat template's to judge. */
typedef struct ridge_message {
  const char* role;
  const char* content;
} ridge_message;
/* Ids of messages [message_count] through the chat template of the model's file, ready for an answer. Control
 * tokens written in a message stay text. Errors: no message; no template in the file (RIDGE_DECLINED); what
 * the template raises. Any thread. */
ridge_status ridge_chat_encode(const ridge_model* model, const ridge_message* messages, size_t message_count,
                               int32_t* ids, size_t capacity, size_t* count);

/* ---- Requests ---- */

typedef struct ridge_sampling {
  size_t struct_size;
  float temperature;        /* 0: the most likely token, the lowest id on ties */
  float top_p;              /* above 0 to 1; 0: off, as 1 */
  float min_p;              /* 0 to 1; 0: off */
  float repetition_penalty; /* above 0; 0: off, as 1 */
  float presence_penalty, frequency_penalty;
  int64_t top_k;           /* 0: off */
  uint64_t seed;           /* the same seed gives the same draws */
  const int32_t* bias_ids; /* [bias_count] */
  const float* bias;       /* [bias_count], added to the logits of bias_ids */
  size_t bias_count;
} ridge_sampling;
#define RIDGE_SAMPLING_INIT \
  { sizeof(ridge_sampling), 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, 0 }

typedef struct ridge_request {
  size_t struct_size;
  const int32_t* prompt; /* [prompt_count]; copied */
  size_t prompt_count;
  int64_t max_new_tokens;         /* 1 or more */
  const ridge_sampling* sampling; /* null: greedy */
  const int32_t* end_ids;         /* [end_count] that end the answer besides the model's own */
  size_t end_count;
  int32_t ignore_model_end; /* not 0: the model's own end tokens do not end the answer */
} ridge_request;
#define RIDGE_REQUEST_INIT \
  { sizeof(ridge_request), NULL, 0, 0, NULL, NULL, 0, 0 }

typedef enum ridge_finish {
  RIDGE_FINISH_NONE = 0,   /* more tokens follow */
  RIDGE_FINISH_END = 1,    /* the token is one that ends answers */
  RIDGE_FINISH_LENGTH = 2, /* max_new_tokens or the context is reached */
  RIDGE_FINISH_ERROR = 3   /* this request alone failed */
} ridge_finish;

typedef struct ridge_event {
  size_t struct_size;
  int64_t request;
  int32_t token;  /* -1 with RIDGE_FINISH_ERROR */
  float logprob;  /* natural, under the model's own distribution: before temperature and filters */
  int32_t finish; /* a ridge_finish */
  int32_t status; /* a ridge_status: why, with RIDGE_FINISH_ERROR */
  char message[256];
} ridge_event;
#define RIDGE_EVENT_INIT                  \
  {                                       \
    sizeof(ridge_event), 0, 0, 0, 0, 0, { \
      0                                   \
    }                                     \
  }

/* Takes a request in and stores its id, above 0; nothing runs before a step. Errors: an empty prompt, ids
 * outside the vocabulary, a prompt that fills the context, parameters out of range. Any thread. */
ridge_status ridge_submit(ridge_model* model, const ridge_request* request, int64_t* id);
/* Runs one batch: a token of every request that answers and prompts within the budget. Stores how many events
 * wait for ridge_next_event, and how many submitted requests are not finished (either pointer may be null).
 * Any thread; steps run one after another. A step that fails ends its requests, each with an event that says
 * why; requests submitted later run. */
ridge_status ridge_step(ridge_model* model, size_t* events_waiting, size_t* requests_running);
/* Takes the oldest event out. *found is 0 when there is none. Any thread. */
ridge_status ridge_next_event(ridge_model* model, ridge_event* event, int* found);
/* Ends a request without further events; its waiting ones are dropped. RIDGE_NOT_FOUND: no unfinished request
 * has this id. Any thread; waits for a running step. */
ridge_status ridge_cancel(ridge_model* model, int64_t id);

typedef struct ridge_token {
  size_t struct_size; /* set by the library */
  int32_t token;
  float logprob;
  const char*
      text; /* what became certain with this token: whole UTF-8 characters, often none; ended by NUL */
  size_t text_bytes;
  int32_t finish; /* a ridge_finish */
} ridge_token;
/* 0 goes on; anything else stops the answer. `token` is valid during the call alone. */
typedef int (*ridge_token_callback)(void* user, const ridge_token* token);

typedef struct ridge_answer {
  size_t struct_size;
  int64_t tokens; /* generated, an end token included */
  double logprob; /* sum over them */
  double first_token_us, total_us;
  int32_t finish; /* a ridge_finish; RIDGE_FINISH_NONE when the callback stopped it */
} ridge_answer;
#define RIDGE_ANSWER_INIT \
  { sizeof(ridge_answer), 0, 0, 0, 0, 0 }

/* Submits, steps to the end and calls back for every token; `callback` and `answer` may be null. Other
 * requests of the model go on in the same steps; their events wait for ridge_next_event. RIDGE_CANCELLED: the
 * callback stopped it (`answer` is filled). Any thread; the callback may call any function but
 * ridge_model_destroy. */
ridge_status ridge_generate(ridge_model* model, const ridge_request* request, ridge_token_callback callback,
                            void* user, ridge_answer* answer);

/* ---- The account ---- */

typedef struct ridge_workload {
  size_t struct_size;
  int64_t prompt_tokens; /* of each request, a fixed pseudo-random sequence of ordinary tokens; 0: 128 */
  int64_t output_tokens; /* of each; 0: 32 */
  int64_t batch;         /* requests at once; 0: as many as max_sequences */
  const char*
      machine_file; /* as `ridge probe` or ridge_probe wrote it; null: this machine is measured first */
} ridge_workload;
#define RIDGE_WORKLOAD_INIT \
  { sizeof(ridge_workload), 0, 0, 0, NULL }

/* Measures this machine's ceilings and writes the machine file at `path`: half a minute on an idle machine;
 * on a busy one repetitions are left out after 40 s, and it gives up after 75 s (RIDGE_DECLINED). threads 0,
 * isa null: as in ridge_model_options. Alone on the machine, or the ceilings are too low. Errors: a path that
 * cannot be written, before anything is measured. Any thread. */
ridge_status ridge_probe(int32_t threads, const char* isa, const char* path);
/* Runs the workload and stores the account as one JSON object, the one of `ridge profile --json`; give it
 * back with ridge_string_destroy. Where other work ran while the ceilings were measured, a warning is logged
 * and the object's machine has the key "disturbed". Errors: requests that are running; prompt and output that
 * the context does not hold; a machine file of another processor, instruction set or build, or of fewer
 * threads than the model (RIDGE_DECLINED). Any thread; the model's other calls wait. */
ridge_status ridge_profile(ridge_model* model, const ridge_workload* workload, char** json);

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "ridge/operators.h"

#endif /* RIDGE_H */
