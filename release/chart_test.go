package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Ensure that a chart is packed as Helm reads it: under its name, with its file first, and of the version of the release.
func TestMake_chart(t *testing.T) {
	file, err := os.Open(filepath.Join(sharedRelease(t).dir, "one-1.0.0.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	r := tar.NewReader(packed)
	h, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	about, err := io.ReadAll(r)
	if err != nil || h.Name != "one/Chart.yaml" {
		t.Fatalf("got %s, %v", h.Name, err)
	}
	want := "apiVersion: v2\nname: one\nversion: 1.0.0\nappVersion: 1.0.0\nannotations:\n  io.quorate.commit: "
	if !strings.HasPrefix(string(about), want) {
		t.Errorf("got %s", about)
	}
	for {
		h, err := r.Next()
		if err != nil {
			break
		}
		names = append(names, h.Name)
	}
	if want := []string{"one/templates/a.yaml", "one/values.yaml"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// Ensure that a chart whose version would not be that of the release is refused.
func TestMake_chartRefused(t *testing.T) {
	for text, want := range map[string]string{
		"name: one\nversion: 0.0.0\n":                                      "1 lines are version: or appVersion:",
		"name: one\nversion: 1\nappVersion: 1\nannotations:\n  a: b\n":     "has annotations",
		"name: one\nversion: 1\nappVersion: 1\nversion: 2\n  version: 3\n": "3 lines are",
	} {
		repo := standinRepo(t)
		write(t, filepath.Join(repo, "charts/one/Chart.yaml"), text)
		gitIn(t, repo, "commit", "-q", "-a", "-m", "chart")
		out := filepath.Join(t.TempDir(), "out")
		status, _, errs := release(t, "make", "--repo", repo, "--out", out, "--version", "v1.0.0", "--only", "one-1.0.0.tgz")
		if status != 1 || !strings.Contains(errs, want) {
			t.Errorf("%q: status %d: %s", text, status, errs)
		}
	}
}

// Ensure that the files of programs beside the product, and charts, say what they are, so that each is made again alone.
func TestClaims_beside(t *testing.T) {
	s := sharedRelease(t)
	target := host().String()
	for name, want := range map[string]Claim{
		"operator_1.0.0_" + target:               {Kind: Binary, Part: "operator", Target: host()},
		"operator_1.0.0_" + target + ".cdx.json": {Kind: SBOM, Part: "operator", Target: host()},
		"operator_1.0.0_image.tar":               {Kind: Image, Part: "operator"},
		"plugin_1.0.0_" + target:                 {Kind: Binary, Part: "plugin", Target: host()},
		"quorate_1.0.0_" + target:                {Kind: Binary, Target: host()},
		"quorate_1.0.0_image.tar":                {Kind: Image},
		"one-1.0.0.tgz":                          {Kind: Chart, Part: "one"},
	} {
		got, err := claimOf(filepath.Join(s.dir, name), standin)
		if err != nil || got.Kind != want.Kind || got.Part != want.Part || got.Target != want.Target || got.Version != "v1.0.0" ||
			got.Commit != gitIn(t, s.repo, "rev-parse", "HEAD") {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if v, said, err := verified(t, s.repo, "", filepath.Join(s.dir, name)); err != nil || v.differences+v.unchecked > 0 ||
			!strings.Contains(said, "same") {
			t.Errorf("%s: %v\n%s", name, err, said)
		}
	}
}

// Ensure that a bill of materials of a program beside the product does not name the directory that its module has the product from.
func TestMake_besideModules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(sharedRelease(t).dir, "operator_1.0.0_"+host().String()+".cdx.json"))
	if err != nil || strings.Contains(string(text), "..") || !strings.Contains(string(text), `"name": "operator"`) {
		t.Errorf("%v: %s", err, text)
	}
}
