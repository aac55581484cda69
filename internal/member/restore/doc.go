// Package restore makes the data directory of a member from a backup: of Quorate's, or of etcd's from 3.5 on.
//
// It reads the file (package storage/etcdbackup), and fills a store with what a cluster may begin with: all versions of all
// keys since the compaction, so that revisions go on and watches may begin at earlier ones; leases, which begin anew; users
// and roles. It leaves out what belongs to the cluster that wrote the file: members, alarms, the position in its log. It is
// not the founding of the cluster: that is the first start of the members, which bootstrap like any new cluster.
//
// The main function is Run.
//
// Invariants:
//  1. The id of the cluster is a hash of its members and of all that was restored. Members that were restored from different
//     contents, or with different members, are of different clusters and never exchange data; and none is of the cluster that
//     wrote the file.
//  2. A file that contradicts itself anywhere is refused, and leaves nothing.
//  3. The file is only read. The directory is complete or, after a crash, refused by a start (datadir.Restore).
//
// Nothing here may be called concurrently. The caller holds the lock of the directory. See
// docs/adr/0028-contents-from-elsewhere.md.
package restore
