package check

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
)

// change is a configuration entry of a shadow log. Checked is that a member's configuration is the last one in its
// log, that each replaces the one before it and differs in at most one voter, and that at most one is uncommitted.
type change struct {
	id     consensus.ConfigID
	config consensus.Config
}

func (w *shadow) inForce() change {
	if n := len(w.configs); n > 0 {
		return w.configs[n-1]
	}
	return w.floor
}

func (s *Suite) configAppended(member consensus.MemberID, w *shadow, e *consensus.Entry) {
	now, _, err := consensus.DecodeConfigChange(e.Payload)
	if err != nil {
		s.report("configuration", "member %v: entry %v does not decode: %v", member, e.Mark(), err)
		return
	}
	before := w.inForce()
	if len(before.config.Voters) > 0 {
		if now.Replaces != before.id {
			s.report("configuration", "member %v: entry %v replaces configuration %v, but %v is in force",
				member, e.Mark(), now.Replaces, before.id)
		}
		if n := votersChanged(&before.config, &now.Config); n > 1 {
			s.report("configuration", "member %v: entry %v changes %d voters at once", member, e.Mark(), n)
		}
	}
	w.configs = append(w.configs, change{
		id:     consensus.ConfigID{Index: e.Index, Term: e.Term},
		config: now.Config.Clone(),
	})
}

func votersChanged(a, b *consensus.Config) int {
	n := 0
	for _, id := range a.Voters {
		if !slices.Contains(b.Voters, id) {
			n++
		}
	}
	for _, id := range b.Voters {
		if !slices.Contains(a.Voters, id) {
			n++
		}
	}
	return n
}

// Configured tells the configuration that a member says is in force.
func (s *Suite) Configured(member consensus.MemberID, id consensus.ConfigID, config *consensus.Config) {
	want := s.logs.of(member).inForce()
	if want.id == id && slices.Equal(want.config.Voters, config.Voters) &&
		slices.Equal(want.config.Learners, config.Learners) {
		return
	}
	s.report("configuration", "member %v follows configuration %v (voters %v), its log says %v (voters %v)",
		member, id, config.Voters, want.id, want.config.Voters)
}

// Proposed tells that a leader appended a configuration entry of its own: the one before it must be committed.
func (s *Suite) Proposed(member consensus.MemberID, commit consensus.Index) {
	w := s.logs.of(member)
	if n := len(w.configs); n > 1 && w.configs[n-2].id.Index > commit {
		s.report("configuration", "member %v appends configuration %v while %v is not committed (commit is %d)",
			member, w.configs[n-1].id, w.configs[n-2].id, commit)
	}
}

// configCommitted follows the configurations that members have applied.
func (s *Suite) configCommitted(e *consensus.Entry) {
	if e.Kind != consensus.EntryConfig || e.Index <= s.committed.id.Index {
		return
	}
	if now, _, err := consensus.DecodeConfigChange(e.Payload); err == nil {
		s.committed = change{id: consensus.ConfigID{Index: e.Index, Term: e.Term}, config: now.Config.Clone()}
	}
}

// CommittedConfig returns the newest configuration that any member applied.
func (s *Suite) CommittedConfig() *consensus.Config { return &s.committed.config }
