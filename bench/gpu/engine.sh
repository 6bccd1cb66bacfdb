#!/usr/bin/env bash
# The engine on a GPU: bench/gpu/engine.sh BUILD_FOLDER OUT_FOLDER [PART...]
# BUILD_FOLDER: of the cuda preset, with ridge and goldens_test. PART: doctor, probe, goldens, smollm2 (row G12),
# fusions (SmolLM2 with each fused operator apart, one by one), step (rows G10, 16 GB of random weights), prompt (of 2048 tokens,
# the same weights), profile; default: all. Models come by RIDGE_SMOLLM2 and RIDGE_GEMMA3.
# STEP_OPTIONS: more options of the steps, --no-fuse linear_rope_kv say.
# OUT_FOLDER gets a log or JSON object a part. Tokens and logits of the goldens are compared at the bounds of the CPU.
set -u
build=$1 out=$2
shift 2
parts=${*:-doctor probe goldens smollm2 fusions profile step prompt}
mkdir -p "$out"
export RIDGE_MACHINE=$out/machine.json
# shellcheck source=bench/gpu/cublaslt.sh
. "$(dirname "$0")/cublaslt.sh"
failed=0
part() { # NAME COMMAND…: its output in a log, of which the end is shown
  local name=$1 began=$SECONDS
  shift
  "$@" >"$out/$name.log" 2>&1 || { failed=1 && echo "FAILED: $name"; }
  echo "--- $name, $((SECONDS - began)) s"
  tail -n 40 "$out/$name.log"
}
ridge=$build/ridge
for wanted in $parts; do
  case $wanted in
    doctor) part doctor "$ridge" doctor ;;
    probe) part probe "$ridge" probe --device cuda -o "$RIDGE_MACHINE" ;;
    goldens) RIDGE_TEST_DEVICE=cuda part goldens "$build/goldens_test" --gtest_filter='*f32_activations*:*layer_by_layer*' ;;
    smollm2)
      for way in "" --no-look-ahead "--no-graphs --no-look-ahead" "--no-fuse all" "--activations bf16"; do
        # shellcheck disable=SC2086
        part "smollm2${way// /}" "$ridge" bench "$RIDGE_SMOLLM2" --device cuda --prompt-tokens 128 --output-tokens 256 --context 1024 --json $way
      done
      ;;
    fusions)
      for fused in linear_add norm_linear_qkv norm_linear_swiglu linear_qkv linear_swiglu rope_kv_write; do
        part "smollm2-without-$fused" "$ridge" bench "$RIDGE_SMOLLM2" --device cuda --prompt-tokens 128 --output-tokens 256 --context 1024 --json --no-fuse $fused
      done
      ;;
    profile)
      part profile "$ridge" profile "$RIDGE_SMOLLM2" --device cuda --prompt-tokens 128 --output-tokens 64 --context 1024 --machine "$RIDGE_MACHINE"
      ;;
    step)
      for batch in 1 8 64; do
        # Prompts end one a step, so that the first has decoded for as many steps as there are others.
        format=bf16 tokens=$((64 + 2 * batch)) runs=3
        [ "$batch" -gt 1 ] || format=f32
        # shellcheck disable=SC2086
        part "step-$batch" "$ridge" bench llama-3-8b --synthetic --device cuda --activations $format --kv bf16 --page-size 16 \
          --context 2304 --prompt-tokens 2048 --prefill-tokens 2048 --output-tokens $tokens --batch "$batch" --deep --runs $runs --json ${STEP_OPTIONS:-}
      done
      ;;
    prompt)
      for run in 1 2 3; do
        part "prompt-$run" "$ridge" bench llama-3-8b --synthetic --device cuda --activations bf16 --kv bf16 --page-size 16 \
          --context 2304 --prompt-tokens 2048 --prefill-tokens 2048 --output-tokens 8 --runs 5 --json
      done
      ;;
    *) echo "no part is called $wanted" && failed=1 ;;
  esac
done
exit $failed
