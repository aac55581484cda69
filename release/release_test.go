package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// Ensure that two builds of one commit have the same bytes: from another clone, at another path, of another user, with
// other tags, settings, umask, time zone and number of processors.
func TestMake_reproducible(t *testing.T) {
	repo, first := sharedRelease(t).repo, sharedRelease(t).dir
	elsewhere := filepath.Join(t.TempDir(), "a b", "clone")
	gitIn(t, repo, "clone", "-q", repo, elsewhere)
	gitIn(t, elsewhere, "tag", "v0.9.0")
	gitIn(t, elsewhere, "tag", "v1.2.0")
	home := t.TempDir()
	write(t, filepath.Join(home, ".gitconfig"), "[core]\n\tautocrlf = true\n[log]\n\tshowSignature = true\n")
	keep := goSettings(t)
	t.Setenv("HOME", home)
	for name, value := range keep {
		t.Setenv(name, value)
	}
	for name, value := range map[string]string{"TZ": "Asia/Kathmandu", "GOFLAGS": "-race -tags=other", "GOAMD64": "v3", "LC_ALL": "de_DE",
		"GODEBUG": "x=y", "CGO_ENABLED": "1", "USER": "other", "SOURCE_DATE_EPOCH": ""} {
		t.Setenv(name, value)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer umask(umask(0o077))
	second := released(t, filepath.Join(elsewhere, "cmd"), "--version", "v1.0.0", "--key", sharedRelease(t).key)
	names := sameFiles(t, first, second)
	if len(names) != len((&Release{Product: standin, Version: "v1.0.0"}).artifacts())+1 {
		t.Errorf("made %q", names)
	}
}

// goSettings are what another HOME would change, and a test has no time for: the cache and the modules.
func goSettings(t *testing.T) map[string]string {
	t.Helper()
	g, err := newGolang(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]string{}
	for _, variable := range g.environ {
		if name, value, _ := strings.Cut(variable, "="); slices.Contains(settings, name) {
			kept[name] = value
		}
	}
	return kept
}

func sameFiles(t *testing.T, first, second string) (names []string) {
	t.Helper()
	paths, err := filesIn(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		names = append(names, name)
		if at, err := firstDifference(path, filepath.Join(second, name)); err != nil || at >= 0 {
			t.Errorf("%s differs from byte %d on (%v)", name, at, err)
		}
	}
	return names
}

// Ensure that a commit without a tag has a version below all releases, that its tag is found, and that SOURCE_DATE_EPOCH is
// the time of the files.
func TestMake_version(t *testing.T) {
	repo := standinRepo(t)
	commit := gitIn(t, repo, "rev-parse", "HEAD")
	want := "quorate_0.0.0-dev.20261129120000.g" + commit[:12] + "_" + host().String()
	if _, err := os.Stat(filepath.Join(released(t, repo, "--only", want), want)); err != nil {
		t.Error(err)
	}
	gitIn(t, repo, "tag", "v1.1.0-rc.1")
	gitIn(t, repo, "tag", "vacation")
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	name := "quorate_1.1.0-rc.1_" + host().String() + ".tar.gz"
	archive := filepath.Join(released(t, repo, "--only", name), name)
	claim, err := claimOf(archive, standin)
	if err != nil || claim.Version != "v1.1.0-rc.1" || claim.Commit != commit || claim.Time.Unix() != 1700000000 {
		t.Errorf("got %+v, %v", claim, err)
	}
	gitIn(t, repo, "tag", "v1.1.0")
	if status, _, errs := release(t, "make", "--repo", repo, "--out", t.TempDir()); status == 0 || !strings.Contains(errs, "several tags") {
		t.Errorf("got %d %q", status, errs)
	}
}

// Ensure that what cannot become a release is refused in a line, and leaves nothing.
func TestMake_refusals(t *testing.T) {
	repo := standinRepo(t)
	out := filepath.Join(t.TempDir(), "out")
	full := t.TempDir()
	write(t, filepath.Join(full, "file"), "")
	for _, row := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"--version", "1.0"}, 2, "--version 1.0: write a semantic version"},
		{[]string{"--version", "v1.0.0+build"}, 2, "write a semantic version"},
		{[]string{"--version", ""}, 2, "write a semantic version"},
		{[]string{"--version", "v2.0.0"}, 2, "ends in /v2"},
		{[]string{"--version", "v0.0.0-20261129120000-0123456789ab"}, 2, "write a semantic version"},
		{[]string{"--version", "v0.0.0-dev.1"}, 1, "the version of this commit"},
		{[]string{"--commit", "0123456789012345678901234567890123456789"}, 1, "has no commit 0123456789"},
		{[]string{"--only", "absent"}, 1, "no file of the release has such a name"},
		{[]string{"--key", filepath.Join(full, "absent")}, 2, "no such file"},
		{[]string{"--out", full}, 2, "is not empty"},
		{[]string{"--repo", full}, 1, "is in no git repository"},
		{[]string{"more"}, 2, "write: release make --out DIR"},
		{[]string{"--nmae"}, 2, "unknown flag"},
	} {
		args := append([]string{"make", "--repo", repo, "--out", out}, row.args...)
		status, _, errs := release(t, args...)
		if status != row.status || !strings.Contains(errs, row.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: got %d %q, want %d and %q", row.args, status, errs, row.status, row.want)
		}
		if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), "*")); len(left) > 0 {
			t.Errorf("%q left %q", row.args, left)
		}
	}
}

// Ensure that a tree with changes is refused, and that what --dirty makes of it says so and is not verified.
func TestMake_dirty(t *testing.T) {
	repo := standinRepo(t)
	write(t, filepath.Join(repo, "new.txt"), "x")
	out := filepath.Join(t.TempDir(), "out")
	if status, _, errs := release(t, "make", "--repo", repo, "--out", out); status != 1 || !strings.Contains(errs, "changes that are in no commit") {
		t.Errorf("got %d %q", status, errs)
	}
	name := "quorate_1.0.0_" + host().String()
	dir := released(t, repo, "--dirty", "--version", "v1.0.0", "--only", name, "--only", name+".cdx.json")
	for _, path := range []string{dir, filepath.Join(dir, name), filepath.Join(dir, name+".cdx.json")} {
		if v, said, err := verified(t, repo, "", path); err != nil || v.unchecked == 0 || !strings.Contains(said, "nobody can make it again") {
			t.Errorf("%s: %v, %+v\n%s", path, err, v, said)
		}
	}
}

// Ensure that a build that fails leaves nothing.
func TestMake_buildFails(t *testing.T) {
	repo := standinRepo(t)
	write(t, filepath.Join(repo, "cmd/quorate/main.go"), "package main\n\nfunc main() { absent() }\n")
	gitIn(t, repo, "commit", "-q", "-a", "-m", "broken")
	out := filepath.Join(t.TempDir(), "out")
	if status, _, errs := release(t, "make", "--repo", repo, "--out", out); status != 1 || !strings.Contains(errs, "undefined: absent") {
		t.Errorf("got %d %q", status, errs)
	}
	if left, _ := os.ReadDir(filepath.Dir(out)); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// Ensure that an archive has one directory, sorted, of one owner and time.
func TestMake_archive(t *testing.T) {
	file, err := os.Open(filepath.Join(sharedRelease(t).dir, "quorate_1.0.0_"+host().String()+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for r := tar.NewReader(packed); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimPrefix(h.Name, "quorate-1.0.0/"))
		if h.Uid != 0 || h.Uname != "" || h.ModTime.UTC().Format("2006-01-02T15:04:05") != "2026-11-29T12:00:00" {
			t.Errorf("%s: owner %d %q, time %v", h.Name, h.Uid, h.Uname, h.ModTime)
		}
	}
	want := []string{"LICENSE", "completions/bash", "completions/fish", "completions/zsh", "man/quorate.1", "quorate", "quorate.yaml",
		"systemd/quorate.service", "systemd/quorate@.service", "systemd/sysusers.conf", "third-party-licenses"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}
