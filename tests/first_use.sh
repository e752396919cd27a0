#!/bin/sh
# What a first user does by README.md, each step timed, with no part of the source tree but a table:
#   sh tests/first_use.sh BIN TABLE       with the programs in BIN
#   sh tests/first_use.sh CLONE TABLE     in a fresh environment, from `pip install CLONE` (or a wheel)
# TRAIN_FLAGS are options of moses-rnn-train; an empty TRAIN_FLAGS trains as README.md does.
set -eu
WHAT=$(realpath "$1")
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

BIN=$WHAT
if [ ! -x "$BIN/moses-rnn" ]; then
    BIN=$FOLDER/venv/bin
    step "make an environment" python3 -m venv venv
    step "install torch" "$BIN/pip" install torch --index-url https://download.pytorch.org/whl/cpu
    step "install the package" "$BIN/pip" install "$WHAT"
fi
step "the program's version" "$BIN/moses-rnn-score" --version
cat out
step "the one command's version" "$BIN/python" -m moses_rnn --version
# shellcheck disable=SC2086 # several words
step "train" "$BIN/moses-rnn-train" phrase-table.gz ${TRAIN_FLAGS---preset small --hidden-size 32 --max-epochs 2}
step "score the table" "$BIN/moses-rnn-score" phrase-table.gz --moses-ini moses.ini
cat messages
step "validate it" "$BIN/moses-rnn" validate phrase-table.rnn.gz
step "write the report" "$BIN/moses-rnn" analyse report phrase-table.rnn.gz -o report.html
step "load it and score two pairs, from Python" "$BIN/python" -c '
import moses_rnn
model = moses_rnn.load("phrase-table.rnn-model")
assert model.score([("the old man", "le vieil homme"), (b"a", b"un")]).shape == (2,)
'
echo "0 ||| le chat ||| LM0= -1 ||| -1" > test.nbest
printf '[weight]\nLM0= 1\n' > weights.ini
echo "le chat" > test.fr
step "rerank a list" "$BIN/moses-rnn" nbest rerank test.nbest weights.ini --reference test.fr
grep -q "Is the network well trained?" report.html
grep -q "num-features=5 path=$FOLDER/phrase-table.rnn.gz" moses.rnn.ini
[ "$(gzip -dc phrase-table.rnn.gz | wc -l)" -eq "$(gzip -dc phrase-table.gz | wc -l)" ]
echo "all of it, with nothing of the source tree"
