package seal_test

import (
	"bytes"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/seal"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// pair is a key pair.
type pair struct{ recipient, identity string }

func newPair(t testing.TB) pair {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return pair{id.Recipient().String(), id.String()}
}

func newHybrid(t testing.TB) pair {
	t.Helper()
	id, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	return pair{id.Recipient().String(), id.String()}
}

// opener opens with the identities of pairs, from a file as age-keygen writes it.
func opener(t testing.TB, pairs ...pair) backup.Opener {
	t.Helper()
	text := "# created: 2026-11-30\n"
	for _, p := range pairs {
		text += "# public key: " + p.recipient + "\n" + p.identity + "\n"
	}
	name := filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(name, []byte(text), 0o400); err != nil {
		t.Fatal(err)
	}
	open, err := seal.ReadIdentities([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return open
}

func lock(t testing.TB, pairs ...pair) *backup.Lock {
	t.Helper()
	var words []string
	for _, p := range pairs {
		words = append(words, p.recipient)
	}
	r, err := seal.ParseRecipients(words)
	if err != nil {
		t.Fatal(err)
	}
	return seal.NewLock(seal.NewSecret(), r)
}

// Ensure that recipients are a set in one order, that anything else is refused by an error which says what to do, and that none
// repeats what was given: it may be a secret.
func TestParseRecipients(t *testing.T) {
	a, b, pq := newPair(t), newPair(t), newHybrid(t)
	one, err := seal.ParseRecipients([]string{" " + a.recipient, strings.ToUpper(b.recipient), a.recipient})
	if err != nil {
		t.Fatal(err)
	}
	other, err := seal.ParseRecipients(strings.Fields(one.String()))
	if err != nil || one.Len() != 2 || one.String() != other.String() || len(one.Words()) != 2 {
		t.Errorf("got %q, then %q, %v", one, other, err)
	}
	if r, err := seal.ParseRecipients([]string{pq.recipient}); err != nil || r.Len() != 1 {
		t.Errorf("after quanta: %v", err)
	}
	flipped := []byte(a.recipient)
	flipped[20] ^= 1
	var many []string
	for range seal.MaxRecipients + 1 {
		many = append(many, newPair(t).recipient)
	}
	for want, words := range map[string][]string{
		"there is no recipient":              nil,
		"recipient 2 of 2: this is the secr": {a.recipient, a.identity},
		"this is the secret key":             {strings.ToLower(pq.identity)},
		"the public key that age-keygen":     {string(flipped)},
		"write the public key":               {"password"},
		"keys of SSH are not taken":          {"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI"},
		"at most 16":                         many,
		"can't mix post-quantum":             {a.recipient, pq.recipient},
	} {
		_, err := seal.ParseRecipients(words)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: got %v, want %q", words, err, want)
			continue
		}
		for _, word := range words {
			if len(word) > 8 && strings.Contains(strings.ToLower(err.Error()), strings.ToLower(word[:9])) && word != "password" {
				t.Errorf("%v repeats %.20q", err, word)
			}
		}
	}
}

// Ensure that a file which others can read, or that holds something else, is refused, without a word of what is in it.
func TestReadIdentities_wrong(t *testing.T) {
	a := newPair(t)
	write := func(content string, mode os.FileMode) string {
		name := filepath.Join(t.TempDir(), "identity")
		if err := errors.Join(os.WriteFile(name, []byte(content), 0o600), os.Chmod(name, mode)); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for want, name := range map[string]string{
		"others than its owner":       write(a.identity, 0o640),
		"it holds public keys":        write("# a comment\n"+a.recipient+"\n", 0o400),
		"it is encrypted itself":      write("age-encryption.org/v1\n-> scrypt", 0o400),
		"it is no file of identities": write(a.identity[:len(a.identity)-2]+"\n", 0o400),
		"age-keygen writes one":       write("", 0o400),
		"more than 65536 bytes":       write(strings.Repeat("# \n", 30_000), 0o400),
		"no such file":                filepath.Join(t.TempDir(), "gone"),
	} {
		open, err := seal.ReadIdentities([]string{name})
		if err == nil || open != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "SECRET-KEY-1") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if open, err := seal.ReadIdentities(nil); open != nil || err != nil {
		t.Errorf("none: got %v", err)
	}
}

func segment(values ...string) *backup.Segment {
	s := &backup.Segment{Cluster: 0xfedcba9876543210, Epoch: 2, Member: 7, Since: 1, Before: 0x1111, RevisionBefore: 8}
	for i, value := range values {
		s.Items = append(s.Items, backup.Item{Entry: consensus.Entry{Index: consensus.Index(90 + i), Term: 3,
			Kind: consensus.EntryCommand, Payload: []byte(value)}, Time: 1_790_000_000_000 + int64(i), Revision: kv.Revision(9 + i),
			Sum: 0x2222 + uint64(i)})
	}
	return s
}

func manifest(lock *backup.Lock) *backup.Manifest {
	f := backup.File{Name: "planted.sst", Size: 1234, Hash: backup.HashOf([]byte("table"))}
	if lock != nil {
		f.Key = lock.Secret.FileKey(f.Hash)
	}
	return &backup.Manifest{Cluster: 0xfedcba9876543210, Epoch: 2, Member: 7, Index: 89, Term: 3, Revision: 8, Since: 1,
		Sum: 0x1111, Level: 1, Build: "planted", Time: 1_790_000_000_000, Files: []backup.File{f}}
}

func gap() *backup.Gap {
	return &backup.Gap{Cluster: 0xfedcba9876543210, Member: 7, After: 91, Until: 99, Time: 1_790_000_001_000, Reason: "planted"}
}

// object is an encrypted object of any kind.
type object struct {
	name    string
	content []byte
	open    func(content []byte, open backup.Opener) error
}

// objects are one of each kind.
func objects(l *backup.Lock) []object {
	packer := backup.NewPacker()
	packer.Lock = l
	s, sealed := packer.Pack(segment("planted", "another"))
	b, base := manifest(l).Seal(l)
	g, note := gap().Seal(l)
	return []object{
		{s.String(), sealed, func(c []byte, open backup.Opener) error {
			name := s
			name.Hash = backup.HashOf(c)
			_, err := backup.OpenSegment(&name, c, open)
			return err
		}},
		{b.String(), base, func(c []byte, open backup.Opener) error {
			name := b
			name.Hash = backup.HashOf(c)
			_, err := backup.OpenManifest(&name, c, open)
			return err
		}},
		{g.String(), note, func(c []byte, open backup.Opener) error {
			name := g
			name.Hash = backup.HashOf(c)
			_, err := backup.OpenGap(&name, c, open)
			return err
		}},
	}
}

// Ensure that each recipient alone reads what is encrypted, that nobody else does, that nothing of it is in the object or its
// name, and that no byte can be changed, whatever hash the name then has.
func TestLock(t *testing.T) {
	a, b, outsider, pq := newPair(t), newPair(t), newPair(t), newHybrid(t)
	rng := rand.New(rand.NewSource(1))
	for kind, to := range map[string][]pair{"two": {a, b}, "after quanta": {pq}} {
		for _, o := range objects(lock(t, to...)) {
			for _, reader := range to {
				if err := o.open(o.content, opener(t, outsider, reader)); err != nil {
					t.Errorf("%s, %s: %v", kind, o.name, err)
				}
			}
			if err := o.open(o.content, opener(t, outsider)); !errors.Is(err, backup.ErrRecipients) {
				t.Errorf("%s, %s: a outsider gets %v", kind, o.name, err)
			}
			if err := o.open(o.content, nil); !errors.Is(err, backup.ErrSealed) {
				t.Errorf("%s, %s: without an identity: %v", kind, o.name, err)
			}
			if bytes.Contains(o.content, []byte("planted")) || strings.Contains(o.name, "0000000000001111") {
				t.Errorf("%s, %s: it shows what it holds: %q", kind, o.name, o.content)
			}
			open := opener(t, to[0])
			for range 300 {
				changed := bytes.Clone(o.content)
				at := rng.Intn(len(changed))
				changed[at] ^= 1 << rng.Intn(8)
				if err := o.open(changed, open); err == nil && !free(o, at) {
					t.Fatalf("%s, %s: byte %d was changed, and it is read", kind, o.name, at)
				}
			}
		}
	}
}

// free is whether a byte may be another and mean the same: the number of the attempt; in JSON the case of a field's name, white
// space, and the bits that base64 does not use.
func free(o object, at int) bool {
	if strings.HasSuffix(o.name, ".seal.json") {
		return at < 200 || at > len(o.content)-10
	}
	return at >= 12 && at < 16
}

// Ensure that the hash of a name is compared before all else.
func TestOpen_hash(t *testing.T) {
	l := lock(t, newPair(t))
	packer := backup.NewPacker()
	packer.Lock = l
	s, sealed := packer.Pack(segment("a"))
	b, base := manifest(l).Seal(l)
	g, note := gap().Seal(l)
	sealed[len(sealed)-1]++
	base[len(base)-1]++
	note[len(note)-1]++
	_, of := backup.OpenSegment(&s, sealed, nil)
	_, what := backup.OpenManifest(&b, base, nil)
	_, is := backup.OpenGap(&g, note, nil)
	_, shown := backup.ObjectsOf(&b, base)
	for _, err := range []error{of, what, is, shown} {
		if !errors.Is(err, backup.ErrDamaged) {
			t.Errorf("got %v", err)
		}
	}
}

// Ensure that names of encrypted objects are read as they are written, and that one says nothing about a guess: the same entry
// has another sum there with each set of recipients, and the same file another key and so another object.
func TestNames(t *testing.T) {
	a := newPair(t)
	one, other := lock(t, a), lock(t, a)
	for _, o := range append(objects(one), objects(other)...) {
		switch s, err := backup.ParseSegment(o.name); {
		case err == nil:
			if s.String() != o.name || s.Set == 0 {
				t.Errorf("got %+v of %s", s, o.name)
			}
		default:
			b, ofBase := backup.ParseBase(o.name)
			g, ofGap := backup.ParseGap(o.name)
			if (ofBase != nil || b.String() != o.name || b.Set == 0) && (ofGap != nil || g.String() != o.name || !g.Sealed) {
				t.Errorf("%s: %v, %v", o.name, ofBase, ofGap)
			}
		}
	}
	p := backup.Point{Index: 90, Sum: 0x2222}
	content := backup.HashOf([]byte("table"))
	if one.Secret.Label(p) == p || one.Secret.Label(p) == other.Secret.Label(p) || one.Set() == other.Set() ||
		one.Secret.Label(p) != one.Secret.Label(p) || *one.Secret.FileKey(content) == *other.Secret.FileKey(content) {
		t.Error("labels, sets or keys do not depend on the secret alone")
	}
}

// Ensure that which objects a base needs is known without an identity, and is what the encrypted part says.
func TestObjectsOf(t *testing.T) {
	a := newPair(t)
	l := lock(t, a)
	m := manifest(l)
	name, content := m.Seal(l)
	got, err := backup.ObjectsOf(&name, content)
	if err != nil || len(got) != 1 || got[0] != (backup.Object{Hash: m.Files[0].Hash, Size: 1234}) {
		t.Errorf("got %+v, %v", got, err)
	}
	lied := bytes.Replace(content, []byte(`"size": 1234`), []byte(`"size": 1235`), 1)
	name.Hash = backup.HashOf(lied)
	if _, err := backup.OpenManifest(&name, lied, opener(t, a)); !errors.Is(err, backup.ErrDamaged) {
		t.Errorf("another list: got %v", err)
	}
	plain, clear := manifest(nil).Encode()
	if got, err := backup.ObjectsOf(&plain, clear); err != nil || len(got) != 1 {
		t.Errorf("in the clear: got %+v, %v", got, err)
	}
}

// Ensure that a file is the same whether it is encrypted as a whole or from any byte on.
func TestFileKey_Stream(t *testing.T) {
	key := (&backup.Secret{1}).FileKey(backup.HashOf([]byte("a")))
	whole := make([]byte, 1000)
	key.Stream(0).XORKeyStream(whole, whole)
	for from := range int64(100) {
		part := make([]byte, 900)
		key.Stream(from).XORKeyStream(part, part)
		if !bytes.Equal(part, whole[from:from+900]) {
			t.Fatalf("from %d on it is another", from)
		}
	}
}
