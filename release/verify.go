package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// verification compares files with what their commit makes.
type verification struct {
	product Product
	repo    string
	public  string // the key, or a file with it; empty: signatures are not checked
	trust   string // a ref: its commits may be made again though no tag says that they are a release
	out     io.Writer
	log     io.Writer

	// remake makes the files of some names again in the directory work/made.
	remake func(ctx context.Context, v *verification, work string, claim Claim, wanted map[string]bool) error

	differences, unchecked int
}

// say prints the line of a file.
func (v *verification) say(verdict, name, format string, args ...any) {
	if why := fmt.Sprintf(format, args...); why != "" {
		name += ": " + why
	}
	fmt.Fprintf(v.out, "%-12s %s\n", verdict, printable(name))
}

func (v *verification) differs(name, format string, args ...any) {
	v.differences++
	v.say("DIFFERENT", name, format, args...)
}

func (v *verification) cannot(name, format string, args ...any) {
	v.unchecked++
	v.say("NOT CHECKED", name, format, args...)
}

// run verifies a file, or all files of a directory, whose commit, version, toolchain and time must be the same.
func (v *verification) run(ctx context.Context, at string) error {
	stat, err := os.Stat(at)
	if err != nil {
		return err
	}
	paths := []string{at}
	if stat.IsDir() {
		if paths, err = filesIn(at); err != nil {
			return err
		}
	}
	if err := v.contents(ctx, at, paths); err != nil {
		return err
	}
	v.signatures(at, stat.IsDir(), paths)
	return nil
}

// contents prints the lines of all files but signatures.
func (v *verification) contents(ctx context.Context, at string, paths []string) error {
	claims := map[string]Claim{}
	var reference *Claim
	for _, path := range paths {
		name := filepath.Base(path)
		if name == sumsName || strings.HasSuffix(name, ".minisig") {
			continue
		}
		claim, err := claimOf(path, v.product)
		if err != nil {
			v.cannot(name, "%v", err)
			continue
		}
		claims[path] = claim
		if reference == nil || claim.Kind == Provenance {
			reference = &claim
		}
	}
	if reference == nil && v.unchecked == 0 {
		reference = v.claimBeside(at)
	}
	if reference == nil {
		return nil
	}
	if reference.Dirty {
		v.cannot(filepath.Base(at), "was made from a tree with changes that are in no commit: nobody can make it again")
		return nil
	}
	return v.compare(ctx, paths, claims, *reference)
}

func filesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			paths = append(paths, filepath.Join(dir, entry.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no files", dir)
	}
	return paths, nil
}

// claimBeside is the claim of the provenance beside files that have none themselves: sums and their signature.
func (v *verification) claimBeside(at string) *Claim {
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(at), "*_provenance.json"))
	for _, path := range beside {
		if claim, err := claimOf(path, v.product); err == nil {
			return &claim
		}
	}
	v.cannot(filepath.Base(at), "there is no statement of provenance beside it that names a commit")
	return nil
}

// compare makes the files again and prints a line for each.
func (v *verification) compare(ctx context.Context, paths []string, claims map[string]Claim, reference Claim) error {
	work, err := os.MkdirTemp("", "release-verify-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	r := &Release{Product: v.product, Version: reference.Version}
	again, wanted := map[string]string{}, map[string]bool{} // by path; by name
	for _, path := range paths {
		claim, claims := claims[path]
		name := filepath.Base(path)
		for _, a := range r.artifacts() {
			same := a.Kind == claim.Kind && a.Target == claim.Target && a.Part == claim.Part
			if claims && same || !claims && a.Kind == Sums && name == sumsName {
				again[path], wanted[a.Name] = filepath.Join(work, "made", a.Name), true
			}
		}
	}
	if len(wanted) > 0 {
		why, differs, err := v.tied(ctx, reference)
		if err != nil {
			return err
		}
		if why != "" {
			v.refuse(paths, claims, why, differs)
			return nil
		}
		fmt.Fprintf(v.log, "making %s again from commit %s with %s\n", printable(string(reference.Version)),
			printable(reference.Commit), printable(reference.Go))
		if err := v.remake(ctx, v, work, reference, wanted); err != nil {
			return fmt.Errorf("the release cannot be made again: %w", err)
		}
	}
	for _, path := range paths {
		v.judge(path, again[path], claims[path], reference)
	}
	return nil
}

// refuse prints the lines of files whose claim is not believed.
func (v *verification) refuse(paths []string, claims map[string]Claim, why string, differs bool) {
	say := v.cannot
	if differs {
		say = v.differs
	}
	for _, path := range paths {
		if name := filepath.Base(path); claims[path].Kind != "" || name == sumsName {
			say(name, "%s", why)
		}
	}
}

// judge prints the line of a file.
func (v *verification) judge(path, again string, claim, reference Claim) {
	name := filepath.Base(path)
	switch {
	case again == "":
		if claim.Kind != "" {
			v.differs(name, "release %s has no such file", reference.Version)
		}
	case claim.Kind != "" && (claim.Commit != reference.Commit || claim.Version != reference.Version || claim.Dirty):
		v.differs(name, "is of %s, commit %s, and not of %s, commit %s", claim.Version, claim.Commit, reference.Version,
			reference.Commit)
	default:
		at, err := firstDifference(path, again)
		switch {
		case err != nil:
			v.cannot(name, "%v", err)
		case at >= 0:
			v.differs(name, "it differs from what commit %.12s makes, from byte %d on", reference.Commit, at)
		default:
			v.say("same", name, "%s, commit %s%s", reference.Version, reference.Commit, noRelease(reference.Version))
		}
	}
}

func noRelease(version Version) string {
	if version.Tag() == "" {
		return ", no release: no tag names it"
	}
	return ""
}

// byItsProgram makes files of a release again in work/made, by the release program of the commit: how files are packed is
// part of the commit as well. The commit is one that is tied.
func byItsProgram(ctx context.Context, v *verification, work string, claim Claim, wanted map[string]bool) error {
	out := filepath.Join(work, "made")
	tree, err := lookAt(ctx, v.repo, claim.Commit, false)
	if err != nil {
		return err
	}
	if err := tree.clone(ctx, work, nil); err != nil {
		return err
	}
	g, err := newGolang(ctx, claim.Go)
	if err != nil {
		return err
	}
	environ, err := g.environment(work, claim)
	if err != nil {
		return err
	}
	program := filepath.Join(tree.Dir, "release")
	if _, err := os.Stat(filepath.Join(program, "go.mod")); err != nil {
		return fmt.Errorf("commit %s has no release program", claim.Commit)
	}
	args := []string{"run", "-trimpath", ".", "make", "--commit", claim.Commit, "--version", string(claim.Version),
		"--out", out}
	for name := range wanted {
		args = append(args, "--only", name)
	}
	c := exec.CommandContext(ctx, "go", args...)
	var said bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = program, environ, v.log, io.MultiWriter(v.log, &said)
	if err := c.Run(); err != nil {
		return errors.New(firstLine(said.String()))
	}
	return nil
}

// firstDifference returns the first byte in which two files differ, and -1 if they are equal.
func firstDifference(one, other string) (int64, error) {
	a, err := os.Open(one)
	if err != nil {
		return 0, err
	}
	defer func() { _ = a.Close() }()
	b, err := os.Open(other)
	if err != nil {
		return 0, err
	}
	defer func() { _ = b.Close() }()
	x, y := bufio.NewReaderSize(a, 1<<20), bufio.NewReaderSize(b, 1<<20)
	for at := int64(0); ; at++ {
		p, err1 := x.ReadByte()
		q, err2 := y.ReadByte()
		switch {
		case errors.Is(err1, io.EOF) && errors.Is(err2, io.EOF):
			return -1, nil
		case err1 != nil && !errors.Is(err1, io.EOF):
			return 0, err1
		case err2 != nil && !errors.Is(err2, io.EOF):
			return 0, err2
		case err1 != nil || err2 != nil || p != q:
			return at, nil
		}
	}
}
