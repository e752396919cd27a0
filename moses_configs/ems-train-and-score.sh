#!/bin/sh
# A step of Moses's experiment.perl (see ems.config beside this file): called with the stems of the phrase table and of
# the new one, it trains a network on the first and writes the second with the network's score.
# RNN_TRAIN_FLAGS and RNN_SCORE_FLAGS are passed on. A step that was stopped resumes when it is run again.
set -eu
if [ $# -ne 2 ]; then
	echo "usage: $0 PHRASE_TABLE_STEM NEW_PHRASE_TABLE_STEM" >&2
	exit 2
fi
# shellcheck disable=SC2086 # flags are words
moses-rnn-train "$1" --model "$2.rnn-model" ${RNN_TRAIN_FLAGS-}
resume=
[ ! -e "$(dirname "$2")/.$(basename "$2").gz.state" ] || resume=--resume
# shellcheck disable=SC2086
moses-rnn-score "$1" "$2" --model "$2.rnn-model" $resume ${RNN_SCORE_FLAGS-}
