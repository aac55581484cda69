package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/internal/labweb"
	"github.com/quorate/quorate/internal/sim/lab/player"
)

const labUsage = `quoratesim lab writes the laboratory for a browser: static files for any web server (docs/laboratory.md).

  quoratesim lab --out DIR        write the page, its script, style and worker, and the program
  quoratesim lab --embed          build the program into the source, for the builds that follow (make lab)
  quoratesim lab --answer LINK    print the document of the run that a link names, as the page gets it

In a checkout of Quorate, with the go command, the program is built; elsewhere it is the one of this build, which has one if
it was made after make lab.

`

const labProgram = "github.com/quorate/quorate/cmd/quoratelab"

func runLab(args []string, out io.Writer) error {
	flags := newFlags("lab")
	dir := flags.String("out", "", "write the files to this `directory`")
	embed := flags.Bool("embed", false, "build the program into the source from which this is run")
	link := flags.String("answer", "", "print the document of the run of this `link`")
	if err := parseFlags(flags, args, labUsage, out); err != nil {
		return err
	}
	given := 0
	flags.Visit(func(*flag.Flag) { given++ })
	switch {
	case given != 1:
		return errors.New("lab needs one of --out DIR, --embed and --answer LINK")
	case *link != "":
		return answer(*link, out)
	case *embed:
		if _, err := os.Stat(filepath.FromSlash(labweb.Dir)); err != nil {
			return fmt.Errorf("--embed works from the root of a checkout: %w", err)
		}
		return makeProgram(filepath.FromSlash(labweb.Dir), out)
	case *dir == "":
		return errors.New("--out needs a directory")
	}
	return writeLab(*dir, out)
}

// answer prints what the page is told of a run.
func answer(link string, out io.Writer) error {
	text, err := player.Play(link)
	if err != nil {
		return err
	}
	_, err = out.Write(append(text, '\n'))
	return err
}

// writeLab writes all files of the laboratory to a directory. The program is built from the source that is here, if there is
// any: the one that this build has in it may be older.
func writeLab(dir string, out io.Writer) error {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return fmt.Errorf("--out %s: it is not a directory", dir)
	}
	files := labweb.Static()
	err := makeProgram(dir, out)
	if err != nil {
		if files, _ = labweb.Files(); files == nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, readErr := fs.ReadDir(files, ".")
	if readErr != nil {
		return readErr
	}
	for _, entry := range entries {
		name := entry.Name()
		if err == nil && (name == labweb.Program || name == labweb.Runtime) {
			continue // there is a new one
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%s has the laboratory: serve it with any web server, and open index.html\n", dir)
	return nil
}

// makeProgram builds the laboratory's program for a browser, and puts it into a directory with the runtime that the same go
// command has for it. The bytes depend on the source and the version of Go alone.
func makeProgram(dir string, out io.Writer) error {
	fail := func(err error) error {
		return fmt.Errorf("the laboratory's program cannot be built here: run this in a checkout of Quorate with the "+
			"go command: %w", err)
	}
	work, err := os.MkdirTemp("", "quoratelab")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	wasm := filepath.Join(work, "lab.wasm")
	_, err = runGo("build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", wasm, labProgram)
	if err != nil {
		return fail(err)
	}
	root, err := runGo("env", "GOROOT")
	if err != nil {
		return fail(err)
	}
	runtime, err := os.ReadFile(filepath.Join(root, "lib", "wasm", labweb.Runtime))
	if err != nil {
		return fail(err)
	}
	program, err := os.ReadFile(wasm)
	if err != nil {
		return err
	}
	small, err := packed(program)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range map[string][]byte{labweb.Program: small, labweb.Runtime: runtime} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "built %s: %d KiB, %d KiB compressed\n", labweb.Program, len(program)>>10, len(small)>>10)
	return nil
}

// packed compresses a program. Nothing of the time or the machine is in the result.
func packed(program []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(program)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// runGo runs the go command for WebAssembly, and returns what it prints.
func runGo(args ...string) (string, error) {
	c := exec.Command("go", args...)
	c.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	said, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		first, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
		err = errors.New(first)
	}
	return strings.TrimSpace(string(said)), err
}
