package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/labweb"
	"github.com/quorate/quorate/internal/sim/lab/player"
)

func TestStart_lab(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		args string
		code int
		want string
	}{
		{"help", "--help", 0, "--out"},
		{"nothing asked", "", 2, "one of --out DIR"},
		{"two things asked", "--embed --out x", 2, "one of --out DIR"},
		{"no directory", "--out=", 2, "needs a directory"},
		{"a file in the place of the directory", "--out " + blocked, 2, "not a directory"},
		{"embedding elsewhere", "--embed", 2, "root of a checkout"},
		{"a run", "--answer story=two-leaders&rule=kept", 0, `"title":"two-leaders: a new leader`},
		{"a bad link", "--answer story=cinderella", 2, "two-leaders"},
		{"a bad moment", "--answer story=cop&at=99999", 2, "moments 0 to"},
		{"a stray argument", "--embed now", 2, `"now"`},
	} {
		var out, diary bytes.Buffer
		code := start(append([]string{"lab"}, strings.Fields(tc.args)...), &out, &diary)
		if text := out.String() + diary.String(); code != tc.code || !strings.Contains(text, tc.want) {
			t.Errorf("%s: exit %d, want %d with %q in\n%.300s", tc.name, code, tc.code, tc.want, text)
		}
		if tc.code == 2 && strings.Count(diary.String(), "\n") != 1 {
			t.Errorf("%s: want one line, got %q", tc.name, diary.String())
		}
	}
	var out bytes.Buffer
	if code := start([]string{"lab", "--answer", "story=abort"}, &out, &out); code != 0 ||
		!bytes.Equal(bytes.TrimSpace(out.Bytes()), player.Answer(player.AskPlay, "story=abort")) {
		t.Errorf("exit %d, and another answer than the player's", code)
	}
}

// Ensure that outside of a checkout there is one line that says what is missing, or the program that this build has.
func TestStart_labElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := filepath.Join(t.TempDir(), "lab")
	var out, diary bytes.Buffer
	code := start([]string{"lab", "--out", dir}, &out, &diary)
	if _, err := labweb.Files(); err == nil {
		if _, err := os.Stat(filepath.Join(dir, labweb.Program)); code != 0 || err != nil {
			t.Errorf("exit %d, %v: %s", code, err, diary.String())
		}
		return
	}
	if text := diary.String(); code != 2 || !strings.Contains(text, "checkout of Quorate") || strings.Count(text, "\n") != 1 {
		t.Errorf("exit %d: %q", code, text)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a directory was left: %v", err)
	}
}

// Ensure that the files are complete, and that two builds of the program are equal.
func TestStart_labFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("builds for WebAssembly")
	}
	var programs [2][]byte
	for i := range programs {
		dir := filepath.Join(t.TempDir(), "lab")
		var out, diary bytes.Buffer
		if code := start([]string{"lab", "--out", dir}, &out, &diary); code != 0 {
			t.Fatalf("exit %d: %s", code, diary.String())
		}
		for _, name := range []string{"index.html", "lab.js", "worker.js", "lab.css", labweb.Runtime} {
			if content, err := os.ReadFile(filepath.Join(dir, name)); err != nil || len(content) == 0 {
				t.Errorf("%s: %d bytes, %v", name, len(content), err)
			}
		}
		var err error
		if programs[i], err = os.ReadFile(filepath.Join(dir, labweb.Program)); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(programs[0], programs[1]) {
		t.Error("two builds differ")
	}
	r, err := gzip.NewReader(bytes.NewReader(programs[0]))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil || !bytes.HasPrefix(plain, []byte("\x00asm")) {
		t.Errorf("%d bytes, which are no WebAssembly: %v", len(plain), err)
	}
}
