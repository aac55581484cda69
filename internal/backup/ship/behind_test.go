package ship_test

import (
	"testing"

	"github.com/quorate/quorate/internal/backup"
	"github.com/quorate/quorate/internal/backup/ship"
	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that the segments which are put while a base is uploaded count as those behind it: the next base comes after so many.
func TestShipper_behindUpload(t *testing.T) {
	s := ship.New(ship.Config{Cluster: cluster, Member: 3, BaseAfter: 5}, ship.Start{Applied: 90}, 1000)
	now, next := int64(1000), consensus.Index(91)
	var file *ship.Op
	put := func(segments int) (checkpoints int) {
		for range segments {
			now += 2000
			s.Applied(now, batch(next, next))
			next++
			s.Tick(now + 1500)
			for ops := s.Take(); len(ops) > 0; ops = s.Take() {
				for i := range ops {
					switch ops[i].Kind {
					case ship.Put:
						s.Done(ops[i].ID, ship.Outcome{})
					case ship.PutFile:
						file = &ops[i]
					case ship.Checkpoint:
						checkpoints++
						s.Done(ops[i].ID, ship.Outcome{Made: &backup.Manifest{Index: next - 1, Level: 1, Sum: backup.Hex(next - 1), Revision: 1,
							Files: []backup.File{{Name: "a.sst", Hash: backup.Hash{byte(next)}}}}})
					}
				}
			}
		}
		return checkpoints
	}
	if n := put(4); n != 1 || file == nil {
		t.Fatalf("%d checkpoints at the beginning", n)
	}
	s.Done(file.ID, ship.Outcome{}) // three segments after that of the checkpoint
	if n := put(1); n != 0 || s.Progress().Base.Index != 91 {
		t.Fatalf("%d checkpoints, base %+v", n, s.Progress().Base)
	}
	if n := put(1); n != 1 {
		t.Errorf("%d checkpoints after five segments behind the base", n)
	}
}
