package keep_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/keep"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that members whose clocks are days behind, and ship by turns with others, make nothing old that the place took within
// the window by its own clock; and that their clocks decide where that is not known.
func TestMake_clocksBehind(t *testing.T) {
	const taken = 1_800_000_000_000
	var bases []keep.Base
	var known []kv.BackupBase
	for i := range int64(6) {
		at := taken + i*hour
		b := keep.Base{BaseName: backup.BaseName{Cluster: cluster, Point: backup.Point{Index: consensus.Index(100 * (i + 1))},
			Moment: backup.Moment{Time: at}, Hash: backup.Hash{byte(i + 1)}}, Taken: at}
		if i%2 == 1 {
			b.Time -= 48 * hour
		}
		bases = append(bases, b)
		known = append(known, kv.BackupBase{Index: uint64(b.Index), Hash: b.Hash})
	}
	bases[5].Time += 48 * hour
	in := &keep.Input{Rule: keep.Rule{Window: 2 * time.Hour}, Bases: bases, Now: bases[5].Time, Newest: 600, Known: known}
	// Three hours before the newest base is base 2, with entry 300.
	if p := keep.Make(in); p.Refused != "" || p.Floor > 300 {
		t.Errorf("the log before entry %d goes, refused: %q", p.Floor, p.Refused)
	}
	for i := range bases {
		bases[i].Taken = 0
	}
	if p := keep.Make(in); p.Floor != 400 {
		t.Errorf("the log before entry %d goes", p.Floor)
	}
}
