package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/backup/fetch"
	"github.com/quorate/quorate/internal/limits/memory"
)

// Ensure that all that a proof holds lies within its share of --memory, and that a member with too little says how much it needs.
func TestDivideProof(t *testing.T) {
	before := provingParts{}
	for limit := int64(memory.MinLimit); limit < 16<<30; limit += limit / 37 {
		share := memory.Divide(limit).Proof
		p, refused := divideProof(share), tooLittleToProve(share)
		sum := memory.MemTables*p.table + provingStores*(p.cache+2*p.census) + p.place + p.names + max(0, p.object)
		if refused == nil && (sum > share || p.object < leastObject) {
			t.Errorf("of %d MiB: a proof takes %d of %d: %+v", limit>>20, sum, share, p)
		}
		if refused == nil && p.object < before.object {
			t.Errorf("of %d MiB: %+v, of less %+v", limit>>20, p, before)
		}
		before = p
		if refused != nil {
			needs := int64(0)
			_, flag, _ := strings.Cut(refused.Error(), "--memory=")
			if _, err := fmt.Sscanf(flag, "%dMiB", &needs); err != nil {
				t.Fatal(refused)
			}
			if tooLittleToProve(memory.Divide(needs<<20).Proof) != nil || tooLittleToProve(memory.Divide((needs-1)<<20).Proof) == nil {
				t.Errorf("of %d MiB: %v", limit>>20, refused)
			}
		}
	}
	if p := divideProof(memory.Divide(2 << 30).Proof); p.names != 512*fetch.LeastSegments {
		t.Errorf("names have %d bytes of 2 GiB", p.names)
	}
	if err := tooLittleToProve(memory.Divide(memory.MinLimit).Proof); err == nil {
		t.Error("the least member proves")
	}
	if err := tooLittleToProve(memory.Divide(1 << 30).Proof); err != nil {
		t.Error(err)
	}
}
