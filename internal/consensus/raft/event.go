package raft

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
)

// Event is a change worth a log line, a metric or a line of a test script. The sum is closed.
type Event interface {
	fmt.Stringer
	event()
}

type (
	// BecameFollower follows a lost leadership, a lost election or a higher term.
	BecameFollower struct{ Term consensus.Term }
	// BecamePreCandidate starts a pre-vote: the term does not move.
	BecamePreCandidate struct{ Term consensus.Term }
	// BecameCandidate starts an election of Term.
	BecameCandidate struct{ Term consensus.Term }
	// BecameLeader: elected in Term; the no-op has index Noop.
	BecameLeader struct {
		Term consensus.Term
		Noop consensus.Index
	}
	// LeaderChanged names the leader that this member follows now; NoMember if it knows none.
	LeaderChanged struct {
		Leader consensus.MemberID
		Term   consensus.Term
	}
	// Denied says that a follower lacks entries that it acknowledged in this term, up to Match: its log ends, or differs, after
	// Claimed. Its disk was rolled back, and it counts in no quorum until it is replaced.
	Denied struct {
		Member         consensus.MemberID
		Match, Claimed consensus.Index
	}
	// QuorumLost says that a leader stepped down since it no longer hears from a quorum.
	QuorumLost struct{ Term consensus.Term }
	// DiskStalled says that a leader steps down since its disk hangs and those of a quorum do not.
	DiskStalled struct{ Term consensus.Term }
	// ApplyStalled says that a leader steps down since its store applies nothing while as much waits as may.
	ApplyStalled struct{ Term consensus.Term }
	// LeaderSuspected says that the connection to the leader broke and this member is about to campaign.
	LeaderSuspected struct{ Leader consensus.MemberID }
	// ConfigCommitted says that the change to this configuration can no longer be undone.
	ConfigCommitted struct{ ID consensus.ConfigID }
	// ConfigProposed says that this leader logged a change, or the next step of one.
	ConfigProposed struct {
		ID       consensus.ConfigID
		Protocol consensus.Protocol
		Joint    bool
	}
	// ConfigSettled says that enough members know the configuration to be in force: the members that it removed may be switched
	// off.
	ConfigSettled struct{ ID consensus.ConfigID }
	// ConfigUndone says that a leader's log replaced the change to this configuration.
	ConfigUndone struct{ ID consensus.ConfigID }
	// SnapshotNeeded says that a follower needs entries that the leader's log no longer has.
	SnapshotNeeded struct{ Follower consensus.MemberID }
	// SnapshotOutrun says that the leader gave up a snapshot on its way to a follower, since the log had grown to so many bytes
	// meanwhile.
	SnapshotOutrun struct {
		Follower consensus.MemberID
		Bytes    int
	}
	// SnapshotOffered says that this member is to install a snapshot from the leader.
	SnapshotOffered struct{ Position consensus.Position }
	// LogReset says that the log begins after an installed snapshot now.
	LogReset struct{ Position consensus.Position }
	// LogConflict says that a leader's log differs from entries that are committed here, which this member refused: the leader
	// was deposed and does not know it, or one of the two logs is damaged. It is reported once a term.
	LogConflict struct {
		Leader consensus.MemberID
		Term   consensus.Term
		At     consensus.Position // the leader's entry
		Own    consensus.Term     // of the entry here, zero if the log no longer has it
	}
	// Truncated says that the entries From to Last, of a deposed leader, were dropped.
	Truncated struct{ From, Last consensus.Index }
	// TransferStarted and TransferAborted report leadership transfers; a transfer that succeeds ends with LeaderChanged.
	TransferStarted struct{ To consensus.MemberID }
	TransferAborted struct{ To consensus.MemberID }
	// Removed says that a committed change removed this member for ever: it should stop.
	Removed struct{ By consensus.MemberID } // the member that reported the removal; this member itself if its own log did
)

func (BecameFollower) event()     {}
func (BecamePreCandidate) event() {}
func (BecameCandidate) event()    {}
func (BecameLeader) event()       {}
func (LeaderChanged) event()      {}
func (Denied) event()             {}
func (QuorumLost) event()         {}
func (DiskStalled) event()        {}
func (ApplyStalled) event()       {}
func (LeaderSuspected) event()    {}
func (ConfigCommitted) event()    {}
func (ConfigProposed) event()     {}
func (ConfigSettled) event()      {}
func (ConfigUndone) event()       {}
func (SnapshotNeeded) event()     {}
func (SnapshotOutrun) event()     {}
func (SnapshotOffered) event()    {}
func (LogReset) event()           {}
func (LogConflict) event()        {}
func (Truncated) event()          {}
func (TransferStarted) event()    {}
func (TransferAborted) event()    {}
func (Removed) event()            {}

func (e BecameFollower) String() string { return fmt.Sprintf("became follower at term %d", e.Term) }
func (e BecamePreCandidate) String() string {
	return fmt.Sprintf("asks for votes after term %d", e.Term)
}
func (e BecameCandidate) String() string { return fmt.Sprintf("became candidate at term %d", e.Term) }
func (e BecameLeader) String() string {
	return fmt.Sprintf("became leader at term %d, no-op at %d", e.Term, e.Noop)
}

func (e LeaderChanged) String() string {
	if e.Leader == consensus.NoMember {
		return fmt.Sprintf("knows no leader at term %d", e.Term)
	}
	return fmt.Sprintf("follows leader %v at term %d", e.Leader, e.Term)
}
func (e Denied) String() string {
	return fmt.Sprintf("member %v denies what it acknowledged: entries up to %d, it has %d", e.Member, e.Match, e.Claimed)
}
func (e QuorumLost) String() string {
	return fmt.Sprintf("hears no quorum, steps down at term %d", e.Term)
}
func (e DiskStalled) String() string {
	return fmt.Sprintf("waits too long for its disk, steps down at term %d", e.Term)
}
func (e ApplyStalled) String() string {
	return fmt.Sprintf("gets no further with what it has to apply, steps down at term %d", e.Term)
}
func (e LeaderSuspected) String() string { return fmt.Sprintf("suspects leader %v", e.Leader) }
func (e ConfigCommitted) String() string { return fmt.Sprintf("committed config %v", e.ID) }
func (e ConfigProposed) String() string {
	if e.Joint {
		return fmt.Sprintf("proposes joint config %v by %v", e.ID, e.Protocol)
	}
	return fmt.Sprintf("proposes config %v by %v", e.ID, e.Protocol)
}
func (e ConfigSettled) String() string { return fmt.Sprintf("settled config %v", e.ID) }
func (e ConfigUndone) String() string  { return fmt.Sprintf("undid config %v", e.ID) }
func (e SnapshotNeeded) String() string {
	return fmt.Sprintf("follower %v needs a snapshot", e.Follower)
}
func (e SnapshotOutrun) String() string {
	return fmt.Sprintf("gave up a snapshot to %v for a newer one: the log has grown to %d bytes meanwhile; "+
		"let snapshots be faster (--snapshot-send-rate), the log longer (--snapshot-log-bytes), or writes fewer",
		e.Follower, e.Bytes)
}
func (e SnapshotOffered) String() string { return fmt.Sprintf("installs snapshot %v", e.Position) }
func (e LogReset) String() string        { return fmt.Sprintf("log begins after %v", e.Position) }
func (e LogConflict) String() string {
	return fmt.Sprintf("refuses the log of leader %v at term %d: its entry %v has term %d here, and is committed",
		e.Leader, e.Term, e.At, e.Own)
}
func (e Truncated) String() string       { return fmt.Sprintf("truncated entries %d to %d", e.From, e.Last) }
func (e TransferStarted) String() string { return fmt.Sprintf("hands leadership to %v", e.To) }
func (e TransferAborted) String() string {
	return fmt.Sprintf("gave up handing leadership to %v", e.To)
}
func (e Removed) String() string { return fmt.Sprintf("removed for ever, says %v", e.By) }
