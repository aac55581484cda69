// Package etcdfile writes the state of a machine as a database file of etcd: all versions since the compaction, leases, users
// and roles, alarms, and the members. `quorate snapshot save` sends such a file, and a restore from a continuous backup makes
// one from the state that it replayed, so that both become a data directory by one road (package member/restore).
//
// The format is package etcdbackup's. The main function is Plan.Write. The machine must not apply anything meanwhile.
package etcdfile
