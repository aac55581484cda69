package replay_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/seal"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/kv"
)

// newIdentity returns a recipient, and a file with its identity.
func newIdentity(t *testing.T) (recipient, file string) {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "identity")
	if err := os.WriteFile(file, []byte(id.String()+"\n"), 0o400); err != nil {
		t.Fatal(err)
	}
	return id.Recipient().String(), file
}

func reads(t *testing.T, names ...string) backup.Opener {
	t.Helper()
	open, err := seal.ReadIdentities(names)
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// encrypt makes the backup of a member that has not begun yet one that is encrypted to two recipients, and returns the files of
// their identities. The member's restores read with the second one.
func (m *member) encrypt() (identities []string) {
	m.t.Helper()
	var words []string
	for range 2 {
		word, file := newIdentity(m.t)
		words, identities = append(words, word), append(identities, file)
	}
	recipients, err := seal.ParseRecipients(words)
	if err != nil {
		m.t.Fatal(err)
	}
	m.performs.Lock = seal.NewLock(seal.NewSecret(), recipients)
	m.shipper = ship.New(ship.Config{Cluster: cluster, Member: 3, Build: "1.1.0", SealBytes: 4000, BaseEvery: 60_000,
		Lock: m.performs.Lock}, ship.Start{}, m.now)
	m.reads = reads(m.t, identities[1])
	return identities
}

// Ensure that no object of an encrypted backup shows a key, a value or the name of a file that it holds, though one in the clear
// does; that each recipient restores it; and that others, and who has lost the identity, are told so, and which object it is.
func TestRun_encrypted(t *testing.T) {
	planted := []string{"planted-key", "planted-value", "MANIFEST-", "000002.log"}
	for _, encrypted := range []bool{false, true} {
		m := newMember(t, 11, openPebble)
		var identities []string
		if encrypted {
			identities = m.encrypt()
		}
		m.write(20)
		m.settle()
		m.apply(kv.Command{Put: &kv.PutOp{Key: []byte(planted[0]), Value: []byte(planted[1])}})
		m.settle()
		m.write(30)
		m.settle()
		shown := 0
		for _, name := range m.place.Names() {
			content, _ := m.place.Bytes(name)
			for _, text := range planted {
				if bytes.Contains(content, []byte(text)) {
					shown++
					if encrypted {
						t.Errorf("%s shows %q", name, text)
					}
				}
			}
		}
		if !encrypted {
			if shown < 3 {
				t.Errorf("in the clear only %d texts are found: the search finds nothing", shown)
			}
			continue
		}
		for _, identity := range identities {
			m.reads = reads(t, identity)
			m.restores(backup.Target{}, m.index)
		}
		_, other := newIdentity(t)
		m.reads = reads(t, other)
		if _, err := m.run(backup.Target{}); !errors.Is(err, backup.ErrRecipients) || !strings.Contains(err.Error(), "object base/") {
			t.Errorf("another identity: got %v", err)
		}
		m.reads = nil
		if _, err := m.run(backup.Target{}); !errors.Is(err, backup.ErrSealed) || !strings.Contains(err.Error(), "object base/") {
			t.Errorf("no identity: got %v", err)
		}
	}
}

// Ensure that files which bases share are put once, that a member which begins anew under the same recipients puts none of them
// again, and that other recipients share none.
func TestRun_encryptedOnce(t *testing.T) {
	m := newMember(t, 5, openPebble)
	m.encrypt()
	m.write(200)
	m.settle()
	before := len(m.place.Names())
	again := m.performs.Do(t.Context(), &ship.Op{Kind: ship.Checkpoint})
	if again.Result != ship.OK {
		t.Fatal(again.Why)
	}
	for _, f := range again.Made.Files {
		if o := m.performs.Do(t.Context(), &ship.Op{Kind: ship.PutFile, Name: backup.FileName(cluster, f.Hash), File: f}); o.Result != ship.OK {
			t.Fatal(o.Why)
		}
	}
	shared := 0
	former := map[backup.Hash]bool{}
	for _, name := range m.place.Names() {
		for _, f := range again.Made.Files {
			if former[f.Hash] = true; name == backup.FileName(cluster, f.Hash) {
				shared++
			}
		}
	}
	if after := len(m.place.Names()); shared != len(again.Made.Files) || after > before+2 { // its own manifest, options
		t.Errorf("%d objects, then %d; %d of %d files are there", before, after, shared, len(again.Made.Files))
	}
	m.performs.Generation++
	if o := m.performs.Do(t.Context(), &ship.Op{Kind: ship.Checkpoint}); o.Result != ship.Failed || !strings.Contains(o.Why, "policy") {
		t.Errorf("a state with another policy than that of the turn is put: %+v", o)
	}
	m.performs.Generation--
	m.encrypt()
	other := m.performs.Do(t.Context(), &ship.Op{Kind: ship.Checkpoint})
	for _, f := range other.Made.Files {
		if former[f.Hash] && f.Size > 0 {
			t.Errorf("%s is the same object for other recipients", f.Name)
		}
	}
}
