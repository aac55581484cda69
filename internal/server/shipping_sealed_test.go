package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/server"
)

// keygen returns a recipient, and the file of its identity.
func keygen(t *testing.T) (recipient, file string) {
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

// Ensure that of an encrypted member whose backup is encrypted no key and no value is in any byte, of its disk or of the place, at
// any moment while it ships; that each recipient proves the backup; and that after a change of recipients the former ones do not
// read what was written since, though who has both identities reads all.
func TestServer_shipsEncrypted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m := newSealed(t)
	keys, place := m.writeKeys("keys", 'a'), t.TempDir()
	start := func() *server.Server {
		s, err := m.start(keys, "--backup-places=file://"+place)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := start()
	defer func() { _ = s.Stop(context.Background()) }()
	b := &shipped{t: t, ctx: ctx, url: "file://" + place}
	b.dial(s)
	first, ours := keygen(t)
	second, theirs := keygen(t)
	third, next := keygen(t)
	looking, looked := context.WithCancel(ctx)
	defer looked()
	searched := make(chan error, 1)
	go func() { searched <- searchUntil(looking, "planted", m.dir, place) }()
	write := func() int64 {
		put, err := b.client.Put(ctx, "planted-key", strings.Repeat("planted-value", 2000))
		if err != nil {
			t.Fatal(err)
		}
		return put.Header.Revision
	}
	b.recipients, b.identities = []string{first, second}, []string{ours}
	b.start()
	b.until("one of two", write())
	if got := b.last.GetRecipients(); len(got) != 2 {
		t.Errorf("the status has recipients %q", got)
	}
	b.identities = []string{theirs}
	b.until("the other one", write())
	if _, err := b.verify(next); !errors.Is(err, backup.ErrRecipients) {
		t.Errorf("a outsider: %v", err)
	}
	b.recipients, b.identities = []string{third}, []string{next}
	b.start()
	b.until("after a change of recipients", write())
	if got := b.last; got.GetGaps() > 0 || len(got.GetRecipients()) != 1 {
		t.Errorf("a change of recipients: %v", got)
	}
	if _, err := b.verify(ours, theirs); !errors.Is(err, backup.ErrRecipients) {
		t.Errorf("former recipients read what was written since: %v", err)
	}
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	s = start()
	b.dial(s)
	b.until("after another start", write())
	if _, err := b.api().Start(ctx, &quoratepb.StartBackupRequest{InTheClear: true}); err == nil ||
		!strings.Contains(err.Error(), "another place") {
		t.Errorf("in the clear: %v", err)
	}
	looked()
	if err := <-searched; err != nil {
		t.Error(err)
	}
}

// searchUntil searches directories for a text, over and over, until the context ends. The error says where it was.
func searchUntil(ctx context.Context, text string, dirs ...string) error {
	for ctx.Err() == nil {
		for _, dir := range dirs {
			switch n, err := search(dir, text); {
			case err != nil:
				return err
			case n > 0:
				return fmt.Errorf("%q is %d times in %s", text, n, dir)
			}
		}
	}
	return nil
}
