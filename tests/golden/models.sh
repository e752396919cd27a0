# The networks of tests/golden/models, of which most commands' results are; `make golden` makes them where they are not.
# They are kept because a network that another processor has trained differs in more than its last digits.
set -e
tiny="--preset small --max-epochs 1 --learning-rate 0.01 --dropout 0 --threads 1 --quiet"
phrases="$EXAMPLES/phrase-table.gz --hidden-size 8 --embedding-size 6 --config phrases.toml --shortlist 100 --batch-size 16"
printf '%s\n' 'maxout_size = 6' 'output_rank = 6' > phrases.toml
moses-rnn-train $phrases $tiny --model model
moses-rnn-train $phrases $tiny --model other --seed 2
moses-rnn-train $phrases $tiny --model inverse --inverse

for side in en fr; do gunzip -c "$EXAMPLES/corpus/train.$side.gz" > train.$side; done
words="--shortlist 100 --batch-size 32"
printf '%s\n' 'first_size = 8' 'second_size = 8' > cslm.toml
moses-rnn cslm train train.fr $words $tiny --model cslm --order 3 --embedding-size 6 --config cslm.toml --self-normalise 0.1
moses-rnn cslm train train.fr $words $tiny --model bengio --network bengio --order 3 --embedding-size 6 --hidden-size 8
moses-rnn cslm train train.fr $words $tiny --model rnnlm --network rnnlm --hidden-size 8 --batch-size 4

printf '%s\n' 'alignment_size = 5' 'maxout_size = 6' > search.toml
sentences="train --source en --target fr --hidden-size 10 --embedding-size 6 --config search.toml --batch-size 8"
moses-rnn nmt train $sentences $tiny --model search --source-words 80 --target-words 80 --max-epochs 4

rm -r train.en train.fr ./*.toml ./*/training
