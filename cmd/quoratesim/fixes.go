package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

const fixesUsage = `quoratesim fixes drops again what was fixed after reviews, one rule after the other, and shows which
checker finds it: the table "Dropped fixes" of docs/simulation.md. Run it in the root of the repository; explorations of
the core are run by go test.

  quoratesim fixes [--only TEXT] [--for TIME]

The exit code is 0 if every row was found, 1 if not, 2 if the command makes no sense.

`

// fix is a rule that fixes something, and the checker that finds that it is dropped.
type fix struct {
	wrong   string // what was wrong
	rule    string // the switch that drops the fix
	command string
	law     string // that breaks
}

// unfound is something that was fixed and that no exploration can see missing.
type unfound struct {
	wrong, why string
	tests      []string
}

// row is the row of the table in docs/simulation.md.
func (u *unfound) row() string {
	return fmt.Sprintf("| %s | %s | `%s` |", u.wrong, u.why, strings.Join(u.tests, "`, `"))
}

// sight is what became of a row.
type sight struct {
	found  bool
	took   time.Duration
	output string
}

func runFixes(args []string, out io.Writer) (missed bool, err error) {
	flags := newFlags("fixes")
	limit := flags.Duration("for", 10*time.Minute, "how long one row may take, in real `time`")
	only := flags.String("only", "", "only rows that contain `text`")
	if err := parseFlags(flags, args, fixesUsage, out); err != nil {
		return false, err
	}
	rows := 0
	for _, m := range fixes() {
		if line := m.row("?"); !strings.Contains(line, *only) {
			continue
		}
		rows++
		seen := m.look(*limit)
		if seen.found {
			fmt.Fprintln(out, m.row(fmt.Sprintf("%.1f s", seen.took.Seconds())))
			continue
		}
		missed = true
		fmt.Fprintf(out, "%s\nNOT FOUND:\n%s\n", m.row(fmt.Sprintf("%.1f s", seen.took.Seconds())), seen.output)
	}
	if rows == 0 {
		return false, fmt.Errorf("no row contains %q", *only)
	}
	return missed, nil
}

// row is the row of the table in docs/simulation.md.
func (m *fix) row(took string) string {
	return fmt.Sprintf("| %s | `%s` | `%s` | %s | %s |", m.wrong, m.rule, m.command, m.law, took)
}

// look runs a row.
func (m *fix) look(limit time.Duration) sight {
	var out bytes.Buffer
	begun := time.Now()
	broken := m.run(limit, &out)
	took := time.Since(begun)
	return sight{broken && took <= limit && strings.Contains(out.String(), m.law), took, out.String()}
}

// run reports whether the command says that a law broke.
func (m *fix) run(limit time.Duration, out io.Writer) (broken bool) {
	words := split(m.command)
	if words[0] == "quoratesim" {
		var text bytes.Buffer
		code := start(append(words[1:], "--for", limit.String()), &text, out)
		_, _ = out.Write(text.Bytes())
		if words[1] == "run" {
			return code == 1 && strings.Contains(text.String(), "VIOLATION "+m.law)
		}
		return code == 0 && strings.Contains(text.String(), "BREAKS")
	}
	environment := os.Environ()
	for strings.Contains(words[0], "=") {
		environment, words = append(environment, words[0]), words[1:]
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	command := exec.CommandContext(ctx, words[0], append(words[1:], "-timeout", limit.String())...)
	command.Env, command.Stdout, command.Stderr = environment, out, out
	return command.Run() == nil
}

// split separates words at spaces outside of double quotes.
func split(command string) (words []string) {
	for i, part := range strings.Split(command, `"`) {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}
