package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The outcomes of a mutant.
const (
	killed   = "killed"
	survived = "SURVIVED"
	invalid  = "does not compile"
)

// buildFor and baselineFor bound a compilation and a run without a mutation, which depend on the machine's load alone.
const (
	buildFor    = 10 * time.Minute
	baselineFor = 10 * time.Minute
)

// memoryKiB bounds the address space of a mutant: one that never stops to allocate must not take the machine.
const memoryKiB = 6 << 20

// mutatedFile is read in the place of the real one.
const mutatedFile = "mutated.go"

// simulator is the name of the last checker, which is no package of tests.
const simulator = "simulator"

// laboratory tries mutants of the module in root.
type laboratory struct {
	root       string
	limit      time.Duration                    // of the tests of one package
	simulate   time.Duration                    // of seeds for each mutant that no test has killed; zero: none
	quick      bool                             // the quick tests alone
	neighbours func(dir string) (dirs []string) // packages whose tests look at dir, too

	mu        sync.Mutex
	baselines map[string]func() (*usual, error)
}

// result is what became of a mutant.
type result struct {
	mutation
	Number  int     `json:"number"` // in the order of the seed, from 1
	Outcome string  `json:"outcome"`
	By      string  `json:"by,omitempty"` // the package, and the test or what ended it
	Seconds float64 `json:"seconds"`
	Quick   bool    `json:"quick,omitempty"` // it met the quick tests alone
}

// stage is one check of a mutant.
type stage struct {
	checker string
	quick   bool // only the tests that take little, and with -short
}

// stages are the checks of a mutant of a package, those that decide most in the least time first.
func (l *laboratory) stages(own string) (all []stage) {
	packages := append([]string{own}, l.neighbours(own)...)
	for _, each := range packages {
		all = append(all, stage{checker: each, quick: true})
	}
	if l.quick {
		return all
	}
	for _, each := range packages {
		all = append(all, stage{checker: each})
	}
	if l.simulate > 0 {
		all = append(all, stage{checker: simulator})
	}
	return all
}

// try runs the quick tests of the mutant's package and of its neighbours, then all of their tests, then the simulator, until
// one of them fails. An error means that nothing can be said.
func (l *laboratory) try(ctx context.Context, m *mutation) (outcome, by string, err error) {
	dir, err := os.MkdirTemp("", "quoratemutate-")
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := l.overlay(m, dir)
	if err != nil {
		return "", "", err
	}
	built := map[string]string{}
	for i, s := range l.stages(path.Dir(m.File)) {
		usual, err := l.baseline(ctx, s.checker)
		if err != nil {
			return "", "", err
		}
		binary := built[s.checker]
		if binary == "" {
			binary = filepath.Join(dir, fmt.Sprintf("checker%d", i))
			built[s.checker] = binary
			if text, err := l.build(ctx, s.checker, binary, overlay); ctx.Err() != nil {
				return "", "", ctx.Err()
			} else if err != nil && i == 0 {
				return invalid, firstError(text), nil
			} else if err != nil {
				return "", "", fmt.Errorf("%s: build %s: %w: %s", m.place(), s.checker, err, text)
			}
		}
		end, err := l.run(ctx, s, binary, usual)
		if err != nil {
			return "", "", err
		}
		if end != "" {
			return killed, s.checker + ": " + end, nil
		}
	}
	return survived, "", nil
}

// overlay writes the mutated file and the file that makes the go command read it in the place of the real one.
func (l *laboratory) overlay(m *mutation, dir string) (string, error) {
	original, err := filepath.Abs(filepath.Join(l.root, m.File))
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(source, m.of) {
		return "", fmt.Errorf("%s has changed since the start: start again, in a worktree that stays as it is", m.File)
	}
	mutated := filepath.Join(dir, mutatedFile)
	if err := os.WriteFile(mutated, m.apply(), 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// patience is how many times longer than without a mutation tests may take: others may use the machine, too.
const patience = 3

// quickTest is what a test of the first stage takes at most, without a mutation.
const quickTest = 100 * time.Millisecond

// usual is what a checker does without a mutation.
type usual struct {
	limit time.Duration // that its run may take with one
	slow  []string      // tests that take more than quickTest
	quick time.Duration // that all others take together
}

// baseline runs a checker on the tree as it is, once. A test that fails without a mutation says nothing about one.
func (l *laboratory) baseline(ctx context.Context, checker string) (*usual, error) {
	l.mu.Lock()
	once, ok := l.baselines[checker]
	if !ok {
		once = sync.OnceValues(func() (*usual, error) { return l.measure(ctx, checker) })
		if l.baselines == nil {
			l.baselines = map[string]func() (*usual, error){}
		}
		l.baselines[checker] = once
	}
	l.mu.Unlock()
	return once()
}

func (l *laboratory) measure(ctx context.Context, checker string) (*usual, error) {
	dir, err := os.MkdirTemp("", "quoratemutate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "checker")
	if text, err := l.build(ctx, checker, binary, ""); err != nil {
		return nil, fmt.Errorf("%s does not build without a mutation: %w: %s", checker, err, text)
	}
	begun := time.Now()
	most := bounds{wall: baselineFor, processor: baselineFor}
	said, end, err := l.execute(ctx, checker, binary, most, l.arguments(checker)...)
	if err == nil && end != "" {
		err = fmt.Errorf("%s fails without a mutation: %s; fix that first", checker, end)
	}
	u := &usual{limit: max(l.limit, patience*time.Since(begun))}
	if checker == simulator {
		u.limit = l.simulate + l.limit
	}
	u.slow, u.quick = durations(said)
	return u, err
}

// testEnded is what a test says of itself with -v; those inside of another one are indented.
var testEnded = regexp.MustCompile(`(?m)^--- PASS: (\S+) \((\S+)s\)$`)

// durations names the slow tests of a run, and sums up what the others take.
func durations(said string) (slow []string, quick time.Duration) {
	for _, match := range testEnded.FindAllStringSubmatch(said, -1) {
		took, err := time.ParseDuration(match[2] + "s")
		if err != nil || took > quickTest {
			slow = append(slow, regexp.QuoteMeta(match[1]))
			continue
		}
		quick += took
	}
	return slow, quick
}

// build compiles a checker, and returns what the compiler says.
func (l *laboratory) build(ctx context.Context, checker, binary, overlay string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, buildFor)
	defer cancel()
	args := []string{"test", "-c", "-o", binary}
	target := "./" + checker
	if checker == simulator {
		args, target = []string{"build", "-o", binary}, "./cmd/quoratesim"
	}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(ctx, "go", append(args, target)...)
	build.Dir = l.root
	text, err := build.CombinedOutput()
	return string(text), err
}

// bounds are what a run may take.
type bounds struct{ wall, processor time.Duration }

// The bounds of a quick stage. Processor time does not depend on what else the machine does.
const (
	quickProcessor = 10 * time.Second
	quickPatience  = 10
)

// arguments are those of a whole run.
func (l *laboratory) arguments(checker string) []string {
	if checker == simulator {
		return []string{"run", "--nemesis", "all", "--seed", "1", "--for", l.simulate.String()}
	}
	return []string{"-test.failfast", "-test.count=1", "-test.timeout=0", "-test.v"}
}

// run runs a stage, and returns what ended it: nothing if all is well.
func (l *laboratory) run(ctx context.Context, s stage, binary string, u *usual) (string, error) {
	most, args := bounds{wall: u.limit, processor: u.limit}, l.arguments(s.checker)
	if s.quick {
		most.processor = max(quickProcessor, quickPatience*u.quick)
		if args = append(args, "-test.short"); len(u.slow) > 0 {
			args = append(args, "-test.skip=^("+strings.Join(u.slow, "|")+")$")
		}
	}
	_, end, err := l.execute(ctx, s.checker, binary, most, args...)
	return end, err
}

// execute runs a checker to its end, and returns what it said and what ended it.
func (l *laboratory) execute(
	ctx context.Context, checker, binary string, most bounds, args ...string,
) (said, end string, err error) {
	dir := filepath.Join(l.root, checker)
	if checker == simulator {
		dir = l.root
	}
	bounded, cancel := context.WithTimeout(ctx, most.wall)
	defer cancel()
	// The shell becomes the checker, so that a kill reaches it.
	shell := fmt.Sprintf("ulimit -v %d 2>/dev/null; ulimit -t %d; exec \"$0\" \"$@\"",
		memoryKiB, int(most.processor.Seconds())+1)
	check := exec.CommandContext(bounded, "sh", append([]string{"-c", shell, binary}, args...)...)
	check.Dir, check.WaitDelay = dir, time.Second
	var text bytes.Buffer
	check.Stdout, check.Stderr = &text, &text
	err = check.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err == nil:
		return text.String(), "", nil
	case bounded.Err() != nil:
		return "", "not over within " + most.wall.Round(time.Second).String(), nil
	case errors.As(err, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && outOfTime(status.Signal()) {
			return "", "not over within " + most.processor.Round(time.Second).String() + " of processor time", nil
		}
		return text.String(), verdict(text.String()), nil
	}
	return "", "", fmt.Errorf("run the checker %s: %w", checker, err)
}

// outOfTime reports whether the kernel ends a process by a signal that has used up its processor time: by the second one, where
// the process, as the Go runtime, does not end by the first.
func outOfTime(s syscall.Signal) bool { return s == syscall.SIGXCPU || s == syscall.SIGKILL }

// verdicts are how a checker says what it has found, the most telling first.
var verdicts = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^VIOLATION (.*)$`),
	regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`),
	regexp.MustCompile(`(?m)^(panic: .*)$`),
	regexp.MustCompile(`(?m)^(fatal error: .*)$`),
}

func verdict(said string) string {
	for _, v := range verdicts {
		if match := v.FindStringSubmatch(said); match != nil {
			return short(match[1])
		}
	}
	return "failed: " + short(said)
}

// firstError is what the compiler says, without the name of the package and that of the temporary file.
func firstError(text string) string {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			_, reason, found := strings.Cut(line, mutatedFile+":")
			if !found {
				reason = line
			}
			return short(reason)
		}
	}
	return ""
}
