package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Ensure that a small file that unpacks to much is given up, also in an entry that is skipped.
func TestClaimOf_large(t *testing.T) {
	path := filepath.Join(t.TempDir(), "large.tar.gz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	packed, _ := gzip.NewWriterLevel(file, gzip.BestSpeed)
	w := tar.NewWriter(packed)
	const size = 257 << 20
	err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "other", Mode: 0o644, Size: size})
	_, copied := io.CopyN(w, zeros{}, size)
	if err := errors.Join(err, copied, w.Close(), packed.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := claimOf(path, standin); err == nil || !strings.Contains(err.Error(), "more than 256 MiB") {
		t.Errorf("got %v", err)
	}
}

// Ensure that what a file names reaches neither git nor the go command unless it has the form of a commit, a version, a
// toolchain.
func TestClaimOf_malformed(t *testing.T) {
	commit := strings.Repeat("0123456789", 4)
	for _, row := range []struct{ commit, version, toolchain, want string }{
		{commit, "v1.0.0", "go1.26.8", ""},
		{commit, "v1.0.0", "go1.26", ""},
		{commit, "v0.0.0-dev.20261129120000.g012345678901", "go1.26.8", ""},
		{"--output=/tmp/01234567890123456789012345", "v1.0.0", "go1.26.8", "names no commit"},
		{strings.ToUpper(strings.Repeat("abcdefabcd", 4)), "v1.0.0", "go1.26.8", "names no commit"},
		{commit + "\n", "v1.0.0", "go1.26.8", "names no commit"},
		{commit, "--force", "go1.26.8", `names the version "--force"`},
		{commit, "v1.0.0\n", "go1.26.8", "names the version"},
		{commit, "v1.0.0+dirty", "go1.26.8", "names the version"},
		{commit, "v1.0.0", "path", `names the toolchain "path"`},
		{commit, "v1.0.0", "go1.26.8\nx", "names the toolchain"},
		{commit, "v1.0.0", "go1.26.8-custom", "names the toolchain"},
		{commit, "v1.0.0", "go2.1", "names the toolchain"},
	} {
		var s Statement
		s.Type, s.PredicateType = statementType, predicateType
		s.Predicate.BuildDefinition.BuildType = buildType
		s.Predicate.BuildDefinition.ExternalParameters = map[string]string{"commit": row.commit, "version": row.version,
			"sourceDateEpoch": "1"}
		s.Predicate.BuildDefinition.InternalParameters = map[string]string{"go": row.toolchain}
		text, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "provenance.json")
		write(t, path, string(text))
		_, err = claimOf(path, standin)
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%q: got %v", row, err)
		}
	}
}

// Ensure that a revision that looks like an option is none to git.
func TestLookAt_option(t *testing.T) {
	repo := standinRepo(t)
	dir := t.TempDir()
	if tree, err := lookAt(t.Context(), repo, "--output="+filepath.Join(dir, "written"), false); err == nil {
		t.Errorf("got %+v", tree)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("git wrote %v", left)
	}
}

// Ensure that the payload of an rpm has the bound, too.
func TestClaimInPayload_large(t *testing.T) {
	const size = 257 << 20
	header := "070701" + strings.Repeat("0", 8) + "000081a4" + strings.Repeat("0", 32) + fmt.Sprintf("%08x", size) +
		strings.Repeat("0", 32) + fmt.Sprintf("%08x", len("./other")+1) + strings.Repeat("0", 8) + "./other\x00"
	header += strings.Repeat("\x00", (4-len(header)%4)%4)
	read, write := io.Pipe()
	go func() {
		packed, _ := gzip.NewWriterLevel(write, gzip.BestSpeed)
		_, err := io.Copy(packed, io.MultiReader(strings.NewReader(header), io.LimitReader(zeros{}, size)))
		_ = write.CloseWithError(errors.Join(err, packed.Close()))
	}()
	defer func() { _ = read.Close() }()
	if _, err := claimInPayload(read, "/usr/bin/quorate", standin); !errors.Is(err, errLarge) {
		t.Errorf("got %v", err)
	}
}
