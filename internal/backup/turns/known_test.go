package turns_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/turns"
	"github.com/quorate/quorate/internal/kv"
)

// Ensure that a member continues a base that the row knows, as the row is when the place is open, and no other.
func TestMachine_known(t *testing.T) {
	for _, known := range []bool{true, false} {
		m := newMember(t)
		base := backup.Base{BaseName: backup.BaseName{Cluster: 7, Point: backup.Point{Index: first, Sum: first},
			Moment: backup.Moment{Revision: 1, Time: m.now.UnixMilli()}, Hash: backup.Hash{9}}}
		m.run(100 * time.Millisecond)
		m.row.Known = []kv.BackupBase{{Index: first, Hash: [32]byte{8}}}
		if known {
			m.row.Known[0].Hash = base.Hash
		}
		m.run(100 * time.Millisecond)
		if len(m.begun) != 2 || m.begun[0].Kind != turns.Open || m.begun[1].Kind != turns.Report {
			t.Fatalf("it began %+v", m.begun)
		}
		m.begun = nil
		m.machine.Opened(m.now, &backup.Catalog{Cluster: 7, Bases: []backup.Base{base}}, nil)
		m.machine.Reported(m.now, nil)
		m.run(30 * time.Second)
		last := m.said[len(m.said)-1]
		if continued := last.BaseHash == base.Hash && last.Base.Index == first && last.Sum == first; continued != known {
			t.Errorf("known %v: %+v", known, last)
		}
	}
}
