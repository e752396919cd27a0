# From a parallel corpus to the BLEU of several systems, with a real Moses; the target pipeline-help explains.
#
# The Makefile of a clone includes this file; `moses-rnn pipeline` runs it where the package is installed.
# The systems are rows of the file `systems` beside this one.
#
# Every finished step leaves a stamp in $(WORK)/done, so a stopped run continues where it was. Steps whose files have
# changed run again, and so do those that depend on them. SYSTEMS, SEEDS and what they choose may change; other changed
# variables are not noticed: use another WORK. Logs are in $(WORK)/log.

ifeq ($(origin INSTALLED),environment)  # only the Makefile of a clone sets it
override INSTALLED :=
endif

WORK ?= work
SRC ?= en
TRG ?= fr
# Prefixes of PREFIX.$(SRC) and PREFIX.$(TRG), plain or .gz. TEST may be several
TRAIN ?=
DEV ?=
TEST ?=
# no: the text is raw; sacremoses tokenises and escapes it as Moses does; yes: this has been done
TOKENISED ?= no
# yes: raw text is also lower-cased
LOWERCASE ?= no
MAX_WORDS ?= 80
# Keep this share of TRAIN and LM_TEXT (such as 0.5): the lines that are most like IN_DOMAIN, a prefix like TRAIN
SELECT ?=
IN_DOMAIN ?= $(DEV)
MAX_PHRASE ?= 7
REORDERING ?= msd-bidirectional-fe
ORDER ?= 5
# More text for the n-gram model, beside TRAIN's: files in the target language, tokenised, plain or .gz
LM_TEXT ?=
LM_FLAGS ?=
# auto: fast_align and atools if they are in PATH, else sil-thot. mgiza: needs MGIZA_BIN, the folder of its programs
ALIGNER ?= auto
MGIZA_BIN ?=
THREADS ?= $(shell nproc)
# Start from an existing phrase table and its ini, not from a corpus (give both; TRAIN is not read)
PHRASE_TABLE ?=
BASELINE_INI ?=
# Models of p(target | source) and of p(source | target), already trained
MODEL ?=
INVERSE_MODEL ?=
TRAIN_FLAGS ?=
SCORE_FLAGS ?=
# Options of moses-rnn extend, for systems whose table is extended
EXTEND_FLAGS ?=
# For systems with a CSLM: the tokenised text it learns from (default: the corpus's target side), or a trained CSLM
CSLM_TEXT ?=
CSLM ?=
CSLM_FLAGS ?= --self-normalise 0.1
# decoder: as NeuralLM, of a Moses built --with-nplm; nbest: on lists of the LIST_SIZE best translations of the system
# without CSLM; auto: in the decoder if possible
CSLM_IN ?= auto
LIST_SIZE ?= 200
# Language models for lists, trained on the CSLM's text: options of moses-rnn cslm train for each
RNNLM_FLAGS ?=
BENGIO_FLAGS ?=
# Sentence networks, trained on the corpus for each of SEEDS: options of moses-rnn nmt train for each network
SEARCH_FLAGS ?=
LSTM_FLAGS ?=
RNNENC_FLAGS ?=
TRANSFORMER_FLAGS ?= --subwords 6000
# and of moses-rnn nmt translate for all
TRANSLATE_FLAGS ?=
# For systems on lists (nbest-…): the system whose lists they rescore, the seed of a single network, and the seeds of
# an ensemble
LIST_BASE ?= $(if $(filter rnn,$(SYSTEMS)),rnn,baseline)
NETWORK_SEED ?= $(firstword $(SEEDS))
ENSEMBLE_SEEDS ?= 11 12 13 14
# Options of moses-rnn nbest add, for all list systems
NBEST_FLAGS ?=
# For prune-bleu: shares of the table to keep, and the seed of the tuning whose weights it uses
PRUNE_KEEP ?= 0.7 0.5 0.3
PRUNE_SEED ?= $(firstword $(SEEDS))
PRUNE_FLAGS ?= --keep-best-words 1
SYSTEMS ?= baseline rnn
SEEDS ?= 1 2 3
NBEST ?= 100
# For tuning and decoding; -search-algorithm 1 (cube pruning) is four times as fast as the default
DECODER_FLAGS ?=
# mert, as in the paper, or mira (kbmira), whose results vary less from seed to seed: the best of 15 rounds
TUNER ?= mert
MERT_FLAGS ?=

PIPELINE := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
# Where the package's commands are installed, and the Python that has its libraries
BIN ?= $(patsubst %/,%,$(dir $(shell command -v moses-rnn 2> /dev/null)))
BIN_PYTHON ?= $(BIN)/python
MOSES_ROOT ?=
COMMA := ,
SPACE := $(subst ,, )

# --- values -----------------------------------------------------------------------------------------------------------

# Variables that users may set: one word each, several words, integers (missing.sh checks these)
TEXTS := WORK SRC TRG TRAIN DEV IN_DOMAIN SELECT TOKENISED LOWERCASE REORDERING ALIGNER MGIZA_BIN PHRASE_TABLE \
	BASELINE_INI MODEL INVERSE_MODEL CSLM CSLM_IN LIST_BASE TUNER MOSES_ROOT BIN BIN_PYTHON
LISTS := TEST SYSTEMS LM_TEXT CSLM_TEXT PRUNE_KEEP SEEDS ENSEMBLE_SEEDS $(addsuffix _FLAGS,LM TRAIN SCORE EXTEND CSLM RNNLM \
	BENGIO SEARCH LSTM RNNENC TRANSFORMER TRANSLATE NBEST PRUNE DECODER MERT)
INTEGERS := MAX_WORDS MAX_PHRASE ORDER THREADS NBEST LIST_SIZE NETWORK_SEED PRUNE_SEED
VARIABLES := $(TEXTS) $(LISTS) $(INTEGERS)
# Their values become parts of rules and commands, including Moses's, so none may have a character that make or a shell
# treats specially. They are checked unexpanded. Only TRANSLATE_x is a command
define NEWLINE


endef
SIGNS := ' " ` $$ ; & | < > ( ) { } [ ] * ? ! ~ % \ \#
signs_in = $(strip $(foreach sign,$(SIGNS),$(findstring $(sign),$(1))) $(if $(findstring $(NEWLINE),$(1)),newline))
given = $(foreach name,$(1),$(if $(filter $(2),$(firstword $(origin $(name)))),$(name)))
# The Makefile of a clone has variables of its own
OTHERS := $(if $(word 2,$(MAKEFILE_LIST)),,$(filter-out TRANSLATE_%,$(call given,$(.VARIABLES),command)))
$(foreach name,MAKECMDGOALS $(call given,$(VARIABLES),command environment) $(OTHERS),\
	$(if $(call signs_in,$(value $(name))),$(error $(name)=$(value $(name)): expected no character that make or a \
		shell treats specially, found $(call signs_in,$(value $(name))))))
$(foreach name,$(call given,$(TEXTS) $(INTEGERS),command environment),\
	$(if $(word 2,$(value $(name))),$(error $(name)=$(value $(name)): expected one word)))
$(if $(filter select,$(MAKECMDGOALS)),$(if $(SELECT),,$(error select: expected a share, such as SELECT=0.5)))
W := $(abspath $(WORK))
ifneq ($(words $(W))$(findstring :,$(W))$(findstring =,$(W))$(findstring $(COMMA),$(W))$(call signs_in,$(W) $(CURDIR) $(PIPELINE)),1)
$(error WORK=$(WORK) in $(CURDIR): expected a folder without blanks, commas, colons, equals signs, quotes, number signs and the like, \
	which neither make nor an ini of Moses can have)
endif
DONE := $(W)/done
# mert-moses.pl changes its folder
override MOSES_ROOT := $(abspath $(MOSES_ROOT))
LOG := $(W)/log
MOSES_BIN = $(MOSES_ROOT)/bin
MOSES_SCRIPTS = $(MOSES_ROOT)/scripts
ifeq ($(ALIGNER),auto)
CHOSEN_ALIGNER = $(if $(and $(shell command -v fast_align),$(shell command -v atools)),fast_align,thot)
else
CHOSEN_ALIGNER = $(ALIGNER)
endif
ifneq ($(PHRASE_TABLE),)
SYSTEM_TABLE := $(abspath $(PHRASE_TABLE))
# Rules have a filter of their own, and their translations no segments; their inis have a search algorithm from 3 up
FILTER_FLAGS := $(shell awk '{ gsub(/^[ \t]+|\r$$/, "") } /^\[/ { section = $$1 } section == "[search-algorithm]" && /^[3-9]/ \
	{ print "-Hierarchical"; exit }' $(BASELINE_INI) /dev/null 2> /dev/null)
else
FILTER_FLAGS :=
SYSTEM_TABLE := $(W)/model/phrase-table.gz
endif
# A single test set is called test; several have the names of their files
TEST_NAMES := $(if $(word 2,$(TEST)),$(notdir $(TEST)),test)
$(foreach i,$(shell seq $(words $(TEST))),$(eval PREFIX_OF_$(word $(i),$(TEST_NAMES)) := $(word $(i),$(TEST))))
SETS := dev $(TEST_NAMES)
DONE_TESTS = $(TEST_NAMES:%=$(DONE)/%)
RNN_MODEL := $(if $(MODEL),$(abspath $(MODEL)),$(W)/rnn/model)
RNN_INVERSE := $(if $(INVERSE_MODEL),$(abspath $(INVERSE_MODEL)),$(W)/rnn/inverse)
CSLM_MODEL := $(if $(CSLM),$(abspath $(CSLM)),$(W)/cslm/model)
CSLM_CORPUS = $(if $(CSLM_TEXT),$(CSLM_TEXT),$(W)/corpus/train.$(TRG))
# the class's name is in the program, or its library, if it was compiled
ifeq ($(CSLM_IN),auto)
NEURAL_MOSES := $(shell grep -ls NeuralLMWrapper '$(MOSES_BIN)/moses' '$(MOSES_ROOT)'/lib*/libmoses*.so)
CSLM_PLACE := $(if $(NEURAL_MOSES),decoder,nbest)
else
CSLM_PLACE := $(CSLM_IN)
endif
MIRA_FLAGS = --batch-mira --batch-mira-args '-J 60 -r $(1) ' --return-best-dev --maximum-iterations 15
tuner_flags = $(if $(filter mira,$(TUNER)),$(call MIRA_FLAGS,$(1)),--mertmertargs '-r $(1) ')
# a command whose output goes into a log; if it fails, the end of the log is shown: $(call logged,NAME,COMMAND)
logged = { $(2); } > $(LOG)/$(1) 2>&1 || $(call failed,$(LOG)/$(1))
failed = { tail -n 20 $(1) >&2; echo "failed; full log: $(1)" >&2; exit 1; }
# variables as the environment of a script: $(call with,NAMES) sh SCRIPT
with = $(foreach name,$(1),$(name)='$($(name))')

# --- systems ----------------------------------------------------------------------------------------------------------

# How to add what a system adds: to the table (options of moses-rnn-score), to n-best lists (options of moses-rnn
# nbest) or as new lines (options of moses-rnn extend); the steps that train what it needs, where $(1) is the seed of a
# sentence network; and the commands of systems that translate by themselves. MODEL_x: a folder with its vocabularies
TABLE_OPTIONS_rnn = --model $(RNN_MODEL)
TABLE_OPTIONS_inverse = --inverse-model $(RNN_INVERSE)
EXTEND_OPTIONS_inverse = --inverse-model $(RNN_INVERSE)
TABLE_OPTIONS_wp = --word-penalty
LIST_OPTIONS_cslm = --add $(CSLM_MODEL)
LIST_OPTIONS_wp = --word-penalty $(RNN_MODEL)
MODEL_rnn = $(RNN_MODEL)
MODEL_inverse = $(RNN_INVERSE)
TRAINED_rnn = $(DONE)/train-rnn
TRAINED_inverse = $(DONE)/train-inverse
TRAINED_wp = $(DONE)/train-rnn
TRAINED_cslm = $(DONE)/train-cslm

NETWORKS := rnnsearch r2l seq2seq rnnenc transformer posunk
FLAGS_rnnsearch = $(SEARCH_FLAGS)
# an RNNsearch that writes from right to left, for lists
ARCHITECTURE_r2l = rnnsearch
FLAGS_r2l = $(SEARCH_FLAGS) --right-to-left
FLAGS_seq2seq = $(LSTM_FLAGS)
FLAGS_rnnenc = $(RNNENC_FLAGS)
FLAGS_transformer = $(TRANSFORMER_FLAGS)
# an RNNsearch whose rare words are pointers; dev has no word alignment, so some of the pairs are held out
ALIGNED = $(W)/model/aligned.grow-diag-final-and
ARCHITECTURE_posunk = rnnsearch
FLAGS_posunk = $(SEARCH_FLAGS) --rare posunk --alignment $(ALIGNED)
define add_network
MODEL_$(1) = $(W)/nmt/$(1).$$(1)
TRAINED_$(1) = $(DONE)/train-$(1).$$(1)
LIST_OPTIONS_$(1) = --add $(W)/nmt/$(1).$(NETWORK_SEED)
TRANSLATE_$(1) = $$(translate) --model $(W)/nmt/$(1).$$$$SEED
endef
translate = $(BIN)/moses-rnn nmt translate $(TRANSLATE_FLAGS)
$(foreach network,$(NETWORKS),$(eval $(call add_network,$(network))))
# They do not read the source, so they are trained once for all seeds
LANGUAGE_MODELS := rnnlm bengio
FLAGS_rnnlm = $(RNNLM_FLAGS)
FLAGS_bengio = $(BENGIO_FLAGS)
define add_language_model
TRAINED_$(1) = $(DONE)/train-$(1)
LIST_OPTIONS_$(1) = --add $(W)/nlm/$(1)
endef
$(foreach network,$(LANGUAGE_MODELS),$(eval $(call add_language_model,$(network))))
ENSEMBLE = $(ENSEMBLE_SEEDS:%=$(W)/nmt/rnnsearch.%)
MODEL_ensemble = $(firstword $(ENSEMBLE))
TRAINED_ensemble = $(ENSEMBLE_SEEDS:%=$(DONE)/train-rnnsearch.%)
LIST_OPTIONS_ensemble = --ensemble $(subst $(SPACE),$(COMMA),$(ENSEMBLE))
TRANSLATE_rnnsearch-x4 = $(translate) $(ENSEMBLE:%=--model %)
# systems that replace words outside the shortlist
DICTIONARY = $(W)/model/words.$(SRC)-$(TRG)
TRAINED_words = $(DONE)/dictionary
TRANSLATE_rnnsearch-unk = $(translate) --model $(W)/nmt/rnnsearch.$$SEED --unknown dictionary --dictionary $(DICTIONARY)
TRANSLATE_posunk = $(translate) --model $(W)/nmt/posunk.$$SEED --unknown dictionary --dictionary $(DICTIONARY)

# The columns NAME KIND BASE ADDED DECODER of a row; \043 is the number sign, which starts comments
define read_row
ALL_SYSTEMS += $(word 1,$(1))
KIND_$(word 1,$(1)) := $(word 2,$(1))
BASE_$(word 1,$(1)) := $(patsubst any,$(LIST_BASE),$(filter-out -,$(word 3,$(1))))
ADDED_$(word 1,$(1)) := $(subst +, ,$(filter-out -,$(word 4,$(1))))
DECODER_$(word 1,$(1)) := $(filter-out -,$(word 5,$(1)))
$(if $(filter any,$(word 3,$(1))),ON_ANY += $(word 1,$(1)))
endef
ALL_SYSTEMS :=
ON_ANY :=
ROWS := $(shell awk -v OFS=: 'NF && !/^\043/ { print $$1, $$2, $$3, $$4, $$5 }' $(PIPELINE)/systems)
$(foreach row,$(ROWS),$(eval $(call read_row,$(subst :, ,$(row)))))

KINDS := table list extended self
$(foreach system,$(ALL_SYSTEMS),$(if $(filter 1,$(words $(filter $(KINDS),$(KIND_$(system))))),,\
	$(error $(PIPELINE)/systems: expected $(system) of a kind among $(KINDS), found $(or $(KIND_$(system)),none))))
of_kind = $(strip $(foreach system,$(ALL_SYSTEMS),$(if $(filter $(1),$(KIND_$(system))),$(system))))
ifneq ($(words $(LIST_BASE))$(filter $(LIST_BASE),$(filter-out $(ON_ANY),$(call of_kind,table list))),1$(LIST_BASE))
$(error LIST_BASE=$(LIST_BASE): expected one of $(filter-out $(ON_ANY),$(call of_kind,table list)))
endif
# the systems on which one of a kind may build; a system that adds nothing needs none
BASES_table := $(call of_kind,table)
BASES_list := $(call of_kind,table list)
BASES_extended := $(BASES_table)
BASES_self :=
bases = $(BASES_$(KIND_$(1)))
has_sound_base = $(filter $(if $(and $(bases),$(ADDED_$(1))),,0) $(addprefix 1,$(bases)),$(words $(BASE_$(1)))$(BASE_$(1)))
$(foreach system,$(ALL_SYSTEMS),$(if $(call has_sound_base,$(system)),,\
	$(error BASE_$(system)=$(BASE_$(system)): expected $(if $(call bases,$(system)),one of $(call bases,$(system)),no base), \
		found $(or $(BASE_$(system)),none))))
UNKNOWN_BASES := $(filter-out $(ALL_SYSTEMS:%=BASE_%),$(filter BASE_%,$(call given,$(.VARIABLES),command)))
$(if $(UNKNOWN_BASES),$(error $(UNKNOWN_BASES): expected BASE_ and one of $(ALL_SYSTEMS)))
# a system, its base and so on, up to the first that comes twice; nothing if none does: $(call circle,SYSTEM)
circle = $(if $(filter $(1),$(2)),$(2) $(1),$(if $(BASE_$(1)),$(call circle,$(BASE_$(1)),$(2) $(1))))
$(foreach system,$(ALL_SYSTEMS),$(if $(call circle,$(system)),\
	$(error BASE_$(system)=$(BASE_$(system)): expected bases that lead to a system without one, found a circle:$(call \
		circle,$(system)))))
# the stamps of what a system adds: $(call trained,SYSTEM,SEED OF A NETWORK)
trained = $(sort $(foreach added,$(ADDED_$(1)),$(call TRAINED_$(added),$(2))))
# what a system adds, what its base adds, and so on
all_added = $(ADDED_$(1)) $(if $(BASE_$(1)),$(call all_added,$(BASE_$(1))))
CSLM_SYSTEMS := $(foreach system,$(ALL_SYSTEMS),$(if $(filter cslm,$(call all_added,$(system))),$(system)))
SELF_SYSTEMS := $(call of_kind,self)
# whose networks are the same for all SEEDS
ENSEMBLES := $(foreach system,$(SELF_SYSTEMS),$(if $(filter ensemble,$(ADDED_$(system))),$(system)))
OF_SENTENCES := $(NETWORKS) ensemble
WORD_SYSTEMS := $(foreach one,$(ALL_SYSTEMS),$(if $(filter words,$(ADDED_$(one))),$(one)))
NETWORK_SYSTEMS := $(foreach one,$(ALL_SYSTEMS),$(if $(filter $(OF_SENTENCES),$(call all_added,$(one))),$(one)))
LM_SYSTEMS := $(foreach one,$(ALL_SYSTEMS),$(if $(filter $(LANGUAGE_MODELS),$(call all_added,$(one))),$(one)))
# systems whose CSLM the decoder computes
ifeq ($(CSLM_PLACE),decoder)
NEURAL_SYSTEMS := $(foreach system,$(call of_kind,list),$(if $(DECODER_$(system)),$(system)))
endif
ON_LISTS := $(filter-out $(NEURAL_SYSTEMS),$(call of_kind,list))
EXTENDED := $(call of_kind,extended)
IN_DECODER := $(filter-out $(ON_LISTS) $(SELF_SYSTEMS) $(EXTENDED),$(ALL_SYSTEMS))
# the system in the decoder whose lists a system chooses from
lister = $(if $(filter $(1),$(ON_LISTS)),$(call lister,$(BASE_$(1))),$(1))

# A run is a system and a seed, SYSTEM.SEED
runs = $(foreach system,$(1),$(foreach seed,$(SEEDS),$(system).$(seed)))
system_of = $(basename $(1))
seed_of = $(patsubst .%,%,$(suffix $(1)))

# The stamp of a step names what SYSTEMS and SEEDS chose for it. It is out of date once they choose otherwise.
# $(call changed,STAMP,CHOICE): a prerequisite that is never done, if the stamp does not name the choice
.PHONY: changed
changed = $(if $(filter $(call one_word,$(2)),$(shell cat $(DONE)/$(1) 2> /dev/null)),,changed)
one_word = $(subst $(SPACE),+,of $(strip $(1)))
# a rule without its recipe, which writes $(CHOICE) to the stamp: $(call choose,STAMP,PREREQUISITES)
define choose
$(DONE)/$(1): $(2) $(call changed,$(1),$(2))
$(DONE)/$(1): private CHOICE := $(call one_word,$(2))
endef

# --- help and checks --------------------------------------------------------------------------------------------------

.PHONY: pipeline-help
pipeline-help: ## list the pipeline's targets and variables
	@echo 'corpus select align phrase-table lm baseline train-rnn train-inverse score train-cslm'
	@echo '$(LANGUAGE_MODELS:%=train-%) $(NETWORKS:%=train-%)'
	@echo '                                                          one step and what it needs'
	@echo 'tune-SYSTEM decode-SYSTEM bleu-SYSTEM                     for all SEEDS; SYSTEM is one of: $(ALL_SYSTEMS)'
	@echo 'prune-bleu                                                dev BLEU of rnn with PRUNE_KEEP of its table'
	@echo 'results                                                   all SYSTEMS: BLEU, chrF, significance, weights'
	@echo
	@echo 'MOSES_ROOT=/path/to/mosesdecoder must be set. Variables and their present values:'
	@printf '  %s\n' $(foreach name,$(VARIABLES),'$(name)=$($(name))') \
		'ALIGNER is $(CHOSEN_ALIGNER), CSLM_IN is $(CSLM_PLACE)'

WITH_CSLM = $(filter $(CSLM_SYSTEMS),$(SYSTEMS))
WITH_LMS = $(filter $(LM_SYSTEMS),$(SYSTEMS))
WITH_NETWORKS = $(filter $(NETWORK_SYSTEMS),$(SYSTEMS))
WITH_WORDS = $(filter $(WORD_SYSTEMS),$(SYSTEMS))
UNKNOWN_SYSTEMS = $(filter-out $(ALL_SYSTEMS),$(SYSTEMS))
UNTRANSLATED_SYSTEMS = $(foreach system,$(filter $(SELF_SYSTEMS),$(SYSTEMS)),$(if $(TRANSLATE_$(system)),,$(system)))
CHECKED = BIN BIN_PYTHON MOSES_ROOT SRC TRG TRAIN DEV TEST SETS SELECT IN_DOMAIN TOKENISED LOWERCASE MGIZA_BIN TUNER \
	PHRASE_TABLE BASELINE_INI MODEL INVERSE_MODEL LM_TEXT CSLM CSLM_TEXT CSLM_IN ALL_SYSTEMS WITH_CSLM WITH_LMS WITH_NETWORKS WITH_WORDS UNKNOWN_SYSTEMS \
	UNTRANSLATED_SYSTEMS SYSTEMS SEEDS ENSEMBLE_SEEDS PRUNE_KEEP INTEGERS $(INTEGERS)

# Names what is missing before anything runs
.PHONY: pipeline-tools
pipeline-tools: $(INSTALLED)
	@$(call with,$(CHECKED)) ALIGNER='$(CHOSEN_ALIGNER)' sh $(PIPELINE)/missing.sh
	@mkdir -p $(DONE) $(LOG)

# --- corpus -----------------------------------------------------------------------------------------------------------

.PHONY: corpus select align phrase-table lm baseline train-rnn train-inverse score train-cslm results
corpus: $(DONE)/corpus ## tokenised and cleaned training text
select: $(DONE)/corpus ## the corpus with SELECT=0.5: the half that is most like IN_DOMAIN
align: $(DONE)/align ## word alignments of the corpus
phrase-table: $(DONE)/phrase-table ## phrase and reordering table
lm: $(DONE)/lm ## language model of the target side
baseline: $(DONE)/baseline ## the moses.ini of the baseline
train-rnn: $(DONE)/train-rnn ## the network, trained on the phrase table
train-inverse: $(DONE)/train-inverse ## the network of the other direction
score: $(DONE)/score-rnn ## the phrase table with the network's score
train-cslm: $(DONE)/train-cslm ## the CSLM, trained on the target side
# networks that translate by themselves are also compared by length
ALONE := $(filter $(SELF_SYSTEMS),$(SYSTEMS))
LENGTHS := $(if $(ALONE),$(TEST_NAMES:%=$(W)/lengths.%.md))
results: $(W)/results.json $(LENGTHS) ## all SYSTEMS, SEEDS tunings each: BLEU, chrF, significance, weights

# both languages of a text, tokenised, to $(W)/corpus/NAME.LANGUAGE: $(text) PREFIX NAME; an old stamp must not outlive
# a failure
text = rm -f $@ && $(call with,BIN SRC TRG TOKENISED LOWERCASE THREADS) WORK='$(W)' sh $(PIPELINE)/text.sh
files = $(foreach language,$(SRC) $(TRG),$(wildcard $(1).$(language) $(1).$(language).gz))

# what is most like IN_DOMAIN: $(call select,SUFFIXES,CORPUS,OUTPUT)
select = $(BIN_PYTHON) $(PIPELINE)/moore_lewis.py $(SELECT) --lmplz $(MOSES_BIN)/lmplz \
	--domain $(1:%=$(W)/corpus/domain.%) --corpus $(1:%=$(2).%) --output $(1:%=$(3).%)
DONE_DOMAIN := $(if $(SELECT),$(DONE)/domain)

$(DONE)/corpus: $(call files,$(TRAIN)) $(DONE_DOMAIN) | pipeline-tools
	$(text) $(TRAIN) all
	$(call logged,clean.log,$(MOSES_SCRIPTS)/training/clean-corpus-n.perl $(W)/corpus/all $(SRC) $(TRG) \
		$(W)/corpus/$(if $(SELECT),clean,train) 1 $(MAX_WORDS))
	$(if $(SELECT),$(call logged,select.log,$(call select,$(SRC) $(TRG),$(W)/corpus/clean,$(W)/corpus/train)))
	touch $@

$(DONE)/domain: $(call files,$(IN_DOMAIN)) | pipeline-tools
	$(text) $(IN_DOMAIN) domain
	touch $@

$(DONE)/dev: $(call files,$(DEV)) | pipeline-tools
	$(text) $(DEV) dev
	touch $@

$(DONE_TESTS): $(DONE)/%: $(foreach prefix,$(TEST),$(call files,$(prefix))) | pipeline-tools
	$(text) $(PREFIX_OF_$*) $*
	touch $@

# --- the baseline -----------------------------------------------------------------------------------------------------

$(DONE)/align: $(DONE)/corpus
	mkdir -p $(W)/model
ifeq ($(CHOSEN_ALIGNER),mgiza)  # which would take over the files of an earlier run
	rm -rf $(W)/giza.* $(W)/corpus/*.vcb* $(W)/corpus/*-int-train.snt
	$(call logged,align.log,$(MOSES_SCRIPTS)/training/train-model.perl --root-dir $(W) --corpus $(W)/corpus/train \
		--f $(SRC) --e $(TRG) --alignment grow-diag-final-and --last-step 3 \
		-mgiza -mgiza-cpus $(THREADS) --external-bin-dir $(abspath $(MGIZA_BIN)))
else ifeq ($(CHOSEN_ALIGNER),fast_align)
	$(call logged,align.log,cd $(W)/model; paste -d '\n' $(W)/corpus/train.$(SRC) $(W)/corpus/train.$(TRG) | \
		awk 'NR % 2 { source = $$0; next } { print source " ||| " $$0 }' > parallel && \
		fast_align -i parallel -d -o -v > forward && fast_align -i parallel -d -o -v -r > reverse && \
		atools -i forward -j reverse -c grow-diag-final-and > aligned.grow-diag-final-and && \
		rm parallel forward reverse)
else
	$(call logged,align.log,$(BIN_PYTHON) $(PIPELINE)/align.py $(W)/corpus/train.$(SRC) \
		$(W)/corpus/train.$(TRG) > $(W)/model/aligned.grow-diag-final-and)
endif
	touch $@

$(DONE)/lm: $(DONE)/corpus $(LM_TEXT)
	mkdir -p $(W)/lm
	gzip -cdf $(W)/corpus/train.$(TRG) > $(W)/lm/text
	$(if $(LM_TEXT),for text in $(LM_TEXT); do \
		gzip -cdf $$text > $(W)/lm/one && LC_ALL=C sed -e '1s/^\xEF\xBB\xBF//' -e '$$a\' $(W)/lm/one || exit 1; \
		done > $(W)/lm/more.$(TRG); rm $(W)/lm/one)
	$(if $(LM_TEXT),$(if $(SELECT),$(call logged,select-lm.log,$(call select,$(TRG),$(W)/lm/more,$(W)/lm/selected))))
	$(if $(LM_TEXT),cat $(W)/lm/$(if $(SELECT),selected,more).$(TRG) >> $(W)/lm/text)
	$(call logged,lm.log,$(MOSES_BIN)/lmplz -o $(ORDER) -S 40% -T $(W)/lm --text $(W)/lm/text \
		--arpa $(W)/lm/lm.arpa $(LM_FLAGS) && \
		$(MOSES_BIN)/build_binary $(W)/lm/lm.arpa $(W)/lm/lm.binary && rm $(W)/lm/lm.arpa $(W)/lm/text)
	touch $@

$(DONE)/phrase-table: $(DONE)/align $(DONE)/lm
	rm -rf $(addprefix $(W)/model/,extract* phrase-table* reordering-table* lex.* moses.ini)
	$(call logged,phrase-table.log,$(MOSES_SCRIPTS)/training/train-model.perl --root-dir $(W) \
		--corpus $(W)/corpus/train --f $(SRC) --e $(TRG) --alignment grow-diag-final-and \
		--first-step 4 --last-step 9 --cores $(THREADS) \
		--max-phrase-length $(MAX_PHRASE) --reordering $(REORDERING) --lm 0:$(ORDER):$(W)/lm/lm.binary:8)
	touch $@

ifneq ($(BASELINE_INI),)
$(DONE)/baseline: $(BASELINE_INI) $(SYSTEM_TABLE) | pipeline-tools
	mkdir -p $(W)/baseline
	$(BIN)/moses-rnn ini $(BASELINE_INI) --table $(SYSTEM_TABLE) --absolute-paths -o $(W)/baseline/moses.ini --force
	touch $@
else
$(DONE)/baseline: $(DONE)/phrase-table
	mkdir -p $(W)/baseline
	cp $(W)/model/moses.ini $(W)/baseline/moses.ini
	touch $@
endif

# --- the networks -----------------------------------------------------------------------------------------------------

# --force if a file from which a model learned is newer than the model: $(restart) MODEL FILES
restart = sh $(PIPELINE)/restart.sh

# the file that changes with a given model
config = $(wildcard $(1:%=%/config.json))

# $(call train_phrase_model,MODEL,OPTIONS): on the baseline's table
define train_phrase_model
	mkdir -p $(W)/rnn
	restart=$$($(restart) $(1) $(SYSTEM_TABLE)) && \
	$(BIN)/moses-rnn-train $(SYSTEM_TABLE) --model $(1) $(2) $$restart
endef

$(DONE)/train-rnn: $(DONE)/baseline $(call config,$(MODEL))
	$(if $(MODEL),,$(call train_phrase_model,$(RNN_MODEL),$(TRAIN_FLAGS)))
	touch $@

$(DONE)/train-inverse: $(DONE)/baseline $(call config,$(INVERSE_MODEL))
	$(if $(INVERSE_MODEL),,$(call train_phrase_model,$(RNN_INVERSE),--inverse $(TRAIN_FLAGS)))
	touch $@

$(DONE)/train-cslm: $(if $(CSLM),$(call config,$(CSLM)),$(if $(CSLM_TEXT),$(CSLM_TEXT),$(DONE)/corpus)) | pipeline-tools
ifeq ($(CSLM),)
	mkdir -p $(W)/cslm
	restart=$$($(restart) $(CSLM_MODEL) $(CSLM_CORPUS)) && \
	$(BIN)/moses-rnn cslm train $(CSLM_CORPUS) --model $(CSLM_MODEL) $(CSLM_FLAGS) $$restart
endif
	touch $@

$(LANGUAGE_MODELS:%=$(DONE)/train-%): $(DONE)/train-%: $(if $(CSLM_TEXT),$(CSLM_TEXT),$(DONE)/corpus) $(DONE)/dev
	mkdir -p $(W)/nlm
	restart=$$($(restart) $(W)/nlm/$* $(CSLM_CORPUS) $(W)/corpus/dev.$(TRG)) && \
	$(BIN)/moses-rnn cslm train $(CSLM_CORPUS) --network $* --dev $(W)/corpus/dev.$(TRG) --model $(W)/nlm/$* \
		$(FLAGS_$*) $$restart
	touch $@

.PHONY: $(LANGUAGE_MODELS:%=train-%)
$(foreach network,$(LANGUAGE_MODELS),$(eval train-$(network): $(DONE)/train-$(network)))

SENTENCE_MODELS := $(foreach network,$(NETWORKS),$(foreach seed,$(sort $(SEEDS) $(NETWORK_SEED) $(ENSEMBLE_SEEDS)),\
	$(network).$(seed)))
$(SENTENCE_MODELS:%=$(DONE)/train-%): $(DONE)/train-%: $(DONE)/corpus $(DONE)/dev
	mkdir -p $(W)/nmt
	restart=$$($(restart) $(W)/nmt/$* $(foreach text,train $(if $(call dev_of,$(basename $*)),dev),\
		$(W)/corpus/$(text).$(SRC) $(W)/corpus/$(text).$(TRG))) && \
	$(BIN)/moses-rnn nmt train $(W)/corpus/train --source $(SRC) --target $(TRG) $(call dev_of,$(basename $*)) \
		--model $(W)/nmt/$* --architecture $(or $(ARCHITECTURE_$(basename $*)),$(basename $*)) \
		--seed $(call seed_of,$*) $(FLAGS_$(basename $*)) $$restart
	touch $@
dev_of = $(if $(filter posunk,$(1)),,--dev $(W)/corpus/dev)
$(filter $(DONE)/train-posunk.%,$(SENTENCE_MODELS:%=$(DONE)/train-%)): $(DONE)/align

$(DONE)/dictionary: $(DONE)/align $(DONE)/corpus
	$(BIN)/moses-rnn nmt dictionary $(W)/corpus/train --source $(SRC) --target $(TRG) --alignment $(ALIGNED) \
		-o $(DICTIONARY) --force
	touch $@

.PHONY: $(NETWORKS:%=train-%)
$(foreach network,$(NETWORKS),$(eval train-$(network): $(SEEDS:%=$(DONE)/train-$(network).%)))

# --- scores in the decoder --------------------------------------------------------------------------------------------

# The base's table with more columns
ADDING := $(foreach system,$(call of_kind,table),$(if $(BASE_$(system)),$(system)))
table_of = $(if $(BASE_$(1)),$(W)/$(1)/phrase-table.gz,$(SYSTEM_TABLE))
$(foreach system,$(ADDING),$(eval $(DONE)/score-$(system): \
	$(if $(BASE_$(BASE_$(system))),$(DONE)/score-$(BASE_$(system))) $(call trained,$(system),$(NETWORK_SEED))))
$(ADDING:%=$(DONE)/score-%): $(DONE)/score-%:
	mkdir -p $(W)/$*
	way=--resume; for file in $(call table_of,$(BASE_$*)) $(W)/$(BASE_$*)/moses.ini \
		$(foreach added,$(ADDED_$*),$(MODEL_$(added):%=%/config.json)); do \
		[ $(W)/$*/.phrase-table.gz.state -nt $$file ] || way=--force; done; \
	$(BIN)/moses-rnn-score $(call table_of,$(BASE_$*)) --moses-ini $(W)/$(BASE_$*)/moses.ini \
		-o $(W)/$*/phrase-table.gz --output-ini $(W)/$*/moses.ini $$way \
		$(foreach added,$(ADDED_$*),$(TABLE_OPTIONS_$(added))) $(SCORE_FLAGS)
	touch $@

$(DONE)/score-baseline: $(DONE)/baseline
	touch $@

# The CSLM as NeuralLM: its feature and its weight in the ini of another system
$(DONE)/export-cslm: $(DONE)/train-cslm $(DONE)/dev
	mkdir -p $(W)/cslm
	$(BIN)/moses-rnn cslm export-nplm $(W)/cslm/cslm.nplm --model $(CSLM_MODEL) --dev $(W)/corpus/dev.$(TRG) --force \
		> $(W)/cslm/lines
	touch $@

$(foreach system,$(NEURAL_SYSTEMS),$(eval $(DONE)/score-$(system): $(DONE)/score-$(DECODER_$(system))))
$(NEURAL_SYSTEMS:%=$(DONE)/score-%): $(DONE)/score-%: $(DONE)/export-cslm
	mkdir -p $(W)/$*
	awk -f $(PIPELINE)/insert-lines.awk $(W)/cslm/lines $(W)/$(DECODER_$*)/moses.ini > $(W)/$*/moses.ini
	touch $@

# --- tuning and decoding ----------------------------------------------------------------------------------------------

# translations to stdout: $(decode) INI TEXT NAME FLAGS
decode = $(call with,MOSES_ROOT FILTER_FLAGS THREADS) WORK='$(W)' sh $(PIPELINE)/decode.sh

# $(call without_segments,NAME): the decoder's text without |0-1|
without_segments = sed 's/ *|[0-9]*-[0-9]*|//g; s/^ *//; s/ *$$//' $(W)/decode/$(1).segments > $(W)/decode/$(1).$(TRG)

# Always in a fresh folder: mert-moses.pl would take over the filtered table and the feature list of an old one.
DECODED := $(call runs,$(IN_DECODER))
$(foreach run,$(DECODED),$(eval $(DONE)/tune-$(run): $(DONE)/score-$(call system_of,$(run)) $(DONE)/dev))
$(DECODED:%=$(DONE)/tune-%): $(DONE)/tune-%:
	rm -rf $(W)/tune/$* && mkdir -p $(W)/tune
	install -m 755 $(PIPELINE)/filter.sh $(W)/tune/filter.sh
	$(call logged,tune-$*.log,$(call with,MOSES_ROOT FILTER_FLAGS) \
		$(MOSES_SCRIPTS)/training/mert-moses.pl $(W)/corpus/dev.$(SRC) $(W)/corpus/dev.$(TRG) \
		$(MOSES_BIN)/moses $(W)/$(call system_of,$*)/moses.ini --working-dir $(W)/tune/$* \
		--mertdir $(MOSES_BIN) --rootdir $(MOSES_SCRIPTS) --nbest $(NBEST) --threads $(THREADS) \
		--filtercmd $(W)/tune/filter.sh \
		$(call tuner_flags,$(call seed_of,$*)) --decoder-flags '-threads $(THREADS) $(DECODER_FLAGS)' $(MERT_FLAGS))
	rm -rf $(W)/tune/$*/run*.out.gz $(W)/tune/$*/run*.dat
	touch $@

$(DECODED:%=$(DONE)/decode-%): $(DONE)/decode-%: $(DONE)/tune-% $(DONE_TESTS)
	mkdir -p $(W)/decode
	for set in $(SETS); do \
		$(decode) $(W)/tune/$*/moses.ini $(W)/corpus/$$set.$(SRC) decode-$*.$$set $(DECODER_FLAGS) \
			-report-segmentation > $(W)/decode/$*.$$set.segments && \
		$(call without_segments,$*.$$set) || exit 1; done
	touch $@

# --- tables extended for what is translated --------------------------------------------------------------------------

# A table for each set, with pairs that the network proposes for phrases of its text; nothing is tuned again
EXTENDED_RUNS := $(call runs,$(EXTENDED))
base_run = $(BASE_$(call system_of,$(1))).$(call seed_of,$(1))
$(foreach system,$(EXTENDED),$(eval $(DONE)/extend-$(system): $(DONE)/score-$(BASE_$(system)) \
	$(call trained,$(system),$(NETWORK_SEED))))
$(EXTENDED:%=$(DONE)/extend-%): $(DONE)/extend-%: $(DONE)/dev $(DONE_TESTS)
	mkdir -p $(W)/$*
	for set in $(SETS); do \
		$(BIN)/moses-rnn extend $(call table_of,$(BASE_$*)) --model $(RNN_MODEL) --text $(W)/corpus/$$set.$(SRC) \
			$(foreach added,$(ADDED_$*),$(EXTEND_OPTIONS_$(added))) $(EXTEND_FLAGS) \
			-o $(W)/$*/$$set.phrase-table.gz --force || exit 1; done
	touch $@

$(foreach run,$(EXTENDED_RUNS),$(eval $(DONE)/tune-$(run): $(DONE)/tune-$(call base_run,$(run))))
$(EXTENDED_RUNS:%=$(DONE)/tune-%): $(DONE)/tune-%:
	mkdir -p $(W)/tune/$*
	cp $(W)/tune/$(call base_run,$*)/moses.ini $(W)/tune/$*/moses.ini
	touch $@

$(foreach run,$(EXTENDED_RUNS),$(eval $(DONE)/decode-$(run): $(DONE)/extend-$(call system_of,$(run))))
$(EXTENDED_RUNS:%=$(DONE)/decode-%): $(DONE)/decode-%: $(DONE)/tune-%
	mkdir -p $(W)/decode
	for set in $(SETS); do \
		$(BIN)/moses-rnn ini $(W)/tune/$*/moses.ini --table $(W)/$(call system_of,$*)/$$set.phrase-table.gz \
			--feature $(call table_of,$(BASE_$(call system_of,$*))) -o $(W)/tune/$*/$$set.ini --force && \
		$(decode) $(W)/tune/$*/$$set.ini $(W)/corpus/$$set.$(SRC) decode-$*.$$set $(DECODER_FLAGS) \
			-report-segmentation > $(W)/decode/$*.$$set.segments && \
		$(call without_segments,$*.$$set) || exit 1; done
	touch $@

# --- choosing from n-best lists ---------------------------------------------------------------------------------------

# The best translations of tuned systems in the decoder
LISTED := $(call runs,$(sort $(foreach system,$(ON_LISTS),$(call lister,$(system)))))
$(LISTED:%=$(DONE)/lists-%): $(DONE)/lists-%: $(DONE)/tune-% $(DONE_TESTS)
	mkdir -p $(W)/nbest
	for set in $(SETS); do \
		$(decode) $(W)/tune/$*/moses.ini $(W)/corpus/$$set.$(SRC) lists-$*.$$set $(DECODER_FLAGS) \
			-n-best-list $(W)/nbest/$*.$$set $(LIST_SIZE) distinct -include-segmentation-in-n-best > /dev/null && \
		gzip -f $(W)/nbest/$*.$$set || exit 1; done
	touch $@

# The base's lists, or what the base has made of other lists, with more features
RESCORED := $(call runs,$(ON_LISTS))
base_lists = $(DONE)/$(if $(filter $(BASE_$(call system_of,$(1))),$(ON_LISTS)),features,lists)-$(call base_run,$(1))
$(foreach run,$(RESCORED),$(eval $(call choose,features-$(run),$(call base_lists,$(run)) \
	$(call trained,$(call system_of,$(run)),$(NETWORK_SEED)))))
$(RESCORED:%=$(DONE)/features-%): $(DONE)/features-%:
	rm -f $@
	for set in $(SETS); do \
		$(BIN)/moses-rnn nbest add $(W)/nbest/$(call base_run,$*).$$set.gz --source $(W)/corpus/$$set.$(SRC) \
			$(foreach added,$(ADDED_$(call system_of,$*)),$(LIST_OPTIONS_$(added))) \
			$(NBEST_FLAGS) -o $(W)/nbest/$*.$$set.gz --force || exit 1; done
	echo '$(CHOICE)' > $@

$(RESCORED:%=$(DONE)/tune-%): $(DONE)/tune-%: $(DONE)/features-% $(DONE)/dev
	mkdir -p $(W)/tune/$*
	MOSES_ROOT='$(MOSES_ROOT)' $(BIN)/moses-rnn nbest tune $(W)/nbest/$*.dev.gz \
		--reference $(W)/corpus/dev.$(TRG) --seed $(call seed_of,$*) \
		--weights $(W)/tune/$(call lister,$(call system_of,$*)).$(call seed_of,$*)/moses.ini \
		--optimiser $(if $(filter mira,$(TUNER)),kbmira,mert) \
		-o $(W)/tune/$*/moses.ini --force
	touch $@

$(RESCORED:%=$(DONE)/decode-%): $(DONE)/decode-%: $(DONE)/tune-% $(DONE_TESTS)
	mkdir -p $(W)/decode
	for set in $(SETS); do \
		$(BIN)/moses-rnn nbest rerank $(W)/nbest/$*.$$set.gz $(W)/tune/$*/moses.ini \
			$(if $(FILTER_FLAGS),,--segments) --reference $(W)/corpus/$$set.$(TRG) -o $(W)/decode/$*.$$set.segments --force && \
		$(call without_segments,$*.$$set) || exit 1; done
	touch $@

# --- networks that translate by themselves ----------------------------------------------------------------------------

# They are trained, not tuned; SEED is in the environment of the command
$(patsubst %,$(DONE)/tune-%,$(call runs,$(SELF_SYSTEMS))): $(DONE)/tune-%: | pipeline-tools
	touch $@

# An ensemble translates once: the translations for the first seed are those for all
SAME := $(foreach seed,$(filter-out $(firstword $(SEEDS)),$(SEEDS)),$(ENSEMBLES:%=%.$(seed)))
TRANSLATED := $(filter-out $(SAME),$(call runs,$(SELF_SYSTEMS)))
first_of = $(call system_of,$(1)).$(firstword $(SEEDS))
$(foreach run,$(SAME),$(eval $(DONE)/decode-$(run): $(DONE)/decode-$(call first_of,$(run))))
$(SAME:%=$(DONE)/decode-%): $(DONE)/decode-%: $(DONE)/tune-%
	rm -f $@
	for set in $(SETS); do \
		cp $(W)/decode/$(call first_of,$*).$$set.$(TRG) $(W)/decode/$*.$$set.$(TRG) || exit 1; done
	echo '$(CHOICE)' > $@

$(foreach run,$(TRANSLATED) $(SAME),$(eval $(call choose,decode-$(run),\
	$(call trained,$(call system_of,$(run)),$(call seed_of,$(run))))))

$(TRANSLATED:%=$(DONE)/decode-%): $(DONE)/decode-%: $(DONE)/tune-% $(DONE)/dev $(DONE_TESTS)
	rm -f $@
	mkdir -p $(W)/decode
	export SEED=$(call seed_of,$*); for set in $(SETS); do \
		$(TRANSLATE_$(call system_of,$*)) < $(W)/corpus/$$set.$(SRC) \
			> $(W)/decode/$*.$$set.$(TRG) || exit 1; done
	echo '$(CHOICE)' > $@

# --- results ----------------------------------------------------------------------------------------------------------

tune-%: $(foreach seed,$(SEEDS),$(DONE)/tune-%.$(seed)) ## weights of a system, for all SEEDS
	@:
decode-%: $(foreach seed,$(SEEDS),$(DONE)/decode-%.$(seed)) ## its translations
	@:

.PHONY: tune mert decode bleu
tune mert decode bleu:
	@echo '$@: expected $(subst mert,tune,$@)-SYSTEM, where SYSTEM is one of: $(ALL_SYSTEMS)' >&2; exit 2

# $(call bleu,REFERENCE,TRANSLATION)
bleu = $(BIN)/sacrebleu $(W)/corpus/$(1).$(TRG) -i $(2) -tok none -b -w 2 --force

bleu-%: $(foreach seed,$(SEEDS),$(DONE)/decode-%.$(seed)) ## their BLEU
	@for seed in $(SEEDS); do for set in $(SETS); do \
		printf '%s\t' "$* seed $$seed, $$set"; \
		$(call bleu,$$set,$(W)/decode/$*.$$seed.$$set.$(TRG)) || exit 1; done; done

COMPARED := $(TRG) $(SETS) $(call runs,$(SYSTEMS))
$(W)/results.json: $(foreach run,$(call runs,$(SYSTEMS)),$(DONE)/decode-$(run)) \
		$(call changed,results,$(COMPARED)) | pipeline-tools
	rm -f $(DONE)/results
	$(BIN)/moses-rnn analyse results $(W) --target $(TRG) $(SYSTEMS:%=--system %) $(TEST_NAMES:%=--test %) \
		$(SEEDS:%=--seed %) -o $@ --force
	echo '$(call one_word,$(COMPARED))' > $(DONE)/results

# BLEU by length for the first seed's translations, with No UNK by the first network's words; a picture if matplotlib
# is installed
FIRST_SEED := $(firstword $(SEEDS))
LENGTHS_MODEL = $(firstword $(foreach system,$(ALONE),$(call MODEL_$(firstword $(ADDED_$(system))),$(FIRST_SEED))))
$(LENGTHS): $(W)/lengths.%.md: $(SYSTEMS:%=$(DONE)/decode-%.$(FIRST_SEED)) $(W)/results.json
	picture=; ! $(BIN_PYTHON) -c 'import matplotlib' 2> /dev/null || picture='-o $(W)/lengths.$*.svg --force'; \
	$(BIN)/moses-rnn analyse lengths $(W)/corpus/$*.$(SRC) $(W)/corpus/$*.$(TRG) \
		$(SYSTEMS:%=$(W)/decode/%.$(FIRST_SEED).$*.$(TRG)) \
		$(if $(LENGTHS_MODEL),--model $(LENGTHS_MODEL)) --format markdown $$picture > $@.new
	mv $@.new $@
	@echo; cat $@

# --- a smaller table --------------------------------------------------------------------------------------------------

# The weights stay as tuned with the whole table, so the comparison shows what pruning loses
PRUNED := $(foreach keep,$(PRUNE_KEEP),$(foreach by,rnn direct both,$(by).$(keep).$(PRUNE_SEED)))
WHOLE := all.1.$(PRUNE_SEED)
PRUNE_NEEDS := $(DONE)/tune-rnn.$(PRUNE_SEED) $(DONE)/dev
tuned = $(W)/tune/rnn.$(PRUNE_SEED)/moses.ini
# of BY.KEEP.SEED
by_of = $(firstword $(subst ., ,$(1)))
keep_of = $(patsubst $(call by_of,$(1)).%.$(PRUNE_SEED),%,$(1))
decode_dev = $(decode) $(W)/prune/$(1).ini $(W)/corpus/dev.$(SRC) prune-$(1) $(DECODER_FLAGS) > $(W)/prune/$(1).dev

$(DONE)/prune-$(WHOLE): $(PRUNE_NEEDS)
	mkdir -p $(W)/prune
	cp $(tuned) $(W)/prune/$(WHOLE).ini
	$(call decode_dev,$(WHOLE))
	touch $@

$(PRUNED:%=$(DONE)/prune-%): $(DONE)/prune-%: $(PRUNE_NEEDS)
	mkdir -p $(W)/prune
	$(BIN)/moses-rnn analyse prune $(W)/rnn/phrase-table.gz -o $(W)/prune/$*.gz --by $(call by_of,$*) \
		--keep $(call keep_of,$*) $(PRUNE_FLAGS) --force
	$(BIN)/moses-rnn ini $(tuned) --table $(W)/prune/$*.gz --feature $(W)/rnn/phrase-table.gz \
		-o $(W)/prune/$*.ini --force
	$(call decode_dev,$*)
	touch $@

.PHONY: prune-bleu
prune-bleu: $(addprefix $(DONE)/prune-,$(WHOLE) $(PRUNED)) ## dev BLEU by the size of +RNN's table, pruned by its scores
	@for pruned in $(patsubst %.$(PRUNE_SEED),%,$(WHOLE) $(PRUNED)); do \
		printf '%s\t%s\t' $${pruned%%.*} $${pruned#*.}; \
		$(call bleu,dev,$(W)/prune/$$pruned.$(PRUNE_SEED).dev) || exit 1; done
