package consensus_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
)

// Ensure that a change which needs a second entry removes its members only with that one, that a no-op settles the change that it
// names and no other, and that entries which nobody can read change nothing.
func TestSnapshotMeta_apply(t *testing.T) {
	type ids = []consensus.MemberID
	config := func(index consensus.Index, protocol consensus.Protocol, outgoing, tombs ids) *consensus.Entry {
		change := consensus.ConfigChange{
			Protocol: protocol, Config: consensus.Config{Voters: ids{1, 2}, Outgoing: outgoing}, Tombs: tombs,
		}
		return &consensus.Entry{
			Index: index, Term: 2, Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil, &change),
		}
	}
	noop := func(index, settles consensus.Index) *consensus.Entry {
		id := consensus.ConfigID{Index: settles, Term: 2}
		return &consensus.Entry{Index: index, Term: 2, Kind: consensus.EntryNoop, Payload: consensus.AppendConfigID(nil, id)}
	}
	for _, tc := range []struct {
		name    string
		entries []*consensus.Entry
		removed ids
		open    bool
	}{
		{"settled by its commit", []*consensus.Entry{config(3, consensus.ProtocolSingle, nil, ids{3})}, ids{3}, false},
		{"joint", []*consensus.Entry{config(3, consensus.ProtocolActivate, ids{1, 3}, ids{3})}, nil, true},
		{"in force when applied", []*consensus.Entry{config(3, consensus.ProtocolApply, nil, ids{3})}, nil, true},
		{"settled by a no-op",
			[]*consensus.Entry{config(3, consensus.ProtocolApply, nil, ids{3}), noop(5, 3), noop(6, 3)}, ids{3}, false},
		{"a no-op of another change", []*consensus.Entry{config(3, consensus.ProtocolApply, nil, ids{3}), noop(5, 2)}, nil, true},
		{"a no-op that names nothing",
			[]*consensus.Entry{config(3, consensus.ProtocolApply, nil, ids{3}), {Index: 4, Kind: consensus.EntryNoop}}, nil, true},
	} {
		var meta consensus.SnapshotMeta
		var removed ids
		for _, e := range tc.entries {
			apply := meta.ApplyConfig
			if e.Kind == consensus.EntryNoop {
				apply = func(e *consensus.Entry) (ids, error) {
					gone, settled, err := meta.ApplyNoop(e)
					if settled && meta.Position != e.Position() {
						t.Errorf("%s: settled at %v by %v", tc.name, meta.Position, e.Position())
					}
					return gone, err
				}
			}
			gone, err := apply(e)
			if err != nil {
				t.Fatal(err)
			}
			removed = append(removed, gone...)
		}
		if !slices.Equal(removed, tc.removed) || meta.Open != tc.open || meta.ConfigID.Index != 3 {
			t.Errorf("%s: removed %v, %+v", tc.name, removed, meta)
		}
		before := meta.Position
		damaged := &consensus.Entry{Index: 9, Term: 2, Payload: []byte{1}}
		later := &consensus.Entry{Index: 9, Term: 2, Payload: []byte{2}}
		_, first := meta.ApplyConfig(damaged)
		_, _, second := meta.ApplyNoop(damaged)
		_, third := meta.ApplyConfig(later)
		if !errors.Is(first, consensus.ErrCorrupt) || !errors.Is(second, consensus.ErrCorrupt) || !errors.Is(third, level.ErrLater) ||
			meta.Position != before {
			t.Errorf("%s: entries that nobody can read: %v, %v, %v, %+v", tc.name, first, second, third, meta)
		}
	}
}
