package audit

import (
	"slices"
	"strings"
)

// Op is the kind of a call, by which rules select.
type Op uint8

// The kinds of calls, by their names in a policy.
const (
	OpOther       Op = iota // other: a method that this build does not know
	OpRange                 // range: reads of keys, and of their history
	OpPut                   // put
	OpDelete                // delete
	OpTxn                   // txn
	OpCompact               // compact
	OpWatch                 // watch: a watcher is made
	OpLease                 // lease: granted, revoked, listed; a stream that renews leases counts once, when it ends
	OpAuth                  // auth: users, roles and permissions
	OpLogin                 // login
	OpCluster               // cluster: members, jobs, join tokens, feature levels, limits
	OpMaintenance           // maintenance: alarms, snapshots, hashes, defragmentation, keys of encrypted directories
	OpStatus                // status: what tells how members are: doctor, top, plans, lists of members, jobs and limits
	OpLock                  // lock: locks and elections, beside the calls that they make
	OpAudit                 // audit: this policy
)

var opNames = [...]string{OpOther: "other", OpRange: "range", OpPut: "put", OpDelete: "delete", OpTxn: "txn",
	OpCompact: "compact", OpWatch: "watch", OpLease: "lease", OpAuth: "auth", OpLogin: "login", OpCluster: "cluster",
	OpMaintenance: "maintenance", OpStatus: "status", OpLock: "lock", OpAudit: "audit"}

// String is the name in a policy and in a record.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return opNames[OpOther]
}

// ParseOp returns the kind of calls of a name; false: there is none.
func ParseOp(name string) (Op, bool) {
	for o, known := range opNames {
		if known == name {
			return Op(o), true
		}
	}
	return 0, false
}

// Ops returns the names of the kinds of calls, those of single keys first.
func Ops() []string { return append(slices.Clone(opNames[OpRange:]), opNames[OpOther]) }

// methodOps has the methods whose services have several kinds.
var methodOps = map[string]Op{
	"/etcdserverpb.KV/Range": OpRange, "/etcdserverpb.KV/RangeStream": OpRange, "/etcdserverpb.KV/Put": OpPut,
	"/etcdserverpb.KV/DeleteRange": OpDelete, "/etcdserverpb.KV/Txn": OpTxn, "/etcdserverpb.KV/Compact": OpCompact,
	"/etcdserverpb.Auth/Authenticate": OpLogin,
	// A page of the console, a dashboard and an operator in Kubernetes call these again and again.
	"/etcdserverpb.Maintenance/Status": OpStatus, "/etcdserverpb.Cluster/MemberList": OpStatus,
	"/quorate.v1.Membership/Describe": OpStatus, "/quorate.v1.Membership/ListJobs": OpStatus,
	"/quorate.v1.Membership/Plan": OpStatus, "/quorate.v1.Membership/Watch": OpStatus, "/quorate.v1.Upgrade/Status": OpStatus,
	"/quorate.v1.Backup/Status": OpStatus, "/quorate.v1.Limits/ListLimits": OpStatus, "/quorate.v1.Encryption/Status": OpStatus,
}

// serviceOps has the services whose methods are of one kind.
var serviceOps = map[string]Op{
	"etcdserverpb.Watch": OpWatch, "etcdserverpb.Lease": OpLease, "etcdserverpb.Auth": OpAuth,
	"etcdserverpb.Cluster":     OpCluster,
	"etcdserverpb.Maintenance": OpMaintenance, "v3lockpb.Lock": OpLock, "v3electionpb.Election": OpLock,
	"quorate.v1.Membership": OpCluster, "quorate.v1.Tokens": OpCluster, "quorate.v1.Upgrade": OpCluster,
	"quorate.v1.Doctor": OpStatus, "quorate.v1.Top": OpStatus, "quorate.v1.History": OpRange,
	"quorate.v1.Audit": OpAudit, "quorate.v1.Limits": OpCluster, "quorate.v1.Backup": OpCluster,
	"quorate.v1.Encryption": OpMaintenance,
}

// OpOf returns the kind of a method, by its full name as gRPC has it: /package.Service/Method.
func OpOf(method string) Op {
	if op, ok := methodOps[method]; ok {
		return op
	}
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return serviceOps[service]
}

// Unaudited reports whether calls of a method are never recorded: health checks, which anybody makes many times a minute, and
// the streams of native clients, each of whose writes is recorded by itself.
func Unaudited(method string) bool {
	return strings.HasPrefix(method, "/grpc.health.v1.Health/") || strings.HasPrefix(method, "/quorate.v1.Writer/")
}

// Blocked is how the refusal begins of a call that cannot be recorded.
const Blocked = "audit: this call has to be recorded"

// unrefused has the methods that Unrefused tells of.
var unrefused = map[string]bool{
	"/etcdserverpb.Lease/LeaseKeepAlive": true, "/etcdserverpb.Maintenance/Status": true,
	"/etcdserverpb.Cluster/MemberList": true, "/quorate.v1.Doctor/Observe": true, "/quorate.v1.Doctor/Collect": true,
	"/quorate.v1.Membership/Describe": true, "/quorate.v1.Membership/ListJobs": true, "/quorate.v1.Upgrade/Status": true,
	"/quorate.v1.Backup/Status": true,
}

// Unrefused reports whether calls of a method pass while a required output takes no records: renewals of leases, without which
// the keys of clients would be deleted, and what tells an operator how the members are. They show no key. They are recorded
// as far as there is room.
func Unrefused(method string) bool { return unrefused[method] }
