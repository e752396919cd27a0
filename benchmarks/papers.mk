# One target for each of the papers' tables. All but table1 run a plan of benchmarks/plans, without Moses.
#
# Each target prints its table. To continue a stopped target, run it again. If you change variables, use another WORK.
# The defaults take minutes on two cores and show that everything works, not what the papers show.

# The folder for all outputs; and a folder with train, dev and test: tokenised texts NAME.$(SRC) and NAME.$(TRG),
# plain or .gz. If no text is named, this is the example corpus
WORK ?= work
ifeq ($(CORPUS)$(TRAIN)$(DEV)$(TEST)$(PHRASE_TABLE),)
CORPUS := examples/corpus
endif
ifneq ($(CORPUS),)
TRAIN ?= $(CORPUS)/train
DEV ?= $(CORPUS)/dev
TEST ?= $(CORPUS)/test
endif
# Training time of each network
MINUTES ?= 1
# Options of moses-rnn nmt train; the example corpus is for small networks
NMT_FLAGS ?= $(if $(filter examples/corpus/train,$(TRAIN)),--hidden-size 64 --embedding-size 32)
# For bengio and mikolov: an n-gram model of the target language
LM ?= examples/lm.arpa.gz
# For jean and luong: how many words the small shortlists have, and word alignments of TRAIN (by default sil-thot's)
WORDS ?= 250
LINKS ?= $(WORK)/train.links
# For table1: defaults of pipeline variables; values on the command line win
TABLE1_FLAGS ?= TOKENISED=yes TUNER=mira DECODER_FLAGS='-search-algorithm 1 -cube-pruning-pop-limit 100 -s 100'

text_file = $(firstword $(wildcard $(1) $(1).gz) $(1))
TRAIN_SOURCE = $(call text_file,$(TRAIN).$(SRC))
TEST_SOURCE = $(call text_file,$(firstword $(TEST)).$(SRC))
TEST_TARGET = $(call text_file,$(firstword $(TEST)).$(TRG))
# For bahdanau: minutes of RNNsearch-50*, which trains until it gains no more; 0 for no limit
LONGEST ?= $(shell awk 'BEGIN { print 10 * $(MINUTES) }')
PLANS := bahdanau sutskever bengio mikolov jean luong cells gradients identity
PLAN_SEEDS = $(if $(filter file,$(origin SEEDS)),1,$(SEEDS))
PLAN_VALUES = seeds='$(PLAN_SEEDS)' minutes=$(MINUTES) train=$(TRAIN) dev=$(DEV) source=$(SRC) target=$(TRG) \
	train_source=$(TRAIN_SOURCE) train_target=$(call text_file,$(TRAIN).$(TRG)) dev_target=$(call text_file,$(DEV).$(TRG)) \
	test_source=$(TEST_SOURCE) test_target=$(TEST_TARGET) \
	lm=$(LM) table=$(TABLE) links=$(LINKS) words=$(WORDS) longest=$(LONGEST) options='$(NMT_FLAGS)' \
	$(if $(findstring seq2seq,$(NMT_FLAGS)),base_copied=no base_replaced=no)

.PHONY: table1 $(PLANS)
table1: $(INSTALLED) ## Cho et al.: Baseline, +RNN, +CSLM+RNN, +CSLM+RNN+WP; needs MOSES_ROOT
	SYSTEMS='baseline rnn cslm-rnn cslm-rnn-wp' TRAIN_FLAGS='--max-minutes $(MINUTES)' \
	CSLM_FLAGS='--self-normalise 0.1 --max-minutes $(MINUTES)' $(TABLE1_FLAGS) \
	$(MAKE) --no-print-directory -f moses_configs/pipeline.mk results BIN=$(abspath $(BIN)) WORK=$(WORK)/table1 \
		SEEDS='$(PLAN_SEEDS)' TRAIN=$(TRAIN) DEV=$(DEV) TEST='$(TEST)' LM_FLAGS='$(LM_FLAGS)'
bahdanau: ## Bahdanau et al.: RNNenc against RNNsearch, by sentence length
sutskever: ## Sutskever et al.: source forward or reversed, beams of 1, 2 and 12, ensembles, by length and rarity
bengio: ## Bengio et al.: perplexities of n-gram networks
mikolov: ## Mikolov et al.: perplexities of recurrent networks, also of three together, static and dynamic
jean: ## Jean et al.: large shortlists, candidate words; with several SEEDS, an ensemble
luong: ## Luong et al.: rare words as pointers, by rarity; with several SEEDS, an ensemble
cells: ## Cho et al., equations 5-8: gated units against other cells
gradients: ## Bengio et al. (1994): how far back gradients reach in decoders with different cells
identity: ## what it takes that a deep LSTM learns to copy its source

# Deep LSTMs learn slowly
sutskever: MINUTES := $(if $(filter file,$(origin MINUTES)),3,$(MINUTES))
# It changes the sizes itself
identity: NMT_FLAGS := $(if $(filter file,$(origin NMT_FLAGS)),,$(NMT_FLAGS))
jean luong: $(LINKS)
$(PLANS): $(INSTALLED)
	$(foreach name,TRAIN DEV TEST,$(if $($(name)),,$(error $(name): expected the prefix of a corpus (or name CORPUS))))
	$(if $(filter sutskever,$@),$(if $(filter-out 1 2 3 4 5,$(PLAN_SEEDS)),\
		$(error SEEDS=$(SEEDS): expected seeds from 1 to 5, those of the five reversed LSTMs)))
	$(BIN)/python benchmarks/trials.py benchmarks/plans/$@.toml $(WORK)/$@ $(PLAN_VALUES)
	$(AFTER_$@)

# Further tables, of the first seed; a picture of each too, if matplotlib is installed: $(call analyse,ARGUMENTS,PICTURE)
FIRST = $(firstword $(PLAN_SEEDS))
TESTED = $(TEST_SOURCE) $(TEST_TARGET)
analyse = @echo && $(BIN)/moses-rnn analyse $(1) --format markdown $(if $(and $(2),\
	$(shell $(BIN)/python -c 'import matplotlib' 2> /dev/null && echo yes)),-o $(WORK)/$@/$(2).svg --force)

AFTER_bahdanau = $(call analyse,lengths $(TESTED) $(foreach trial,RNNenc-30 RNNsearch-30 RNNenc-50 RNNsearch-50,\
	$(WORK)/bahdanau/$(trial).$(FIRST)/$(trial)) '$(WORK)/bahdanau/RNNsearch-50-.$(FIRST)/RNNsearch-50*',lengths)

LSTMS = $(foreach one,forward reversed five-reversed,$(WORK)/sutskever/$(one)-beam-12.$(FIRST)/$(one)-12)
define AFTER_sutskever
$(call analyse,lengths $(TESTED) $(LSTMS),lengths)
$(call analyse,lengths $(TESTED) $(LSTMS) --by-rarity $(TRAIN_SOURCE),rarity)
endef

# The three largest networks evenly, alone and with the n-gram model: $(call three,TITLE,OPTIONS)
three = @echo && echo '3xRNN $(1):' && $(BIN)/moses-rnn cslm perplexity $(call text_file,$(DEV).$(TRG)) $(TEST_TARGET) \
	--lm $(LM) --threads 1 $(foreach one,RNN-250-5 RNN-250-2 RNN-400-10,--model $(WORK)/mikolov/$(one).$(FIRST)/model) $(2)
define AFTER_mikolov
$(call three,static)
$(call three,dynamic$(COMMA) rate 0.1,--dynamic sentence --dynamic-rate 0.1)
$(call three,dynamic$(COMMA) rate 0.003,--dynamic sentence --dynamic-rate 0.003)
endef

# The networks of all seeds together: $(call together,TRIAL,OPTIONS)
together = $(if $(word 2,$(PLAN_SEEDS)),$(BIN)/moses-rnn nmt translate $(TEST_SOURCE) \
	$(PLAN_SEEDS:%=--model $(WORK)/$@/$(1).%/model) --unknown dictionary --dictionary $(WORK)/$@/dictionary $(2) \
	-o $(WORK)/$@/together --length-score sum --force --threads 1 --quiet)
TOGETHER = $(if $(word 2,$(PLAN_SEEDS)),$(WORK)/$@/together)
define AFTER_jean
$(call together,all-words-new-partitions-each-epoch,--candidates $(WORDS) 10)
$(if $(TOGETHER),$(call analyse,lengths $(TESTED) $(TOGETHER)))
endef
define AFTER_luong
$(call together,PosUnk)
$(call analyse,lengths $(TESTED) --by-rarity $(TRAIN_SOURCE) $(TOGETHER) \
	$(foreach output,base.$(FIRST)/left base.$(FIRST)/replaced PosUnk.$(FIRST)/replaced,$(WORK)/luong/$(output)),rarity)
endef
AFTER_gradients = $(call analyse,gradients $(TESTED) \
	$(foreach trial,tanh relu leaky leaky-50 lstm gru,$(WORK)/gradients/$(trial).$(FIRST)/$(trial)),gradients)

$(WORK)/train.links: | $(INSTALLED)
	mkdir -p $(WORK)
	gzip -cdf $(call text_file,$(TRAIN).$(SRC)) > $(WORK)/train.$(SRC)
	gzip -cdf $(call text_file,$(TRAIN).$(TRG)) > $(WORK)/train.$(TRG)
	$(BIN)/python moses_configs/align.py $(WORK)/train.$(SRC) $(WORK)/train.$(TRG) > $@.part
	mv $@.part $@
