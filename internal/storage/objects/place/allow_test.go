package place_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/storage/files"
	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/place"
)

func parse(t *testing.T, url string) *place.Place {
	t.Helper()
	p, err := place.Parse(url)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return p
}

// Ensure that an entry allows its directory or its bucket and prefix, by whole elements, and what lies below; that scheme, server and
// region are its own, and that files come from the entry alone.
func TestAllowed_Permit(t *testing.T) {
	allowed, err := place.ParseAllowed([]string{"file:///mnt/backups", "s3://prod/a/b", "s3://own?endpoint=https://S3.example&region=r1&" +
		"ca=/ca.pem&credentials=/keys&profile=backup", "s3://virtual?endpoint=http://10.0.0.1:9000&path-style=false"})
	if err != nil {
		t.Fatal(err)
	}
	const own = "s3://own/c?endpoint=https://S3.example&region=r1&ca=/ca.pem&credentials=/keys&profile=backup"
	for _, row := range []struct{ url, as string }{
		{"file:///mnt/backups", "file:///mnt/backups"},
		{"file:///mnt/backups/c1/", "file:///mnt/backups/c1"},
		{"file:///mnt/x/../backups/c1", "file:///mnt/backups/c1"},
		{"file:///mnt/backups/..c", "file:///mnt/backups/..c"},
		{"file:///mnt/backups/../secret", ""},
		{"file:///mnt/backups/%2e%2e/secret", ""},
		{"file:///mnt/backups2", ""},
		{"file:///mnt", ""},
		{"file:///", ""},
		{"s3://prod/a/b", "s3://prod/a/b"},
		{"s3://prod/a/b/c", "s3://prod/a/b/c"},
		{"s3://prod/a/bc", ""},
		{"s3://prod/a", ""},
		{"s3://prod", ""},
		{"s3://other/a/b", ""},
		{"s3://prod/a/b?endpoint=https://evil.example", ""},
		{"s3://prod/a/b?endpoint=http://169.254.169.254", ""},
		{"s3://prod/a/b?region=cn-north-1", ""}, // another region of Amazon's may be another host
		{"s3://prod/a/b?credentials=/etc/shadow", ""},
		{"s3://prod/a/b?ca=/etc/shadow", ""},
		{"s3://own/c", ""},
		{"s3://own/c?endpoint=https://s3.example", own},
		{"s3://own/c?endpoint=https://s3.example:443", own},
		{"s3://own/c?endpoint=https://s3.example&credentials=/keys&profile=backup&ca=/ca.pem&region=r1", own},
		{"s3://own/c?endpoint=https://s3.example:9000", ""},
		{"s3://own/c?endpoint=http://s3.example", ""},
		{"s3://own/c?endpoint=https://s3.example&credentials=/keys2", ""},
		{"s3://own/c?endpoint=https://s3.example&credentials=/keys&profile=admin", ""},
		{"s3://own/c?endpoint=https://s3.example&path-style=false", ""}, // the bucket would be a part of the host
		{"s3://virtual?endpoint=http://10.0.0.1:9000", "s3://virtual?endpoint=http://10.0.0.1:9000&path-style=false"},
	} {
		got, err := allowed.Permit(parse(t, row.url))
		switch {
		case row.as == "" && (!errors.Is(err, objects.ErrNotAllowed) || got != nil):
			t.Errorf("%s is allowed as %v: %v", row.url, got, err)
		case row.as != "" && (err != nil || got.String() != parse(t, row.as).String()):
			t.Errorf("%s: %v, %v, want %s", row.url, got, err, row.as)
		}
		if err != nil && strings.Contains(err.Error(), "Start each member") { // what it has already would be lost
			t.Errorf("%s: %v", row.url, err)
		}
		if err != nil && (strings.Contains(err.Error(), "/keys") || strings.Contains(err.Error(), "/ca.pem")) {
			t.Errorf("%s: the error names the operator's files: %v", row.url, err)
		}
	}
	_, err = place.Allowed(nil).Permit(parse(t, "file:///mnt/backups"))
	if err == nil || !strings.Contains(err.Error(), "is not set") || !strings.Contains(err.Error(), "--backup-places file:///mnt/backups") {
		t.Errorf("nothing is allowed: %v", err)
	}
}

// Ensure that a refusal suggests an entry that allows the place with the files that the URL named, and the URL without them.
func TestAllowed_suggests(t *testing.T) {
	for _, row := range []struct{ url, entry, start string }{
		{"file:///mnt/backups", "file:///mnt/backups", ""},
		{"file:///mnt/a,b", "file:///mnt/a%2Cb", ""},
		{"s3://prod/c1", "s3://prod/c1", ""},
		{"s3://own?endpoint=https://s3.example&path-style=false", "'s3://own?endpoint=https://s3.example&path-style=false'", ""},
		{"s3://own/c?endpoint=https://s3.example&credentials=/keys&profile=p", "'s3://own/c?credentials=/keys&endpoint=https://s3.example" +
			"&profile=p', where", "'s3://own/c?endpoint=https://s3.example'"},
		{"s3://own/c?ca=/ca.pem", "'s3://own/c?ca=/ca.pem', where", "s3://own/c"},
	} {
		_, err := place.Allowed(nil).Permit(parse(t, row.url))
		if err == nil {
			t.Fatalf("%s: nothing is refused", row.url)
		}
		_, said, _ := strings.Cut(err.Error(), "with --backup-places ")
		if !strings.HasPrefix(said, row.entry) || row.start == "" && said != row.entry ||
			row.start != "" && !strings.HasSuffix(said, "without them: "+row.start) {
			t.Errorf("%s: %v", row.url, err)
		}
		entry, _, _ := strings.Cut(said, ", where")
		allowed, err := place.ParseAllowed([]string{strings.Trim(entry, "'")})
		if err != nil {
			t.Fatal(err)
		}
		start := row.url
		if row.start != "" {
			start = strings.Trim(row.start, "'")
		}
		if got, err := allowed.Permit(parse(t, start)); err != nil || got.String() != parse(t, row.url).String() {
			t.Errorf("%s: what is suggested gives %v, %v", row.url, got, err)
		}
	}
}

// Ensure that an entry that makes no sense, or would allow all directories, is refused.
func TestParseAllowed_refuses(t *testing.T) {
	for _, entry := range []string{"", "/mnt", "file:///", "file:///mnt/..", "s3://", "s3://key:secret@bucket", "https://s3.example"} {
		if got, err := place.ParseAllowed([]string{"file:///mnt", entry}); err == nil || !strings.Contains(err.Error(), "entry 2") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, %v", entry, got, err)
		}
	}
	if _, err := place.ParseAllowed(make([]string, 65)); err == nil {
		t.Error("65 entries")
	}
}

// Ensure that no link leads out of the directory that is allowed, neither one that is there when a policy is set nor one that is made
// later, while the directory that is allowed may be a link itself.
func TestAllowed_link(t *testing.T) {
	dir := t.TempDir()
	backups, secret, alias := filepath.Join(dir, "backups"), filepath.Join(dir, "secret"), filepath.Join(dir, "alias")
	inside, outside := filepath.Join(backups, "in"), filepath.Join(backups, "out")
	if err := errors.Join(os.MkdirAll(filepath.Join(backups, "real"), 0o700), os.Mkdir(secret, 0o700), os.Symlink(backups, alias),
		os.Symlink("real", inside), os.Symlink(secret, outside)); err != nil {
		t.Fatal(err)
	}
	for _, root := range []string{backups, alias} {
		allowed, err := place.ParseAllowed([]string{"file://" + root})
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]error{"in": nil, "out": objects.ErrNotAllowed, "out/below": objects.ErrNoPlace, "real": nil,
			"absent": objects.ErrNoPlace} {
			at, err := allowed.Permit(parse(t, "file://"+filepath.Join(root, name)))
			if err != nil {
				t.Fatal(err)
			}
			s, err := place.Open(at, place.Options{FS: files.Disk})
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%s below %s: %v, want %v", name, root, err, want)
			}
			if err == nil {
				s.Close()
			}
		}
	}
}
