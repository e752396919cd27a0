#!/bin/sh
# Prints --force if a model has been started and one of the files that it learns from has changed since:
#   restart.sh MODEL FILE…
set -eu
config=$1/config.json
state=$1/training/state.safetensors # without a model, until the first evaluation
shift
[ -e "$config" ] || config=$state
[ -e "$config" ] || exit 0
for file; do
	if [ "$file" -nt "$config" ]; then
		echo --force
		break
	fi
done
