package changecount

import (
	"slices"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
)

// changeStory feeds the counters what a member sees of changes.
type changeStory struct {
	Counter
	index consensus.Index
}

func oneVoter() consensus.Config { return consensus.Config{Voters: []consensus.MemberID{1}} }

func jointVoters() consensus.Config {
	return consensus.Config{Voters: []consensus.MemberID{2}, Outgoing: []consensus.MemberID{1}}
}

func (s *changeStory) id() consensus.ConfigID { return consensus.ConfigID{Index: s.index, Term: 1} }

// log puts a configuration in force.
func (s *changeStory) log(protocol consensus.Protocol, config consensus.Config) {
	s.index++
	s.Configured(&raft.ConfigInForce{ID: s.id(), Protocol: protocol, Config: config})
}

func (s *changeStory) apply(change consensus.ConfigChange) {
	s.Applied([]consensus.Entry{{Kind: consensus.EntryCommand}, {
		Index: s.index, Term: 1, Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil, &change),
	}})
}

func (s *changeStory) settle() {
	s.Applied([]consensus.Entry{
		{Kind: consensus.EntryNoop},
		{Kind: consensus.EntryNoop, Payload: consensus.AppendConfigID(nil, s.id())},
	})
}

func TestCounter_stories(t *testing.T) {
	joint := consensus.ProtocolJointEarly
	for _, row := range []struct {
		name string
		tell func(s *changeStory)
		want []Count
	}{
		{"one entry that is in force at once is settled when applied", func(s *changeStory) {
			s.log(consensus.ProtocolSingle, oneVoter())
			s.apply(consensus.ConfigChange{Protocol: consensus.ProtocolSingle, Config: oneVoter()})
		}, []Count{{consensus.ProtocolSingle, Settled, 1}}},
		{"a joint change counts once, with its second entry", func(s *changeStory) {
			s.log(joint, jointVoters())
			s.apply(consensus.ConfigChange{Protocol: joint, Config: jointVoters()})
			s.log(joint, oneVoter())
			s.apply(consensus.ConfigChange{Protocol: joint, Config: oneVoter()})
		}, []Count{{joint, Settled, 1}}},
		{"a joint change that is aborted", func(s *changeStory) {
			s.log(joint, jointVoters())
			s.apply(consensus.ConfigChange{Protocol: joint, Config: jointVoters()})
			s.log(joint, oneVoter())
			s.apply(consensus.ConfigChange{Protocol: joint, Config: oneVoter(), Abort: true})
		}, []Count{{joint, Aborted, 1}}},
		{"one that activates is settled by the entry that names it, once", func(s *changeStory) {
			s.log(consensus.ProtocolActivate, jointVoters())
			s.apply(consensus.ConfigChange{Protocol: consensus.ProtocolActivate, Config: jointVoters()})
			s.Configured(&raft.ConfigInForce{
				ID: consensus.ConfigID{Index: 1, Term: 1, Stage: 1}, Protocol: consensus.ProtocolActivate, Config: oneVoter(),
			})
			s.settle()
			s.settle()
		}, []Count{{consensus.ProtocolActivate, Settled, 1}}},
		{"one that gives way to another leader's log", func(s *changeStory) {
			s.log(consensus.ProtocolSingle, oneVoter())
			s.Undone(s.id())
		}, []Count{{consensus.ProtocolSingle, Undone, 1}}},
		{"one that waited to be applied", func(s *changeStory) {
			s.log(consensus.ProtocolSingle, oneVoter())
			s.Undone(consensus.ConfigID{Index: 9, Term: 1})
		}, []Count{{consensus.ProtocolApply, Undone, 1}}},
		{"the second entry of two gives way: the change goes on", func(s *changeStory) {
			s.log(joint, jointVoters())
			s.log(joint, oneVoter())
			s.Undone(s.id())
		}, nil},
		{"what is settled long ago is forgotten", func(s *changeStory) {
			for range 3 * maxRecentConfigs {
				s.log(consensus.ProtocolSingle, oneVoter())
			}
			if len(s.recent) != maxRecentConfigs {
				t.Errorf("%d configurations are remembered, want %d", len(s.recent), maxRecentConfigs)
			}
		}, nil},
	} {
		s := &changeStory{}
		row.tell(s)
		if !slices.Equal(s.counts, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, s.counts, row.want)
		}
	}
}
