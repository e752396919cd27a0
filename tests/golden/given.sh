# What the commands of commands.toml read, made in the folder where this runs, from examples/ ($EXAMPLES).
set -e
table() { zcat "$EXAMPLES/phrase-table.gz"; }

# Tables: to train on, to score, with several targets a source, two with lines that are not as they should be, and one cut short
table | awk 'NR % 100 == 1' | gzip -n > table.gz
table | awk 'NR % 1700 == 1' | gzip -n > some.gz
table | awk -F ' \\|\\|\\| ' 'NR == FNR { n[$1]++; next } n[$1] > 2' <(table) - | tail -100 > several
gzip -n < several > several.gz
{ zcat some.gz | head -5; echo 'no fields here'; zcat some.gz | sed -n '6,8p'; echo 'a dog ||| un chien ||| 1 x 1 1'; } > bad
{ zcat some.gz | head -3; echo 'a dog  ||| un chien ||| 1 0 1 1 ||| 0-0 1-1 ||| 1 1 1 ||| |||'; } > odd
head -c 900 some.gz > torn.gz
sed s/phrase-table.gz/some.gz/ "$EXAMPLES/moses.ini" > moses.ini

# Texts with their word alignment, and pairs with a tab between
for side in en fr; do
  zcat "$EXAMPLES/corpus/train.$side.gz" | head -200 > train.$side
  for set in dev test; do head -6 "$EXAMPLES/corpus/$set.$side" > $set.$side; done
done
paste train.en train.fr > pairs.tsv
head -12 pairs.tsv > few.tsv
awk -F '\t' '{ n = split($1, en, " "); m = split($2, fr, " "); line = ""
  for (i = 0; i < n && i < m - 1; i++) line = line i "-" i + (i % 4 == 1) - (i % 4 == 2) " "; print substr(line, 1, length(line) - 1) }' pairs.tsv > train.links
gunzip -c "$EXAMPLES/lm.arpa.gz" > lm.arpa

# Settings of trainings
settings() { printf '%s\n' "${@:2}" > $1.toml; }
sizes=('maxout_size = 4' 'output_rank = 3' 'held_out = 40')
settings deviation 'initial_deviation = 0.5' "${sizes[@]}"
settings ranker 'initial_deviation = 0.5' 'held_out = 40'
settings pairs 'initial_deviation = 0.5' 'maxout_size = 4' 'output_rank = 3' 'held_out = 20'
settings evaluated 'initial_deviation = 0.5' 'evaluate_every = 48' "${sizes[@]}"
settings groundhog 'initial_deviation = 0.5' 'variant = "groundhog"' "${sizes[@]}"
settings lstm 'initial_deviation = 0.5' 'cell = "lstm"' "${sizes[@]}"
settings often 'evaluate_every = 100' "${sizes[@]}"
settings cslm 'first_size = 6' 'second_size = 5' 'held_out = 20'
settings direct 'direct = true' 'held_out = 20'
settings search 'alignment_size = 4' 'maxout_size = 4' 'held_out = 20'
settings deep 'layers = 2'

# A list, with phrases and word alignment
cat > dev.nbest <<'LIST'
0 ||| aujourd&apos; hui , des enfants voient ces boulangers .  ||| LM0= -20.5 WordPenalty0= -8 ||| -9.1 ||| 0-1=0-2 2-3=3-4 4-6=5-5 7-8=6-7 9-13=8-8 ||| 0-0 1-2 2-3 3-4 6-5 7-6 8-7 13-8
0 ||| aujourd&apos; hui , des enfants qui parlent voient ces boulangers derrière deux grands champs .  ||| LM0= -24.25 WordPenalty0= -14 ||| -9.7 ||| 0-1=0-2 2-3=3-4 4-5=5-6 6=7 7-8=8-9 9-13=10-14 ||| 0-0 1-2 2-3 3-4 4-5 5-6 6-7 7-8 8-9 9-10 10-11 12-13 13-14
1 ||| le roi prend dimanche .  ||| LM0= -12 WordPenalty0= -5 ||| -6 ||| 3-5=0-2 0-2=3-3 6-8=4-4 ||| 3-0 4-1 5-2 1-3 8-4
1 ||| dimanche , ce roi prend la pomme .  ||| LM0= -13.5 WordPenalty0= -8 ||| -6.25 ||| 0-2=0-1 3-5=2-4 6-8=5-7 ||| 1-0 2-1 3-2 4-3 5-4 6-5 7-6 8-7
2 ||| une grande chanteuse rend une chaise dans une plage .  ||| LM0= -18.75 WordPenalty0= -10 ||| -7.5 ||| 0-2=0-2 3-6=3-5 7-9=6-8 10=9 ||| 0-0 1-1 2-2 3-3 5-4 6-5 7-6 8-7 9-8 10-9
2 ||| un grand chanteur rend un fauteuil sur une plage .  ||| LM0= -19 WordPenalty0= -10 ||| -7.25 ||| 0-2=0-2 3-6=3-5 7-9=6-8 10=9 ||| 0-0 1-1 2-2 3-3 5-4 6-5 7-6 8-7 9-8 10-9
LIST
head -3 dev.en > list.en
head -2 dev.en > two.en
head -3 dev.fr > list.fr

# Raw text
printf '%s\n' "Don't stop -- Mr. Smith's [old] dog & cat cost \$3.50 | each." '' "L'homme d'aujourd'hui : « c'est-à-dire » 1 000,5 %…" > raw

# What the pipeline leaves of two systems
mkdir -p work/corpus work/decode work/tune/{baseline,rnn}.1
for set in dev test; do
  cp $set.fr work/corpus
  sed 's/ les / la /; s/ un / une /' $set.fr > work/decode/baseline.1.$set.fr
  sed 's/ un / une /' $set.fr > work/decode/rnn.1.$set.fr
  for system in baseline rnn; do awk '{ print $0, "|0-" NF - 1 "| " }' work/decode/$system.1.$set.fr > work/decode/$system.1.$set.segments; done
done
printf '[feature]\nKENLM name=LM0\n[weight]\nTranslationModel0= 0.1 0.2\nLM0= 0.5\n' > work/tune/baseline.1/moses.ini
sed 's/0.2$/0.2 0.00001/' work/tune/baseline.1/moses.ini > work/tune/rnn.1/moses.ini
