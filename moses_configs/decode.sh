#!/bin/sh
# Translations of a text of the pipeline on stdout, made with the part of the models that the text needs:
#   decode.sh INI TEXT NAME [FLAG…]      NAME is that of its logs; the flags are the decoder's
# Called by pipeline.mk, whose variables are in the environment.
set -eu
ini=$1 text=$2 name=$3
shift 3
filtered=$WORK/filtered/$name
filter_log=$WORK/log/filter-$name.log
log=$WORK/log/$name.log

failed() { # LOG
	tail -n 20 "$1" >&2
	echo "failed; full logs: $log and $filter_log" >&2
	exit 1
}

rm -rf "$filtered"
mkdir -p "$WORK/filtered"
sh "${0%/*}/filter.sh" "$filtered" "$ini" "$text" > "$filter_log" 2>&1 ||
	failed "$filter_log"
"$MOSES_ROOT/bin/moses" -f "$filtered/moses.ini" -threads "$THREADS" "$@" < "$text" 2> "$log" || failed "$log"
rm -rf "$filtered"
