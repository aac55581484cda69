# `make check` is exactly what CI runs; `make quick` is for the time between two edits. `.ci/stages NAME...` runs some stages alone.
GO ?= go
# The product is built without cgo; only the race detector needs a C compiler.
export CGO_ENABLED ?= 0
SEED ?= 1
SIM_FOR ?= 45s
SIM_PEBBLE_FOR ?= 12s
SIM_USERS_FOR ?= 15s
FUZZ_TIME ?= 30s
FUZZ_OF ?= 1
FUZZ_PART ?= 0
PACKAGES ?= ./...
# How many packages are tested at once: more than the two processors of CI, for many tests wait.
AT_ONCE ?= 3
# Of all packages the one whose tests wait longest comes first.
FIRST = $(if $(filter ./...,$(PACKAGES)),./test/process)
STAGES = modules fmt vet build test http2 browser bench-regress race sim fuzz-short
SUITE ?= common

DRILLS = TestStrangers|TestAddress|TestAlone|TestForceNewCluster|TestRecover|TestMistakes|TestFirstDay|TestDisk|TestCluster|TestBadInput|TestJoin|TestNativeClient|TestPipeline|TestReplace|TestRestore
ATTACKS = unread-behind,unread-ranges,delete-all,end-lease,long-keys,long-lease
HOLD = none:,deaf ranges,half-sent puts,long metadata,large reads,a long field,settings,half-sent calls,compare large values,$\
	filtered ranges,keep large values,large leases,deletions,old watches,nested,slow:,churn:,native streams,bombs:

# The modules whose tests CI runs, or that it compiles.
MODULES = . release operator test/bench test/charts test/kubelet test/objects test/process/http2 test/browser

# What has a goroutine, a lock or an atomic value, in its code or in its tests, but the simulator, which is one goroutine's, and
# the programs of maintainers that run it, and that change sources: the latter takes its time in compilers. Elsewhere
# the race detector finds nothing. Package ctl links etcdctl in, whose commands keep their flags in variables of its packages: tests that
# run beside each other race there, and a process runs one command. Package tidy reads the tree, in one goroutine but for its first look.
CONCURRENT = ^[[:space:]]*go (func|[A-Za-z_])|\.Go\(|\.Parallel\(|sync\.(Mutex|RWMutex|WaitGroup|Pool|Map|Cond|Once)|AfterFunc\(|atomic\.|synctest\.
RACED = $(shell grep -rlE --include='*.go' --exclude-dir=testdata '$(CONCURRENT)' client cmd internal | sed 's,/[^/]*$$,,;s,^,./,' | \
	sort -u | grep -vE '^./internal/(sim(/|$$)|ctl$$|tidy$$)|^./cmd/quorate(sim|mutate)$$')

QUICK = ./internal/tidy ./internal/consensus/... ./internal/kv/... ./internal/storage/... ./internal/member/node

.PHONY: encryption kubernetes objects ships browser screenshots console-cost release-check drills doctor doctor-healthy check quick modules quick-test build test race sim fmt vet fix bench bench-regress fuzz fuzz-short charts operator operator-thirty operator-api e2e \
	compat monitoring http2 api lab

check:
	@MAKE='$(MAKE)' .ci/stages $(STAGES)

# Below a minute on two cores, where the packages have been built before.
quick:
	@MAKE='$(MAKE)' .ci/stages fmt vet quick-test

quick-test:
	$(GO) test -short $(QUICK)

# Downloads what the stages need, so that a network that fails is not taken for a test that does.
modules:
	@for dir in $(MODULES); do (cd $$dir && $(GO) mod download) || \
		{ echo "$$dir: modules that it needs cannot be downloaded" >&2; exit 1; }; done

# The laboratory and the laws of the simulator run in browsers, too. The log and the files of snapshots can: they know no file
# system but their port.
build:
	$(GO) build ./...
	GOOS=js GOARCH=wasm $(GO) build ./cmd/quoratelab ./internal/sim/lab/... ./internal/sim/check ./internal/sim/disk \
		./internal/storage/wal ./internal/storage/snapshot ./internal/storage/reserve

# Puts the laboratory into the programs that are built afterwards (docs/laboratory.md). Git ignores what it makes.
lab:
	$(GO) run ./cmd/quoratesim lab --embed

# The tests of test/charts that start no process: those of whole members and takeovers begin with TestM and TestT.
RENDERS = ^Test[^MT]

# README's `go test ./...`, beginning with the tests that wait longest, and the tests of modules of their own, short ones of operator,
# test/charts and test/kubelet. No results are taken from Go's cache: it does not know what the processes are built of that tests
# start. Stage vet has looked at the packages.
test:
	$(GO) test -p=$(AT_ONCE) -count=1 -vet=off -timeout 20m $(FIRST) $(PACKAGES)
	$(if $(filter ./...,$(PACKAGES)),cd test/bench && $(GO) test -count=1 -timeout 20m ./...)
	$(if $(filter ./...,$(PACKAGES)),cd operator && $(GO) test -short -count=1 -timeout 20m ./...)
	$(if $(filter ./...,$(PACKAGES)),cd test/charts && $(GO) test -count=1 -timeout 20m -run '$(RENDERS)' ./...)
	$(if $(filter ./...,$(PACKAGES)),cd test/kubelet && $(GO) test -short -count=1 -timeout 20m ./...)
	$(if $(filter ./...,$(PACKAGES)),cd release && $(GO) vet -tags full . && $(GO) test -count=1 -timeout 20m .)

# The race detector itself fails now and then where tests use testing/synctest (golang/go#78156): "ThreadSanitizer: CHECK failed",
# without a race and without a test that fails. Then what failed runs once more; results of the others are cached.
RACE = CGO_ENABLED=1 $(GO) test -p=$(AT_ONCE) -race -short -vet=off -timeout 20m ./internal/rpc ./internal/member $(RACED)
race:
	@said=$$(mktemp); trap 'rm -f $$said' EXIT; status=0; $(RACE) > $$said 2>&1 || status=$$?; cat $$said; \
	if [ $$status != 0 ] && grep -q '^ThreadSanitizer: CHECK failed' $$said && ! grep -qE 'DATA RACE|^ *--- FAIL|^panic:' $$said; then \
		echo 'the race detector failed, and no test: what failed runs again'; $(RACE); \
	else exit $$status; fi

# A minute and a quarter of seeds. `make sim SEED=7` begins at that seed, so that it repeats one.
sim:
	$(GO) run ./cmd/quoratesim run --for $(SIM_FOR) --seed $(SEED)
	$(GO) run ./cmd/quoratesim run --for $(SIM_PEBBLE_FOR) --seed $(SEED) --nemesis all --engine pebble
	$(GO) run ./cmd/quoratesim run --for $(SIM_USERS_FOR) --seed $(SEED) --nemesis auth,crash,partition,transfer,membership,compact

# What the hostile reviews did to real processes, again: strangers, mistyped addresses, wiped and restored disks, narrow links,
# and attacks on a member of 128 MiB. About 10 minutes; the attacks want root, for a memory cgroup. Of those of `hold` they are one
# or two of each kind, and all whose clients read slowly or come back, for 4 seconds each: 5 minutes. All of them, for the 10 seconds
# that are its default, take 20: leave out --only.
drills:
	$(GO) test -count=1 -v -run '^($(DRILLS))' ./test/process
	@set -e; out=$$(mktemp -d); trap 'rm -rf $$out' EXIT; $(GO) build -o $$out/quorate ./cmd/quorate; cd test/bench; \
		$(GO) run . memory --server quorate=$$out/quorate --dir $$out/data --memory 128MiB --workloads $(ATTACKS); \
		$(GO) run . hold --server quorate=$$out/quorate --dir $$out/data --memory 128MiB --duration 4s --settle 1s --only '$(HOLD)'

# The whole release, made twice in places that differ, and compared; judged by lintian, rpm and systemd; installed, upgraded and
# removed; its image pushed, pulled and run. Wants root and those tools, and half an hour on two cores. With RELEASE_CHECK_DIR the
# files stay there for the next run.
release-check:
	cd release && $(GO) test -count=1 -v -tags full -timeout 120m -run '^TestFull$$' .

# etcd's alerts and dashboard, and ours, in Prometheus's query engine against a cluster that is filled and killed: 1 minute.
monitoring:
	cd test/process/monitoring && $(GO) vet . && $(GO) test -count=1 .

# Faults of all kinds injected into real processes, and which finding of `quorate doctor` comes first: 3 minutes. It writes the
# table of docs/doctor.md. Wants Linux on amd64, a seccomp listener and mount namespaces.
doctor:
	$(GO) test -count=1 -v -timeout 20m -run '^TestDoctor_' ./test/process -doctor-matrix=$(CURDIR)/docs/doctor.md

# A cluster that works while its operator moves leaders, replaces and upgrades members, and a doctor that must find nothing: 30 minutes.
doctor-healthy:
	$(GO) test -count=1 -v -timeout 60m -run '^TestDoctor_healthyDay$$' ./test/process -doctor-healthy=30m

# A cluster that becomes encrypted member by member under load, and rotates its keys under kills: half a minute.
encryption:
	$(GO) test -count=1 -v -run '^TestEncryption_' ./test/process -encryption

# The operator against a real API server whose etcd is Quorate, with members that are processes: six minutes, and once a quarter of an
# hour in which kube-apiserver is built. It prints a table of scenarios. Wants root, for mount namespaces.
KUBERNETES ?= v1.37.2
operator:
	@set -e; assets=$$(mktemp -d); trap 'rm -rf $$assets' EXIT; made=$$(test/kubernetes/binaries $(KUBERNETES) kube-apiserver); \
		ln -s $$made/kube-apiserver $$assets/kube-apiserver; $(GO) build -trimpath -o $$assets/etcd ./cmd/quorate; \
		cd operator; $(GO) vet ./...; KUBEBUILDER_ASSETS=$$assets $(GO) test -count=1 -v -timeout 20m ./...

# Thirty clusters of one operator at once, ninety members on this machine, and what they take: four minutes, and what `make operator`
# builds. `make operator-thirty CLUSTERS=10` makes ten. Wants root, and 4 GiB that are free.
CLUSTERS ?= 30
operator-thirty:
	@set -e; assets=$$(mktemp -d); trap 'rm -rf $$assets' EXIT; made=$$(test/kubernetes/binaries $(KUBERNETES) kube-apiserver); \
		ln -s $$made/kube-apiserver $$assets/kube-apiserver; $(GO) build -trimpath -o $$assets/etcd ./cmd/quorate; \
		cd operator; $(GO) build -o $$assets/quorate-operator ./cmd/quorate-operator; \
		KUBEBUILDER_ASSETS=$$assets $(GO) test -count=1 -v -timeout 20m -run '^TestOperator_thirty$$' ./e2e -clusters=$(CLUSTERS)

# Copies of the operator's resources, and their CRDs, from the types in operator/api. Amounts get the pattern of quantity.go: types of
# Kubernetes bring their own, and no marker changes that inside of them.
CRDS = $(CURDIR)/deploy/charts/quorate-operator/crds
operator-api:
	cd operator/api/v1alpha1 && $(GO) run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd paths=./ output:crd:dir=$(CRDS)
	@pattern=$$(sed -n 's/^const QuantityPattern = `\(.*\)`$$/\1/p' operator/api/v1alpha1/quantity.go); test -n "$$pattern"; \
		sed -i "s/^\( *\)pattern: ^(.*numkMGTPE.*/\1maxLength: 32\n\1pattern: $$(printf %s "$$pattern" | sed 's/[&/\]/\\&/g')/" $(CRDS)/*.yaml

# The transport of clients by h2spec and gRPC's interoperability cases: 10 seconds.
http2:
	cd test/process/http2 && $(GO) vet . && $(GO) test -count=1 .

# The console in Chromium: each page in light, dark and on a narrow screen, by keyboard, without scripts, attacked, and while members
# die. Chromium and axe-core are fetched where they are not there; without them CI says so and goes on.
BROWSER_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quorate-browser
browser: lab
	@set -e; status=0; found=$$(test/browser/fetch $(BROWSER_DIR)) || status=$$?; [ $$status = 3 ] && exit 0; [ $$status = 0 ]; \
		cd test/browser; $(GO) vet .; env $$found $(GO) test -count=1 -timeout 10m .

# Places for backups against servers of S3: versitygw, which the first run builds in some minutes, and gofakes3, with a proxy that
# injects faults, and a full disk, for which it wants root: a minute and a half.
objects:
	cd test/objects && $(GO) vet . && $(GO) test -short -count=1 -timeout 20m .

# Three members that are processes ship to versitygw through the proxy, while all of that is killed, cut off and harmed: a quarter of
# an hour. It prints the table of docs/backup.md.
ships:
	cd test/objects && $(GO) test -count=1 -v -timeout 60m -run '^TestShips' .

# kubeadm, API server, controller manager and scheduler of Kubernetes on three members, by docs/kubernetes-etcd.md, and what an API server
# does in its days: ten minutes, and most of an hour more to build a version for the first time.
KUBERNETES ?= v1.37.2
kubernetes:
	@set -e; dir=$$(test/kubernetes/binaries $(KUBERNETES) kubeadm kubectl kube-apiserver kube-controller-manager kube-scheduler); \
		$(GO) test -count=1 -v -timeout 45m -run '^TestKubernetes$$' ./test/pages -kubernetes=$$dir

# The chart by Helm as a library, and its pods and jobs as processes, for which it wants root: installed, scaled, claims lost, and
# releases of the former chart of etcd taken over in place and given back. The first run builds three etcds: a minute, once they are there.
ETCDS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quorate-etcd
charts:
	test/charts/etcds $(ETCDS) 3.5.35 3.6.16 3.7.3
	cd test/charts && $(GO) vet ./... && ETCDS=$(ETCDS) $(GO) test -count=1 -timeout 20m ./...

# Quorate on a real control plane of Kubernetes, with nodes that are killed, drained and wiped: half an hour, once the programs of
# Kubernetes are built, which takes the first run as long. Wants root, and network namespaces. It prints the table of docs/kubernetes-tested.md.
e2e:
	ETCDS=$(ETCDS) ./test/kubelet/run

# What 200 consoles cost a member: processor time and bytes, for a minute.
console-cost:
	$(GO) test -count=1 -v -run '^TestConsole_cost$$' ./test/process -console-cost=20s

# The pictures of docs/console.md, and no others.
screenshots:
	@set -e; found=$$(test/browser/fetch $(BROWSER_DIR)); \
		cd test/browser; env $$found $(GO) test -count=1 -run '^TestPictures$$' . -shots=$(CURDIR)/docs/pictures/console

fmt:
	@test -z "$$(gofmt -l .)" || { gofmt -l . ; echo "not gofmt-ed: make fix" >&2; exit 1; }

# Also of the module whose tests take servers of S3, and are run by hand: so it compiles after each change.
vet:
	$(GO) vet ./...
	cd test/objects && $(GO) vet .

fix:
	gofmt -w .
	$(GO) mod tidy

bench:
	$(GO) test -run '^$$' -bench . -benchtime 1s ./internal/...

# What the hot roads allocate, write and read, compared with test/regress/figures.txt: below a minute.
bench-regress:
	$(GO) run ./test/regress

# Go's fuzzer sometimes takes the end of its time for a failure ("context deadline exceeded", without a failing input): that is none.
# Every fuzzer in turn, for FUZZ_TIME each; of FUZZ_OF parts of the packages only number FUZZ_PART. Each package is built once.
fuzz:
	@set -e; out=$$(mktemp -d); trap 'rm -rf $$out' EXIT; at=0; cache=$$($(GO) env GOCACHE)/fuzz/quorate; \
	for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		at=$$((at + 1)); [ $$((at % $(FUZZ_OF))) -eq $(FUZZ_PART) ] || continue; \
		$(GO) test -c -fuzz Fuzz -o $$out/fuzz.test $$dir; \
		for name in $$(cd $$dir && $$out/fuzz.test -test.list '^Fuzz' | grep '^Fuzz'); do \
			echo "$$dir $$name"; mkdir -p $$cache/$$dir; \
			if ! (cd $$dir && $$out/fuzz.test -test.run '^$$' -test.fuzz "^$$name\$$" -test.fuzztime $(FUZZ_TIME) \
				-test.fuzzcachedir $$cache/$$dir) > $$out/said 2>&1; then \
				cat $$out/said; grep -q '^ *context deadline exceeded$$' $$out/said || exit 1; \
				if grep -qi 'failing input' $$out/said; then exit 1; fi; \
			fi; \
			tail -n 2 $$out/said; \
		done; \
	done

# What CI runs of it: six seconds for each fuzzer of a sixth of the packages. Which sixth changes with the day of the year.
fuzz-short:
	@$(MAKE) --no-print-directory fuzz FUZZ_TIME=6s FUZZ_OF=6 FUZZ_PART=$$(expr $$(date +%j) % 6)

# One of etcd's black-box suites, common or e2e, against this server; needs the network for the first build.
compat:
	./test/compat/run -s $(SUITE)

# The native API from its .proto files; needs protoc, protoc-gen-go and protoc-gen-go-grpc. The files are named with their
# directory: etcd's API registers a membership.proto too, and one process may not hold two files of one name. etcd's Lock and
# Election services beside it need protoc-gen-grpc-gateway, too.
api:
	cd api && protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. \
		--go-grpc_opt=paths=source_relative quoratepb/*.proto
	set=$$(mktemp) && go run ./api/etcdprotos > $$set && cd api && protoc --descriptor_set_in=$$set \
		--go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative \
		--grpc-gateway_out=. --grpc-gateway_opt=paths=source_relative,grpc_api_configuration=gateway.yaml \
		v3lockpb/lock.proto v3electionpb/election.proto; rm -f $$set
