package model

// Bounds of a state. They keep it a plain value without pointers, so that it can be copied, compared and hashed.
const (
	MaxMembers   = 5
	maxLog       = 16
	MaxProposals = 4
	MaxAttempts  = 10
	MaxTerm      = 7
	maxRevision  = 24
	maxKeys      = 2
)

// entryKind is the kind of a log entry.
type entryKind uint8

const (
	noEntry entryKind = iota
	noopEntry
	slowEntry  // applied at the next revision
	exactEntry // applied at the revision it carries, or skipped
	ConfigEntry
	abortEntry // decides a proposal: it will never be executed
)

// entry is one log entry. By and Attempt are set on an entry that a leader answered fast: the leader's id, and the attempt that
// it answered. A recovered entry has neither.
type entry struct {
	Kind     entryKind
	Proposal int8 // the configuration, if Kind is configEntry
	Revision int8 // of exact entries
	Term     int8
	By       int8
	Attempt  int8
	Payload  int8 // 1: the second payload of a lying client
}

func plainEntry(kind entryKind, proposal, term int8) entry {
	return entry{Kind: kind, Proposal: proposal, Term: term, By: -1, Attempt: -1}
}

// command reports whether the entry carries a proposal's command.
func (e *entry) command() bool { return e.Kind == slowEntry || e.Kind == exactEntry }

// journal is a log. Indexes are 1-based everywhere but in E.
type journal struct {
	N int8
	E [maxLog]entry
}

func (l *journal) add(e entry) { l.E[l.N] = e; l.N++ }

func (l *journal) At(index int8) *entry { return &l.E[index-1] }

func (l *journal) lastTerm() int8 {
	if l.N == 0 {
		return 0
	}
	return l.E[l.N-1].Term
}

// noop returns the index of a term's no-op, zero if the log has none.
func (l *journal) noop(term int8) int8 {
	for i := range l.N {
		if l.E[i].Kind == noopEntry && l.E[i].Term == term {
			return i + 1
		}
	}
	return 0
}

// matches reports whether the log has an entry of that term at that index.
func (l *journal) matches(index, term int8) bool {
	return index == 0 || index <= l.N && l.E[index-1].Term == term
}

// shared returns the length of the longest common beginning of two logs.
func (l *journal) shared(o *journal) int8 {
	n := min(l.N, o.N)
	for i := range n {
		if l.E[i] != o.E[i] {
			return i
		}
	}
	return n
}

// cut drops everything after index.
func (l *journal) cut(index int8) {
	for l.N > index {
		l.N--
		l.E[l.N] = entry{}
	}
}

type role uint8

const (
	Follower role = iota
	Candidate
	Leader
)

// member is one server. Term, Voted, Log and Pool are durable, the rest is lost in a crash.
type member struct {
	Term, Voted int8
	Log         journal
	Pool        uint16 // attempts that it holds as a witness
	RowsLost    int8   // up to this index its table of results is missing (only with SnapshotNoTable)

	Role            role
	Commit, Applied int8
	Votes           uint8              // candidate: members that granted their votes
	Held            [MaxMembers]uint16 // candidate: attempts that each vote carried
	Forced          bool               // candidate: the leader asked it to campaign
	Heir            int8               // leader: the target of a transfer, or -1

	// Leader leases. Times are ticks of the cluster's clock.
	PatientUntil int8  // it helps elect no other leader before
	RoundAt      int8  // leader: begin of its last round of heartbeats
	Echoes       uint8 // leader: members that answered that round
	LeaseUntil   int8
	LeaseBarred  bool // leader: another one may be elected without waiting for the lease
}

// configID names a configuration by the log entry that introduced it.
type configID struct{ Index, Term int8 }

// attempt is a proposal at a certain revision, term and config id. Its messages exist from the moment it is sent and may be
// delivered at any later time, any number of times; answers may be read at any later time.
type attempt struct {
	Used                     bool
	Proposal, Revision, Term int8
	Payload                  int8 // 1: the second payload of a lying client
	ID                       configID
	Config                   int8 // the proposer's configuration under ID

	Accepted uint8 // members that answered accepted, with the term and config id of their answer
	AccTerm  [MaxMembers]int8
	AccID    [MaxMembers]configID

	Fast     bool // the leader's fast answer
	Pending  bool // appended, not evaluated yet (only with LeaderEvaluatesLate)
	FastBy   int8
	FastTerm int8
	FastID   configID
	Result   result
}

// result is what a command returns: the revision at which each of its keys was last changed.
type result [maxKeys]int8

// readStage is the progress of a read.
type readStage int8

const (
	NoRead    readStage = iota
	ReadAsked           // the question is on its way
	readReady           // the reader knows the index and waits until it has applied up to it
)

// Read is the one linearizable read that may be in flight.
type Read struct {
	Stage        readStage
	Reader, Term int8 // the reading member, and its term when it asked
	Leader       int8 // the leader, as the reader knew it
	Index        int8

	LeaderTerm int8  // term in which the leader took the index, 0 before
	LastTerm   int8  // term of the leader's last entry then
	Echoes     uint8 // members that confirmed the leader since
	Sure       bool  // the leader's lease held
	Given      bool  // the reader has the leader's index, unconfirmed

	Low   int8 // lower bound of the index: the leader's commit index when it took it, and its no-op
	Ended uint8
	Ends  [MaxMembers]int8 // ends of the logs on the disks of those in Ended, as they reported since
	Under configID         // the configuration by which they are counted, settled then; zero with Fixed
	Fixed bool             // a change was under way: the index stays as it was taken

	Told     uint8 // voters that answered the reader's question themselves
	ToldTerm [MaxMembers]int8
	ToldLast [MaxMembers]int8
	ToldID   [MaxMembers]configID
	ToldAll  uint8 // those of them that held nothing outside their logs

	Floor int8  // largest revision reported before the read was invoked
	Must  uint8 // proposals reported before the read was invoked
}

// State is a state of the whole cluster. Messages are kept as histories: TermLog[t] is the longest log of the leader of term t,
// so that every append of that term is a prefix of it; Acked[t][i] is the index up to which member i acknowledged it.
type State struct {
	M          [MaxMembers]member
	A          [MaxAttempts]attempt
	TermLog    [MaxTerm + 1]journal
	TermCommit [MaxTerm + 1]int8
	LeaderOf   [MaxTerm + 1]int8
	Acked      [MaxTerm + 1][MaxMembers]int8

	// Ghosts: fields that the laws read, and no rule.
	Committed journal // all entries that ever committed
	Invoked   uint8
	Reported  uint8 // proposals reported successful
	Revision  [MaxProposals]int8
	Result    [MaxProposals]result
	Floor     [MaxProposals]int8 // largest revision reported before the proposal was invoked
	Aborted   uint8              // proposals reported aborted
	Loose     uint8              // reported before a recovery: only the revision must hold

	R         Read
	Reads     int8
	Crashes   int8
	Now       int8
	Dead      uint8 // lost for ever
	Lost      uint8 // came back with another disk
	Recovered bool  // a survivor goes on alone
}

// row is a proposal's row in the table of results.
type row struct {
	Done, Aborted bool
	Revision      int8
	Result        result
}

// store is the replicated state: a function of the log.
type store struct {
	Revision int8
	Changed  result // revision of the last change of each key
	Rows     [MaxProposals]row
	Skipped  [MaxProposals][2]uint32 // carried revisions of skipped entries, as bits, by payload
	Bad      string                  // a law that applying broke
}

func Bit(i int8) uint8 { return 1 << uint(i) }

func Has(set uint8, i int8) bool { return set>>uint(i)&1 == 1 }
