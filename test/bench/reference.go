package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	referenceModule  = "go.etcd.io/etcd/server/v3"
	referenceVersion = "v3.7.3"
)

// buildReference builds etcd as its authors published it, in a module that is gone afterwards, so that none of its
// requirements become ours.
func buildReference(ctx context.Context, arguments []string) (err error) {
	flags := flag.NewFlagSet("etcd", flag.ExitOnError)
	out := flags.String("out", "", "where the binary goes")
	version := flags.String("version", referenceVersion, "of the module "+referenceModule)
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *out == "" {
		return errors.New("want --out PATH")
	}
	target, err := filepath.Abs(*out)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "etcd-reference-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	for _, step := range [][]string{
		{"mod", "init", "reference"},
		{"get", referenceModule + "@" + *version},
		{"build", "-trimpath", "-o", target, referenceModule},
	} {
		command := exec.CommandContext(ctx, "go", step...)
		command.Dir, command.Stdout, command.Stderr = scratch, os.Stderr, os.Stderr
		command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
		if err := command.Run(); err != nil {
			return fmt.Errorf("go %s: %w", step[0], err)
		}
	}
	return nil
}
