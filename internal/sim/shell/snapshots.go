package shell

import (
	"bytes"
	"fmt"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/datadir"
	"github.com/quorate/quorate/internal/sim/diary"
	"github.com/quorate/quorate/internal/storage/snapshot"
)

// Carry takes a snapshot to a member and tells whether it was accepted.
type Carry func(to consensus.MemberID, position consensus.Position, stream *bytes.Buffer, sent func(ok bool))

// Snapshots makes snapshots for others, and keeps the one that was verified last.
type Snapshots struct {
	*Life
	data  *datadir.Data
	dir   string // the data directory
	carry Carry
	put   func(inputs ...raft.Input)
	names int

	position consensus.Position
	received string // its directory
}

func (s *Snapshots) path(kind string) string {
	s.names++
	return s.Disk.PathJoin(s.dir, snapshot.WorkDir, fmt.Sprintf("%s-%d", kind, s.names))
}

// send builds a checkpoint now and lets it travel.
func (s *Snapshots) send(to consensus.MemberID) {
	meta := s.data.Machine.SnapshotMeta()
	dir := s.path("outgoing")
	var stream bytes.Buffer
	err := snapshot.Build(s.data.Engine.Checkpoint, s.Disk, dir)
	if err == nil {
		err = snapshot.Write(&stream, s.Disk, dir)
	}
	if err != nil {
		s.After(0, func() { s.Fail(err) })
		return
	}
	_ = s.Disk.RemoveAll(dir) // what is left is removed at the next start
	size := stream.Len()
	s.carry(to, meta.Position, &stream, func(ok bool) {
		s.Note(diary.Snapshot, uint64(meta.Position.Index), uint64(to), uint64(size),
			func() string { return fmt.Sprintf("sent: %t", ok) })
		s.put(raft.SnapshotSent{To: to, Position: meta.Position, OK: ok})
	})
}

// Receive verifies and keeps a snapshot.
func (s *Snapshots) Receive(position consensus.Position, stream *bytes.Buffer) bool {
	dir := s.path("incoming")
	err := snapshot.Receive(s.Disk, stream, dir)
	if err == nil {
		err = s.data.Check(consensus.SnapshotMeta{Position: position}, dir)
	}
	if err != nil {
		if !s.blames() {
			s.Suite.Report("recovery", fmt.Sprintf("a snapshot was refused: %v", err))
		}
		return false
	}
	if s.received != "" {
		_ = s.Disk.RemoveAll(s.received) // what is left is removed at the next start
	}
	s.position, s.received = position, dir
	return true
}

// take returns the directory of the received snapshot, if it is the one at mark.
func (s *Snapshots) take(position consensus.Position) (dir string, ok bool) {
	if s.received == "" || s.position != position {
		return "", false
	}
	dir, s.received = s.received, ""
	return dir, true
}
