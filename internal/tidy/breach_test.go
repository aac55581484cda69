package tidy_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
)

// sources are the files of a small tree.
type sources map[string]string

func (s sources) tree(t *testing.T) *tree {
	t.Helper()
	files := fstest.MapFS{}
	for name, content := range s {
		if content == gone {
			continue
		}
		if strings.HasSuffix(name, ".go") && !strings.Contains(content, "package ") {
			content = "package p\n" + content
		}
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	r, err := parse(files)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// breach is a small tree that breaks a rule, and how it is fixed: files that replace those of the tree.
type breach struct {
	name string
	rule rule
	tree sources
	want string // a part of what the rule says
	fix  sources
}

const (
	ours = `import _ "` + module + `/`
	long = "func F() {\n"
	gone = "gone" // what a fix says of a file that it removes
)

var breaches = []breach{
	{"an import of a higher layer", checkLayers,
		sources{"internal/base/keyrange/a.go": ours + `internal/member"`}, "may not import internal/member",
		sources{"internal/base/keyrange/a.go": ""}},
	{"a package without a layer", checkLayers,
		sources{"internal/nowhere/a.go": ""}, "has no layer",
		sources{"internal/nowhere/a.go": gone, "internal/base/keyrange/a.go": ""}},
	{"consensus that knows storage", checkGroups,
		sources{"internal/consensus/raft/a.go": ours + `internal/kv"`}, "payloads are opaque",
		sources{"internal/consensus/raft/a.go": ours + `internal/consensus"`}},
	{"a product that knows a level which is made up", checkGroups,
		sources{"internal/server/a.go": ours + `internal/kv/nextlevel"`}, "only tests and the simulator make up",
		sources{"internal/server/a.go": gone, "internal/sim/a.go": ours + `internal/kv/nextlevel"`}},
	{"a library in a package that may not use it", checkConfined,
		sources{"internal/member/a.go": `import _ "github.com/cockroachdb/pebble/v2"`}, "the engine is a port",
		sources{"internal/member/a.go": ours + `internal/storage/engine"`}},
	{"a test with a file system of a store's library", checkConfined,
		sources{"internal/storage/wal/a_test.go": `import _ "github.com/cockroachdb/pebble/v2/vfs/errorfs"`}, "the port to the disk is env.FS",
		sources{"internal/storage/wal/a_test.go": ours + `internal/storage/files/filestest"`}},
	{"a laboratory that needs a store's library", checkPortable,
		sources{"internal/sim/lab/a.go": ours + `internal/node"`, "internal/node/a.go": ours + `internal/storage/engine"`,
			"internal/storage/engine/a.go": `import _ "github.com/cockroachdb/pebble/v2/vfs"`},
		"internal/sim/lab → internal/node → internal/storage/engine",
		sources{"internal/node/a.go": ours + `internal/consensus"`}},
	{"a clock in the core", checkCoreInputs,
		sources{"internal/consensus/raft/a.go": `import _ "time"`}, "the core imports time",
		sources{"internal/consensus/raft/a.go": `import _ "slices"`}},
	{"a goroutine in the core", checkCoreInputs,
		sources{"internal/consensus/raft/a.go": "func f() { go f() }"}, "starts a goroutine",
		sources{"internal/consensus/raft/a.go": "func f() { f() }"}},
	{"a map's order in the core", checkCoreOrder,
		sources{"internal/consensus/raft/a.go": "type s struct{ m map[int]int }\nfunc (s s) f() { for range s.m {} }"}, "its order is chance",
		sources{"internal/consensus/raft/a.go": "type s struct{ m []int }\nfunc (s s) f() { for range s.m {} }"}},
	{"a term that a passer-by writes", checkOwners,
		sources{"internal/consensus/raft/a.go": "func f(r *R) { r.hard.term = 2 }"}, "hard is written in hardstate.go only",
		sources{"internal/consensus/raft/a.go": "func f(r *R) { r.hard.enter(2) }"}},
	{"a log that a passer-by cuts", checkOwners,
		sources{"internal/consensus/raft/a.go": "func f(r *R) { r.log.Truncate(2) }"}, "log is written in journal.go only",
		sources{"internal/consensus/raft/a.go": "func f(r *R) { r.log.Last() }"}},
	{"a log that is lent out", checkOwners,
		sources{"internal/consensus/raft/a.go": "func f(r *R) { g(&(*r).lead.log) }"}, "log is written in journal.go only",
		sources{"internal/consensus/raft/a.go": "func f(r *R) { g(r.log.Last()) }"}},
	{"a page whose goroutine catches nothing", checkConsoleGoroutines,
		sources{"internal/console/a/a.go": "func f() { go f() }"}, "use page.Go",
		sources{"internal/console/a/a.go": "func f() { page.Go(f)() }"}},
	{"a page with a group", checkConsoleGoroutines,
		sources{"internal/console/a/a.go": "func f() { var g sync.WaitGroup; g.Go(f) }"}, "use page.Go",
		sources{"internal/console/a/a.go": gone, "internal/server/a.go": "func f() { var g sync.WaitGroup; g.Go(f) }"}},
	{"a link to nowhere", checkLinks,
		sources{"docs/a.md": "[b](b.md)"}, "links to b.md", sources{"docs/b.md": ""}},
	{"a link to no heading", checkAnchors,
		sources{"docs/a.md": "[b](b.md#the-end)", "docs/b.md": "# The beginning\n```\n# The end\n```\n"}, "no such heading",
		sources{"docs/b.md": "# The beginning\n## The `end`\n"}},
	{"a dependency without a reason", checkDependencies,
		sources{"go.mod": "require example.com/x v1.0.0\n", "deps.txt": ""}, "give its reason",
		sources{"deps.txt": "example.com/x because it is needed\n"}},
	{"a dependency that is there twice", checkDependencies,
		sources{"go.mod": "require example.com/x v1.0.0\n", "deps.txt": "example.com/x because it is needed\nexample.com/x twice it is needed\n"},
		"is there twice",
		sources{"deps.txt": "example.com/x because it is needed\n"}},
	{"a dependency for tests in the product", checkTestDependencies,
		sources{"deps.txt": "example.com/x tests: a server\n", "internal/a/a.go": `import _ "example.com/x/y"`}, "is said to be for tests",
		sources{"internal/a/a.go": gone, "internal/a/a_test.go": `import _ "example.com/x/y"`}},
	{"a map that is too long", checkMap,
		sources{mapFile: strings.Repeat("\n", maxMapLines+1)}, "read in one sitting", sources{mapFile: "\n"}},
	{"a package that is on no map", checkMap,
		sources{mapFile: "\n## Layers\n| 1 | kv: values; kv/{mvcc} |\n", "internal/kv/mvcc/a.go": "", "internal/kv/a.go": "", "internal/kv/watch/a.go": ""},
		"names kv/watch",
		sources{mapFile: "\n## Layers\n| 1 | kv: values; kv/{mvcc,watch} |\n"}},
	{"a map with a package that is gone", checkMap,
		sources{mapFile: "\n## Layers\n| 1 | kv |\n"}, "which is not in the tree", sources{"internal/kv/a.go": ""}},
	{"a change whose place is gone", checkMapOfChanges,
		sources{mapFile: mapOfChanges + "| x | `kv/gone.go` |\n"}, "kv/gone.go is not in the tree", placesOfChanges("internal/kv/gone.go")},
	{"a change whose function is gone", checkMapOfChanges,
		sources{mapFile: mapOfChanges + "| x | `kv/a.go` (`gone`) |\n", "internal/kv/a.go": ""}, "kv/a.go has no gone",
		placesOfChanges("internal/kv/a.go")},
	{"a function beside another file", checkNamesBesideFiles,
		sources{mapFile: "`raft/a.go`\n(`F`, `t.G`), and then (`kv/b.go`, `H`)", "internal/consensus/raft/a.go": "func F() {}", "internal/kv/b.go": "func (t T) G() {}"},
		"raft/a.go does not declare t.G",
		sources{"internal/consensus/raft/a.go": "func F() {}\nfunc (t T) G() {}", "internal/kv/b.go": "type T struct{ H int }"}},
	{"a change that leads nowhere", checkMapOfChanges,
		sources{mapFile: "\n## Where do I change X\n"}, `no row with "JSON gateway"`, placesOfChanges("")},
	{"a README whose tests CI does not run", checkStages,
		stagesOf("", "README.md", "$ go test ./internal/...  # some\n"), "`test` does not run", stagesOf("")},
	{"a CI that runs something else", checkStages,
		stagesOf("", ciFile, "go test ./...\n"), "does not end with `make check`", stagesOf("")},
	{"a stage that is in no document", checkStages,
		stagesOf("", stagesTold, "\n## Stages\n| `fmt` | x |\n"), "are [fmt test]", stagesOf("")},
	{"a stage without a recipe", checkStages,
		stagesOf("", stagesTold, "\n## Stages\n| `fmt` | x |\n| `test` | x |\n| `sim` | x |\n", makeFile,
			"STAGES ?= fmt test sim\n"+makeOf), "sim has no recipe", stagesOf("")},
	{"a stage in a module that is not downloaded", checkStages,
		stagesOf("\tcd test/x && go test ./...\n"), "test/x, which is missing", stagesOf("")},
	{"a decision that is not listed", checkDecisionsListed,
		sources{"docs/adr/0001-a.md": "", "docs/adr/README.md": ""}, "no row for 0001-a.md", sources{"docs/adr/README.md": "[a](0001-a.md)"}},
	{"a bound whose test is gone", checkLimits,
		sources{"docs/limits.md": "| a | b | c | `maxA` | d | `a_total` | `TestA` |\n", "a.go": "const maxA = 1\nvar _ = \"a_total\""},
		"test `TestA` is not in the tree", sources{"a_test.go": "func TestA() {}"}},
	{"a threat whose test is gone", checkThreatModel,
		sources{"docs/threat-model.md": "| a | b | c | `TestA` |\n"},
		"test `TestA` is not in the tree", sources{"a_test.go": "func TestA() {}"}},
	{"a flag that nothing reads", checkFlagsRead,
		sources{"internal/config/table.go": "var t = func(c *Config) *int { return &c.Idle }"}, "config.Idle",
		sources{"internal/member/a.go": "var _ = c.Idle"}},
	{"advice that names no command", checkAdvice,
		sources{"docs/a.md": "run `quorate dance`"}, "no such command", sources{"docs/a.md": "run `quorate dev`"}},
	{"advice that rolls back", checkAdvice,
		sources{"internal/ctl/a.go": `var s = "restore it from a backup"`}, "rolls a member back",
		sources{"internal/ctl/a.go": `var s = "replace the member"`}},
	{"a long file", checkLines,
		sources{"a.go": strings.Repeat("\n", maxFileLines+1)}, "more than 500 lines",
		sources{"a.go": strings.Repeat("\n", maxFileLines-1)}},
	{"a wide line", checkLines,
		sources{"a.go": "//" + strings.Repeat("x", maxLineColumns) + "\npackage p"}, "wider than", sources{"a.go": ""}},
	{"a long function", checkLines,
		sources{"a.go": long + strings.Repeat("\n", maxFuncLines) + "}"}, "F has", sources{"a.go": long + "}"}},
	{"a package without a doc", checkPackageDocs,
		sources{"internal/base/keyrange/a.go": ""}, "has no doc",
		sources{"internal/base/keyrange/doc.go": "// Package p has a documentation that says what it is, what it is not, and what its invariants are.\npackage p"}},
	{"a package whose name says nothing", checkPackageDocs,
		sources{"internal/util/doc.go": "// Package util has a documentation that is long enough to say what it is, what it is not, its invariants.\npackage util"},
		"the name says nothing",
		sources{"internal/util/doc.go": gone}},
	{"a note to oneself", checkNotes,
		sources{"a.go": "// TO" + "DO later\nvar a int"}, "do it", sources{"a.go": "var a int"}},
	{"a test that sleeps", checkSleeps,
		sources{"a_test.go": "func f() { time.Sleep(1) }"}, "a test sleeps", sources{"a_test.go": "func f() { <-time.After(1) }"}},
	{"a context of a call that does not hide another's", checkCallContexts,
		sources{"internal/rpc/a.go": "func f() { metadata.NewIncomingContext(c, m) }"}, "use incoming.NewContext",
		sources{"internal/rpc/a.go": "func f() { incoming.NewContext(c, m) }"}},
	{"a time that the machine's clock moves", checkWallClock,
		sources{"internal/rpc/a.go": "func f() { last.Store(now.UnixNano()) }"}, "the clock may be set",
		sources{"internal/rpc/a.go": "func f() { last.Set(now) }"}},
	{"an export without a caller", checkCallers,
		sources{"internal/a/a.go": "func Lonely() {}", "internal/a/a_test.go": "func f() { Lonely() }"}, "Lonely has no caller",
		sources{"internal/b/b.go": "func f() { a.Lonely() }"}},
	{"a comment that cites a file that is gone", checkComments,
		sources{"a.go": "// see gone.go\nvar a int"}, "cites gone.go", sources{"gone.go": ""}},
	{"a comment that cites a decision that nobody made", checkComments,
		sources{"a.go": "// see ADR 0099\nvar a int"}, "cites ADR 0099", sources{"docs/adr/0099-x.md": ""}},
	{"a document that cites a test that is gone", checkDocuments,
		sources{"docs/a.md": "see `TestGone`"}, "cites TestGone", sources{"a_test.go": "func TestGone() {}"}},
	{"a document that cites a directory that is gone", checkDocuments,
		sources{"docs/a.md": "see `internal/gone`"}, "cites internal/gone", sources{"internal/gone/a.go": ""}},
	{"a documented flag that nobody declares", checkFlagsExist,
		sources{"docs/a.md": "set --gone"}, "there is no flag --gone", sources{"a.go": `var f = "gone"`}},
	{"files that use each other", checkArrows,
		sources{"p/a.go": "func a() { b() }", "p/b.go": "func b() { a() }"}, "run upward",
		sources{"p/b.go": "func b() {}"}},
	{"a word of our own", checkWords,
		sources{"a.go": "// the lobby of a member\nvar a int"}, "lobby", sources{"a.go": "// the state of a member\nvar a int"}},
	{"a word of our own in a name", checkWords,
		sources{"a.go": "var clusterLobby int"}, "lobby", sources{"a.go": "var clusterState int"}},
	{"a sentence without a subject", checkSentences,
		sources{"a.go": "// A lease ends. What is\n// expired goes.\nvar a int"}, `"What is expired goes."`,
		sources{"a.go": "// A lease ends. What is\n// next? An expired key goes.\nvar a int"}},
	{"a comment on nobody in particular", checkSentences,
		sources{"a.go": "// Limits:\n//  1. Whoever asks waits.\nvar a int"}, `"Whoever asks waits."`,
		sources{"a.go": "// Limits:\n//  1. A client that asks waits.\nvar a int"}},
	{"a clause without a subject", checkSentences,
		sources{"a.go": "var a int // of\tthe term, by who\nvar b int // by who asks"}, `a.go:3:11: "by who"`,
		sources{"a.go": "var a int // by the client that asks, of those who may"}},
	{"a document without a subject", checkSentences,
		sources{"docs/a.md": "# What it is\n| Who | b |\n|---|---|\n| a | What fails stays. |\n"}, `"What fails stays."`,
		sources{"docs/a.md": "# What it is\n| Who | b |\n|---|---|\n| What? | A request that fails stays. |\n```\nWho asks waits.\n```\n"}},
}

// mapOfChanges is a table of changes with a row for each that is wanted.
var mapOfChanges = func() string {
	var out strings.Builder
	out.WriteString("\n## Where do I change X\n")
	for _, change := range changes {
		fmt.Fprintf(&out, "| %s | `%s` |\n", change.words, change.place)
	}
	return out.String()
}()

// placesOfChanges is a tree with all the places of that table, and one more.
func placesOfChanges(more string) sources {
	s := sources{mapFile: mapOfChanges}
	for _, change := range changes {
		s["internal/"+change.place] = "package p"
	}
	if more != "" {
		s[mapFile] += "| x | `" + strings.TrimPrefix(more, "internal/") + "` (`gone`) |\n"
		s[more] = "var gone int"
	}
	return s
}

func repeat(n int, format string) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}

// TestBreaches breaks every rule on purpose: the rule must report it, and report nothing once it is fixed.
func TestBreaches(t *testing.T) {
	for _, b := range breaches {
		if got := strings.Join(b.rule(b.tree.tree(t)), "\n"); !strings.Contains(got, b.want) {
			t.Errorf("%s: got %q, want %q in it", b.name, got, b.want)
		}
		fixed := maps.Clone(b.tree)
		maps.Copy(fixed, b.fix)
		for _, still := range b.rule(fixed.tree(t)) {
			t.Errorf("%s, fixed: %s", b.name, still)
		}
	}
}
