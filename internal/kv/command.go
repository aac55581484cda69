package kv

import (
	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/base/level"
)

// Command is one replicated command: exactly one of the pointers is set. The payload of a consensus EntryCommand decodes to it
// (Append, DecodeCommand in codec.go).
type Command struct {
	Put           *PutOp
	Delete        *DeleteOp
	Txn           *TxnOp
	Compact       *CompactOp
	LeaseGrant    *LeaseGrantOp
	LeaseRevoke   *LeaseRevokeOp
	Alarm         *AlarmOp
	Publish       *PublishOp
	SessionOpen   *SessionOpenOp
	SessionRetire *SessionRetireOp
	Job           *JobOp
	Auth          *auth.Change
	Raise         *RaiseOp
	LevelPolicy   *LevelPolicyOp
	Soak          *SoakOp
	Limit         *LimitOp
	Audit         *AuditOp
	Moment        *MomentOp
	Backup        *BackupOp
	// By are the credentials of the sender, a user or a member. They do not count for commands that only members propose:
	// sessions, jobs, moments, what members publish, and which member ships a backup.
	By auth.Credentials
}

// PutOp writes one key.
type PutOp struct {
	Key, Value  []byte
	Lease       LeaseID
	PrevKV      bool
	IgnoreValue bool // keep the value that is there
	IgnoreLease bool // keep the lease that is attached
}

// DeleteOp deletes the keys of a range at one revision.
type DeleteOp struct {
	Key, End []byte
	PrevKV   bool
}

// SortOrder and SortTarget have etcd's numbers.
type (
	SortOrder  uint8
	SortTarget uint8
)

const (
	SortNone    SortOrder = 0
	SortAscend  SortOrder = 1
	SortDescend SortOrder = 2

	SortByKey     SortTarget = 0
	SortByVersion SortTarget = 1
	SortByCreate  SortTarget = 2
	SortByMod     SortTarget = 3
	SortByValue   SortTarget = 4
)

// RangeOp reads keys, alone or inside a Txn.
type RangeOp struct {
	Key, End                             []byte
	Limit                                int64
	Revision                             Revision // <= 0: now
	Order                                SortOrder
	Target                               SortTarget
	KeysOnly, CountOnly                  bool
	MinMod, MaxMod, MinCreate, MaxCreate Revision // inclusive; 0 = off
}

// CompareTarget and CompareResult have etcd's numbers.
type (
	CompareTarget uint8
	CompareResult uint8
)

const (
	CompareVersion CompareTarget = 0
	CompareCreate  CompareTarget = 1
	CompareMod     CompareTarget = 2
	CompareValue   CompareTarget = 3
	CompareLease   CompareTarget = 4

	// CompareNoTarget and CompareNoResult are for numbers of a client that etcd does not have. A key compares as equal under
	// the one, and any outcome holds under the other.
	CompareNoTarget CompareTarget = 255
	CompareNoResult CompareResult = 255

	CompareEqual    CompareResult = 0
	CompareGreater  CompareResult = 1
	CompareLess     CompareResult = 2
	CompareNotEqual CompareResult = 3
)

// Compare is one condition of a Txn.
type Compare struct {
	Key, End []byte
	Target   CompareTarget
	Result   CompareResult
	Number   int64  // version, revision or lease to compare with
	Value    []byte // for CompareValue
}

// TxnOp compares, then performs one of two lists.
type TxnOp struct {
	Compares   []Compare
	Then, Else []Op
}

// Op is one operation of a Txn: exactly one pointer is set.
type Op struct {
	Range  *RangeOp
	Put    *PutOp
	Delete *DeleteOp
	Txn    *TxnOp
}

// CompactOp deletes history at and below Revision, but for the versions still visible at it.
type CompactOp struct{ Revision Revision }

// LeaseGrantOp creates a lease. ID is never zero: the proposing member drew it if the client did not.
type LeaseGrantOp struct {
	ID         LeaseID
	TTLSeconds int64
}

// LeaseRevokeOp ends a lease and deletes its keys. Term is zero if a client asks for it. If a leader found the lease expired,
// it is the leader's term, and an entry of another term changes nothing: the proposal was repeated under a later leader, which
// may have renewed the lease since.
type LeaseRevokeOp struct {
	ID   LeaseID
	Term uint64
}

// AlarmKind has etcd's numbers.
type AlarmKind uint8

const (
	AlarmNone    AlarmKind = 0
	AlarmNoSpace AlarmKind = 1
	AlarmCorrupt AlarmKind = 2
)

// AlarmOp raises (Activate) or disarms an alarm of one member (zero: of all members).
type AlarmOp struct {
	Activate bool
	Member   uint64
	Kind     AlarmKind
}

// Alarm is one raised alarm.
type Alarm struct {
	Member uint64
	Kind   AlarmKind
}

// PublishOp makes a member's name and client URLs known to all.
type PublishOp struct {
	Member     uint64
	Name       string
	ClientURLs []string
	Version    string      // of etcd, whose API the member serves
	Zone       string      // a name for what fails together with the member, such as a rack; may be empty
	Build      string      // version of the program
	Level      level.Level // the highest feature level that the program knows
	Memory     int64       // the memory limit of the process, in bytes
}

// LevelView is what the sender of a command about levels saw: the members of a configuration, and the generation of the
// policy. The state machine does not take them from its own configuration: no entry of the log has the first one of a
// cluster, and a member that joins later replays the log without it.
type LevelView struct {
	Config uint64   // index of the entry that brought the configuration; zero: the first one
	IDs    []uint64 // voters, outgoing ones and learners
	// Generation is that of level.Rise: what was asked for under another policy, and was delayed, changes nothing.
	Generation uint64
}

// RaiseOp makes a feature level the active one. It changes nothing unless the configuration is still that of Of, all its
// members have published that they know the level, and the policy allows it or an operator wants it all the same.
type RaiseOp struct {
	Level    level.Level
	Finalize bool // on an operator's word, whatever the policy
	Of       LevelView
}

// LevelPolicyOp sets the policy by which the active level rises. A leader proposes an Initial one once all members have
// published their levels: it sets the policy if there is none, and the level that the cluster is born at (level.Rise), once.
// It changes nothing if the configuration is not that of Of any more.
//
// An operator who goes back to a former release by etcd's Downgrade proposes one with a Target: the policy is a hold, and the
// former policy is kept. A leader proposes one that has Returned once all members run builds of that release or of earlier
// ones, which puts the former policy back. A level that rises does the same; an operator's next policy ends a downgrade, too.
type LevelPolicyOp struct {
	Policy   level.Policy // zero if Returned
	Initial  bool
	Target   level.Release // zero: no downgrade begins
	Returned bool
	Of       LevelView // of one that is neither Initial nor Returned, only the generation counts
}

// SoakOp notes for how long all members have run builds that know a level, by the clocks of the leaders. It changes nothing
// unless the configuration is that of Of, and all its members have published that they know the level. The first one for a
// level begins with zero, and a time shorter than what is noted changes nothing.
type SoakOp struct {
	Level   level.Level
	Seconds int64
	Of      LevelView
}

// SessionOpenOp opens an exactly-once session of Member. Every other session of Member that is not in Keep is retired.
type SessionOpenOp struct {
	Member uint64
	Number uint64
	Keep   []uint64
}

// SessionRetireOp retires one session: its results are forgotten, and its later proposals are refused.
type SessionRetireOp struct {
	Member uint64
	Number uint64
}

// JobOp writes one row of the table of jobs, if the row has the version that the writer expects. Two members that drive one job
// at once, each sure to be the only one, so cannot undo each other's steps.
type JobOp struct {
	ID uint64 // never zero
	// Version is that of the row to replace, zero to create one. The new row has the next version.
	Version uint64
	// Body means nothing to the state machine; MaxJobBytes bounds it.
	Body []byte
	// Prune are rows to delete once this one is written; ids without a row do no harm.
	Prune []uint64
}

// MaxJobBytes bounds the body of a JobOp.
const MaxJobBytes = 64 << 10
