package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Ensure that what a product makes before its build is in the binary, that the commit still counts as unchanged, and that two
// releases of it are equal.
func TestRelease_before(t *testing.T) {
	repo := standinRepo(t)
	write(t, filepath.Join(repo, "gen", "main.go"), `package main

import "os"

func main() {
	if os.WriteFile("cmd/quorate/words/made.txt", []byte("made before the build"), 0o644) != nil {
		os.Exit(1)
	}
}
`)
	write(t, filepath.Join(repo, "cmd", "quorate", "words", "own.txt"), "own")
	write(t, filepath.Join(repo, ".gitignore"), "/cmd/quorate/words/made.txt\n")
	write(t, filepath.Join(repo, "cmd", "quorate", "words.go"), `package main

import (
	"embed"
	"os"
)

//go:embed words
var words embed.FS

func init() {
	if len(os.Args) == 2 && os.Args[1] == "words" {
		text, _ := words.ReadFile("words/made.txt")
		os.Stdout.Write(text)
		os.Exit(0)
	}
}
`)
	gitIn(t, repo, "add", ".")
	gitIn(t, repo, "commit", "-q", "-m", "words")
	product := standin
	product.Before = []string{"run", "./gen"}
	var programs [2][]byte
	for i := range programs {
		work := t.TempDir()
		r, err := open(t.Context(), product, Options{Repo: repo}, work, &strings.Builder{})
		if err != nil {
			t.Fatal(err)
		}
		path, err := r.binary(t.Context(), host())
		if err != nil {
			t.Fatal(err)
		}
		if said, err := exec.CommandContext(t.Context(), path, "words").Output(); err != nil || string(said) != "made before the build" {
			t.Errorf("the binary has %q, %v", said, err)
		}
		about, err := exec.CommandContext(t.Context(), "go", "version", "-m", path).Output()
		if err != nil || !strings.Contains(string(about), "vcs.modified=false") {
			t.Errorf("%v\n%s", err, about)
		}
		if programs[i], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	if string(programs[0]) != string(programs[1]) {
		t.Error("two builds differ")
	}
}
