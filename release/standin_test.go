package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// standin is a product of a few lines, with the packaging of the real one.
var standin = Product{Name: "quorate", Main: "./cmd/quorate", Variable: "main.version", Targets: []Target{host()},
	Beside: []Product{
		{Name: "operator", Dir: "operator", Main: "./cmd/operator", Variable: "main.version", Targets: []Target{host()}, Imaged: true},
		{Name: "plugin", Dir: "operator", Main: "./cmd/plugin", Variable: "main.version", Targets: []Target{host()}},
	}, Charts: []string{"charts/one"}, Linked: []string{"etcd", "etcdctl", "etcdutl"},
}

// besideMain is a program of the module beside the stand-in, which imports a package of that.
const besideMain = `package main

import "example.org/standin/shared"

var version = "unset"

func main() { println(version, shared.Name) }
`

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
		"go.mod": "module example.org/standin\n\ngo 1.26.0\n", "go.sum": "", "LICENSE": "a licence\n", "CHANGELOG.md": "# " +
			"Changelog\n",
		"cmd/quorate/main.go": standinMain, "shared/shared.go": "package shared\n\nconst Name = \"shared\"\n",
		"operator/go.mod": "module example.org/standin/operator\n\ngo 1.26.0\n\nrequire example.org/standin v0.0.0\n\n" +
			"replace example.org/standin => ../\n",
		"operator/cmd/operator/main.go": besideMain, "operator/cmd/plugin/main.go": besideMain, "operator/go.sum": "",
		"charts/one/Chart.yaml": "apiVersion: v2\nname: one\nversion: 0.0.0\nappVersion: 0.0.0\n", "charts/one/templates/a.yaml": "a: b\n",
		"charts/one/values.yaml": "{}\n",
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
	c := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=m", "-c",
		"user.email=m@example.org",
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
	return verifiedBy(t, repo, public, "HEAD", at)
}

// verifiedBy does so with a ref that is trusted.
func verifiedBy(t *testing.T, repo, public, trust, at string) (v *verification, said string, err error) {
	t.Helper()
	var out strings.Builder
	v = &verification{product: standin, repo: repo, public: public, trust: trust, out: &out, log: &out, remake: inProcess}
	err = v.run(t.Context(), at)
	return v, out.String(), err
}

// inProcess makes a release whole, once for all tests, and hands out its files.
func inProcess(ctx context.Context, v *verification, work string, claim Claim, wanted map[string]bool) error {
	tree, err := lookAt(ctx, v.repo, claim.Commit, false)
	if err != nil {
		return err
	}
	if claim.Time.IsZero() { // of a program
		claim.Time = tree.Time
	}
	again := filepath.Join(scratch, "again", claim.Commit+string(claim.Version)+claim.Time.UTC().Format(time.DateTime))
	if _, err := os.Stat(again); err != nil {
		if err := os.MkdirAll(again, 0o755); err != nil {
			return err
		}
		r, err := open(ctx, v.product, Options{Repo: v.repo, Commit: claim.Commit, Version: claim.Version}, work, v.log)
		if err != nil {
			return err
		}
		r.Time = claim.Time.UTC()
		if _, err := r.into(ctx, again, func(Artifact) bool { return true }); err != nil {
			return err
		}
	}
	return os.Symlink(again, filepath.Join(work, "made"))
}

// scratch is where tests share releases.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "release-test-"); err != nil {
		panic(err)
	}
	status := m.Run()
	_ = os.RemoveAll(scratch)
	os.Exit(status)
}

// signed is a repository and a release of it with a signature.
type signed struct{ repo, dir, public, key string }

var shared *signed

// sharedRelease is one for tests that change nothing in it.
func sharedRelease(t *testing.T) *signed {
	t.Helper()
	if shared != nil {
		return shared
	}
	s := &signed{repo: filepath.Join(scratch, "repo"), dir: filepath.Join(scratch, "out"), key: filepath.Join(scratch, "key")}
	if err := os.CopyFS(s.repo, os.DirFS(standinRepo(t))); err != nil {
		t.Fatal(err)
	}
	status, out, errs := release(t, "key", s.key)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != 0 || len(lines) != 2 {
		t.Fatalf("got %d %q %q", status, out, errs)
	}
	s.public = lines[1]
	if status, _, errs := release(t, "make", "--repo", s.repo, "--out", s.dir, "--version", "v1.0.0", "--key",
		s.key); status != 0 {
		t.Fatalf("status %d: %s", status, errs)
	}
	gitIn(t, s.repo, "tag", "v1.0.0")
	shared = s
	return s
}

// copied is the shared release in a directory of the test.
func (s *signed) copied(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}
