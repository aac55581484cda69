package consensus_test

import (
	"testing"

	"github.com/quorate/quorate/internal/consensus"
)

func TestEpoch_Compare_order(t *testing.T) {
	ascending := []consensus.Epoch{
		consensus.FoundingEpoch,
		{Number: 1, Recovery: [16]byte{1}},
		{Number: 1, Recovery: [16]byte{2}},
		{Number: 2, Recovery: [16]byte{1}},
	}
	for i := range ascending {
		for j := range ascending {
			got, want := ascending[i].Compare(ascending[j]), 0
			switch {
			case i < j:
				want = -1
			case i > j:
				want = 1
			}
			if got != want {
				t.Errorf("%v compared with %v: got %d, want %d", ascending[i], ascending[j], got, want)
			}
		}
	}
}

func TestStorageID_String_names(t *testing.T) {
	if got := consensus.NoStorage.String(); got != "none" {
		t.Errorf("no storage: got %q", got)
	}
	if got, want := (consensus.StorageID{0xab, 15: 1}).String(), "ab000000000000000000000000000001"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
