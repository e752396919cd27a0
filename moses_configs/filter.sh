#!/bin/sh
# The part of an ini's models that a text needs, in a new folder:
#   filter.sh FOLDER INI TEXT
# Called by decode.sh and mert-moses.pl, whose --filtercmd takes no flags; MOSES_ROOT and FILTER_FLAGS are in the
# environment.
set -eu
# shellcheck disable=SC2086 # several flags or none
exec "$MOSES_ROOT/scripts/training/filter-model-given-input.pl" $FILTER_FLAGS "$@"
