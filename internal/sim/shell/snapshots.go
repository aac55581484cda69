package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/snapshots"
	"github.com/quorate/quorate/internal/sim/diary"
)

// Transfer is a snapshot under way. Sent is called once at its end.
type Transfer struct {
	To       consensus.MemberID
	Position consensus.Position
	Stream   bytes.Buffer
	Stopped  bool // it is not needed any more and does not arrive
	Sent     func(ok bool)
}

// Snapshots sends and receives snapshots, with the code of members. A Sender returns once it has written everything: the
// network decides how long that takes to arrive.
type Snapshots struct {
	*Life
	sender   *snapshots.Sender
	receiver *snapshots.Receiver
	carry    func(t *Transfer)
	put      func(inputs ...raft.Input)
	made     *Transfer // the last one that the sender made
	under    map[consensus.MemberID]*Transfer
}

func newSnapshots(life *Life, data *datadir.Data, stores *datadir.Stores, carry func(*Transfer)) *Snapshots {
	s := &Snapshots{Life: life, carry: carry, under: map[consensus.MemberID]*Transfer{}}
	s.receiver = snapshots.NewReceiver(snapshots.ReceiverOptions{
		Stores: stores, Data: &data.Options, Check: data.Check, Logger: discard,
	})
	s.sender = snapshots.NewSender(snapshots.SenderOptions{
		Stores: stores, Data: &data.Options, Clock: clock{life, life.Clock}, Logger: discard, Stream: s.write,
	})
	return s
}

// write stores the stream of the sender.
func (s *Snapshots) write(
	_ context.Context, to consensus.MemberID, meta consensus.SnapshotMeta, write func(io.Writer) error,
) error {
	s.made = &Transfer{To: to, Position: meta.Position}
	return write(&s.made.Stream)
}

// send makes a snapshot now and sends it.
func (s *Snapshots) send(to consensus.MemberID) {
	position, err := s.sender.Begin(context.Background(), to)()
	if err != nil {
		if !s.blames() {
			s.Suite.Report("operating-error", fmt.Sprintf("a snapshot could not be made: %v", err))
		}
		s.put(raft.SnapshotSent{To: to, Position: position})
		return
	}
	t, size := s.made, s.made.Stream.Len()
	t.Sent = func(ok bool) {
		s.Note(diary.Snapshot, uint64(position.Index), uint64(to), uint64(size),
			func() string { return fmt.Sprintf("sent: %t", ok) })
		s.put(raft.SnapshotSent{To: to, Position: position, OK: ok})
	}
	s.under[to] = t
	s.carry(t)
}

// stop stops the last transfer to a member.
func (s *Snapshots) stop(to consensus.MemberID) {
	s.sender.Stop(to)
	if t := s.under[to]; t != nil {
		t.Stopped = true
	}
}

// Checkpoint copies a checkpoint of the store into a directory, which does not exist, and calls f with its state machine.
func (s *Snapshots) Checkpoint(ctx context.Context, dir string, f func(*apply.Machine) error) error {
	return s.sender.Checkpoint(ctx, dir, f)
}

// Receive verifies and keeps a snapshot.
func (s *Snapshots) Receive(from consensus.MemberID, t *Transfer) bool {
	err := s.receiver.Receive(from, consensus.SnapshotMeta{Position: t.Position}, &t.Stream)
	if err != nil && !s.blames() && !s.outgrown(err) {
		s.Suite.Report("recovery", fmt.Sprintf("a snapshot was refused: %v", err))
	}
	return err == nil
}
