package check

import (
	"slices"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/identity"
)

// Bindings checks which processes may be counted, by the true state and not by what members know: a disk that was emptied,
// restored from an older copy, or cloned speaks for no member; a process that is bound nowhere is not counted where other ones
// are bound; and a cluster is founded once, by all of its first members.
type Bindings struct {
	met      map[meeting]uint64
	recorded map[consensus.MemberID]identity.Greeting
	bindings []identity.Bound // of the first member that began
}

// meeting is a member and a data directory of another one.
type meeting struct {
	member  consensus.MemberID
	storage consensus.StorageID
}

func (b *Bindings) init() {
	b.met = map[meeting]uint64{}
	b.recorded = map[consensus.MemberID]identity.Greeting{}
}

// Met records that a member has written to its disk that it met a data directory that was opened boots times.
func (b *Bindings) Met(member consensus.MemberID, storage consensus.StorageID, boots uint64) {
	key := meeting{member, storage}
	b.met[key] = max(b.met[key], boots)
}

// HasMet reports whether a member has met a data directory that was opened boots times, or more often.
func (b *Bindings) HasMet(member consensus.MemberID, storage consensus.StorageID, boots uint64) bool {
	return b.met[meeting{member, storage}] >= boots
}

// Heard records that a message reached the core of a member, from a process on a data directory. impostor says why that process
// is not the member that it claims to be; empty: it is.
func (s *Suite) Heard(
	receiver consensus.MemberID, m *consensus.Message, storage consensus.StorageID, impostor string,
) {
	config := &s.logs.of(receiver).told.config
	known, ok := config.Member(m.From)
	if !ok || !adds(m) {
		return
	}
	switch {
	case impostor != "":
		s.report("counted", "member %v counts what the process of member %v says (kind %d), which %s", receiver, m.From,
			m.Kind, impostor)
	case known.Storage.IsZero() && config.Binds() && (m.Kind != consensus.MsgRead || config.IsVoter(m.From)):
		s.report("counted", "member %v counts what member %v says (kind %d), who is bound to no data directory "+
			"while others are", receiver, m.From, m.Kind)
	case !known.Storage.IsZero() && known.Storage != storage:
		s.report("counted", "member %v counts what member %v says (kind %d) from data directory %v, and it is bound to %v",
			receiver, m.From, m.Kind, storage, known.Storage)
	}
}

// adds reports whether a message can count for a majority of any kind.
func adds(m *consensus.Message) bool {
	switch m.Kind {
	case consensus.MsgVoteReply, consensus.MsgPreVoteReply, consensus.MsgAppendReply:
		return !m.Reject
	case consensus.MsgHeartbeatReply, consensus.MsgAcknowledged, consensus.MsgRecorded, consensus.MsgLogQueryReply,
		consensus.MsgSnapshotReply, consensus.MsgRead:
		return true
	}
	return false
}

// Recorded records that a first member has the storage ids of all first members on disk, as in bindings.
func (s *Suite) Recorded(member consensus.MemberID, storage consensus.StorageID, bindings []identity.Bound) {
	s.Bindings.recorded[member] = identity.Greeting{
		Claim: identity.Claim{Member: member, Storage: storage}, Bindings: slices.Clone(bindings),
	}
}

// Began records that a process makes the data of a first member, one of several.
func (s *Suite) Began(
	member consensus.MemberID, storage consensus.StorageID, bindings []identity.Bound, members int, byMajority bool,
) {
	b := &s.Bindings
	if byMajority {
		return
	}
	if len(bindings) != members {
		s.report("founding", "member %v begins with the data directories of %d members, not of all %d", member,
			len(bindings), members)
		return
	}
	if b.bindings == nil {
		b.bindings = slices.Clone(bindings)
	}
	if !slices.Equal(bindings, b.bindings) || !slices.Contains(bindings, identity.Bound{Member: member, Storage: storage}) {
		s.report("founding", "member %v, on data directory %v, begins a second cluster with %v: the first began with %v",
			member, storage, bindings, b.bindings)
	}
	for _, other := range bindings {
		if got := b.recorded[other.Member]; got.Claim.Storage != other.Storage || !slices.Equal(got.Bindings, bindings) {
			s.report("founding", "member %v begins although member %v never wrote down the same members", member,
				other.Member)
		}
	}
}

// FoundAgain records that all members begin anew, with empty disks: the founding was broken, and no member had data.
func (b *Bindings) FoundAgain() { b.bindings = nil }

// Configs returns every configuration by which a member may count, now or when a pending change goes on: the last committed
// one, those before it until the change away from them is settled, and those in members' logs from there on.
func (s *Suite) Configs() []*consensus.Config {
	lineage := s.removals.lineage
	at := len(lineage) - 1
	last := &lineage[at]
	configs := []*consensus.Config{&last.config}
	for ; at > 0 && !lineage[at].settled && !s.removals.settled[lineage[at].id]; at-- {
		configs = append(configs, &lineage[at-1].config)
	}
	for _, w := range s.logs.members {
		for _, c := range w.changes() {
			if c.id.Index >= last.id.Index {
				configs = append(configs, &c.config)
			}
		}
	}
	return configs
}
