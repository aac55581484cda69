package counts

import "github.com/quorate/quorate/internal/kv"

// Op is a kind of command, by etcd's name for it.
type Op uint8

// The kinds of commands.
const (
	Put Op = iota
	DeleteRange
	Txn
	Compact
	LeaseGrant
	LeaseRevoke
	Alarm
	Auth
	ClusterMemberAttrSet
	ClusterVersionSet // of the feature level
	Session           // of the members' and clients' sessions; etcd has none
	Job               // of a membership job; etcd has none
	Limit             // of users and prefixes; etcd has none
	Audit             // of the audit's policy and heads; etcd has none
	Backup            // of the continuous backup's policy, turns and reports; etcd has none
	Moment            // of the time that a leader notes; etcd has none
	Level             // of the policy of feature levels; etcd has none
	Unknown
	ops
)

var opNames = [ops]string{"Put", "DeleteRange", "Txn", "Compaction", "LeaseGrant", "LeaseRevoke", "Alarm", "Auth",
	"ClusterMemberAttrSet", "ClusterVersionSet", "Session", "Job", "Limit", "Audit", "Backup", "Moment", "Level", "unknown"}

func (o Op) String() string { return opNames[o] }

// Ops are all kinds, in their order.
func Ops() []Op {
	all := make([]Op, ops)
	for i := range all {
		all[i] = Op(i)
	}
	return all
}

// OpOf returns the kind of a command.
func OpOf(cmd *kv.Command) Op {
	switch {
	case cmd.Put != nil:
		return Put
	case cmd.Delete != nil:
		return DeleteRange
	case cmd.Txn != nil:
		return Txn
	case cmd.Compact != nil:
		return Compact
	case cmd.LeaseGrant != nil:
		return LeaseGrant
	case cmd.LeaseRevoke != nil:
		return LeaseRevoke
	case cmd.Alarm != nil:
		return Alarm
	case cmd.Auth != nil:
		return Auth
	case cmd.Publish != nil:
		return ClusterMemberAttrSet
	case cmd.Raise != nil:
		return ClusterVersionSet
	case cmd.SessionOpen != nil, cmd.SessionRetire != nil:
		return Session
	case cmd.Job != nil:
		return Job
	case cmd.Limit != nil:
		return Limit
	case cmd.Audit != nil:
		return Audit
	case cmd.Backup != nil:
		return Backup
	case cmd.Moment != nil:
		return Moment
	case cmd.LevelPolicy != nil, cmd.Soak != nil:
		return Level
	}
	return Unknown
}
