/* One operator by name, over memory of this program: y = rms_norm(x) * w. Needs no model.
 *
 *   cc -std=c11 rms_norm.c -lridge -lstdc++ -lm -pthread
 */
#include <math.h>
#include <ridge.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 3, HIDDEN = 64 };

static void check(ridge_status status, const char* what) {
  if (status == RIDGE_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, ridge_status_name(status), ridge_error_message());
  exit(1);
}

/* A dense float tensor that views `data`. */
static ridge_tensor view(float* data, int64_t* shape, int32_t ndim) {
  ridge_tensor t = {0};
  t.data = data;
  t.device.device_type = RIDGE_TENSOR_CPU;
  t.ndim = ndim;
  t.dtype.code = RIDGE_TENSOR_FLOAT, t.dtype.bits = 32, t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

static void list_operands(const char* op) {
  ridge_operator_info info = RIDGE_OPERATOR_INFO_INIT;
  check(ridge_operator_describe(op, &info), op);
  printf("%s takes", op);
  for (size_t i = 0; i < info.operands; ++i) {
    ridge_operand_info operand = RIDGE_OPERAND_INFO_INIT;
    check(ridge_operator_operand(op, i, &operand), op);
    printf(" %s [%s]", operand.name, operand.dims);
  }
  for (size_t i = 0; i < info.params; ++i) {
    const char* name = NULL;
    check(ridge_operator_param(op, i, &name), op);
    printf(" %s", name);
  }
  printf("\n");
}

int main(void) {
  static float x[ROWS * HIDDEN], y[ROWS * HIDDEN], w[HIDDEN];
  int64_t rows_shape[] = {ROWS, HIDDEN}, row_shape[] = {HIDDEN};
  const double epsilon = 1e-6;
  for (int i = 0; i < ROWS * HIDDEN; ++i) x[i] = (float)sin(i);
  for (int i = 0; i < HIDDEN; ++i) w[i] = 1 + (float)i / HIDDEN;

  list_operands("rms_norm");
  ridge_device* device = NULL;
  ridge_stream* stream = NULL;
  ridge_call* call = NULL;
  check(ridge_device_create(NULL, &device), "device");
  check(ridge_stream_create(device, &stream), "stream");
  check(ridge_call_create(device, "rms_norm", &call), "call");
  const ridge_tensor tx = view(x, rows_shape, 2), ty = view(y, rows_shape, 2), tw = view(w, row_shape, 1);
  check(ridge_call_set_operand(call, "x", &tx), "x");
  check(ridge_call_set_operand(call, "y", &ty), "y");
  check(ridge_call_set_operand(call, "w", &tw), "w");
  check(ridge_call_set_param(call, "epsilon", epsilon), "epsilon");

  /* Workspace is asked for first and stays this program's. */
  int64_t workspace_bytes = 0;
  check(ridge_call_workspace(call, &workspace_bytes), "workspace");
  void* workspace = NULL;
  if (workspace_bytes > 0 &&
      (workspace = aligned_alloc(64, (size_t)(workspace_bytes + 63) / 64 * 64)) == NULL) {
    fprintf(stderr, "no memory for %lld bytes of workspace\n", (long long)workspace_bytes);
    return 1;
  }
  check(ridge_call_run(call, stream, workspace, workspace_bytes), "run");

  ridge_cost cost = RIDGE_COST_INIT;
  check(ridge_call_cost(call, &cost), "cost");
  printf("kernel %s: %lld FLOPs, %lld bytes of activations read, %lld written\n", cost.kernel,
         (long long)cost.flops, (long long)cost.read_bytes[RIDGE_ACTIVATIONS],
         (long long)cost.written_bytes[RIDGE_ACTIVATIONS]);

  /* By the formula, in double. */
  double worst = 0;
  for (int r = 0; r < ROWS; ++r) {
    double squares = 0;
    for (int i = 0; i < HIDDEN; ++i) squares += (double)x[r * HIDDEN + i] * x[r * HIDDEN + i];
    for (int i = 0; i < HIDDEN; ++i) {
      const double wanted = x[r * HIDDEN + i] / sqrt(squares / HIDDEN + epsilon) * w[i];
      worst = fmax(worst, fabs(y[r * HIDDEN + i] - wanted));
    }
  }
  printf("largest difference to the formula: %g\n", worst);

  free(workspace);
  ridge_call_destroy(call);
  ridge_stream_destroy(stream);
  ridge_device_destroy(device);
  return worst < 1e-5 ? 0 : 1;
}
