package clients_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/member/clients"
)

// Ensure that a key made from another client's id does not give that id, and that only keys of full length are taken.
func TestOwnerOf(t *testing.T) {
	key := bytes.Repeat([]byte{7}, quoratepb.ClientKeyBytes)
	owner, err := clients.OwnerOf(key, clients.Faults{})
	if err != nil || uint64(owner.ID) != quoratepb.ClientID(key) {
		t.Fatalf("got %v, %v", owner, err)
	}
	made := make([]byte, quoratepb.ClientKeyBytes)
	binary.BigEndian.PutUint64(made, uint64(owner.ID))
	if other, err := clients.OwnerOf(made, clients.Faults{}); err != nil || other == owner {
		t.Errorf("a key made of an id: got %v, %v", other, err)
	}
	if other, err := clients.OwnerOf(made, clients.Faults{IDInKey: true}); err != nil || other != owner {
		t.Errorf("without the rule: got %v, %v, want the owner of that id", other, err)
	}
	for _, short := range [][]byte{nil, key[:8], append(key, 7)} {
		if _, err := clients.OwnerOf(short, clients.Faults{}); !errors.Is(err, clients.ErrKey) {
			t.Errorf("a key of %d bytes: got %v", len(short), err)
		}
	}
}
