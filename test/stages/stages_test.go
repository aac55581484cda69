//go:build unix

package stages_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// runStages runs stages whose make is a script, and returns what it prints and its exit status. The script's second argument is
// the stage.
func runStages(t *testing.T, script string, names ...string) (said string, status int) {
	t.Helper()
	made := filepath.Join(t.TempDir(), "make")
	if err := os.WriteFile(made, []byte("#!/bin/sh\ncase $2 in\n"+script+"\nesac\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	run := exec.Command("/bin/sh", append([]string{"../../.ci/stages"}, names...)...)
	run.Env = append(os.Environ(), "MAKE="+made)
	out, err := run.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), run.ProcessState.ExitCode()
}

// results are the lines of the summary, without times.
func results(said string) []string {
	_, table, _ := strings.Cut(said, "\n== stages\n")
	table = regexp.MustCompile(`\d+m\d\ds`).ReplaceAllString(table, "TIME")
	var lines []string
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

func TestStages_results(t *testing.T) {
	for _, row := range []struct {
		name, script string
		stages       []string
		want         []string
		status       int
	}{
		{"all are green", "fmt | sim) echo fine ;;", []string{"fmt", "sim"},
			[]string{"fmt ok in TIME", "sim ok in TIME", "in all TIME"}, 0},
		{"one is red, and the others run", "test) exit 2 ;;", []string{"vet", "test", "race"},
			[]string{"vet ok in TIME", "test FAILED after TIME", "race ok in TIME", "in all TIME"}, 1},
		{"nothing can be downloaded", "modules) exit 2 ;;", []string{"modules", "fmt", "build", "test"},
			[]string{"modules FAILED after TIME", "fmt ok in TIME", "build skipped, because modules failed",
				"test skipped, because modules failed", "in all TIME"}, 1},
		{"nothing can be built", "build) exit 2 ;;", []string{"modules", "build", "vet", "race"},
			[]string{"modules ok in TIME", "build FAILED after TIME", "vet ok in TIME", "race skipped, because build failed",
				"in all TIME"}, 1},
	} {
		said, status := runStages(t, row.script, row.stages...)
		if got := results(said); strings.Join(got, "\n") != strings.Join(row.want, "\n") || status != row.status {
			t.Errorf("%s: status %d, want %d, and\n%s\nwant\n%s", row.name, status, row.status, strings.Join(got, "\n"),
				strings.Join(row.want, "\n"))
		}
	}
	if said, status := runStages(t, ""); status != 2 {
		t.Errorf("without a name: status %d\n%s", status, said)
	}
}

// Ensure that what failed is repeated behind the output of later stages, and nothing else.
func TestStages_failuresLast(t *testing.T) {
	said, _ := runStages(t, `test) cat <<'SAID'
ok  	quorate/a	0.1s
    noise of a test that passed
--- FAIL: TestOf (0.01s)
    --- FAIL: TestOf/part (0.01s)
        of_test.go:12: got 1, want 2
FAIL
FAIL	quorate/of	0.2s
panic: send on closed channel
goroutine 7 [running]:
ok  	quorate/b	0.1s
SAID
exit 1 ;;
race) echo '==================
WARNING: DATA RACE
Read at 0x1 by goroutine 8:'; exit 1 ;;
vet) echo 'internal/x/x.go:3:2: declared and not used: y'; exit 1 ;;
sim) echo 'the law is broken'; echo 'make: *** [Makefile:63: sim] Error 1'; exit 1 ;;
fuzz) echo fuzzed ;;`, "test", "race", "vet", "sim", "fuzz")
	_, last, _ := strings.Cut(said, "== fuzz: ok")
	for _, want := range []string{
		"== test failed", "--- FAIL: TestOf/part", "of_test.go:12: got 1, want 2", "FAIL\tquorate/of", "panic: send on closed",
		"goroutine 7 [running]", "== race failed", "WARNING: DATA RACE\nRead at 0x1", "== vet failed", "x.go:3:2: declared",
		"== sim failed", "the law is broken",
	} {
		if !strings.Contains(last, want) {
			t.Errorf("no %q at the end", want)
		}
	}
	for _, not := range []string{"noise of a test", "quorate/a", "quorate/b", "fuzzed"} {
		if strings.Contains(last, not) {
			t.Errorf("%q at the end", not)
		}
	}
	if !strings.Contains(said, "== fuzz (failed before it: test race vet sim)") {
		t.Error("a later stage does not say which ones have failed")
	}
	if t.Failed() {
		t.Log(last)
	}
}

// Ensure that a thousand failures leave the end of the output short, with the last names.
func TestStages_failuresAreBounded(t *testing.T) {
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "--- FAIL: Test%d (0.01s)\n    a_test.go:1: wrong\n", i)
	}
	said, _ := runStages(t, "test) cat <<'SAID'\n"+many.String()+"SAID\nexit 1 ;;", "test")
	_, last, _ := strings.Cut(said, "== test failed")
	if lines := strings.Count(last, "\n"); lines < 80 || lines > 100 {
		t.Errorf("%d lines at the end, want about 90", lines)
	}
}
