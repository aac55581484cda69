package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// binary builds the program for a target, once.
func (r *Release) binary(ctx context.Context, target Target) (string, error) {
	if path := r.built[target]; path != "" {
		return path, nil
	}
	if !*r.begun && len(r.Product.Before) > 0 {
		if _, err := r.Go.run(ctx, r.Tree.Dir, Target{}, r.Product.Before...); err != nil {
			return "", err
		}
		*r.begun = true
	}
	if err := os.MkdirAll(r.work, 0o755); err != nil {
		return "", err
	}
	path := filepath.Join(r.work, "binary-"+target.String())
	_, err := r.Go.run(ctx, r.moduleDir(), target, "build", "-trimpath", "-buildvcs=true", "-ldflags="+r.linkerFlags(),
		"-o", path, r.Product.Main)
	if err == nil {
		r.built[target] = path
	}
	return path, err
}

// moduleDir is where the module of the program is.
func (r *Release) moduleDir() string { return filepath.Join(r.Tree.Dir, r.Product.Dir) }

func (r *Release) makeBinary(ctx context.Context, target Target, path string) error {
	built, err := r.binary(ctx, target)
	if err != nil {
		return err
	}
	return copyFile(path, built, 0o755)
}

// documents lets the program write its manual pages and its completions of shells, once: it knows its commands and flags.
// The one that runs is that of this platform.
func (r *Release) documents(ctx context.Context) (string, error) {
	if r.docs != "" {
		return r.docs, nil
	}
	program, err := r.binary(ctx, host())
	if err != nil {
		return "", err
	}
	dir := filepath.Join(r.work, "documents")
	if _, err := r.runProduct(ctx, program, "docs", "man", filepath.Join(dir, "man")); err != nil {
		return "", err
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := r.runProduct(ctx, program, "completion", shell)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, shell), script, 0o644); err != nil {
			return "", err
		}
	}
	r.docs = dir
	return dir, nil
}

// runProduct runs a program that was built here, without the settings of the user.
func (r *Release) runProduct(ctx context.Context, program string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Env = r.work, []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C"}
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, errors.New(r.Product.Name + " " + args[0] + ": " + firstLine(string(exit.Stderr)))
	}
	return out, err
}

func copyFile(to, from string, mode os.FileMode) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Chmod(mode) // whatever the umask is
}
