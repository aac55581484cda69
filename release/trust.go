package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tied tells why a claim is not believed before anything of its commit runs: everybody can make files that name any commit of a
// repository, and any version. It returns nothing for the commit that the tag of the version names in the operator's
// repository, and for a version that is no release, if the commit is part of what the operator trusts. With differs the
// repository contradicts the file; otherwise it cannot tell.
func (v *verification) tied(ctx context.Context, c Claim) (why string, differs bool, err error) {
	tree, err := lookAt(ctx, v.repo, c.Commit, false)
	if err != nil {
		return "", false, err
	}
	tag := c.Version.Tag()
	if tag == "" {
		if snapshot := snapshotOf(tree.Commit, tree.Time); c.Version != snapshot {
			return fmt.Sprintf("it is of %s, and commit %s is %s", c.Version, tree.Commit, snapshot), true, nil
		}
		return v.trusted(ctx, tree), false, nil
	}
	tagged, err := git(ctx, v.repo, "rev-parse", "--verify", "--end-of-options", "refs/tags/"+tag+"^{commit}")
	switch {
	case err != nil:
		return fmt.Sprintf("the repository has no tag %s that could say which commit is that release, and the file names "+
			"commit %s: "+
			"fetch the tags", tag, c.Commit), false, nil
	case tagged != c.Commit:
		return fmt.Sprintf("the tag %s names commit %s, and the file commit %s", tag, tagged, c.Commit), true, nil
	}
	return "", false, nil
}

// trusted tells why a commit is not part of what the operator trusts.
func (v *verification) trusted(ctx context.Context, tree *Tree) string {
	ref, err := git(ctx, v.repo, "rev-parse", "--verify", "--end-of-options", v.trust+"^{commit}")
	if err != nil {
		return fmt.Sprintf("--trust %s: %v", v.trust, err)
	}
	missing, err := git(ctx, v.repo, "rev-list", "--max-count=1", "--end-of-options", tree.Commit, "^"+ref)
	switch {
	case err != nil:
		return fmt.Sprintf("--trust %s: %v", v.trust, err)
	case missing != "":
		return fmt.Sprintf("commit %s is no ancestor of %s and no tag says that it is a release: its program is not run "+
			"(--trust names another ref)", tree.Commit, v.trust)
	}
	return ""
}

// environment is that of the program of a commit: nothing of the operator's but where the go command is and where it finds
// modules. The program writes below work.
func (g *golang) environment(work string, c Claim) ([]string, error) {
	home, scratch := filepath.Join(work, "home"), filepath.Join(work, "tmp")
	for _, dir := range []string{home, scratch} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	environ := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + scratch, "LC_ALL=C", "TZ=UTC", "CGO_ENABLED=0",
		"GOENV=off", "GOWORK=off", "GOFLAGS=", "GOTOOLCHAIN=" + c.Go, "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}
	for _, variable := range g.environ {
		if name, _, _ := strings.Cut(variable, "="); slices.Contains([]string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOSUMDB"},
			name) {
			environ = append(environ, variable)
		}
	}
	if !c.Time.IsZero() {
		environ = append(environ, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", c.Time.Unix()))
	}
	return environ, nil
}
