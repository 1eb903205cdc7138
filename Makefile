# systemscope: see README.md. Needs cargo; everything else it installs itself.

PREFIX    ?= /usr/local
# For `make run`:
PID       ?=
DURATION  ?= 10
FREQ      ?= 49
MIN_BLOCK ?= 1000
# For `make test` and `make test-kernels`: tests with one of these words in their names run. Without
# a word all tests run.
TESTS     ?=
# For `make soak`:
MINUTES   ?= 5
# For `make tables`:
TABLES    ?= truth bench abuse soak kernels
# For `make fuzz`:
SECONDS   ?= 600
# For `make mutants`: words of rules or paths. Without a word all mutants run.
WHAT      ?=
# For `make install`: 1 also installs line tables of the tools, for debuggers.
DEBUG     ?=
# For `make install`: 1 lets members of GROUP run the tools without being root.
SETCAP    ?=
GROUP     ?= systemscope

TOOLS := $(notdir $(wildcard tools/*))

# cargo on the PATH, or else rustup's, which a shell's PATH may lack.
CARGO  := $(or $(shell command -v cargo),$(HOME)/.cargo/bin/cargo)
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
# Folder with the program systemscope and a link for each tool. Under a tool's name systemscope runs
# that tool.
BIN    := $(TARGET)/suite
export CARGO

# cargo runs each test binary through scripts/as-root.sh, which CARGO_TARGET_<TRIPLE>_RUNNER names.
HOST   = $(shell $(CARGO) -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
RUNNER = CARGO_TARGET_$(HOST)_RUNNER=$(abspath scripts/as-root.sh)

C_FILES = $(shell find bpf tests -path tests/pypi -prune -o -name node_modules -prune -o -name '*.[ch]' -print | sort)
SHELL_FILES = $(wildcard scripts/*.sh scripts/*/*.sh packaging/debian/p*) scripts/kernels/init .ci/run shared/capture/generate/proto.sh

.PHONY: help packages build install dist dist-check run test test-all test-kernels truth bench abuse soak tables mutants \
	fuzz lint deny proto picture clean
.NOTPARALLEL:

help:
	@echo 'make run                     profile the bundled demo program for 10 s'
	@echo 'make run PID=1234            profile a process of yours; also DURATION=60 (s),'
	@echo '                             FREQ=99 (samples a second), MIN_BLOCK=5000 (us)'
	@echo 'make test                    the quick tests of every promise, BPF on this kernel included'
	@echo 'make test-all                all tests, also those that take long or need a quiet machine,'
	@echo '                             make test-kernels and make dist-check'
	@echo 'make test-kernels            a choice of them on Debian 11, 12, 13 and sid, in an emulator'
	@echo 'make truth                   what the tools say against what is known otherwise'
	@echo 'make bench                   what the tools cost, beside others that do the same'
	@echo 'make abuse                   faults with a stated outcome, and whether it came'
	@echo 'make soak MINUTES=5          whether the tools grow when they run for long'
	@echo 'make tables                  runs $(TABLES), and puts'
	@echo '                             their tables into docs/; also TABLES="truth bench"'
	@echo 'make mutants                 whether the tests notice small changes; also WHAT=waker'
	@echo 'make fuzz SECONDS=600        tampered ELF files, perf maps, stacks (needs nightly), and'
	@echo '                             then as long mutated captures, as root'
	@echo 'make deny                    licences, duplicates and known faults of all crates'
	@echo 'make proto                   generates the messages of capture files'
	@echo 'make picture                 draws the flame graph of README.md (needs Chromium)'
	@echo 'make install                 $(TOOLS)'
	@echo '                             into PREFIX=$(PREFIX); with DEBUG=1 also their line tables;'
	@echo '                             with SETCAP=1 for members of GROUP=$(GROUP) without root'
	@echo 'make dist                    a release: archive, packages and image, in target/dist-out'
	@echo 'make dist-check              whether these install and run elsewhere (needs the network)'
	@echo 'make build, lint, clean      as the names say'
	@echo 'Missing system packages are installed first; sudo is asked where root is needed.'

packages:
	@scripts/packages.sh build

build: packages
	@echo '==> Building' >&2
	@$(CARGO) build --release -p systemscope -p demo --locked
	@scripts/link.sh '$(TARGET)/release' '$(BIN)' $(TOOLS)

install: build
	@$(if $(DEBUG),$(CARGO) build --profile debuggable -p systemscope --locked)
	@DEBUG='$(if $(DEBUG),$(TARGET)/debuggable)' GROUP='$(if $(SETCAP),$(GROUP))' \
		scripts/install.sh '$(BIN)' '$(DESTDIR)$(PREFIX)' $(TOOLS)

dist:
	@scripts/packages.sh dist
	@scripts/dist/build.sh '$(TARGET)/dist-out' $(TOOLS)

# Builds a second time in another folder, and compares. Installs into fresh systems.
dist-check: dist
	@CARGO='$(CARGO)' scripts/as-root.sh scripts/dist/check.sh '$(TARGET)/dist-out' $(TOOLS)

run: build
	@PID='$(PID)' DURATION='$(DURATION)' FREQ='$(FREQ)' MIN_BLOCK='$(MIN_BLOCK)' BIN='$(BIN)' \
		scripts/run.sh

test: build
	@scripts/packages.sh test
	@echo '==> Testing, as root' >&2
	@SYSTEMSCOPE_BIN_DIR='$(BIN)' CARGO_TARGET_DIR='$(TARGET)' scripts/test.sh quick $(TESTS)

test-all: build
	@scripts/packages.sh test all
	@echo '==> Testing, as root' >&2
	@SYSTEMSCOPE_BIN_DIR='$(BIN)' CARGO_TARGET_DIR='$(TARGET)' scripts/test.sh all $(TESTS)
	@$(MAKE) --no-print-directory test-kernels TESTS=
	@$(MAKE) --no-print-directory dist-check

# Builds the workloads first, because the guests have no compiler.
test-kernels: build
	@scripts/packages.sh kernels
	@echo '==> Building workloads, as root as the tests do' >&2
	@$(RUNNER) $(CARGO) test --profile bench --quiet --locked -p systemscope-tests --lib workload:: \
		-- --include-ignored
	@$(CARGO) build --profile bench --quiet --locked -p systemscope-tests --bins
	@CARGO_TARGET_DIR='$(TARGET)' scripts/kernels/run.sh $(TESTS)

truth: build
	@scripts/packages.sh truth
	@echo '==> Comparing with the truth, as root' >&2
	@$(RUNNER) SYSTEMSCOPE_BIN_DIR='$(BIN)' $(CARGO) bench --profile release --locked -p systemscope-tests --bench truth

bench: build
	@scripts/packages.sh bench
	@echo '==> Measuring, as root' >&2
	@$(RUNNER) SYSTEMSCOPE_BIN_DIR='$(BIN)' $(CARGO) bench --profile release --locked --no-fail-fast \
		-p systemscope-tests -p library-bench

abuse: build
	@scripts/packages.sh test
	@echo '==> Abusing the tools, as root' >&2
	@$(RUNNER) SYSTEMSCOPE_BIN_DIR='$(BIN)' $(CARGO) bench --profile release --locked -p systemscope-tests --bench abuse

soak: build
	@scripts/packages.sh test
	@echo '==> Soaking for $(MINUTES) minutes, as root' >&2
	@$(RUNNER) SYSTEMSCOPE_BIN_DIR='$(BIN)' MINUTES='$(MINUTES)' \
		$(CARGO) bench --profile release --locked -p systemscope-tests --bench soak

# `make tables` writes a table even if a row is missed. To write the table of a run whose output is
# in FILE, run: $(TARGET)/release/tables truth <FILE
tables: build
	@$(CARGO) build --profile bench --locked -p systemscope-tests --bin tables
	@for table in $(TABLES); do \
		case $$table in kernels) target=test-kernels ;; *) target=$$table ;; esac; \
		$(MAKE) --no-print-directory "$$target" | '$(TARGET)/release/tables' "$$table" || exit 1; \
	done

mutants: build
	@scripts/packages.sh test
	@echo '==> Breaking the rules of the BPF programs, as root' >&2
	@CARGO_TARGET_DIR='$(TARGET)' scripts/mutants.sh $(WHAT)

fuzz: build
	@scripts/fuzz.sh '$(SECONDS)'
	@echo '==> Feeding mutated captures to every command, as root' >&2
	@$(RUNNER) SYSTEMSCOPE_BIN_DIR='$(BIN)' SYSTEMSCOPE_FUZZ_SECONDS='$(SECONDS)' \
		$(CARGO) test --profile bench --quiet --locked -p systemscope-tests --test captures \
		-- --ignored --nocapture

lint: packages
	@scripts/packages.sh lint
	@echo '==> rustfmt' >&2
	@$(CARGO) fmt --all --check
	@echo '==> clippy' >&2
	@$(CARGO) clippy --release --quiet --workspace --all-targets --locked -- -D warnings
	@echo '==> rustdoc' >&2
	@RUSTDOCFLAGS='-D warnings' $(CARGO) doc --release --quiet --workspace --no-deps \
		--document-private-items --lib --locked
	@echo '==> shellcheck' >&2
	@shellcheck $(SHELL_FILES)
	@echo '==> clang-format' >&2
	@clang-format --dry-run -Werror $(C_FILES)
	@echo '==> tsc' >&2
	@tests/viewers/node_modules/.bin/tsc -p shared/page/web/tsconfig.json
	@echo '==> modules of the page' >&2
	@node --test --test-reporter dot shared/page/web/tests/*.test.mjs
	@echo '==> mutants apply' >&2
	@scripts/mutants.sh --check
	@echo '==> generated files' >&2
	@shared/capture/generate/proto.sh --check
	@echo '==> documents' >&2
	@scripts/check-docs.sh
	@scripts/check-docs.sh --comments

# Compiles cargo-deny first if it is missing, which takes minutes.
deny:
	@CARGO='$(CARGO)' scripts/deny.sh

proto:
	@CARGO='$(CARGO)' shared/capture/generate/proto.sh

picture: build
	@scripts/picture.sh '$(BIN)'

clean:
	@$(CARGO) clean --quiet
