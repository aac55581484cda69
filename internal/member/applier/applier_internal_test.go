package applier

import (
	"errors"
	"testing"

	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/storage/engine"
)

func TestFitting(t *testing.T) {
	for _, tc := range []struct {
		name    string
		entries int
		payload int
		want    int
	}{
		{name: "few go together", entries: 10, payload: 100, want: 10},
		{name: "many are cut by number", entries: 5000, payload: 100, want: maxEntries},
		{name: "large ones are cut by bytes", entries: 100, payload: 1 << 20, want: 15},
		{name: "one always goes", entries: 2, payload: 2 * maxBytes, want: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			entries := []consensus.Entry{{Index: 1, Payload: make([]byte, tc.payload)}}
			for len(entries) < tc.entries {
				entries = append(entries, entries[0])
			}
			if got := fitting(entries, maxEntries); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// Ensure that a level which is too high for this build ends a member as removed if it was, and with the level if not.
func TestApplier_Do_removed(t *testing.T) {
	for _, removed := range []bool{false, true} {
		eng, err := engine.Open(engine.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer eng.Close()
		if err := apply.Bootstrap(eng, 1, consensus.Config{}); err != nil {
			t.Fatal(err)
		}
		machine, err := apply.Open(eng, apply.Options{})
		if err != nil {
			t.Fatal(err)
		}
		change := consensus.ConfigChange{Protocol: consensus.ProtocolSingle, Config: consensus.Config{
			Voters: []consensus.MemberID{1}, Members: []consensus.Member{{ID: 1}},
		}}
		if removed {
			change.Tombs = []consensus.MemberID{2}
		}
		entry := consensus.Entry{
			Index: 1, Term: 1, Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil, &change),
		}
		if _, err := machine.Apply([]consensus.Entry{entry}); err != nil {
			t.Fatal(err)
		}
		data := &datadir.Data{Generation: &datadir.Generation{Machine: machine}}
		data.Identity.Member = 2
		applier := New(Options{Data: data, Apply: func([]consensus.Entry) ([]kv.Result, error) {
			return nil, &level.TooLowError{Own: level.Own, Active: level.Own + 1}
		}})
		err = applier.Do([]Work{{Entries: []consensus.Entry{{Index: 2, Term: 1, Kind: consensus.EntryCommand}}}})
		var low *level.TooLowError
		if errors.Is(err, ErrRemoved) != removed || errors.As(err, &low) == removed {
			t.Errorf("removed %v: %v", removed, err)
		}
	}
}
