#!/bin/sh
# Both languages of a corpus, tokenised, into $WORK/corpus/NAME.$SRC and NAME.$TRG, with as many lines as came in:
#   text.sh PREFIX NAME
# Called by pipeline.mk, whose variables are in the environment.
set -eu
prefix=$1 name=$2
log=$WORK/log/tokenise-$name.log

plain() { # FILE, which may have the suffix .gz
	# without a byte order mark and carriage returns, which Moses's BLEU counts; the last line is ended
	if [ -f "$1" ]; then cat "$1"; else zcat "$1.gz"; fi | LC_ALL=C sed -e '1s/^\xEF\xBB\xBF//' -e 's/\r$//' -e '$a\'
}

raw_to_words() { # LANGUAGE
	"$BIN/moses-rnn" tokenise --language "$1" --processes "$THREADS"
}

words() { # LANGUAGE
	if [ "$TOKENISED" = yes ]; then
		plain "$prefix.$1"
	elif [ "$LOWERCASE" = yes ]; then
		plain "$prefix.$1" | raw_to_words "$1" | perl -CSD -pe '$_ = lc'
	else
		plain "$prefix.$1" | raw_to_words "$1"
	fi
}

lines() { # FILE, which may have the suffix .gz
	plain "$1" | wc -l
}

mkdir -p "$WORK/corpus"
: > "$log"
for language in $SRC $TRG; do
	[ -f "$prefix.$language" ] || gzip -t "$prefix.$language.gz" || exit 1
	words "$language" > "$WORK/corpus/$name.$language" 2>> "$log" || {
		tail -n 20 "$log" >&2
		echo "failed; full log: $log" >&2
		exit 1
	}
done

cat "$log" >&2 # warnings

source=$(lines "$prefix.$SRC") target=$(lines "$prefix.$TRG")
[ "$source" -gt 0 ] && [ "$source" -eq "$target" ] || {
	echo "$prefix: expected as many lines in both languages, found $source $SRC and $target $TRG" >&2
	exit 1
}
for language in $SRC $TRG; do
	tokenised=$(wc -l < "$WORK/corpus/$name.$language")
	[ "$tokenised" -eq "$source" ] || {
		echo "$WORK/corpus/$name.$language: expected $source lines, found $tokenised" >&2
		tail -n 20 "$log" >&2
		exit 1
	}
done
