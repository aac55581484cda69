package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	os.Exit(run(ctx, quorate, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes a command line and returns the exit status.
func run(ctx context.Context, p Product, args []string, out, errs io.Writer) int {
	root := &cobra.Command{Use: "release", Short: "Make and verify the files of a release",
		SilenceErrors: true, SilenceUsage: true}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(makeCommand(p, errs), verifyCommand(p, out, errs), keyCommand(out), pushCommand(out))
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage{err} })
	root.RunE = func(c *cobra.Command, args []string) error {
		return usage{errors.New("write make, verify, key or push; see help")}
	}
	err := root.ExecuteContext(ctx)
	var said verdict
	var wrong usage
	switch {
	case err == nil:
		return 0
	case errors.As(err, &said):
		return int(said)
	}
	fmt.Fprintf(errs, "release: %s\n", printableLines(err.Error()))
	if errors.As(err, &wrong) {
		return statusUsage
	}
	return statusFailed
}

// arguments wants a number of arguments, and says otherwise what to write.
func arguments(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usage{fmt.Errorf("write: release %s", c.Use)}
		}
		return nil
	}
}

func makeCommand(p Product, log io.Writer) *cobra.Command {
	var o Options
	var out, version, key string
	var only []string
	c := &cobra.Command{
		Use: "make --out DIR", Args: arguments(0),
		Short: "Make all files of a release of the commit that is checked out",
		Long: "Make all files of a release of the commit that is checked out, in a directory that is absent or empty. The " +
			"same commit gives the same bytes, whoever makes it, where and when. Without --version it is that of the tag at " +
			"the commit, and without a tag v0.0.0-dev with the time and the commit, which every release is above.",
		RunE: func(c *cobra.Command, _ []string) error {
			if out == "" {
				return usage{errors.New("write: release make --out DIR")}
			}
			if c.Flags().Changed("version") {
				var err error
				if o.Version, err = parseVersion(version); err != nil {
					return usage{err}
				}
			}
			return makeRelease(c.Context(), p, o, out, key, only, log)
		},
	}
	flags := c.Flags()
	flags.StringVar(&out, "out", "", "where the files come")
	flags.StringVar(&version, "version", "", "the version, such as v1.0.0")
	flags.StringVar(&key, "key", "", "sign the sums with this key of minisign, whose password is in "+passwordVariable)
	flags.BoolVar(&o.Dirty, "dirty", false, "take the tree with its changes, for files to try out that nobody can verify")
	flags.StringSliceVar(&only, "only", nil, "make the files of these names only")
	flags.StringVar(&o.Commit, "commit", "", "another commit than the one that is checked out")
	flags.StringVar(&o.Repo, "repo", ".", "a directory of the repository")
	return c
}

func makeRelease(ctx context.Context, p Product, o Options, out, keyFile string, only []string, log io.Writer) error {
	sign := func(*Release, string) error { return nil }
	if keyFile != "" {
		key, err := readKey(keyFile, os.Getenv(passwordVariable))
		if err != nil {
			return usage{err}
		}
		sign = func(r *Release, dir string) error { return r.signSums(dir, key) }
	}
	if err := vacant(out); err != nil {
		return usage{err}
	}
	work, err := os.MkdirTemp("", "release-make-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	r, err := open(ctx, p, o, work, log)
	if err != nil {
		return err
	}
	return r.Make(ctx, out, func(a Artifact) bool { return len(only) == 0 || slices.Contains(only, a.Name) },
		func(dir string) error { return sign(r, dir) })
}

func verifyCommand(p Product, out, log io.Writer) *cobra.Command {
	v := &verification{product: p, out: out, log: log, remake: byItsProgram}
	c := &cobra.Command{
		Use: "verify FILE-or-DIR", Args: arguments(1),
		Short: "Make a file of a release again, or all in a directory, and compare",
		Long: "Make a file of a release again, or all in a directory, from the commit that they name, with the toolchain " +
			"that they name and the release program of that commit, and compare all bytes. A line says of each file what " +
			"came of it. The commit must be the one that the tag of the version names in --repo; of a version that is " +
			"no release, one that --trust has: its program runs. The exit status is 1 if a file differs, and otherwise 2 if " +
			"one could not be checked.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := v.run(c.Context(), args[0]); err != nil {
				return usage{err}
			}
			switch {
			case v.differences > 0:
				return verdict(statusFailed)
			case v.unchecked > 0:
				return verdict(statusUsage)
			}
			return nil
		},
	}
	c.Flags().StringVar(&v.public, "pub", "", "want a signature of the sums, and in them the file, by this public key of "+
		"minisign: its file or its text")
	c.Flags().StringVar(&v.trust, "trust", "HEAD", "a ref of --repo: files of its commits that are no release may be made "+
		"again")
	c.Flags().StringVar(&v.repo, "repo", ".", "a directory of the repository that has the commit")
	return c
}

func keyCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "key FILE", Args: arguments(1),
		Short: "Make a key of minisign in FILE, and its public half in FILE.pub; " + passwordVariable + " encrypts it",
		RunE: func(_ *cobra.Command, args []string) error {
			public, err := writeKey(args[0], os.Getenv(passwordVariable))
			if err == nil {
				fmt.Fprintf(out, "the public key, for verify --pub and minisign -P:\n%s\n", public)
			}
			return err
		},
	}
}

func pushCommand(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "push FILE HOST/NAME:TAG", Args: arguments(2),
		Short: "Bring the image of a release to a registry, with the logins of docker, and print its digest",
		RunE: func(c *cobra.Command, args []string) error {
			digest, err := push(c.Context(), args[0], args[1])
			if err == nil {
				fmt.Fprintf(out, "%s@%s\n", args[1], digest)
			}
			return err
		},
	}
}
