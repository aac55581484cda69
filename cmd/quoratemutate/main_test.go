package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fixture copies the small module that is mutated, and returns a campaign over all of its mutants.
func fixture(t *testing.T) *campaign {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/fixture")); err != nil {
		t.Fatal(err)
	}
	order, err := mutations(root, []string{"./sum/..."})
	if err != nil {
		t.Fatal(err)
	}
	shuffle(order, 1)
	return &campaign{
		lab:   laboratory{root: root, limit: 10 * time.Second, neighbours: func(string) []string { return nil }},
		order: order, sample: len(order), workers: 2,
	}
}

// TestCampaign tells mutants that the tests of a module kill from those that they do not, and leaves the module as it was.
func TestCampaign(t *testing.T) {
	c := fixture(t)
	before := contents(t, c.lab.root)
	var out strings.Builder
	c.out = &out
	if err := c.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range c.results {
		got[r.Source+": "+r.Kind] = r.Outcome + " " + r.By
	}
	want := map[string]string{
		"return n > 0: result negated":               "killed sum: TestPositive",
		"return n > 0: comparison changed":           "killed sum: TestPositive",
		"return n + 1: +1 dropped":                   "SURVIVED ",
		"for n < most {: condition negated":          "killed sum: TestUntil",
		"for n < most {: condition dropped to false": "killed sum: TestUntil",
		"for n < most {: comparison changed":         "killed sum: TestUntil",
		"n++: assignment dropped":                    "killed sum: not over within 10s",
		"return a < b: result negated":               "killed sum: TestLess",
		"return a < b: comparison changed":           "killed sum: TestLess",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if s := c.summary(1); s.Killed != 8 || s.Survived != 1 || s.Invalid != 0 {
		t.Errorf("summary: %+v", s)
	}
	if line := "SURVIVED sum/sum.go:11: +1 dropped: n + 1 -> n\n     return n + 1\n"; !strings.Contains(out.String(), line) {
		t.Errorf("no line %q in %s", line, out.String())
	}
	if !maps.Equal(before, contents(t, c.lab.root)) {
		t.Error("the module was written to")
	}
}

func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		files[name] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestCampaign_invalid does not count what does not compile, and takes the next mutant for it, with any number of workers.
func TestCampaign_invalid(t *testing.T) {
	for _, workers := range []int{1, 3} {
		c := fixture(t)
		slices.SortFunc(c.order, func(a, b mutation) int { return a.start - b.start })
		c.order[0].with = "unknown"
		c.sample, c.workers = 2, workers
		if err := c.run(context.Background()); err != nil {
			t.Fatal(err)
		}
		s := c.summary(1)
		if s.Invalid != 1 || s.Killed+s.Survived != 2 || len(s.Mutants) != 3 || s.Mutants[2].Number != 3 {
			t.Errorf("%d workers: summary %+v", workers, s)
		}
		if by := s.Mutants[0].By; by != "6:9: undefined: unknown" {
			t.Errorf("the compiler's reason is %q", by)
		}
	}
}

// TestCampaign_baseline says nothing about mutants where the tests fail without one.
func TestCampaign_baseline(t *testing.T) {
	c := fixture(t)
	test := "package sum\n\nimport \"testing\"\n\nfunc TestBroken(t *testing.T) { t.Fail() }\n"
	if err := os.WriteFile(filepath.Join(c.lab.root, "sum", "broken_test.go"), []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	err := c.run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "sum fails without a mutation: TestBroken") || len(c.results) > 0 {
		t.Errorf("got %v, and %d results", err, len(c.results))
	}
}

// TestCampaign_neighbours asks the tests of other packages about what the own tests let live.
func TestCampaign_neighbours(t *testing.T) {
	c := fixture(t)
	dir := filepath.Join(c.lab.root, "user")
	test := "package user\n\nimport (\n\t\"testing\"\n\n\t\"fixture/sum\"\n)\n\n" +
		"func TestNext(t *testing.T) {\n\tif sum.Next(1) != 2 {\n\t\tt.Error(\"wrong\")\n\t}\n}\n"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "user_test.go"), []byte(test), 0o600); err != nil {
		t.Fatal(err)
	}
	c.lab.neighbours = func(string) []string { return []string{"user"} }
	c.order = at(c.order, "sum/sum.go:11")
	if err := c.run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(c.results) != 1 || c.results[0].By != "user: TestNext" {
		t.Errorf("got %+v", c.results)
	}
}

// TestCampaign_interrupted says that its sample is not full, and keeps what is known.
func TestCampaign_interrupted(t *testing.T) {
	c := fixture(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c.workers, c.out = 1, writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	if err := c.run(ctx); !errors.Is(err, errInterrupted) || len(c.results) != 1 {
		t.Errorf("got %v, and %d results", err, len(c.results))
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestStart_interrupted exits with 2: a campaign whose sample is not full has not killed each of its mutants.
func TestStart_interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var said strings.Builder
	if code := start(ctx, []string{"--packages", "."}, io.Discard, &said); code != 2 || !strings.Contains(said.String(), "interrupted") {
		t.Errorf("exit code %d, %q", code, said.String())
	}
}

// TestJournal goes on where an earlier campaign ended, and refuses results of other mutants.
func TestJournal(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results")
	c := fixture(t)
	var err error
	if c.journal, err = openJournal(name, c.order); err != nil {
		t.Fatal(err)
	}
	c.sample = 3
	if err := errors.Join(c.run(context.Background()), c.journal.close()); err != nil {
		t.Fatal(err)
	}
	next := fixture(t)
	next.sample = 4
	var out strings.Builder
	next.out = &out
	if next.journal, err = openJournal(name, next.order); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(next.run(context.Background()), next.journal.close()); err != nil {
		t.Fatal(err)
	}
	if len(next.results) != 4 || strings.Count(out.String(), "   4 ") != 1 || strings.Contains(out.String(), "   3 ") {
		t.Errorf("%d results, tried anew: %s", len(next.results), out.String())
	}
	if _, err := openJournal(name, next.order[1:]); err == nil || !strings.Contains(err.Error(), "line 1 is of another seed") {
		t.Errorf("another order: %v", err)
	}
}

// TestJournal_quick tries again what survived the quick tests alone, and nothing else.
func TestJournal_quick(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results")
	for _, quick := range []bool{true, true, false, false} {
		c := fixture(t)
		c.order = at(c.order, "sum/sum.go:11")
		c.order = append(c.order, at(fixture(t).order, "sum/sum.go:6")...)
		c.lab.quick = quick
		var err error
		if c.journal, err = openJournal(name, c.order); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.run(context.Background()), c.journal.close()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	survivors, all := strings.Count(string(text), survived), strings.Count(string(text), "\n")
	if quick := strings.Count(string(text), `"quick":true`); survivors != 2 || all != 4 || quick != 3 {
		t.Errorf("%d results, %d of survivors, %d of quick tests alone:\n%s", all, survivors, quick, text)
	}
}

// TestDurations parts the tests that take long from those that do not.
func TestDurations(t *testing.T) {
	slow, quick := durations("--- PASS: TestA (0.01s)\n    --- PASS: TestA/b (9.00s)\n" +
		"--- PASS: TestB (0.11s)\n--- PASS: TestC (0.02s)\n")
	if !slices.Equal(slow, []string{"TestB"}) || quick != 30*time.Millisecond {
		t.Errorf("slow: %q, all others: %s", slow, quick)
	}
}

// TestStages asks what is cheap first, and the simulator last.
func TestStages(t *testing.T) {
	l := laboratory{neighbours: func(string) []string { return []string{"user"} }, simulate: time.Second}
	want := []stage{{"sum", true}, {"user", true}, {"sum", false}, {"user", false}, {simulator, false}}
	if got := l.stages("sum"); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestCampaign_changed stops when the tree changes below it: it could not say of what the mutant is one.
func TestCampaign_changed(t *testing.T) {
	c := fixture(t)
	name := filepath.Join(c.lab.root, "sum", "sum.go")
	if err := os.WriteFile(name, append(c.order[0].of, "// more\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.run(context.Background()); err == nil || !strings.Contains(err.Error(), "has changed since the start") {
		t.Errorf("got %v", err)
	}
}

func TestSummary_json(t *testing.T) {
	c := campaign{results: []result{{mutation: mutation{File: "a.go", Line: 3, Kind: "call dropped"}, Number: 1, Outcome: survived}}}
	s := c.summary(7)
	var out bytes.Buffer
	if err := s.printJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got summary
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Seed != 7 || got.Survived != 1 || len(got.Mutants) != 1 || got.Mutants[0].File != "a.go" || got.Mutants[0].Line != 3 {
		t.Errorf("got %+v", got)
	}
}

// TestVerdict finds in what a checker says why it failed.
func TestVerdict(t *testing.T) {
	for said, want := range map[string]string{
		"=== RUN TestA\n    --- FAIL: TestA/b (0.00s)\npanic: x\n": "TestA/b",
		"seed 3: plan\nVIOLATION lost write: k\n":                  "lost write: k",
		"fatal error: out of memory\n":                             "fatal error: out of memory",
		"exit":                                                     "failed: exit",
	} {
		if got := verdict(said); got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
}

// TestStart refuses what makes no sense, and says why.
func TestStart(t *testing.T) {
	for args, want := range map[string]string{
		"extra":                        "unexpected argument",
		"--sample 0":                   "--sample and --workers must be at least 1",
		"--for 0s":                     "--for must be more than zero",
		"--packages ../..":             "name folders of this module",
		"--packages missing":           "run it in the root of the repository",
		"--packages testdata":          "nothing can be mutated",
		"--packages . --at main.go:2":  "nothing can be mutated there",
		"--packages . --no-such-flag ": "flag provided but not defined",
	} {
		var said strings.Builder
		if code := start(context.Background(), strings.Fields(args), io.Discard, &said); code != 2 || !strings.Contains(said.String(), want) {
			t.Errorf("%s: exit code %d, %q; want %q", args, code, said.String(), want)
		}
	}
	var out strings.Builder
	if code := start(context.Background(), []string{"--help"}, &out, io.Discard); code != 0 || !strings.Contains(out.String(), "--sample") {
		t.Errorf("--help: exit code %d, %s", code, out.String())
	}
	out.Reset()
	list := []string{"--packages", ".", "--at", "sources.go", "--list"}
	if code := start(context.Background(), list, &out, io.Discard); code != 0 || !strings.Contains(out.String(), "sources.go:") {
		t.Errorf("--list: exit code %d, %s", code, out.String())
	}
}
