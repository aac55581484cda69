package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Tree is the source of a release: a clone of one commit that has no other tag than that of the release. The go command writes
// into a binary which tag it finds at the commit, so that a tag that is set later, or is missing in a clone, would change it.
type Tree struct {
	Dir    string // the clone, or with Dirty the repository itself
	Repo   string // where it was cloned from
	Commit string // 40 hex digits
	Time   time.Time
	Dirty  bool
}

var errDirty = errors.New("the tree has changes that are in no commit, so that nobody could make this release again: " +
	"commit them, or write --dirty for files to try out")

// git runs git without the settings of the user and of the machine.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", append([]string{"-c", "safe.directory=*", "-c", "core.autocrlf=false",
		"-c", "advice.detachedHead=false", "-C", dir}, args...)...)
	c.Env = append(without(os.Environ(), "GIT_"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C")
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = errors.New(firstLine(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimSpace(string(out)), nil
}

// without leaves out the variables of an environment that begin with one of some prefixes.
func without(environ []string, prefixes ...string) []string {
	var kept []string
	for _, variable := range environ {
		keep := true
		for _, prefix := range prefixes {
			keep = keep && !strings.HasPrefix(variable, prefix)
		}
		if keep {
			kept = append(kept, variable)
		}
	}
	return kept
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// lookAt finds a commit in a repository, and its time. A tree with changes is refused, unless dirty allows it.
func lookAt(ctx context.Context, repo, commit string, dirty bool) (*Tree, error) {
	root, err := git(ctx, repo, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("%s is in no git repository, whose commit the release could name: %w", repo, err)
	}
	t := &Tree{Repo: root}
	if commit == "" {
		changes, err := git(ctx, root, "status", "--porcelain")
		switch {
		case err != nil:
			return nil, err
		case changes != "" && !dirty:
			return nil, errDirty
		case changes != "":
			t.Dirty, t.Dir = true, root
		}
		commit = "HEAD"
	}
	said, err := git(ctx, root, "log", "-1", "--no-show-signature", "--format=%H %ct", "--end-of-options", commit+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("the repository %s has no commit %s: fetch it first (%w)", root, commit, err)
	}
	hash, seconds, _ := strings.Cut(said, " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, err
	}
	t.Commit, t.Time = hash, time.Unix(at, 0).UTC()
	return t, nil
}

// clone makes the clone in dir, with some tags.
func (t *Tree) clone(ctx context.Context, dir string, tags []string) error {
	if t.Dirty {
		return nil
	}
	t.Dir = filepath.Join(dir, "source")
	if _, err := git(ctx, dir, "clone", "--quiet", "--no-checkout", "--no-tags", "--shared", t.Repo, t.Dir); err != nil {
		return err
	}
	steps := [][]string{{"checkout", "--quiet", "--detach", t.Commit}}
	for _, tag := range tags {
		steps = append(steps, []string{"tag", "--no-sign", tag})
	}
	for _, step := range steps {
		if _, err := git(ctx, t.Dir, step...); err != nil {
			return err
		}
	}
	return nil
}

// tagged is the tag of a version at the commit; empty if none or several are there.
func (t *Tree) tagged(ctx context.Context) (string, error) {
	all, err := git(ctx, t.Repo, "tag", "--points-at", t.Commit, "v*")
	if err != nil {
		return "", err
	}
	var found []string
	for tag := range strings.FieldsSeq(all) {
		if _, err := parseVersion(tag); err == nil {
			found = append(found, tag)
		}
	}
	if len(found) > 1 {
		return "", fmt.Errorf("the commit has several tags of versions, %s: say with --version which one is meant",
			strings.Join(found, " and "))
	}
	return strings.Join(found, ""), nil
}
