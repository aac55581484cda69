package joins

import (
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
)

// Laws check processes that join by themselves: a process gets one id, an id has one disk, and a working voter does not lose
// its vote to such a process.
type Laws struct {
	Report func(property, detail string)
	told   map[answered]consensus.MemberID
	begun  map[consensus.MemberID]consensus.StorageID
}

// answered is a process on its disk, and the epoch of the leader that answered it: a cluster that an operator recovered by
// mistake and the one that goes on without it each give an id of their own.
type answered struct {
	disk  consensus.StorageID
	epoch consensus.Epoch
}

// Answered records that a leader of an epoch gave the process on a disk its id. removed reports whether an id is that of a
// former member.
func (l *Laws) Answered(
	disk consensus.StorageID, epoch consensus.Epoch, id consensus.MemberID, removed func(consensus.MemberID) bool,
) {
	key := answered{disk: disk, epoch: epoch}
	if before, ok := l.told[key]; ok && before != id && !removed(before) {
		l.Report("join", fmt.Sprintf("the process on disk %v was told that it is %v, and then %v", disk, before, id))
	}
	if l.told == nil {
		l.told = map[answered]consensus.MemberID{}
	}
	l.told[key] = id
}

// Began records that a process begins as a member on an empty disk.
func (l *Laws) Began(id consensus.MemberID, disk consensus.StorageID) {
	if other, ok := l.begun[id]; ok && other != disk {
		l.Report("join", fmt.Sprintf("member %v began on disk %v, and begins on %v", id, other, disk))
	}
	if l.begun == nil {
		l.begun = map[consensus.MemberID]consensus.StorageID{}
	}
	l.begun[id] = disk
}

// Replaces records that a leader begins to replace a member by a process, and whether that member has worked all the time while
// the leader watched it.
func (l *Laws) Replaces(old consensus.MemberID, worked bool) {
	if worked {
		l.Report("join", fmt.Sprintf("%v works and votes, and a process that joins gets its place", old))
	}
}
