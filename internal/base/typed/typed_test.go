package typed_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/typed"
)

// Ensure that a shell reads the words of a line as they were meant, also in a directory where patterns match files.
func TestLine(t *testing.T) {
	words := []string{"/data/m1", "it's", "a b", "m[12]", "*", "{a,b}", "~", "#x", "!x", "$HOME", "`id`", `"q"`, `b\n`, "", "a\nb",
		"m2=http://[::1]:2380", "x;y&z|(w)<v>?", "ü"}
	shell := exec.Command("/bin/sh", "-c", `printf '%s\001' `+typed.Line(words...))
	shell.Dir = "/"
	out, err := shell.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\001"), "\001"); !slices.Equal(got, words) {
		t.Errorf("the shell reads %q, want %q", got, words)
	}
	for _, plain := range []string{"/var/lib/quorate-1", "http://10.0.0.1:2380,https://b.example:1", "m1=http://a:1"} {
		if got := typed.Word(plain); got != plain {
			t.Errorf("%s is quoted without need: %s", plain, got)
		}
	}
	if got, want := typed.Word("m2=http://[::1]:2380"), "'m2=http://[::1]:2380'"; got != want {
		t.Errorf("got %s, want %s: zsh takes brackets for a pattern", got, want)
	}
}

// Ensure that the command for a newcomer can be typed: a member listens at addresses only, and its URL may have a name.
func TestStart(t *testing.T) {
	for _, c := range []struct {
		name, listens string
		urls          []string
	}{
		{"m4", "http://10.0.4.9:2380", []string{"http://10.0.4.9:2380"}},
		{"m4", "https://0.0.0.0:2380", []string{"https://m4.example.com:2380"}},
		{"", "http://localhost:1,http://0.0.0.0:2", []string{"http://localhost:1", "http://b:2"}},
		{"its name", "'http://[::1]:2380'", []string{"http://[::1]:2380"}},
	} {
		got := typed.Start(c.name, "http://10.0.0.1:2380", c.urls)
		named := ""
		if c.name != "" {
			named = " --name " + typed.Word(c.name)
		}
		want := "quorate" + named + " --join http://10.0.0.1:2380 --listen-peer-urls " + c.listens +
			" --initial-advertise-peer-urls " + typed.Word(strings.Join(c.urls, ","))
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// Ensure that whoever starts a member over is told of the flags without which it would found a cluster of its own, and may type the
// command whatever the member's name is.
func TestStartOver(t *testing.T) {
	got := typed.StartOver("/d and /wal", "m 1", "a new key, ", "m 1")
	if want := "move /d and /wal aside, start m 1 with a new key, an empty directory and its flags, --initial-cluster or --join " +
		"among them, and run `quorate member reset 'm 1'` at a member that serves"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
