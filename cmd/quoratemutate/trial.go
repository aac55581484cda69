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
	neighbours func(dir string) (dirs []string) // packages whose tests look at dir, too

	mu        sync.Mutex
	baselines map[string]func() (time.Duration, error)
}

// result is what became of a mutant.
type result struct {
	mutation
	Number  int     `json:"number"` // in the order of the seed, from 1
	Outcome string  `json:"outcome"`
	By      string  `json:"by,omitempty"` // the package, and the test or what ended it
	Seconds float64 `json:"seconds"`
}

// try runs the tests of the mutant's package, those of its neighbours, and the simulator, until one of them fails. An error
// means that nothing can be said.
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
	own := path.Dir(m.File)
	checkers := append([]string{own}, l.neighbours(own)...)
	if l.simulate > 0 {
		checkers = append(checkers, simulator)
	}
	for i, checker := range checkers {
		limit, err := l.baseline(ctx, checker)
		if err != nil {
			return "", "", err
		}
		binary := filepath.Join(dir, "checker")
		if text, err := l.build(ctx, checker, binary, overlay); ctx.Err() != nil {
			return "", "", ctx.Err()
		} else if err != nil && i == 0 {
			return invalid, firstError(text), nil
		} else if err != nil {
			return "", "", fmt.Errorf("%s: build %s: %w: %s", m.place(), checker, err, text)
		}
		end, err := l.run(ctx, checker, binary, limit, "-test.short") // kills most, in a fraction of the time
		if err == nil && end == "" && checker != simulator {
			end, err = l.run(ctx, checker, binary, limit)
		}
		if err != nil {
			return "", "", err
		}
		if end != "" {
			return killed, checker + ": " + end, nil
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

// baseline runs a checker on the tree as it is, once, and returns how long its run may take with a mutation. What fails without
// a mutation says nothing about one.
func (l *laboratory) baseline(ctx context.Context, checker string) (time.Duration, error) {
	l.mu.Lock()
	once, ok := l.baselines[checker]
	if !ok {
		once = sync.OnceValues(func() (time.Duration, error) { return l.measure(ctx, checker) })
		if l.baselines == nil {
			l.baselines = map[string]func() (time.Duration, error){}
		}
		l.baselines[checker] = once
	}
	l.mu.Unlock()
	return once()
}

func (l *laboratory) measure(ctx context.Context, checker string) (time.Duration, error) {
	dir, err := os.MkdirTemp("", "quoratemutate-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "checker")
	if text, err := l.build(ctx, checker, binary, ""); err != nil {
		return 0, fmt.Errorf("%s does not build without a mutation: %w: %s", checker, err, text)
	}
	begun := time.Now()
	end, err := l.run(ctx, checker, binary, baselineFor)
	if err == nil && end != "" {
		err = fmt.Errorf("%s fails without a mutation: %s; fix that first", checker, end)
	}
	if checker == simulator {
		return l.simulate + l.limit, err
	}
	return max(l.limit, patience*time.Since(begun)), err
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

// run runs a checker to its end, and returns what ended it: nothing if all is well. The flags are for tests.
func (l *laboratory) run(ctx context.Context, checker, binary string, limit time.Duration, more ...string) (string, error) {
	dir := filepath.Join(l.root, checker)
	args := append([]string{"-test.failfast", "-test.count=1", "-test.timeout=0"}, more...)
	if checker == simulator {
		dir, args = l.root, []string{"run", "--seed", "1", "--for", l.simulate.String()}
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// The shell becomes the checker, so that a kill reaches it.
	shell := fmt.Sprintf("ulimit -v %d 2>/dev/null; exec \"$0\" \"$@\"", memoryKiB)
	check := exec.CommandContext(bounded, "sh", append([]string{"-c", shell, binary}, args...)...)
	check.Dir, check.WaitDelay = dir, time.Second
	var said bytes.Buffer
	check.Stdout, check.Stderr = &said, &said
	err := check.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil:
		return "", nil
	case bounded.Err() != nil:
		return "not over within " + limit.Round(time.Second).String(), nil
	case errors.As(err, &exit):
		return verdict(said.String()), nil
	}
	return "", fmt.Errorf("run the checker %s: %w", checker, err)
}

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
