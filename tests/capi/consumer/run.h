/* The same code as C11 and as C++. */
#include <ridge.h>
#include <stdio.h>

static int failed(const char* what) {
  printf("%s: %s\n", what, ridge_error_message());
  return 1;
}

static ridge_tensor f32_tensor(float* data, int32_t ndim, int64_t* shape) {
  ridge_tensor t;
  t.data = data, t.device.device_type = RIDGE_TENSOR_CPU, t.device.device_id = 0;
  t.ndim = ndim, t.shape = shape, t.strides = NULL, t.byte_offset = 0;
  t.dtype.code = RIDGE_TENSOR_FLOAT, t.dtype.bits = 32, t.dtype.lanes = 1;
  return t;
}

static int run_rms_norm(void) {
  float x[4] = {1, -1, 1, -1}, w[4] = {1, 2, 3, 4}, y[4] = {0, 0, 0, 0};
  int64_t rows[2] = {1, 4}, row[1] = {4};
  ridge_tensor tx = f32_tensor(x, 2, rows), ty = f32_tensor(y, 2, rows), tw = f32_tensor(w, 1, row);
  ridge_device* device = NULL;
  ridge_stream* stream = NULL;
  ridge_call* call = NULL;
  int i, wrong = 0;
  if (ridge_device_create(NULL, &device) != RIDGE_OK) return failed("device");
  if (ridge_stream_create(device, &stream) != RIDGE_OK) return failed("stream");
  if (ridge_call_create(device, "rms_norm", &call) != RIDGE_OK) return failed("call");
  if (ridge_call_set_operand(call, "x", &tx) != RIDGE_OK ||
      ridge_call_set_operand(call, "y", &ty) != RIDGE_OK ||
      ridge_call_set_operand(call, "w", &tw) != RIDGE_OK ||
      ridge_call_set_param(call, "epsilon", 0) != RIDGE_OK)
    return failed("arguments");
  if (ridge_call_run(call, stream, NULL, 0) != RIDGE_OK) return failed("run");
  for (i = 0; i < 4; ++i) wrong += y[i] - x[i] * w[i] > 1e-5f || y[i] - x[i] * w[i] < -1e-5f;
  ridge_call_destroy(call);
  ridge_stream_destroy(stream);
  ridge_device_destroy(device);
  printf("ridge %s: rms_norm is %s\n", ridge_version(), wrong == 0 ? "right" : "wrong");
  return wrong != 0;
}
