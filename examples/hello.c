/* Answers a question from a model, token by token: hello MODEL.gguf [QUESTION]
 *
 *   cc -std=c11 hello.c -lridge -lstdc++ -lm -pthread
 */
#include <ridge.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(ridge_status status, const char* what) {
  if (status == RIDGE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, ridge_status_name(status), ridge_error_message());
  exit(1);
}

static void log_line(void* user, ridge_log_level level, const char* line, size_t bytes) {
  (void)user;
  fprintf(stderr, "[%d] %.*s\n", (int)level, (int)bytes, line);
}

/* Prints what became certain, and remembers the least likely token. */
static int print_token(void* user, const ridge_token* token) {
  float* least = user;
  if (token->logprob < *least) *least = token->logprob;
  fwrite(token->text, 1, token->text_bytes, stdout);
  fflush(stdout);
  return 0;
}

/* The ids of the question: through the model's chat template where it has one. */
static int32_t* encode(const ridge_model* model, const char* question, size_t* count) {
  ridge_model_info info = RIDGE_MODEL_INFO_INIT;
  check(ridge_model_get_info(model, &info), "info");
  const ridge_message message = {"user", question};
  int32_t* ids = NULL;
  *count = 0;
  /* First how many there are, then the ids. */
  for (size_t capacity = 0;; capacity = *count) {
    if (info.has_chat_template)
      check(ridge_chat_encode(model, &message, 1, ids, capacity, count), "chat");
    else
      check(ridge_tokenize(model, question, strlen(question), RIDGE_TOKENIZE_BOS, ids, capacity, count),
            "text");
    if (ids != NULL || *count == 0) return ids;
    if ((ids = malloc(*count * sizeof *ids)) == NULL) {
      fprintf(stderr, "no memory for %zu tokens\n", *count);
      exit(1);
    }
  }
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: hello MODEL.gguf [QUESTION]\n");
    return 2;
  }
  check(ridge_set_log(log_line, NULL, RIDGE_LOG_WARNING), "log");
  ridge_model_options options = RIDGE_MODEL_OPTIONS_INIT;
  options.context = 512;
  ridge_model* model = NULL;
  check(ridge_model_load(argv[1], &options, &model), "load");

  ridge_request request = RIDGE_REQUEST_INIT;
  int32_t* ids = encode(model, argc > 2 ? argv[2] : "Why is the sky blue?", &request.prompt_count);
  request.prompt = ids;
  request.max_new_tokens = 24;
  float least = 0;
  ridge_answer answer = RIDGE_ANSWER_INIT;
  check(ridge_generate(model, &request, print_token, &least, &answer), "generate");
  printf("\n%lld tokens, first after %.1f ms, mean logprob %.3f, least %.3f\n", (long long)answer.tokens,
         answer.first_token_us / 1e3, answer.logprob / (double)answer.tokens, (double)least);

  free(ids);
  ridge_model_destroy(model);
  return answer.tokens > 0 ? 0 : 1;
}
