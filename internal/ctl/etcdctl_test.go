package ctl_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
)

// Ensure that our own commands run what they understand, and etcdctl's the rest of what etcdctl has.
func TestIsEtcdctls(t *testing.T) {
	for line, want := range map[string]bool{
		"get a":                    false,
		"get a --prefix --limit=3": false, // both have these
		"get a -o json":            false,
		"get a -w json":            true,
		"get a --sort-by=MODIFY":   true,
		"get":                      false, // our words for a line that neither understands
		"get a --bogus":            false,
		"get --help":               false,
		"put k -- -v":              false,
		"put k v --prev-kv":        true,
		"watch a b":                false,
		"watch -- -a":              false,
		"watch a -- echo changed":  true,
		"watch -i":                 true,
		"lease show 7":             false,
		"lease timetolive 7":       true,
		"lease keep-alive 7":       true,
		"lease bogus":              false,
		"member list":              false,
		"member list -w table":     true,
		"member drain m4":          false,
		"user list":                false, // only one has it: it needs no decision
		"--endpoints=a:1 get k":    true,
		"--name=m1":                false,
		"-w":                       false,
		"bogus":                    false,
		"":                         false,
	} {
		if got := ctl.IsEtcdctls(strings.Fields(line), command.Streams{}); got != want {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
	}
	for variable, line := range map[string]string{"ETCDCTL_WRITE_OUT=json": "get a", "ETCDCTL_WATCH_KEY=a": "watch"} {
		if !ctl.IsEtcdctls(strings.Fields(line), command.Streams{Environ: []string{variable}}) {
			t.Errorf("%q with %s: got false, want true", line, variable)
		}
	}
}

// Ensure that the help names the commands that only etcdctl has, and none that is ours.
func TestWriteEtcdctl(t *testing.T) {
	var out bytes.Buffer
	ctl.WriteEtcdctl(&out)
	words := " " + strings.Join(strings.Fields(out.String()), " ") + " "
	for word, want := range map[string]bool{"user": true, "txn": true, "etcdctl": true, "get": false, "completion": false, "options": false} {
		if got := strings.Contains(words, " "+word+" "); got != want {
			t.Errorf("%s: got %v, want %v, in %s", word, got, want, words)
		}
	}
}
