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
		sources{"internal/keyrange/a.go": ours + `internal/member"`}, "may not import internal/member",
		sources{"internal/keyrange/a.go": ""}},
	{"a package without a layer", checkLayers,
		sources{"internal/nowhere/a.go": ""}, "has no layer",
		sources{"internal/nowhere/a.go": gone, "internal/keyrange/a.go": ""}},
	{"consensus that knows storage", checkGroups,
		sources{"internal/consensus/raft/a.go": ours + `internal/kv"`}, "payloads are opaque",
		sources{"internal/consensus/raft/a.go": ours + `internal/consensus"`}},
	{"a library in a package that may not use it", checkConfined,
		sources{"internal/member/a.go": `import _ "github.com/cockroachdb/pebble/v2"`}, "the engine is a port",
		sources{"internal/member/a.go": ours + `internal/storage/engine"`}},
	{"a clock in the core", checkCoreInputs,
		sources{"internal/consensus/raft/a.go": `import _ "time"`}, "the core imports time",
		sources{"internal/consensus/raft/a.go": `import _ "slices"`}},
	{"a goroutine in the core", checkCoreInputs,
		sources{"internal/consensus/raft/a.go": "func f() { go f() }"}, "starts a goroutine",
		sources{"internal/consensus/raft/a.go": "func f() { f() }"}},
	{"a map's order in the core", checkCoreOrder,
		sources{"internal/consensus/raft/a.go": "type s struct{ m map[int]int }\nfunc (s s) f() { for range s.m {} }"}, "its order is chance",
		sources{"internal/consensus/raft/a.go": "type s struct{ m []int }\nfunc (s s) f() { for range s.m {} }"}},
	{"a link to nowhere", checkLinks,
		sources{"docs/a.md": "[b](b.md)"}, "links to b.md", sources{"docs/b.md": ""}},
	{"a dependency without a reason", checkDependencies,
		sources{"go.mod": "require example.com/x v1.0.0\n", "deps.txt": ""}, "give its reason",
		sources{"deps.txt": "example.com/x because it is needed\n"}},
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
		sources{"internal/keyrange/a.go": ""}, "has no doc",
		sources{"internal/keyrange/doc.go": "// Package p has a documentation that is long enough to say what it is, what it is not, and its invariants.\npackage p"}},
	{"a package whose name says nothing", checkPackageDocs,
		sources{"internal/util/doc.go": "// Package util has a documentation that is long enough to say what it is, what it is not, its invariants.\npackage util"},
		"the name says nothing",
		sources{"internal/util/doc.go": gone}},
	{"a note to oneself", checkNotes,
		sources{"a.go": "// TO" + "DO later\nvar a int"}, "do it", sources{"a.go": "var a int"}},
	{"a test that sleeps", checkSleeps,
		sources{"a_test.go": "func f() { time.Sleep(1) }"}, "a test sleeps", sources{"a_test.go": "func f() { <-time.After(1) }"}},
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
