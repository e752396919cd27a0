#!/bin/sh
# What a first user does, with the programs of BIN alone and no part of the source tree but a table, each step timed:
#   sh tests/first_use.sh BIN TABLE
set -eu
BIN=$(cd "$1" && pwd)
TABLE=$(realpath "$2")
FOLDER=$(mktemp -d)
trap 'rm -rf "$FOLDER"' EXIT
cd "$FOLDER"
cp "$TABLE" phrase-table.gz
cat > moses.ini <<'END'
[feature]
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=phrase-table.gz input-factor=0 output-factor=0

[weight]
TranslationModel0= 0.2 0.2 0.2 0.2
END

step() {
    began=$(date +%s%N)
    name=$1
    shift
    "$@" > out 2> messages || { cat out messages >&2; echo "failed: $name" >&2; exit 1; }
    echo "$name: $((($(date +%s%N) - began) / 1000000)) ms"
}

step "the program's version" "$BIN/moses-rnn-score" --version
step "the one command's version" "$BIN/python" -m moses_rnn --version
step "train for an epoch" "$BIN/moses-rnn-train" phrase-table.gz --preset small --hidden-size 32 --max-epochs 1
step "score the table" "$BIN/moses-rnn-score" phrase-table.gz --moses-ini moses.ini --allow-misfit
step "validate it" "$BIN/moses-rnn" validate phrase-table.rnn.gz
step "write the report" "$BIN/moses-rnn" analyse report phrase-table.rnn.gz -o report.html
step "load it and score two pairs, from Python" "$BIN/python" -c '
import moses_rnn
model = moses_rnn.load("phrase-table.rnn-model")
assert model.score([("the old man", "le vieil homme"), (b"a", b"un")]).shape == (2,)
'
grep -q "Is the network trained well?" report.html
grep -q "num-features=5 path=$FOLDER/phrase-table.rnn.gz" moses.rnn.ini
[ "$(gzip -dc phrase-table.rnn.gz | wc -l)" -eq "$(gzip -dc phrase-table.gz | wc -l)" ]
echo "all of it, in an environment with the wheel alone"
