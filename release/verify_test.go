package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// Ensure that a release verifies, also when the commit has other tags by now, and file by file under other names.
func TestVerify_same(t *testing.T) {
	s := sharedRelease(t)
	dir, repo, public := s.dir, filepath.Join(t.TempDir(), "clone"), s.public
	gitIn(t, s.repo, "clone", "-q", s.repo, repo)
	gitIn(t, repo, "tag", "v1.0.1")
	v, said, err := verified(t, repo, public, dir)
	if err != nil || v.differences+v.unchecked != 0 || strings.Count(said, "\nsame ") != 14 || !strings.Contains(said,
		"signed ") {
		t.Errorf("%v, %+v\n%s", err, v, said)
	}
	for _, suffix := range []string{"", ".cdx.json", ".tar.gz", ".deb", ".rpm"} {
		renamed := filepath.Join(t.TempDir(), "download")
		if err := copyFile(renamed, filepath.Join(dir, "quorate_1.0.0_"+host().String()+suffix), 0o644); err != nil {
			t.Fatal(err)
		}
		v, said, err := verified(t, repo, "", renamed)
		if err != nil || v.differences+v.unchecked != 0 || !strings.Contains(said, "\nsame         download: v1.0.0, commit "+
			""+gitIn(t, repo, "rev-parse", "HEAD")+"\n") {
			t.Errorf("%q: %v, %+v\n%s", suffix, err, v, said)
		}
	}
}

// Ensure that a byte that was changed is found in each kind of file, and that the signature shows a change of the sums.
func TestVerify_different(t *testing.T) {
	s := sharedRelease(t)
	dir, repo, public := s.copied(t), s.repo, s.public
	paths, err := filesIn(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Clone(content)
		at := len(changed) - 10 // behind all that a file says of itself
		switch {
		case strings.HasSuffix(path, ".json"):
			at = bytes.LastIndex(changed, []byte(`"`)) - 1
		case strings.HasSuffix(path, ".tar.gz") || strings.HasSuffix(path, ".deb") || strings.HasSuffix(path, ".rpm"):
			at = 9 // of a header that readers skip: their payload is found damaged before it is compared
			if !strings.HasSuffix(path, ".tar.gz") {
				at = 60
			}
		}
		changed[at] ^= 1
		if err := os.WriteFile(path, changed, 0o644); err != nil {
			t.Fatal(err)
		}
		v, said, err := verified(t, repo, public, dir)
		if err != nil || v.differences == 0 && v.unchecked == 0 || v.differences+v.unchecked > 2 ||
			!strings.Contains(said, filepath.Base(path)+":") {
			t.Errorf("%s: %v, %d different, %d not checked\n%s", filepath.Base(path), err, v.differences, v.unchecked, said)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Ensure that files of another commit or of none are told apart from those of the release.
func TestVerify_foreign(t *testing.T) {
	s := sharedRelease(t)
	dir, repo, public := s.copied(t), filepath.Join(t.TempDir(), "clone"), s.public
	gitIn(t, s.repo, "clone", "-q", s.repo, repo)
	binary := filepath.Join(dir, "quorate_1.0.0_"+host().String())
	write(t, filepath.Join(repo, "more.txt"), "x")
	gitIn(t, repo, "add", ".")
	gitIn(t, repo, "commit", "-q", "-m", "second")
	other := filepath.Join(released(t, repo, "--version", "v1.0.0", "--only", filepath.Base(binary)), filepath.Base(binary))
	if err := os.Rename(other, binary); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "letter.txt"), "a letter without a commit")
	v, said, err := verified(t, repo, public, dir)
	if err != nil || v.differences != 1 || v.unchecked != 1 || !strings.Contains(said, "DIFFERENT    "+
		""+filepath.Base(binary)+": is of v1.0.0") ||
		!strings.Contains(said, "NOT CHECKED  letter.txt: is no file of a release") {
		t.Errorf("%v, %+v\n%s", err, v, said)
	}
	other, err = writeKey(filepath.Join(t.TempDir(), "key"), "")
	if err != nil {
		t.Fatal(err)
	}
	if v, said, _ := verified(t, repo, other, filepath.Join(dir, sumsName+".minisig")); v.differences != 1 ||
		!strings.Contains(said, "has not signed it") {
		t.Errorf("the signature of another key: %+v\n%s", v, said)
	}
	elsewhere := standinRepo(t)
	write(t, filepath.Join(elsewhere, "else.txt"), "x")
	gitIn(t, elsewhere, "add", ".")
	gitIn(t, elsewhere, "commit", "-q", "-m", "else")
	if _, _, err := verified(t, elsewhere, "", binary); err == nil || !strings.Contains(err.Error(), "fetch it first") {
		t.Errorf("a commit that the repository does not have: %v", err)
	}
}

// Ensure that the statuses are those that the help promises.
func TestVerify_status(t *testing.T) {
	dir := t.TempDir()
	letter := filepath.Join(dir, "letter")
	write(t, letter, "no release, but long enough")
	for _, row := range []struct {
		at, want string
	}{
		{letter, "NOT CHECKED  letter: is no file of a release"},
		{filepath.Join(dir, "absent"), "no such file"},
		{t.TempDir(), "has no files"},
		{os.Args[0], "is no file of a release"}, // this test: a program of Go, but another one
	} {
		status, out, errs := release(t, "verify", row.at)
		if status != statusUsage || !strings.Contains(out+errs, row.want) || strings.Count(out+errs, "\n") != 1 {
			t.Errorf("%s: got %d %q %q, want %d and %q", row.at, status, out, errs, statusUsage, row.want)
		}
	}
}

// Ensure that a bill of materials has the modules that the linker wrote into the program, and that it, and the provenance, name
// the bytes of what they are of.
func TestSBOM_modules(t *testing.T) {
	info, err := buildinfo.ReadFile(os.Args[0]) // of this test: it has modules, as the stand-in has none
	if err != nil {
		t.Fatal(err)
	}
	r := &Release{Product: standin, Version: "v1.0.0", Tree: &Tree{Commit: strings.Repeat("0", 40)}}
	bom := r.bom(info, []byte("binary"), host())
	var got, want []string
	for _, c := range (*bom.Components)[1:] {
		got = append(got, c.Name+"@"+c.Version)
	}
	for _, m := range modulesOf(info) {
		want = append(want, m.Path+"@"+m.Version)
	}
	if len(want) < 5 || strings.Join(got, " ") != strings.Join(want, " ") || (*bom.Components)[0].Version != info.GoVersion {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestProvenance(t *testing.T) {
	dir := sharedRelease(t).dir
	content, err := os.ReadFile(filepath.Join(dir, "quorate_1.0.0_provenance.json"))
	if err != nil {
		t.Fatal(err)
	}
	var s Statement
	if err := json.Unmarshal(content, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Subject) != 12 || s.Type != "https://in-toto.io/Statement/v1" ||
		s.PredicateType != "https://slsa.dev/provenance/v1" {
		t.Errorf("got %+v", s)
	}
	sums, err := os.ReadFile(filepath.Join(dir, sumsName))
	if err != nil {
		t.Fatal(err)
	}
	for _, subject := range s.Subject {
		digest, err := sha256Of(filepath.Join(dir, subject.Name))
		if err != nil || digest != subject.Digest["sha256"] || !strings.Contains(string(sums), digest+"  "+subject.Name+"\n") {
			t.Errorf("%s: %v, %s", subject.Name, err, subject.Digest)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "quorate_1.0.0_"+host().String()+".cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	digest, _ := sha256Of(filepath.Join(dir, "quorate_1.0.0_"+host().String()))
	if err := json.Unmarshal(text, &bom); err != nil || (*bom.Metadata.Component.Hashes)[0].Value != digest {
		t.Errorf("the bill of materials is of other bytes: %v", err)
	}
}

// Ensure that a key is not written over another one, and that a file that is no key is refused.
func TestKey(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if status, _, errs := release(t, "key", key); status != 0 {
		t.Fatal(errs)
	}
	if stat, err := os.Stat(key); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", stat, err)
	}
	if status, _, errs := release(t, "key", key); status != 1 || !strings.Contains(errs, "must not be lost") {
		t.Errorf("got %d %q", status, errs)
	}
	if _, err := readKey(key, ""); err != nil {
		t.Error(err)
	}
	if _, err := readKey(key+".pub", ""); err == nil {
		t.Error("the public half was taken for the key")
	}
}

// Ensure that a version is that of the commit: the tag in the operator's repository says so, and not the file.
func TestVerify_versionOfCommit(t *testing.T) {
	repo := standinRepo(t)
	old := gitIn(t, repo, "rev-parse", "HEAD")
	write(t, filepath.Join(repo, "more.txt"), "x")
	gitIn(t, repo, "add", ".")
	gitIn(t, repo, "commit", "-q", "-m", "second")
	name := "quorate_1.4.0_" + host().String()
	file := filepath.Join(released(t, repo, "--version", "v1.4.0", "--commit", old, "--only", name), name)
	if v, said, err := verified(t, repo, "", file); err != nil || v.unchecked != 1 || v.differences != 0 ||
		!strings.Contains(said, "NOT CHECKED  "+name+": the repository has no tag v1.4.0") {
		t.Errorf("without the tag: %v, %+v\n%s", err, v, said)
	}
	gitIn(t, repo, "branch", "v1.4.0", old) // no tag
	if v, said, err := verified(t, repo, "", file); err != nil || v.unchecked != 1 {
		t.Errorf("a branch for a tag: %v, %+v\n%s", err, v, said)
	}
	gitIn(t, repo, "tag", "-a", "-m", "release", "v1.4.0", "HEAD")
	if v, said, err := verified(t, repo, "", file); err != nil || v.differences != 1 || v.unchecked != 0 ||
		!strings.Contains(said, "DIFFERENT    "+name+": the tag v1.4.0 names commit "+gitIn(t, repo, "rev-parse", "HEAD")) {
		t.Errorf("the tag of another commit: %v, %+v\n%s", err, v, said)
	}
	gitIn(t, repo, "tag", "-f", "-a", "-m", "release", "v1.4.0", old)
	if v, said, err := verified(t, repo, "", file); err != nil || v.differences+v.unchecked != 0 ||
		!strings.Contains(said, "same         "+name+": v1.4.0, commit "+old+"\n") {
		t.Errorf("the tag of the commit: %v, %+v\n%s", err, v, said)
	}
}

// Ensure that a commit that no tag of a release names is made only if it is part of what the operator trusts, as is its
// program.
func TestVerify_trust(t *testing.T) {
	repo := standinRepo(t)
	gitIn(t, repo, "checkout", "-q", "-b", "proposal")
	write(t, filepath.Join(repo, "more.txt"), "x")
	gitIn(t, repo, "add", ".")
	gitIn(t, repo, "commit", "-q", "-m", "of a outsider")
	commit := gitIn(t, repo, "rev-parse", "HEAD")
	name := "quorate_0.0.0-dev.20261129120000.g" + commit[:12] + "_" + host().String()
	file := filepath.Join(released(t, repo, "--only", name), name)
	gitIn(t, repo, "checkout", "-q", "main")
	for _, row := range []struct{ ref, want string }{
		{"HEAD", "NOT CHECKED  " + name + ": commit " + commit + " is no ancestor of HEAD"},
		{"absent", "NOT CHECKED  " + name + ": --trust absent"},
		{"--output=" + filepath.Join(t.TempDir(), "x"), "NOT CHECKED  " + name + ": --trust --output"},
		{"proposal", "same         " + name + ": v0.0.0-dev.20261129120000.g" + commit[:12] + ", commit " + commit + ", no " +
			"release: "},
	} {
		v, said, err := verifiedBy(t, repo, "", row.ref, file)
		if err != nil || (v.unchecked == 0) != strings.HasPrefix(row.want, "same") || !strings.Contains(said, row.want) {
			t.Errorf("--trust %s: %v, %+v\n%s", row.ref, err, v, said)
		}
		if strings.Contains(said, "making ") != (v.unchecked == 0) {
			t.Errorf("--trust %s: it was made\n%s", row.ref, said)
		}
	}
	claim := Claim{Commit: commit, Version: "v0.0.0-dev.20200101000000.g" + Version(commit[:12]), Go: "go1.26.8"}
	if why, _, err := (&verification{repo: repo, trust: "proposal"}).tied(t.Context(), claim); err != nil ||
		!strings.Contains(why, "it is of") {
		t.Errorf("the snapshot of another time: %q, %v", why, err)
	}
}

const snoop = `package main

import "os"
import "strings"

func main() {
	for i, arg := range os.Args {
		if arg == "--out" {
			_ = os.WriteFile(os.Args[i+1], []byte(strings.Join(os.Environ(), "\n")), 0o644)
		}
	}
}
`

// Ensure that the program of the commit gets nothing of the operator but where the go command finds modules.
func TestByItsProgram_environment(t *testing.T) {
	repo := standinRepo(t)
	write(t, filepath.Join(repo, "release/go.mod"), "module example.org/standin/release\n\ngo 1.26.0\n")
	write(t, filepath.Join(repo, "release/main.go"), snoop)
	gitIn(t, repo, "add", ".")
	gitIn(t, repo, "commit", "-q", "-m", "second")
	t.Setenv("RELEASE_TEST_SECRET", "s3cret")
	t.Setenv("SSH_AUTH_SOCK", "/s3cret")
	t.Setenv("GOAUTH", "off")
	t.Setenv("GOFLAGS", "-tags=s3cret")
	g, err := newGolang(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	work, user := t.TempDir(), os.Getenv("HOME")
	v := &verification{repo: repo, log: io.Discard}
	claim := Claim{Commit: gitIn(t, repo, "rev-parse", "HEAD"), Version: "v1.0.0", Go: g.version, Time: time.Unix(7, 0)}
	if err := byItsProgram(t.Context(), v, work, claim, nil); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(work, "made"))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for line := range strings.Lines(string(content)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		got[name] = value
	}
	allowed := []string{"PATH", "HOME", "TMPDIR", "PWD", "LC_ALL", "TZ", "SOURCE_DATE_EPOCH", "CGO_ENABLED", "GOCACHE",
		"GOMODCACHE",
		"GOPROXY", "GOSUMDB", "GOFLAGS", "GOTOOLCHAIN", "GOENV", "GOWORK", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"}
	for name := range got {
		if !slices.Contains(allowed, name) && !strings.HasPrefix(name, "GOTOOLCHAIN_INTERNAL") {
			t.Errorf("it sees %s=%s", name, got[name])
		}
	}
	if strings.Contains(string(content), "s3cret") || got["HOME"] == user || !strings.HasPrefix(got["HOME"], work) ||
		got["GOFLAGS"] != "" || got["GOTOOLCHAIN"] != g.version || got["SOURCE_DATE_EPOCH"] != "7" {
		t.Errorf("got\n%s", content)
	}
}

// Ensure that with a key no file passes whose sums or signature were taken away.
func TestVerify_signatureTakenAway(t *testing.T) {
	s := sharedRelease(t)
	file := "quorate_1.0.0_" + host().String() + ".deb"
	for _, row := range []struct{ taken, at, want string }{
		{sumsName, ".", "NOT CHECKED  SHA256SUMS: is absent"},
		{sumsName + ".minisig", ".", "NOT CHECKED  SHA256SUMS.minisig: is absent"},
		{sumsName, file, "NOT CHECKED  SHA256SUMS: is absent"},
		{sumsName + ".minisig", file, "NOT CHECKED  SHA256SUMS.minisig: is absent"},
		{sumsName + ".minisig", sumsName, "NOT CHECKED  SHA256SUMS.minisig: is absent"},
		{sumsName, sumsName + ".minisig", "NOT CHECKED  SHA256SUMS"},
	} {
		dir := s.copied(t)
		if err := os.Remove(filepath.Join(dir, row.taken)); err != nil {
			t.Fatal(err)
		}
		v, said, err := verified(t, s.repo, s.public, filepath.Join(dir, row.at))
		if err != nil || v.differences != 0 || v.unchecked != 1 || !strings.Contains(said, row.want) {
			t.Errorf("%s without %s: %v, %+v\n%s", row.at, row.taken, err, v, said)
		}
	}
}

// Ensure that with a key the line of a file is checked in the sums beside it, which the key has signed.
func TestVerify_signedFile(t *testing.T) {
	s := sharedRelease(t)
	file := "quorate_1.0.0_" + host().String() + ".deb"
	dir := s.copied(t)
	sums := filepath.Join(dir, sumsName)
	check := func(public, at string, differences, unchecked int, want string) {
		t.Helper()
		v, said, err := verified(t, s.repo, public, filepath.Join(dir, at))
		if err != nil || v.differences != differences || v.unchecked != unchecked || !strings.Contains(said, want) {
			t.Errorf("%s: %v, %d different, %d not checked, want %d, %d and %q\n%s", at, err, v.differences, v.unchecked,
				differences,
				unchecked, want, said)
		}
	}
	check(s.public, file, 0, 0, "signed       "+file+": by the key ")
	check(s.public, sumsName, 0, 0, "signed       SHA256SUMS.minisig: by the key ")
	other, err := writeKey(filepath.Join(t.TempDir(), "key"), "")
	if err != nil {
		t.Fatal(err)
	}
	check(other, file, 1, 0, "DIFFERENT    SHA256SUMS.minisig: the key ")
	check("absent", file, 0, 1, "NOT CHECKED  SHA256SUMS.minisig: --pub absent")
	if err := os.Rename(filepath.Join(dir, file), filepath.Join(dir, "renamed")); err != nil {
		t.Fatal(err)
	}
	check(s.public, "renamed", 0, 1, "NOT CHECKED  renamed: SHA256SUMS has no line for it")
	archive := strings.TrimSuffix(file, ".deb") + ".tar.gz" // of the release, but not of that line
	if err := os.Rename(filepath.Join(dir, archive), filepath.Join(dir, file)); err != nil {
		t.Fatal(err)
	}
	check(s.public, file, 1, 0, "DIFFERENT    "+file+": SHA256SUMS has another sum for it")
	write(t, sums, "")
	check(s.public, file, 1, 0, "DIFFERENT    SHA256SUMS.minisig: the key ")
}
