# From a parallel corpus to the BLEU of several systems, with a real Moses; `make pipeline-help` explains.
#
# Every finished step leaves a stamp in $(WORK)/done, so a stopped run goes on where it was; a changed file makes the steps
# that depend on it anew, a changed variable does not: use another WORK. Logs are in $(WORK)/log.

WORK ?= work
SRC ?= en
TRG ?= fr
# Prefixes of PREFIX.$(SRC) and PREFIX.$(TRG), plain or .gz; the example corpus if nothing is said. TEST may be several
TRAIN ?= examples/corpus/train
DEV ?= examples/corpus/dev
TEST ?= examples/corpus/test
# no: raw text, which sacremoses tokenises and escapes; yes: it has been
TOKENISED ?= no
# yes: raw text is also lower-cased
LOWERCASE ?= no
MAX_WORDS ?= 80
MAX_PHRASE ?= 7
REORDERING ?= msd-bidirectional-fe
ORDER ?= 5
LM_FLAGS ?=
# auto: fast_align and atools if they are in PATH, else sil-thot. mgiza: needs MGIZA_BIN, the folder of its programs
ALIGNER ?= auto
MGIZA_BIN ?=
THREADS ?= $(shell nproc)
# Systems that start from a table and an ini instead of a corpus: name both, and TRAIN is not looked at
PHRASE_TABLE ?=
BASELINE_INI ?=
# A trained model, instead of training one
MODEL ?=
TRAIN_FLAGS ?=
SCORE_FLAGS ?=
# Systems with a CSLM: what it learns from, tokenised; the corpus's target side if nothing is said. Or a trained one
CSLM_TEXT ?=
CSLM ?=
CSLM_FLAGS ?= --self-normalise 0.1
# decoder: as NeuralLM, of a Moses built --with-nplm; nbest: on lists of LIST_SIZE best translations of the system without
# CSLM; auto: in the decoder where it can
CSLM_IN ?= auto
LIST_SIZE ?= 200
# Of prune-bleu: shares of the table, and the tuning whose weights translate
PRUNE_KEEP ?= 0.7 0.5 0.3
PRUNE_SEED ?= $(firstword $(SEEDS))
PRUNE_FLAGS ?= --keep-best-words 1
# The word penalty counts words outside the RNN's shortlist, on lists also: outside its so many most frequent words
WP_WORDS ?=
SYSTEMS ?= baseline rnn
SEEDS ?= 1 2 3
NBEST ?= 100
# For tuning and decoding; -search-algorithm 1 (cube pruning) is four times as fast as the default
DECODER_FLAGS ?=
# mert, as in the paper, or mira (kbmira), whose results vary less from seed to seed; 15 rounds, of which the best counts
TUNER ?= mert
MERT_FLAGS ?=

W := $(abspath $(WORK))
DONE := $(W)/done
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
else
SYSTEM_TABLE := $(W)/model/phrase-table.gz
endif
# One test set is called test, several are called by their files' names
TEST_NAMES := $(if $(word 2,$(TEST)),$(notdir $(TEST)),test)
$(foreach i,$(shell seq $(words $(TEST))),$(eval PREFIX_OF_$(word $(i),$(TEST_NAMES)) := $(word $(i),$(TEST))))
SETS := dev $(TEST_NAMES)
DONE_TESTS = $(TEST_NAMES:%=$(DONE)/%)
RNN_MODEL := $(if $(MODEL),$(abspath $(MODEL)),$(W)/rnn/model)
CSLM_MODEL := $(if $(CSLM),$(abspath $(CSLM)),$(W)/cslm/model)
CSLM_CORPUS = $(if $(CSLM_TEXT),$(CSLM_TEXT),$(W)/corpus/train.$(TRG))
# systems with a CSLM, and what they are without it
CSLM_SYSTEMS := cslm cslm-rnn cslm-rnn-wp
without_cslm = $(if $(filter cslm,$(1)),baseline,$(patsubst cslm-%,%,$(1)))
# on n-best lists the word penalty is one more feature of the list
list_system = $(patsubst %-wp,%,$(without_cslm))
# the class's name is in the program, or its library, if it was compiled
ifeq ($(CSLM_IN),auto)
CSLM_PLACE = $(if $(shell grep -ls NeuralLMWrapper '$(MOSES_BIN)/moses' '$(MOSES_ROOT)'/lib*/libmoses*.so),decoder,nbest)
else
CSLM_PLACE = $(CSLM_IN)
endif
ALL_SYSTEMS := baseline rnn rnn-wp $(CSLM_SYSTEMS)
RUNS := $(foreach system,$(SYSTEMS),$(foreach seed,$(SEEDS),$(system).$(seed)))
MIRA_FLAGS = --batch-mira --batch-mira-args '-J 60 -r $(1) ' --return-best-dev --maximum-iterations 15
tuner_flags = $(if $(filter mira,$(TUNER)),$(call MIRA_FLAGS,$(1)),--mertmertargs '-r $(1) ')
# a command whose output goes into a log, of which the end is shown if it fails: $(call logged,NAME,COMMAND)
logged = { $(2); } > $(LOG)/$(1) 2>&1 || { tail -n 20 $(LOG)/$(1) >&2; echo "failed; the whole log: $(LOG)/$(1)" >&2; exit 1; }

.PHONY: pipeline-help
pipeline-help: ## what the targets from corpus to BLEU are
	@echo 'corpus align phrase-table lm baseline train-rnn score train-cslm'
	@echo '                                                          one step and what it needs'
	@echo 'tune-SYSTEM decode-SYSTEM bleu-SYSTEM                     for all SEEDS; SYSTEM is one of: $(ALL_SYSTEMS)'
	@echo 'prune-bleu                                                dev BLEU of rnn with PRUNE_KEEP of its table'
	@echo 'results                                                   all SYSTEMS: BLEU, chrF, significance, weights'
	@echo
	@echo 'MOSES_ROOT=/path/to/mosesdecoder must be set. Variables and what they are now:'
	@printf '  %s\n' 'WORK=$(WORK)' 'SRC=$(SRC) TRG=$(TRG)' 'TRAIN=$(TRAIN) DEV=$(DEV) TEST=$(TEST) TOKENISED=$(TOKENISED) LOWERCASE=$(LOWERCASE)' \
		'ALIGNER=$(ALIGNER) ($(CHOSEN_ALIGNER))' 'ORDER=$(ORDER) MAX_PHRASE=$(MAX_PHRASE) REORDERING=$(REORDERING)' \
		'SYSTEMS=$(SYSTEMS)' 'SEEDS=$(SEEDS) NBEST=$(NBEST) TUNER=$(TUNER) THREADS=$(THREADS)' \
		'DECODER_FLAGS=$(DECODER_FLAGS)' 'TRAIN_FLAGS=$(TRAIN_FLAGS)' 'SCORE_FLAGS=$(SCORE_FLAGS)' 'MERT_FLAGS=$(MERT_FLAGS)' \
		'CSLM_TEXT=$(CSLM_TEXT) CSLM=$(CSLM) CSLM_FLAGS=$(CSLM_FLAGS)' 'CSLM_IN=$(CSLM_IN) ($(CSLM_PLACE)) LIST_SIZE=$(LIST_SIZE) WP_WORDS=$(WP_WORDS)' \
		'PRUNE_KEEP=$(PRUNE_KEEP) PRUNE_SEED=$(PRUNE_SEED) PRUNE_FLAGS=$(PRUNE_FLAGS)' \
		'PHRASE_TABLE=$(PHRASE_TABLE) BASELINE_INI=$(BASELINE_INI) MODEL=$(MODEL)'

# Says what is missing before anything runs
.PHONY: pipeline-tools
pipeline-tools: $(INSTALLED)
	@missing=0; \
	missing() { echo "missing: $$1" >&2; missing=1; }; \
	if [ -z '$(MOSES_ROOT)' ]; then missing 'MOSES_ROOT, the folder of a built Moses (github.com/moses-smt/mosesdecoder; ./bjam -j4)'; else \
		for program in moses mert extractor $(if $(filter mira,$(TUNER)),kbmira) $(if $(PHRASE_TABLE),,lmplz build_binary); do \
			[ -x '$(MOSES_BIN)'/$$program ] || missing "$(MOSES_BIN)/$$program: build Moses there with ./bjam"; done; \
		for script in training/mert-moses.pl training/train-model.perl training/filter-model-given-input.pl training/clean-corpus-n.perl; do \
			[ -f '$(MOSES_SCRIPTS)'/$$script ] || missing "$(MOSES_SCRIPTS)/$$script: part of Moses"; done; fi; \
	for program in perl gzip sort; do command -v $$program > /dev/null || missing "$$program: of the operating system"; done; \
	for prefix in $(if $(PHRASE_TABLE),,$(TRAIN)) $(DEV) $(TEST); do for language in $(SRC) $(TRG); do \
		[ -f $$prefix.$$language ] || [ -f $$prefix.$$language.gz ] || missing "$$prefix.$$language or $$prefix.$$language.gz: a corpus (TRAIN=, DEV=, TEST=)"; done; done; \
	case '$(CHOSEN_ALIGNER)' in fast_align|thot) ;; \
		mgiza) [ -x '$(MGIZA_BIN)/mgiza' ] || missing 'MGIZA_BIN/mgiza: the programs of github.com/moses-smt/mgiza' ;; \
		*) missing 'an ALIGNER that is one of: auto fast_align thot mgiza' ;; esac; \
	for pair in 'PHRASE_TABLE:$(PHRASE_TABLE)' 'BASELINE_INI:$(BASELINE_INI)'; do \
		[ -z "$${pair#*:}" ] || [ -f "$${pair#*:}" ] || missing "$${pair#*:}: given as $${pair%%:*}"; done; \
	[ -z '$(PHRASE_TABLE)$(BASELINE_INI)' ] || { [ -n '$(PHRASE_TABLE)' ] && [ -n '$(BASELINE_INI)' ]; } || missing 'one of PHRASE_TABLE and BASELINE_INI: give both'; \
	[ $(words $(sort $(SETS) train all)) -eq $(words $(SETS) train all) ] || missing 'TEST sets whose names differ, none of them dev, train or all'; \
	for system in $(filter-out $(ALL_SYSTEMS),$(SYSTEMS)); do missing "a system named $$system ($(ALL_SYSTEMS))"; done; \
	[ -z '$(filter $(CSLM_SYSTEMS),$(SYSTEMS))' ] || [ -z '$(PHRASE_TABLE)' ] || [ -n '$(CSLM)$(CSLM_TEXT)' ] || \
		missing 'one of CSLM and CSLM_TEXT, for systems with a CSLM: with PHRASE_TABLE there is no corpus'; \
	for text in $(if $(CSLM),,$(CSLM_TEXT)); do [ -f $$text ] || missing "$$text: given as CSLM_TEXT"; done; \
	[ -z '$(CSLM)' ] || [ -f '$(CSLM)/config.json' ] || missing '$(CSLM)/config.json: given as CSLM'; \
	case '$(CSLM_IN)' in auto|decoder|nbest) ;; *) missing 'a CSLM_IN that is one of: auto decoder nbest' ;; esac; \
	case '$(TUNER)' in mert|mira) ;; *) missing 'a TUNER that is one of: mert mira' ;; esac; \
	case '$(W)' in *[\ \#]*) missing 'a WORK without blanks and number signs, which Moses cannot read in an ini' ;; esac; \
	mkdir -p $(DONE) $(LOG); exit $$missing

# --- corpus -------------------------------------------------------------------------------------------------------------

.PHONY: corpus align phrase-table lm baseline train-rnn score train-cslm results
corpus: $(DONE)/corpus ## tokenised and cleaned training text
align: $(DONE)/align ## word alignments of it
phrase-table: $(DONE)/phrase-table ## phrase and reordering table
lm: $(DONE)/lm ## language model of the target side
baseline: $(DONE)/baseline ## the moses.ini of the baseline
train-rnn: $(DONE)/train-rnn ## the network, trained on the phrase table
score: $(DONE)/score-rnn ## the phrase table with the network's score
train-cslm: $(DONE)/train-cslm ## the CSLM, trained on the target side
results: $(W)/results.json ## all SYSTEMS, SEEDS tunings each: BLEU, chrF, significance, weights

# $(call text,PREFIX,NAME): both languages of a text, tokenised, to $(W)/corpus/NAME.LANGUAGE
plain = if [ -f $(1) ]; then cat $(1); else zcat $(1).gz; fi
ifeq ($(TOKENISED),yes)
tokenised = $(call plain,$(1).$(2))
else
tokenised = $(call plain,$(1).$(2)) | $(BIN)/sacremoses -l $(2) -j $(THREADS) -q tokenize \
	$(if $(filter yes,$(LOWERCASE)),| perl -CSD -pe '$$_ = lc')
endif
define text
	mkdir -p $(W)/corpus
	$(call logged,tokenise-$(2).log,for_both() { set -e; $(call tokenised,$(1),$(SRC)) > $(W)/corpus/$(2).$(SRC); $(call tokenised,$(1),$(TRG)) > $(W)/corpus/$(2).$(TRG); }; for_both)
	@s=$$($(call plain,$(1).$(SRC)) | wc -l); t=$$($(call plain,$(1).$(TRG)) | wc -l); \
	[ $$s -gt 0 ] && [ $$s -eq $$t ] || { echo "$(1): expected as many lines in both languages, found $$s $(SRC) and $$t $(TRG)" >&2; exit 1; }; \
	for language in $(SRC) $(TRG); do n=$$(wc -l < $(W)/corpus/$(2).$$language); \
		[ $$n -eq $$s ] || { echo "$(W)/corpus/$(2).$$language: expected $$s lines, found $$n" >&2; tail -n 20 $(LOG)/tokenise-$(2).log >&2; exit 1; }; done
endef
files = $(foreach language,$(SRC) $(TRG),$(wildcard $(1).$(language) $(1).$(language).gz))

$(DONE)/corpus: $(call files,$(TRAIN)) | pipeline-tools
	$(call text,$(TRAIN),all)
	$(call logged,clean.log,$(MOSES_SCRIPTS)/training/clean-corpus-n.perl $(W)/corpus/all $(SRC) $(TRG) $(W)/corpus/train 1 $(MAX_WORDS))
	touch $@

$(DONE)/dev: $(call files,$(DEV)) | pipeline-tools
	$(call text,$(DEV),dev)
	touch $@

$(DONE_TESTS): $(DONE)/%: $(foreach prefix,$(TEST),$(call files,$(prefix))) | pipeline-tools
	$(call text,$(PREFIX_OF_$*),$*)
	touch $@

# --- the baseline -------------------------------------------------------------------------------------------------------

$(DONE)/align: $(DONE)/corpus
	mkdir -p $(W)/model
ifeq ($(CHOSEN_ALIGNER),mgiza)
	$(call logged,align.log,$(MOSES_SCRIPTS)/training/train-model.perl --root-dir $(W) --corpus $(W)/corpus/train \
		--f $(SRC) --e $(TRG) --alignment grow-diag-final-and --last-step 3 \
		-mgiza -mgiza-cpus $(THREADS) --external-bin-dir $(abspath $(MGIZA_BIN)))
else ifeq ($(CHOSEN_ALIGNER),fast_align)
	$(call logged,align.log,cd $(W)/model; paste -d '\n' $(W)/corpus/train.$(SRC) $(W)/corpus/train.$(TRG) | \
		awk 'NR % 2 { source = $$0; next } { print source " ||| " $$0 }' > parallel && \
		fast_align -i parallel -d -o -v > forward && fast_align -i parallel -d -o -v -r > reverse && \
		atools -i forward -j reverse -c grow-diag-final-and > aligned.grow-diag-final-and && rm parallel forward reverse)
else
	$(call logged,align.log,$(BIN)/python moses_configs/align.py $(W)/corpus/train.$(SRC) $(W)/corpus/train.$(TRG) \
		> $(W)/model/aligned.grow-diag-final-and)
endif
	touch $@

$(DONE)/lm: $(DONE)/corpus
	mkdir -p $(W)/lm
	$(call logged,lm.log,$(MOSES_BIN)/lmplz -o $(ORDER) -S 40% -T $(W)/lm --text $(W)/corpus/train.$(TRG) --arpa $(W)/lm/lm.arpa $(LM_FLAGS) && \
		$(MOSES_BIN)/build_binary $(W)/lm/lm.arpa $(W)/lm/lm.binary && rm $(W)/lm/lm.arpa)
	touch $@

$(DONE)/phrase-table: $(DONE)/align $(DONE)/lm
	rm -rf $(W)/model/extract* $(W)/model/phrase-table* $(W)/model/reordering-table* $(W)/model/lex.* $(W)/model/moses.ini
	$(call logged,phrase-table.log,$(MOSES_SCRIPTS)/training/train-model.perl --root-dir $(W) --corpus $(W)/corpus/train \
		--f $(SRC) --e $(TRG) --alignment grow-diag-final-and --first-step 4 --last-step 9 --cores $(THREADS) \
		--max-phrase-length $(MAX_PHRASE) --reordering $(REORDERING) --lm 0:$(ORDER):$(W)/lm/lm.binary:8)
	touch $@

ifneq ($(BASELINE_INI),)
$(DONE)/baseline: $(BASELINE_INI) $(SYSTEM_TABLE) | pipeline-tools
	mkdir -p $(W)/baseline
	$(BIN)/moses-rnn-ini $(BASELINE_INI) --absolute-paths -o $(W)/baseline/moses.ini --force
	touch $@
else
$(DONE)/baseline: $(DONE)/phrase-table
	mkdir -p $(W)/baseline
	cp $(W)/model/moses.ini $(W)/baseline/moses.ini
	touch $@
endif

# --- the network --------------------------------------------------------------------------------------------------------

$(DONE)/train-rnn: $(DONE)/baseline
ifeq ($(MODEL),)
	mkdir -p $(W)/rnn
	restart=; [ ! $(SYSTEM_TABLE) -nt $(RNN_MODEL)/config.json ] || [ ! -e $(RNN_MODEL)/config.json ] || restart=--restart; \
		$(BIN)/moses-rnn-train $(SYSTEM_TABLE) --model $(RNN_MODEL) $(TRAIN_FLAGS) $$restart
endif
	touch $@

$(DONE)/score-rnn $(DONE)/score-rnn-wp: $(DONE)/score-%: $(DONE)/train-rnn
	mkdir -p $(W)/$*
	way=--force; [ ! $(W)/$*/.phrase-table.gz.journal -nt $(RNN_MODEL)/config.json ] || way=--resume; \
	$(BIN)/moses-rnn-score $(SYSTEM_TABLE) --model $(RNN_MODEL) --moses-ini $(W)/baseline/moses.ini \
		-o $(W)/$*/phrase-table.gz --output-ini $(W)/$*/moses.ini $$way $(if $(filter rnn-wp,$*),--word-penalty) $(SCORE_FLAGS)
	touch $@

$(DONE)/score-baseline: $(DONE)/baseline
	touch $@

$(DONE)/train-cslm: $(if $(CSLM),,$(if $(CSLM_TEXT),$(CSLM_TEXT),$(DONE)/corpus)) | pipeline-tools
ifeq ($(CSLM),)
	mkdir -p $(W)/cslm
	restart=; [ ! -e $(CSLM_MODEL)/config.json ] || ! newer=$$(find $(CSLM_CORPUS) -newer $(CSLM_MODEL)/config.json) || \
		[ -z "$$newer" ] || restart=--restart; \
		$(BIN)/moses-rnn-cslm train $(CSLM_CORPUS) --model $(CSLM_MODEL) $(CSLM_FLAGS) $$restart
endif
	touch $@

# In the decoder: the system without CSLM, its feature and its weight
ifeq ($(CSLM_PLACE),decoder)
$(DONE)/export-cslm: $(DONE)/train-cslm $(DONE)/dev
	mkdir -p $(W)/cslm
	$(BIN)/moses-rnn-cslm export-nplm $(CSLM_MODEL) $(W)/cslm/cslm.nplm --dev $(W)/corpus/dev.$(TRG) --force > $(W)/cslm/lines
	touch $@

$(foreach system,$(CSLM_SYSTEMS),$(eval $(DONE)/score-$(system): $(DONE)/score-$(call without_cslm,$(system))))
$(foreach system,$(CSLM_SYSTEMS),$(DONE)/score-$(system)): $(DONE)/score-%: $(DONE)/export-cslm
	mkdir -p $(W)/$*
	awk 'NR == FNR { if (/^\[/) section = $$0; else if ($$0 != "") of[section] = $$0; next } \
		{ print } $$0 in of { print of[$$0] }' $(W)/cslm/lines $(W)/$(call without_cslm,$*)/moses.ini > $(W)/$*/moses.ini
	touch $@
endif

# --- tuning, decoding, results --------------------------------------------------------------------------------------------

# $(call decoder,INI,SET,NAME,FLAGS): translations of a set to stdout, of the part of the models that it needs
decoder = { rm -rf $(W)/filtered/$(3) && mkdir -p $(W)/filtered && \
	$(MOSES_SCRIPTS)/training/filter-model-given-input.pl $(W)/filtered/$(3) $(1) $(W)/corpus/$(2).$(SRC) > $(LOG)/filter-$(3).log 2>&1 && \
	$(MOSES_BIN)/moses -f $(W)/filtered/$(3)/moses.ini -threads $(THREADS) $(DECODER_FLAGS) $(4) \
		< $(W)/corpus/$(2).$(SRC) 2> $(LOG)/$(3).log && rm -rf $(W)/filtered/$(3) || \
	{ tail -n 20 $(LOG)/$(3).log >&2; echo "failed; the whole logs: $(LOG)/$(3).log and $(LOG)/filter-$(3).log" >&2; false; }; }

# $(call without_segments,NAME): the decoder's text without |0-1|, in a recipe that is expanded twice
without_segments = sed 's/ *|[0-9]*-[0-9]*|//g; s/^ *//; s/ *$$$$//' $(W)/decode/$(1).segments > $(W)/decode/$(1).$(TRG)

# Always in a fresh folder: mert-moses.pl takes the filtered table and the feature list that it finds in an old one.
define of_run
$(DONE)/tune-$(1).$(2): $(DONE)/score-$(1) $(DONE)/dev
	rm -rf $(W)/tune/$(1).$(2) && mkdir -p $(W)/tune
	$$(call logged,tune-$(1).$(2).log,$(MOSES_SCRIPTS)/training/mert-moses.pl $(W)/corpus/dev.$(SRC) $(W)/corpus/dev.$(TRG) \
		$(MOSES_BIN)/moses $(W)/$(1)/moses.ini --working-dir $(W)/tune/$(1).$(2) \
		--mertdir $(MOSES_BIN) --rootdir $(MOSES_SCRIPTS) --nbest $(NBEST) --threads $(THREADS) \
		$(call tuner_flags,$(2)) --decoder-flags '-threads $(THREADS) $(DECODER_FLAGS)' $(MERT_FLAGS))
	rm -rf $(W)/tune/$(1).$(2)/run*.out.gz $(W)/tune/$(1).$(2)/run*.dat
	touch $$@

$(DONE)/decode-$(1).$(2): $(DONE)/tune-$(1).$(2) $(DONE_TESTS)
	mkdir -p $(W)/decode
	for set in $(SETS); do \
		$(call decoder,$(W)/tune/$(1).$(2)/moses.ini,$$$$set,decode-$(1).$(2).$$$$set,-report-segmentation) \
			> $(W)/decode/$(1).$(2).$$$$set.segments && \
		$(call without_segments,$(1).$(2).$$$$set) || exit 1; done
	touch $$@
endef

# On lists of the translations that the tuned system without CSLM finds best
define of_lists
$(DONE)/lists-$(1).$(2): $(DONE)/tune-$(1).$(2) $(DONE_TESTS)
	mkdir -p $(W)/nbest
	for set in $(SETS); do \
		$(call decoder,$(W)/tune/$(1).$(2)/moses.ini,$$$$set,lists-$(1).$(2).$$$$set,-n-best-list $(W)/nbest/$(1).$(2).$$$$set \
			$(LIST_SIZE) distinct -include-segmentation-in-n-best) > /dev/null && \
		gzip -f $(W)/nbest/$(1).$(2).$$$$set || exit 1; done
	touch $$@
endef

# $(1) a system, $(2) the one whose lists it is chosen from, $(3) a seed; a word penalty is added to the lists without it
define of_features
$(DONE)/features-$(1).$(3): $(DONE)/lists-$(2).$(3) $(DONE)/train-cslm
	for set in $(SETS); do \
		$(BIN)/moses-rnn-nbest $(W)/nbest/$(2).$(3).$$$$set.gz --source $(W)/corpus/$$$$set.$(SRC) --cslm $(CSLM_MODEL) \
			-o $(W)/nbest/$(1).$(3).$$$$set.gz --force || exit 1; done
	touch $$@

$(DONE)/features-$(1)-wp.$(3): $(DONE)/features-$(1).$(3) $(DONE)/train-rnn
	for set in $(SETS); do \
		$(BIN)/moses-rnn-nbest $(W)/nbest/$(1).$(3).$$$$set.gz --source $(W)/corpus/$$$$set.$(SRC) --word-penalty $(RNN_MODEL) \
			$(if $(WP_WORDS),--word-penalty-words $(WP_WORDS)) -o $(W)/nbest/$(1)-wp.$(3).$$$$set.gz --force || exit 1; done
	touch $$@
endef

define of_rescoring
$(DONE)/tune-$(1).$(3): $(DONE)/features-$(1).$(3) $(DONE)/dev
	mkdir -p $(W)/tune/$(1).$(3)
	$(BIN)/moses-rnn-nbest tune $(W)/nbest/$(1).$(3).dev.gz --reference $(W)/corpus/dev.$(TRG) --seed $(3) \
		--weights $(W)/tune/$(2).$(3)/moses.ini --moses-root $(MOSES_ROOT) \
		--optimiser $(if $(filter mira,$(TUNER)),kbmira,moses-mert) -o $(W)/tune/$(1).$(3)/moses.ini --force
	touch $$@

$(DONE)/decode-$(1).$(3): $(DONE)/tune-$(1).$(3) $(DONE_TESTS)
	mkdir -p $(W)/decode
	for set in $(SETS); do \
		$(BIN)/moses-rnn-nbest rerank $(W)/nbest/$(1).$(3).$$$$set.gz $(W)/tune/$(1).$(3)/moses.ini --segments \
			--reference $(W)/corpus/$$$$set.$(TRG) -o $(W)/decode/$(1).$(3).$$$$set.segments --force && \
		$(call without_segments,$(1).$(3).$$$$set) || exit 1; done
	touch $$@
endef

ON_LISTS := $(if $(filter nbest,$(CSLM_PLACE)),$(CSLM_SYSTEMS))
$(foreach system,$(filter-out $(ON_LISTS),$(ALL_SYSTEMS)),$(foreach seed,$(SEEDS),$(eval $(call of_run,$(system),$(seed)))))
$(foreach system,$(sort $(foreach system,$(ON_LISTS),$(call list_system,$(system)))),$(foreach seed,$(SEEDS),$(eval \
	$(call of_lists,$(system),$(seed)))))
$(foreach system,$(filter-out %-wp,$(ON_LISTS)),$(foreach seed,$(SEEDS),$(eval \
	$(call of_features,$(system),$(call list_system,$(system)),$(seed)))))
$(foreach system,$(ON_LISTS),$(foreach seed,$(SEEDS),$(eval $(call of_rescoring,$(system),$(call list_system,$(system)),$(seed)))))

tune-%: $(foreach seed,$(SEEDS),$(DONE)/tune-%.$(seed)) ;
decode-%: $(foreach seed,$(SEEDS),$(DONE)/decode-%.$(seed)) ;
bleu-%: $(foreach seed,$(SEEDS),$(DONE)/decode-%.$(seed))
	@for seed in $(SEEDS); do for set in $(SETS); do \
		printf '%s\t' "$* seed $$seed, $$set"; \
		$(BIN)/sacrebleu $(W)/corpus/$$set.$(TRG) -i $(W)/decode/$*.$$seed.$$set.$(TRG) -tok none -b -w 2 --force || exit 1; done; done

$(W)/results.json: $(foreach run,$(RUNS),$(DONE)/decode-$(run))
	$(BIN)/moses-rnn-analyse results $(W) --target $(TRG) $(foreach system,$(SYSTEMS),--system $(system)) $(foreach test,$(TEST_NAMES),--test $(test)) \
		$(foreach seed,$(SEEDS),--seed $(seed)) -o $@ --force

# --- a smaller table ------------------------------------------------------------------------------------------------------

# The weights stay as they were tuned with the whole table: what is compared is what was lost
define of_pruning
$(DONE)/prune-$(1).$(2).$(PRUNE_SEED): $(DONE)/tune-rnn.$(PRUNE_SEED) $(DONE)/dev
	mkdir -p $(W)/prune
	$(if $(filter all,$(1)),,$(BIN)/moses-rnn-analyse prune $(W)/rnn/phrase-table.gz -o $(W)/prune/$(1).$(2).$(PRUNE_SEED).gz --by $(1) --keep $(2) $(PRUNE_FLAGS) --force)
	sed '$(if $(filter all,$(1)),,s#path=$(W)/rnn/phrase-table.gz#path=$(W)/prune/$(1).$(2).$(PRUNE_SEED).gz#)' $(W)/tune/rnn.$(PRUNE_SEED)/moses.ini > $(W)/prune/$(1).$(2).$(PRUNE_SEED).ini
	$(if $(filter all,$(1)),,grep -q 'path=$(W)/prune/$(1).$(2).$(PRUNE_SEED).gz' $(W)/prune/$(1).$(2).$(PRUNE_SEED).ini)
	$(call decoder,$(W)/prune/$(1).$(2).$(PRUNE_SEED).ini,dev,prune-$(1).$(2).$(PRUNE_SEED)) > $(W)/prune/$(1).$(2).$(PRUNE_SEED).dev
	touch $$@
endef
PRUNED := all.1 $(foreach keep,$(PRUNE_KEEP),$(foreach by,rnn direct both,$(by).$(keep)))
$(eval $(call of_pruning,all,1))
$(foreach keep,$(PRUNE_KEEP),$(foreach by,rnn direct both,$(eval $(call of_pruning,$(by),$(keep)))))

.PHONY: prune-bleu
prune-bleu: $(foreach pruned,$(PRUNED),$(DONE)/prune-$(pruned).$(PRUNE_SEED)) ## dev BLEU by the size of +RNN's table, pruned by its scores
	@for pruned in $(PRUNED); do printf '%s\t%s\t' $${pruned%%.*} $${pruned#*.}; \
		$(BIN)/sacrebleu $(W)/corpus/dev.$(TRG) -i $(W)/prune/$$pruned.$(PRUNE_SEED).dev -tok none -b -w 2 --force || exit 1; done
