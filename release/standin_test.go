package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// standin is a product of a few lines, with the packaging of the real one.
var standin = Product{Name: "quorate", Main: "./cmd/quorate", Variable: "main.version", Targets: []Target{host()}}

const standinMain = `package main

import "os"

var version = "unset"

func main() {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "docs":
		_ = os.MkdirAll(os.Args[3], 0o755)
		_ = os.WriteFile(os.Args[3]+"/quorate.1", []byte(".TH QUORATE 1\n.SH NAME\nquorate \\- "+version+"\n"), 0o644)
	case len(os.Args) == 3 && os.Args[1] == "completion":
		os.Stdout.WriteString("# " + os.Args[2] + "\n")
	default:
		os.Stdout.WriteString(version + "\n")
	}
}
`

// standinRepo makes a repository of the stand-in with one commit.
func standinRepo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.org/standin\n\ngo 1.26.0\n", "go.sum": "", "LICENSE": "a licence\n", "CHANGELOG.md": "# Changelog\n",
		"cmd/quorate/main.go": standinMain,
	} {
		write(t, filepath.Join(dir, name), content)
	}
	if err := os.CopyFS(filepath.Join(dir, packaged), os.DirFS("packaging")); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "init", "-q", "-b", "main")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-q", "-m", "first")
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=m", "-c", "user.email=m@example.org",
		"-c", "commit.gpgsign=false"}, args...)...)
	c.Env = append(without(os.Environ(), "GIT_"), "GIT_COMMITTER_DATE=2026-11-29T12:00:00Z", "GIT_CONFIG_GLOBAL=/dev/null")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// release runs a command line on the stand-in and returns what came of it.
func release(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var stdout, stderr strings.Builder
	status = run(t.Context(), standin, args, &stdout, &stderr)
	return status, stdout.String(), stderr.String()
}

// released makes a release of a repository.
func released(t *testing.T, repo string, args ...string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "out")
	if status, _, errs := release(t, append([]string{"make", "--repo", repo, "--out", dir}, args...)...); status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	return dir
}

// verified verifies by making again in this process: the stand-in has no release program of its own.
func verified(t *testing.T, repo, public, at string) (v *verification, said string, err error) {
	t.Helper()
	var out strings.Builder
	v = &verification{product: standin, repo: repo, public: public, out: &out, log: &out, remake: inProcess}
	err = v.run(t.Context(), at)
	return v, out.String(), err
}

func inProcess(ctx context.Context, v *verification, work string, claim Claim, wanted map[string]bool) error {
	r, err := open(ctx, v.product, Options{Repo: v.repo, Commit: claim.Commit, Version: claim.Version}, work, v.log)
	if err != nil {
		return err
	}
	made := filepath.Join(work, "made")
	if err := os.Mkdir(made, 0o755); err != nil {
		return err
	}
	if !claim.Time.IsZero() {
		r.Time = claim.Time.UTC()
	}
	_, err = r.into(ctx, made, func(a Artifact) bool { return wanted[a.Name] })
	return err
}
