# Everything is found by wildcard: a new file under src/ or tests/ needs no line here.
#
# One set of position-independent objects serves the program (static-pie: the dynamic loader would
# cost a run about a millisecond), both libraries and the tests. B is the output directory, so that
# a build with other flags lives beside the usual one.

B       ?= build
PREFIX  ?= /usr/local
CFLAGS  ?= -O2 -g
ifeq ($(origin CC),default)
CC      := gcc
endif

WARN    := -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes
ifneq ($(filter true 1,$(CI) $(WERROR)),)
WARN    += -Werror
endif
ifdef SAN
HARDEN  := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDHARD  := -fsanitize=address,undefined
PIE     := -pie
ifeq ($(SAN),fuzzer)
HARDEN  += -fsanitize=fuzzer-no-link -DFUZZER
endif
else
HARDEN  := -fstack-protector-strong -D_FORTIFY_SOURCE=2
LDHARD  := -Wl,-z,relro,-z,now -Wl,-z,noexecstack
PIE     := -static-pie
endif
# The prefix map: where the source lay is in no file that is built, so the bytes are the same anywhere.
ALL_CFLAGS = -std=gnu17 -D_GNU_SOURCE $(WARN) -fPIC -fvisibility=hidden $(HARDEN) \
             -ffile-prefix-map=$(CURDIR)=. \
             -Isrc -Iinclude -I$(B)/gen $(CPPFLAGS) $(CFLAGS)
ALL_LDFLAGS = $(LDHARD) $(LDFLAGS)
LIBS    := -ljansson -lseccomp -lm
# The program is linked with musl where Debian's musl-dev is, for it starts half a millisecond sooner (src/libc/musl.c
# says why). LIBC=glibc: as the libraries are. What is built with sanitizers or coverage needs glibc.
MUSL    := $(patsubst %/musl-gcc.specs,%,$(firstword $(wildcard /usr/lib/*-linux-musl/musl-gcc.specs)))
LIBC    ?= $(if $(and $(MUSL),$(filter gcc,$(CC))),$(if $(SAN)$(findstring coverage,$(CFLAGS)),glibc,musl),glibc)
# Where sd-bus is, a small program that asks the systemd user manager for cgroups; mayfly does without.
DELEGATE := $(if $(wildcard /usr/include/systemd/sd-bus.h),$(B)/mayfly-delegate)

# V=1 shows the commands
says     = $(if $(V),,@printf '  %-6s %s\n' $(1) $@;)
obj      = $(patsubst %.c,$(B)/obj/%.o,$(1))
MKFILTER := $(call obj,src/control/seccomp_mkfilter.c src/control/seccomp_compile.c \
              src/control/seccomp_pack.c \
              src/policy/profile_json.c $(wildcard src/base/*.c))
LIB_OBJ  := $(call obj,$(filter-out %/seccomp_mkfilter.c,$(wildcard \
              $(addprefix src/,$(addsuffix /*.c,base linux policy plan control box image lib)))))
JSON_OBJ := $(call obj,$(wildcard src/json/*.c))
CLI_OBJ  := $(call obj,$(wildcard src/cli/*.c))
# The lab's builds differ in one object: the table of fields, which there has --without CONTROL.
LAB_OBJ  := $(call obj,$(filter-out %/main.c,$(wildcard src/lab/*.c)))
LAB_FIELDS := $(B)/obj/lab/policy_fields.o
LAB_LIBS := -lcrypto
# What writes image stores and speaks to networks: a program of its own, so that mayfly links none of its libraries.
FETCH_OBJ := $(call obj,$(filter-out %main.c,$(wildcard src/fetch/*.c src/build/*.c)))
# Where ISA-L is, gzip is undone by it, some times as fast as by zlib.
ISAL     := $(if $(wildcard /usr/include/isa-l/igzip_lib.h),-lisal)
FETCH_LIBS := -larchive -lcrypto -lcurl $(ISAL) -ljansson -lseccomp -lm
UNPACK_LIBS := -larchive -lcrypto $(ISAL) -ljansson -lseccomp -lm
# What offers boxes to language models: programs of their own, for the same reason.
TOOL_OBJ := $(call obj,$(wildcard src/tool/*.c src/runlog/*.c))
MCP_OBJ  := $(call obj,$(filter-out %/main.c,$(wildcard src/mcp/*.c))) $(TOOL_OBJ)
MCP_LIBS := -lmicrohttpd -lcrypto
# The run log: linked by the programs that log; mayfly itself hands its records to one of them.
RUNLOG_OBJ := $(call obj,$(wildcard src/runlog/*.c))
LOG_OBJ  := $(call obj,$(wildcard src/log/*.c))
LOG_LIBS := -lcrypto -ljansson -lm
# The agent's HTTP is fetch's.
AGENT_OBJ := $(call obj,$(filter-out %/main.c,$(wildcard src/agent/*.c)))
AGENT_HTTP := $(call obj,src/fetch/http.c src/fetch/retry.c)
AGENT_LIBS := -lcurl -lcrypto
# Programs that mayfly starts itself, for LIBEXECDIR/mayfly: $(B)/NAME, with a rule each.
HELPERS  := $(DELEGATE) $(B)/mayfly-fetch $(B)/mayfly-unpack $(B)/mayfly-mcp $(B)/mayfly-agent $(B)/mayfly-log $(B)/mayfly-lab
OBJCOPY  ?= objcopy
SUITES   := unit golden fault live images mcp agent lab package
TEST_SRC := $(wildcard $(SUITES:%=tests/%/test_*.c))
TESTS    := $(TEST_SRC:%.c=$(B)/%)
TEST_AUX := $(call obj,$(filter-out $(TEST_SRC),$(wildcard tests/*.c $(SUITES:%=tests/%/*.c))))
FILTER   := $(B)/gen/seccomp_default.h
FUZZ_OBJ := $(call obj,$(wildcard tests/fuzz/*.c))
FUZZ_SHARED := $(filter-out $(B)/obj/tests/fuzz/fuzz_%,$(FUZZ_OBJ))
FUZZERS  := $(patsubst tests/fuzz/fuzz_%.c,$(B)/bin/%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: FORCE all run test bench bench-images unit golden fault live images mcp agent lab package hosts tests lint format asan fuzz coverage \
        unit-programs install uninstall dist deb base cpython stress lab-matrix rootfs deps help clean distclean
.DELETE_ON_ERROR:

all: $(B)/mayfly $(B)/public/libmayfly.a $(B)/libmayfly.so.0 $(HELPERS) ## build the program and the library (default)
	@:

# ------------------------------------------------------------------ the user's commands

run: ## run a demonstration in a box, or CODE='print(1)'
	@scripts/deps.sh build
	@$(MAKE) --no-print-directory -s $(B)/mayfly $(HELPERS)
	@image=$$(scripts/python-image.sh $(B)) || exit; \
	    if [ -n "$$CODE" ]; then set -- -c "$$CODE"; else set -- scripts/demo.py; fi; \
	    [ "$$(id -u)" = 0 ] || $(B)/mayfly doctor >/dev/null || set -- --limits=best-effort "$$@"; \
	    exec $(B)/mayfly python --image "$$image" --stats "$$@"
# CODE as it was given: no dollar sign in it is make's.
override CODE := $(value CODE)
export CODE

test: ## build all and run every test, on every kind of host that this machine can be
	@scripts/deps.sh build test package
	@scripts/npm-tree.sh tests/mcp/clients build/mcp-clients || echo "without them no other program's MCP client is tried" >&2
	@{ command -v chromium >/dev/null || scripts/deps.sh browser; } && scripts/npm-tree.sh tests/lab/browser build/lab-browser || echo "without it the lab's page is tried in no browser" >&2
	@scripts/deps.sh fuzz || echo "without them what fuzzing found is replayed, and nothing is looked for" >&2
	@$(MAKE) --no-print-directory -j"$$(nproc)" all tests
	@$(MAKE) --no-print-directory rootfs base
	@scripts/test.sh unit golden fault fuzz live images mcp agent lab package hosts

unit golden fault live images mcp agent lab hosts: tests rootfs ## one suite of the tests
	@scripts/test.sh $@

bench: $(B)/bench $(B)/floor $(B)/mayfly rootfs ## what a run costs, beside the bare program and every peer installed; BENCH='--rounds 500 --json FILE'
	@MAYFLY_BIN=$(abspath $(B)/mayfly) MAYFLY_FLOOR=$(abspath $(B)/floor) MAYFLY_ROOTFS=$(abspath build/rootfs) $(B)/bench $(BENCH)

bench-images: $(B)/mayfly $(HELPERS) rootfs ## getting an image, beside skopeo + umoci and podman where they are installed; BENCH='--rounds 15 --json FILE'
	@scripts/deps.sh build test
	@scripts/bench-images.py $(BENCH)

package: all tests rootfs base ## the tests of what is installed: libraries, pages, completion, packages
	@scripts/test.sh $@

lint: ## layout, static analysis, include directions, symbols, scripts
	@scripts/deps.sh build test lint
	@$(MAKE) --no-print-directory all
	@scripts/lint.sh $(ALL_CFLAGS) -Itests

format: ## lay the source out as lint wants it
	clang-format -i $(shell find include src tests -name '*.[ch]')

asan: ## unit and golden tests with address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory B=build/asan SAN=1 tests
	@MAYFLY_BUILD=build/asan scripts/test.sh unit golden

fuzz: ## look for inputs that break the parsers; FUZZ='--seconds 600 policy_json options'
	@scripts/deps.sh build test fuzz
	@scripts/fuzz.sh $(FUZZ)

coverage: ## how much of each parser the unit tests and the fuzz corpora execute; fails below 90 %
	@scripts/deps.sh build test
	@! [ -d build/coverage ] || find build/coverage -name '*.gcda' -delete
	@$(MAKE) --no-print-directory B=build/coverage CFLAGS='-O0 -g --coverage -U_FORTIFY_SOURCE' LDFLAGS=--coverage \
	    WARN=-w unit-programs
	@scripts/coverage.sh

cpython: $(B)/mayfly rootfs ## run CPython's own test suite in the box and bare, and compare (an hour)
	@scripts/cpython-suite.sh --strict

stress: $(B)/mayfly rootfs ## run stress-ng's stressors in boxes, and look whether the host is as before
	@scripts/stress.sh

lab-matrix: $(B)/mayfly $(HELPERS) rootfs ## try every probe, here and in the user-mode kernel, and write the matrices that the tests compare with
	@scripts/deps.sh build test
	@B='$(B)' scripts/lab-matrix.sh $(LAB)

deps: ## install what is missing of the packages that building and testing need
	@scripts/deps.sh build test package fuzz

rootfs: ## make the Python rootfs, build/rootfs (at once when it is up to date)
	@rootfs/build.sh build/rootfs

base: ## make the bare Debian that the package is tested in, build/base.tar (at once when it is there)
	@scripts/base.sh build/base.tar

# Where things go. scripts/install.sh has the one table of what goes there, for all four of these.
BINDIR        ?= $(PREFIX)/bin
LIBDIR        ?= $(PREFIX)/lib
LIBEXECDIR    ?= $(PREFIX)/libexec
INCLUDEDIR    ?= $(PREFIX)/include
MANDIR        ?= $(PREFIX)/share/man
DOCDIR        ?= $(PREFIX)/share/doc/mayfly
PKGCONFIGDIR  ?= $(LIBDIR)/pkgconfig
BASHCOMPDIR   ?= $(PREFIX)/share/bash-completion/completions
ZSHCOMPDIR    ?= $(PREFIX)/share/zsh/site-functions
FISHCOMPDIR   ?= $(PREFIX)/share/fish/vendor_completions.d
PLACES        := B DESTDIR PREFIX BINDIR LIBDIR LIBEXECDIR INCLUDEDIR MANDIR DOCDIR PKGCONFIGDIR \
                 BASHCOMPDIR ZSHCOMPDIR FISHCOMPDIR HELPERS
with_places    = $(foreach v,$(PLACES),$(v)='$($(v))')

install: all ## install to PREFIX (/usr/local), below DESTDIR
	@$(with_places) scripts/install.sh install

uninstall: ## remove what install put there, given the same variables
	@$(with_places) scripts/install.sh uninstall

dist: all ## build/dist: the static program, its pages and completion as a tar.gz, with checksums
	@B='$(B)' HELPERS='$(HELPERS)' scripts/dist.sh

deb: all ## build/deb: Debian packages of the program and the library
	@scripts/deps.sh build package
	@B='$(B)' HELPERS='$(HELPERS)' scripts/deb.sh

help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z ]*:.*## / { printf "  make %-32s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

clean: ## remove what was built, but for the rootfs, suites, downloads and the bare Debian
	rm -rf $(filter-out build/rootfs build/rootfs.lock build/debs build/base.tar% build/cpython build/stress build/systemd build/mcp-clients build/lab-browser,$(wildcard build/*))

distclean: ## remove all of build/
	rm -rf build

# ------------------------------------------------------------------ how things are made

ifeq ($(LIBC),musl)
# The kernel's headers are not musl's, and are looked for last; musl's own convert signs without a cast. gcc's specs for
# musl know no static-pie, so its parts are named. Ours are in an archive: no more is linked than with glibc.
MUSL_CFLAGS  = -specs $(MUSL)/musl-gcc.specs -idirafter /usr/include \
               -idirafter /usr/include/$(shell $(CC) -print-multiarch) -include src/libc/musl.h -Wno-sign-conversion
MUSL_OBJ     = $(patsubst $(B)/obj/%,$(B)/musl/%,$(1))
gcc_file     = $(shell $(CC) -print-file-name=$(1))
$(B)/mayfly: $(call MUSL_OBJ,$(CLI_OBJ)) $(B)/musl/libmayfly.a
	$(call says,LINK) scripts/check-libc.sh $(call gcc_file,libjansson.a) $(call gcc_file,libseccomp.a) && \
	    $(CC) $(PIE) -nostdlib $(ALL_LDFLAGS) -o $@ $(MUSL)/rcrt1.o $(MUSL)/crti.o $(call gcc_file,crtbeginS.o) $^ \
	    $(call gcc_file,libjansson.a) $(call gcc_file,libseccomp.a) \
	    $(MUSL)/libc.a -lgcc $(call gcc_file,crtendS.o) $(MUSL)/crtn.o

$(B)/musl/libmayfly.a: $(call MUSL_OBJ,$(LIB_OBJ) $(JSON_OBJ) $(B)/obj/src/libc/musl.o)
	$(call says,AR) rm -f $@ && $(AR) rcsD $@ $^

$(B)/musl/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call says,CC) $(CC) $(ALL_CFLAGS) $(MUSL_CFLAGS) -MMD -MP -c -o $@ $<

# A program for glibc: the words are its.
$(B)/gen/names.inc: src/libc/names.c $(B)/flags
	@mkdir -p $(@D)
	$(call says,GEN) $(CC) $(ALL_CFLAGS) -o $(B)/gen/names $< && $(B)/gen/names > $@
$(B)/musl/src/libc/musl.o: | $(B)/gen/names.inc
else
$(B)/mayfly: $(CLI_OBJ) $(JSON_OBJ) $(B)/libmayfly.a
	$(call says,LINK) $(CC) $(PIE) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)
endif

$(B)/mayfly-delegate: $(call obj,src/delegate/delegate.c)
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ -lsystemd

$(B)/mayfly-fetch: $(call obj,src/fetch/main.c) $(FETCH_OBJ) $(B)/libmayfly.a
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ $(FETCH_LIBS)

$(B)/mayfly-mcp: $(call obj,src/mcp/main.c) $(MCP_OBJ) $(JSON_OBJ) $(B)/libmayfly.a
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ $(MCP_LIBS) $(LIBS)

$(B)/mayfly-agent: $(call obj,src/agent/main.c) $(AGENT_OBJ) $(TOOL_OBJ) $(AGENT_HTTP) $(JSON_OBJ) $(B)/libmayfly.a
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ $(AGENT_LIBS) $(LIBS)

$(B)/mayfly-log: $(LOG_OBJ) $(RUNLOG_OBJ) $(B)/libmayfly.a
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ $(LOG_LIBS)

# What reads hostile archives: of the above only what that takes, and not curl.
$(B)/mayfly-unpack: $(call obj,src/fetch/unpack_main.c) $(B)/libfetch_test.a $(B)/libmayfly.a
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ $(UNPACK_LIBS)

$(call obj,src/fetch/gunzip.c): ALL_CFLAGS += $(if $(ISAL),-DHAVE_ISAL)

# The program that makes byte code in a box, as the bytes of an array.
$(B)/gen/bytecode_py.inc: src/fetch/bytecode.py
	@mkdir -p $(@D)
	$(call says,GEN) { echo 'static const char script[] = {'; \
	    od -An -v -tu1 $< | sed 's/ *\([0-9][0-9]*\)/\1,/g'; echo '0};'; } > $@
$(call obj,src/fetch/bytecode.c): | $(B)/gen/bytecode_py.inc

# Texts of the tools', each as the bytes of an array.
$(B)/gen/%.inc: src/tool/%
	@mkdir -p $(@D)
	$(call says,GEN) od -An -v -tu1 $< | sed 's/ *\([0-9][0-9]*\)/\1,/g' > $@
$(call obj,src/tool/toolbox.c): | $(B)/gen/result_schema.json.inc $(B)/gen/probe.py.inc

# The lab's page, and the hashes by which its own policy knows its style and script.
$(B)/gen/page.%.inc: src/lab/html/page.%
	@mkdir -p $(@D)
	$(call says,GEN) od -An -v -tu1 $< | sed 's/ *\([0-9][0-9]*\)/\1,/g' > $@
$(B)/gen/page.%.hash.inc: src/lab/html/page.%
	@mkdir -p $(@D)
	$(call says,GEN) sha256sum < $< | cut -c-64 | tr a-f A-F | basenc --base16 -d | base64 -w0 | \
	    od -An -v -tu1 | sed 's/ *\([0-9][0-9]*\)/\1,/g' > $@
$(call obj,src/lab/report_html.c): $(patsubst %,$(B)/gen/page.%.inc,html css js css.hash js.hash)

$(B)/libmcp_test.a: $(MCP_OBJ)
	$(call says,AR) rm -f $@ && $(AR) rcsD $@ $^

$(B)/libagent_test.a: $(AGENT_OBJ)
	$(call says,AR) rm -f $@ && $(AR) rcsD $@ $^

$(B)/libfetch_test.a: $(FETCH_OBJ) $(RUNLOG_OBJ) $(filter-out %/main.o,$(LOG_OBJ))
	$(call says,AR) rm -f $@ && $(AR) rcsD $@ $^

$(B)/libmayfly.a: $(LIB_OBJ)
	$(call says,AR) rm -f $@ && $(AR) rcsD $@ $^

# The archive that is installed: one object, in which all but the public names are local. In the one above, which is
# for our own programs, each helper of src/base would meet a caller's function of the same name.
$(B)/public/libmayfly.a: $(LIB_OBJ)
	@mkdir -p $(@D)
	$(call says,AR) rm -f $@ && $(CC) -nostdlib -r -o $(@D)/libmayfly.o $^ && \
	    $(OBJCOPY) --localize-hidden $(@D)/libmayfly.o && $(AR) rcsD $@ $(@D)/libmayfly.o

$(B)/libmayfly.so.0: $(LIB_OBJ) src/lib/libmayfly.map
	$(call says,LINK) $(CC) -shared -Wl,-soname,libmayfly.so.0 -Wl,--version-script=src/lib/libmayfly.map \
	    $(ALL_LDFLAGS) -o $@ $(LIB_OBJ) $(LIBS)

# The tests reach internal functions too: hidden symbols are hidden from shared-library users only.
$(B)/libmayfly_test.a: $(LIB_OBJ) $(JSON_OBJ) $(filter-out %/main.o,$(CLI_OBJ)) $(if $(filter fuzzer,$(SAN)),,$(TEST_AUX))
	$(call says,AR) rm -f $@ && $(AR) rcsD $@ $^

$(filter-out %/test_probes %/test_attacks %/test_fuzz_replay %/test_runlog $(B)/tests/images/% $(B)/tests/mcp/% $(B)/tests/agent/% $(B)/tests/lab/%,$(TESTS)): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/libmayfly_test.a
	@mkdir -p $(@D)
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LIBS)

# All fuzz targets in one program, which runs what is in their corpora.
$(B)/tests/unit/test_fuzz_replay: $(B)/obj/tests/unit/test_fuzz_replay.o $(FUZZ_OBJ) $(B)/libagent_test.a $(B)/libfetch_test.a $(B)/libmcp_test.a $(B)/libmayfly_test.a
	@mkdir -p $(@D)
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(MCP_LIBS) $(LIBS) $(FETCH_LIBS)

# Alone with libFuzzer, as scripts/fuzz.sh asks for them: CC=clang SAN=fuzzer.
$(FUZZERS): $(B)/bin/%: $(B)/obj/tests/fuzz/fuzz_%.o $(FUZZ_SHARED) $(B)/libagent_test.a $(B)/libfetch_test.a $(B)/libmcp_test.a $(B)/libmayfly_test.a
	@mkdir -p $(@D)
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(MCP_LIBS) $(LIBS) $(FETCH_LIBS)

unit-programs: $(filter $(B)/tests/unit/%,$(TESTS))
	@:

$(filter %/test_runlog $(B)/tests/images/%,$(TESTS)): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/libfetch_test.a $(B)/libmayfly_test.a
	@mkdir -p $(@D)
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LIBS) $(FETCH_LIBS)

$(filter $(B)/tests/mcp/%,$(TESTS)): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/libmcp_test.a $(B)/libmayfly_test.a
	@mkdir -p $(@D)
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(MCP_LIBS) $(LIBS)

$(filter $(B)/tests/agent/%,$(TESTS)): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/libagent_test.a $(B)/libfetch_test.a $(B)/libmayfly_test.a
	@mkdir -p $(@D)
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LIBS) $(FETCH_LIBS)

tests: $(TESTS) $(B)/mayfly $(B)/mayfly-without $(HELPERS)
	@:

$(B)/bench: $(B)/obj/tests/bench/bench.o $(call obj,src/lab/rows.c) $(B)/libmayfly_test.a
	$(call says,LINK) $(CC) $(PIE) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

# Of one file, and static, with the library that the program has.
$(B)/floor: tests/bench/floor.c $(B)/flags
	@mkdir -p $(@D)
	$(call says,LINK) $(CC) -std=gnu17 -D_GNU_SOURCE -O2 $(if $(filter musl,$(LIBC)),$(filter-out -include src/libc/musl.h,$(MUSL_CFLAGS))) -static -o $@ $<

$(LAB_FIELDS): src/policy/policy_fields.c $(B)/flags
	@mkdir -p $(@D)
	$(call says,CC) $(CC) $(ALL_CFLAGS) -DMAYFLY_LAB -MMD -MP -c -o $@ $<

# What the probes run in the box where Python will not do: carried in the lab's objects.
LAB_HELPER := $(B)/gen/lab-helper
$(LAB_HELPER): $(wildcard src/lab/payload/*.[ch]) $(B)/flags
	@mkdir -p $(@D)
	$(call says,LINK) $(CC) -std=gnu17 -D_GNU_SOURCE $(WARN) -Isrc $(CFLAGS) -static -o $@ $(filter %.c,$^)
$(call obj,src/lab/payload.c): src/lab/payload/lab.py $(LAB_HELPER)
$(call obj,src/lab/payload.c): private CPPFLAGS += -DLAB_HELPER='"$(LAB_HELPER)"'

# What `mayfly lab explain` says: its pages and the payloads' source, each as the bytes of an array; and where in the
# source each control is planned and read back.
LAB_TEXTS := $(wildcard src/lab/pages/*.txt src/lab/payload/*.c)
$(B)/gen/lab_texts.inc: $(LAB_TEXTS) $(B)/flags
	@mkdir -p $(@D)
	$(call says,GEN) for file in $(LAB_TEXTS); do echo "{\"$${file##*/}\", (const unsigned char[]){"; \
	    od -An -v -tu1 $$file | sed 's/ *\([0-9][0-9]*\)/\1,/g'; echo '0}},'; done > $@
$(B)/gen/lab_sources.inc: src/lab/sources.awk $(wildcard src/control/*.c)
	@mkdir -p $(@D)
	$(call says,GEN) awk -f $^ > $@
$(call obj,src/lab/texts.c): $(B)/gen/lab_texts.inc $(B)/gen/lab_sources.inc

# The object is named first, so the archive's is not taken.
$(B)/mayfly-lab: $(call obj,src/lab/main.c) $(LAB_FIELDS) $(LAB_OBJ) $(JSON_OBJ) $(B)/libmayfly.a
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ $(LAB_LIBS) $(LIBS)

# mayfly itself with --without, for the tests and for who wants to see for himself; not installed.
$(B)/mayfly-without: $(LAB_FIELDS) $(CLI_OBJ) $(JSON_OBJ) $(B)/libmayfly.a
	$(call says,LINK) $(CC) $(PIE) $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(filter %/test_probes %/test_attacks $(B)/tests/lab/%,$(TESTS)): $(B)/tests/%: $(B)/obj/tests/%.o $(LAB_FIELDS) $(LAB_OBJ) $(B)/libmayfly_test.a
	@mkdir -p $(@D)
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LAB_LIBS) $(LIBS)

# Its controls can be made to do nothing.
$(B)/tests/lab/test_broken: private ALL_LDFLAGS += -Wl,--wrap=controls_plan

# Other flags or another compiler: all is compiled again.
BUILT_WITH = $(CC) $(filter-out -Werror,$(ALL_CFLAGS)) $(ALL_LDFLAGS) $(LIBC)
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@echo '$(BUILT_WITH)' | cmp -s - $@ || echo '$(BUILT_WITH)' > $@
FORCE:

$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call says,CC) $(CC) $(ALL_CFLAGS) $(if $(filter tests/%,$<),-Itests) -MMD -MP -c -o $@ $<

# The default filter is compiled to BPF once, here: at run time it would cost every run 0.6 ms.
$(B)/mkfilter: $(MKFILTER)
	$(call says,LINK) $(CC) -pie $(ALL_LDFLAGS) -o $@ $^ $(LIBS)

$(FILTER): src/control/seccomp_default.json $(B)/mkfilter
	@mkdir -p $(@D)
	$(call says,FILTER) $(B)/mkfilter $< > $@

OTHERS := $(B)/obj/tests/bench/bench.o $(filter-out $(MKFILTER),$(LIB_OBJ) $(JSON_OBJ) $(CLI_OBJ) $(LAB_OBJ) $(call obj,src/lab/main.c) $(FETCH_OBJ) $(RUNLOG_OBJ) $(LOG_OBJ) $(MCP_OBJ) $(call obj,src/mcp/main.c) $(AGENT_OBJ) $(call obj,src/agent/main.c) $(TEST_AUX) $(FUZZ_OBJ) $(call obj,$(TEST_SRC)))
$(OTHERS) $(if $(filter musl,$(LIBC)),$(call MUSL_OBJ,$(LIB_OBJ))): | $(FILTER)

-include $(shell find $(B)/obj $(B)/musl -name '*.d' 2>/dev/null)
