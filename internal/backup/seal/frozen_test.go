package seal_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/google/go-cmp/cmp"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/seal"
)

var rewrite = flag.Bool("rewrite", false, "write the objects of the first form, if there are none")

const frozen = "testdata/1"

// frozenIdentity opens the objects in testdata, and nothing else anywhere.
func frozenIdentity(t testing.TB) pair {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(frozen, "identity"))
	if err != nil {
		t.Fatal(err)
	}
	id, err := age.ParseX25519Identity(strings.TrimSpace(string(content)))
	if err != nil {
		t.Fatal(err)
	}
	return pair{id.Recipient().String(), id.String()}
}

// frozenSecret is that of the objects in testdata.
var frozenSecret = backup.Secret([]byte("a secret of exactly 32 bytes ...."[:32]))

// Objects that were encrypted by the first build with this form are read as they were meant, for ever, and the secret gives the
// same names and keys.
func TestFrozen(t *testing.T) {
	id := frozenIdentity(t)
	recipients, err := seal.ParseRecipients([]string{id.recipient})
	if err != nil {
		t.Fatal(err)
	}
	l := seal.NewLock(frozenSecret, recipients)
	names, err := filepath.Glob(filepath.Join(frozen, "*seal*"))
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite && len(names) == 0 {
		for _, o := range objects(l) {
			if err := os.WriteFile(filepath.Join(frozen, filepath.Base(o.name)), o.content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(names) != 3 {
		t.Fatalf("%d objects, want 3", len(names))
	}
	open := opener(t, id)
	for _, file := range names {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, got, named, err := thawed(filepath.Base(file), content, l, open)
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: want -, got +\n%s", file, diff)
		}
		const hash = 64
		if cut := len(named) - hash - len(".seal"); named[:cut-5] != filepath.Base(file)[:cut-5] {
			t.Errorf("%s: such an object is called %s now", file, named)
		}
	}
}

// thawed reads an object by its name, and returns what it was made of, and how it is called now.
func thawed(file string, content []byte, l *backup.Lock, open backup.Opener) (want, got any, named string, err error) {
	const dir = "/fedcba9876543210/"
	if name, err := backup.ParseSegment("log" + dir + file); err == nil {
		packer := backup.NewPacker()
		packer.Lock = l
		now, _ := packer.Pack(segment("planted", "another"))
		got, err := backup.OpenSegment(&name, content, open)
		return segment("planted", "another"), got, filepath.Base(now.String()), err
	}
	if name, err := backup.ParseBase("base" + dir + file); err == nil {
		m := manifest(l)
		now, _ := m.Seal(l)
		got, err := backup.OpenManifest(&name, content, open)
		return m, got, filepath.Base(now.String()), err
	}
	name, err := backup.ParseGap("gap" + dir + file)
	if err != nil {
		return nil, nil, "", err
	}
	g := gap()
	now, _ := g.Seal(l)
	got, err = backup.OpenGap(&name, content, open)
	return g, got, filepath.Base(now.String()), err
}

// FuzzOpen gives anything for an encrypted object: it is refused, or is what was encrypted. So is the content inside, as anybody
// may encrypt to public keys.
func FuzzOpen(f *testing.F) {
	id := frozenIdentity(f)
	l, open := lock(f, id), opener(f, id)
	bare := func(sealed []byte, most int64) ([]byte, error) { return sealed[:min(int64(len(sealed)), most)], nil }
	for i, o := range objects(l) {
		f.Add(uint8(i), o.content)
	}
	plain := &backup.Lock{Secret: frozenSecret, Seal: func(content []byte) []byte { return content }}
	for i, o := range objects(plain) {
		f.Add(uint8(i), o.content)
	}
	f.Fuzz(func(t *testing.T, kind uint8, content []byte) {
		kinds := objects(plain)
		o := kinds[int(kind)%len(kinds)]
		if err := o.open(content, open); err == nil && len(content) < 16 {
			t.Errorf("%d bytes are read", len(content))
		}
		_ = o.open(content, bare) // it must not panic
	})
}
