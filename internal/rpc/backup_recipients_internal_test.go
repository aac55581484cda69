package rpc

import (
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that the secret changes with the recipients and with the place, and with nothing else; that former ones are kept only for
// the place where they were, within the bound; and that a backup stays encrypted unless another place is given.
func TestSetRecipients(t *testing.T) {
	word := func() string {
		id, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		return id.Recipient().String()
	}
	a, b := word(), word()
	has := kv.BackupPolicy{Place: "file:///b"}
	set := func(place string, r *quoratepb.StartBackupRequest) kv.BackupPolicy {
		t.Helper()
		p := kv.BackupPolicy{Place: place}
		if err := setRecipients(&p, &has, r); err != nil {
			t.Fatal(err)
		}
		return p
	}
	of := func(words ...string) *quoratepb.StartBackupRequest {
		return &quoratepb.StartBackupRequest{Recipients: words}
	}
	if p := set(has.Place, of()); p.Recipients+p.Secret+p.Former != "" {
		t.Errorf("none: %+v", p)
	}
	first := set(has.Place, of(a, b))
	if len(first.Secret) != kv.BackupSecretBytes || first.Former != "" || len(recipientsOf(&first)) != 2 {
		t.Errorf("the first: %+v", first)
	}
	has = first
	if p := set(has.Place, of(b, a, b)); p != first {
		t.Errorf("the same in another order: %+v", p)
	}
	if p := set(has.Place, of()); p != first {
		t.Errorf("none given: %+v", p)
	}
	if p := set("file:///c", of()); p.Recipients != first.Recipients || p.Secret == first.Secret || p.Former != "" {
		t.Errorf("another place: %+v", p)
	}
	second := set(has.Place, of(a))
	if second.Secret == first.Secret || second.Former != first.Secret {
		t.Errorf("others: %+v", second)
	}
	for range kv.MaxBackupFormer + 3 {
		has = set(has.Place, of(word()))
	}
	if last := set(has.Place, of(a)); len(last.Former) != kv.MaxBackupFormer*kv.BackupSecretBytes ||
		!strings.HasPrefix(last.Former, has.Secret) {
		t.Errorf("many: %d bytes", len(last.Former))
	}
	clear := &quoratepb.StartBackupRequest{InTheClear: true}
	if err := setRecipients(&kv.BackupPolicy{Place: has.Place}, &has, clear); err == nil || !strings.Contains(err.Error(), "another place") {
		t.Errorf("in the clear at the same place: %v", err)
	}
	if p := set("file:///c", clear); p.Recipients+p.Secret+p.Former != "" {
		t.Errorf("in the clear: %+v", p)
	}
}
