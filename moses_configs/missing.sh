#!/bin/sh
# Print on stderr everything that the pipeline needs but cannot find; exit with 1 if there is anything.
# Called by pipeline.mk, whose variables are in the environment.
set -eu

anything=0
missing() {
	echo "missing: $1" >&2
	anything=1
}

needs_program() { # PROGRAM EXTRA
	[ -x "$BIN/$1" ] || missing "$BIN/$1: pip install '$2'"
}

given() { # NAME FILE
	[ -z "$2" ] || [ -f "$2" ] || missing "$2: given as $1"
}

one_of() { # NAME VALUE ALLOWED…
	name=$1 value=$2
	shift 2
	for allowed; do
		[ "$value" != "$allowed" ] || return 0
	done
	missing "$name that is one of: $*"
}

corpus() { # NAME PREFIX
	for language in $SRC $TRG; do
		[ -f "$2.$language" ] || [ -f "$2.$language.gz" ] ||
			missing "$2.$language or $2.$language.gz: a corpus ($1=)"
	done
}

is_share() { # VALUE
	awk -v share="$1" 'BEGIN { exit !(share ~ /^[0-9]*\.?[0-9]+$/ && share > 0 && share <= 1) }'
}

lines() { # FILE, which may have the suffix .gz
	file=$1
	[ -f "$file" ] || file=$1.gz
	gzip -cdf "$file" 2> /dev/null | sed '$a\' | wc -l
}

# Sentences for tuning and tests, which are needed hours after the training text
parallel() { # NAME PREFIXES
	for prefix in $2; do
		for language in $SRC $TRG; do
			[ -f "$prefix.$language" ] || [ -f "$prefix.$language.gz" ] || continue 2
		done
		source=$(lines "$prefix.$SRC") target=$(lines "$prefix.$TRG")
		[ "$source" -gt 0 ] && [ "$source" -eq "$target" ] ||
			missing "$prefix with as many lines in both languages ($1=), found $source $SRC and $target $TRG"
	done
}

corpora() { # NAME PREFIXES
	[ -n "$2" ] || missing "$1, the prefix of a corpus: $1=data/x for data/x.$SRC and data/x.$TRG, plain or .gz"
	for prefix in $2; do
		corpus "$1" "$prefix"
	done
}

# --- Moses ---
if [ -z "$MOSES_ROOT" ]; then
	missing 'MOSES_ROOT, the folder of a built Moses (github.com/moses-smt/mosesdecoder; ./bjam -j4)'
else
	programs='moses mert extractor'
	[ "$TUNER" != mira ] || programs="$programs kbmira"
	[ -n "$PHRASE_TABLE" ] || programs="$programs lmplz build_binary extract score consolidate lexical-reordering-score"
	for program in $programs; do
		[ -x "$MOSES_ROOT/bin/$program" ] || missing "$MOSES_ROOT/bin/$program: build Moses there with ./bjam"
	done
	for script in mert-moses.pl train-model.perl filter-model-given-input.pl clean-corpus-n.perl; do
		script=$MOSES_ROOT/scripts/training/$script
		[ -f "$script" ] || missing "$script: part of Moses"
	done
fi

# --- other programs ---
for program in perl gzip sort; do
	command -v "$program" > /dev/null || missing "$program: part of the operating system"
done
needs_program moses-rnn moses-rnn
needs_program sacrebleu sacrebleu
case $ALIGNER in
fast_align)
	[ -n "$PHRASE_TABLE" ] && [ -z "$WITH_WORDS" ] ||
		{ command -v fast_align && command -v atools; } > /dev/null ||
		missing 'fast_align and atools in PATH'
	;;
thot)
	[ -n "$PHRASE_TABLE" ] && [ -z "$WITH_WORDS" ] ||
		"$BIN_PYTHON" -c 'import sys, importlib.util as u; sys.exit(not u.find_spec("thot"))' ||
		missing "an aligner: fast_align and atools in PATH, or pip install 'moses-rnn[align]'"
	;;
mgiza) [ -x "$MGIZA_BIN/mgiza" ] || missing 'MGIZA_BIN/mgiza: the programs of github.com/moses-smt/mgiza' ;;
*) missing 'an ALIGNER that is one of: auto fast_align thot mgiza' ;;
esac

# --- files ---
[ -n "$PHRASE_TABLE" ] && [ -z "$WITH_NETWORKS" ] || corpora TRAIN "$TRAIN"
corpora DEV "$DEV"
corpora TEST "$TEST"
case $SRC:$TRG in
"$SRC:$SRC" | :* | *: | */*) missing "two languages SRC and TRG, the suffixes of texts, found $SRC and $TRG" ;;
*)
	parallel DEV "$DEV"
	parallel TEST "$TEST"
	;;
esac
[ -z "$(printf '%s\n' $SETS train all clean domain corpus align lm phrase-table baseline dictionary results | sort | uniq -d)" ] ||
	missing 'TEST sets whose names differ, none of them the name of a step or another text'
for set in $SETS; do
	case $set in
	train-* | score-* | export-* | extend-* | tune-* | decode-* | lists-* | features-* | prune-*)
		missing "TEST sets not named like steps, found $set"
		;;
	esac
done
if [ -n "$SELECT" ]; then
	corpora IN_DOMAIN "$IN_DOMAIN"
	is_share "$SELECT" || missing "SELECT above 0 and at most 1, found $SELECT"
	"$BIN_PYTHON" -c 'import sys, importlib.util as u; sys.exit(not u.find_spec("kenlm"))' ||
		missing "kenlm, for SELECT: pip install 'moses-rnn[lm]'"
fi
[ -z "$PHRASE_TABLE" ] || [ -z "$LM_TEXT" ] || missing "an empty LM_TEXT: BASELINE_INI has its own n-gram model"
[ -z "$PHRASE_TABLE" ] || [ -z "$SELECT" ] || [ -n "$WITH_NETWORKS" ] || missing 'an empty SELECT: these SYSTEMS use no corpus'
for text in $LM_TEXT; do
	given LM_TEXT "$text"
done
given PHRASE_TABLE "$PHRASE_TABLE"
given BASELINE_INI "$BASELINE_INI"
case ${PHRASE_TABLE:+table}${BASELINE_INI:+ini} in
table | ini) missing 'one of PHRASE_TABLE and BASELINE_INI: give both' ;;
esac

# --- systems ---
for system in $UNKNOWN_SYSTEMS; do
	missing "a system named $system ($ALL_SYSTEMS)"
done
for system in $UNTRANSLATED_SYSTEMS; do
	missing "TRANSLATE_$system, the command by which $system translates stdin to stdout"
done
if [ -n "$WITH_CSLM" ] && [ -n "$PHRASE_TABLE" ] && [ -z "$CSLM$CSLM_TEXT" ]; then
	missing 'one of CSLM and CSLM_TEXT, for systems with a CSLM: with PHRASE_TABLE there is no corpus'
fi
if [ -n "$WITH_LMS" ] && [ -n "$PHRASE_TABLE" ] && [ -z "$CSLM_TEXT" ]; then
	missing 'CSLM_TEXT, for systems with a language model: with PHRASE_TABLE there is no corpus'
fi
for text in $CSLM_TEXT; do
	given CSLM_TEXT "$text"
done
for name in MODEL INVERSE_MODEL CSLM; do
	eval "model=\$$name"
	given "$name" "${model:+$model/config.json}"
done

# --- values ---
one_of 'a CSLM_IN' "$CSLM_IN" auto decoder nbest
one_of 'a TOKENISED' "$TOKENISED" yes no
one_of 'a LOWERCASE' "$LOWERCASE" yes no
[ "$LOWERCASE $TOKENISED" != 'yes yes' ] || missing 'TOKENISED=no: with yes, LOWERCASE does nothing'
for name in SYSTEMS SEEDS ENSEMBLE_SEEDS; do
	eval "values=\$$name"
	[ -z "$(printf '%s\n' $values | sort | uniq -d)" ] || missing "$name that differ, found $values"
done
for share in $PRUNE_KEEP; do
	is_share "$share" || missing "PRUNE_KEEP above 0 and at most 1, found $share"
done
one_of 'a TUNER' "$TUNER" mert mira
for name in $INTEGERS SEEDS ENSEMBLE_SEEDS SYSTEMS; do
	eval "values=\$$name"
	[ -n "$values" ] || missing "$name, found an empty value"
done
for name in $INTEGERS SEEDS ENSEMBLE_SEEDS; do
	eval "values=\$$name"
	for value in $values; do
		case $name:$value in
		*:*[!0-9]*) missing "$name of integers, found $value" ;;
		*:0?*) missing "$name without leading zeros, found $value" ;;
		*:??????????*) missing "$name below 1000000000, found $value" ;;
		*SEED*:0) ;;
		*:0) missing "$name above 0, found $value" ;;
		esac
	done
done
case $MAX_PHRASE in
[1-9] | 10) ;;
*) missing "MAX_PHRASE from 1 to 10, found $MAX_PHRASE: Moses's filter drops longer phrases" ;;
esac

exit $anything
