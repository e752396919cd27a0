# How version 1.0.0 made the files of 1.0.0/, in an empty folder; see README.md.
set -e
zcat "$EXAMPLES/phrase-table.gz" | awk 'NR % 50 == 1' > pairs
awk 'NR % 20 == 1' pairs | gzip -n > table.gz
for side in en fr; do zcat "$EXAMPLES/corpus/train.$side.gz" | head -400 > train.$side; head -6 "$EXAMPLES/corpus/dev.$side" > dev.$side; done
printf '%s\n' '[feature]' 'KENLM name=LM0 path=lm.arpa order=3 factor=0' '[weight]' 'LM0= 1' > moses.ini
echo none > lm.arpa

settings() { printf '%s\n' "${@:2}" > $1.toml; }
settings phrases 'initial_deviation = 0.5' 'maxout_size = 4' 'output_rank = 4' 'held_out = 40'
settings sentences 'initial_deviation = 0.5' 'alignment_size = 4' 'maxout_size = 4' 'held_out = 20'
settings words 'initial_deviation = 0.5' 'held_out = 20'
small="--preset small --hidden-size 4 --embedding-size 4 --learning-rate 0.02 --dropout 0 --batch-size 16 --threads 1 --quiet"
models=reranker/models
mkdir -p $models
moses-rnn-train pairs $small --config phrases.toml --max-epochs 10 --shortlist 140 --model phrases
moses-rnn nmt train train --source en --target fr $small --config sentences.toml --max-epochs 10 --subwords 90 --model $models/sentences
moses-rnn cslm train train.en --network rnnlm ${small/--embedding-size 4/} --config words.toml --max-epochs 10 --shortlist 120 --model $models/words

moses-rnn-score table.gz --model phrases --threads 1 --quiet
moses-rnn reranker train moses.ini --dev dev --source en --target en --add $models/sentences --add $models/words -o reranker --threads 1
moses-rnn reranker translate reranker dev.en --json -o translated.json --threads 1

python - > scores.json << 'PYTHON'
import json, moses_rnn
sources, targets = (open(f"dev.{side}").read().splitlines() for side in ("en", "fr"))
sentences = moses_rnn.load("reranker/models/sentences", device="cpu").score(sources, targets)
words = moses_rnn.load_language_model("reranker/models/words", device="cpu").score(sources)
print(json.dumps({"sentences": list(sentences), "words": list(words)}, indent=1))
PYTHON

sed -i "s|$PWD|/kept|g" reranker/reranker.toml
rm -r pairs table.gz train.* ./*.toml ./*/training $models/*/training reranker/lists reranker/*.json reranker/.*.lock
