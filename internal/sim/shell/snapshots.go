package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/snapshots"
	"github.com/quorate/quorate/internal/sim/diary"
)

// Transfer is a snapshot on its way. Its end is told once by Sent.
type Transfer struct {
	To       consensus.MemberID
	Position consensus.Position
	Stream   bytes.Buffer
	Stopped  bool // it has become useless: it does not arrive any more
	Sent     func(ok bool)
}

// Snapshots sends snapshots and receives them, by what members use. A Sender returns once all is written: how long that takes
// to arrive is for the network to say.
type Snapshots struct {
	*Life
	sender   *snapshots.Sender
	receiver *snapshots.Receiver
	carry    func(t *Transfer)
	put      func(inputs ...raft.Input)
	made     *Transfer // by the sender, just now
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

// write takes what the sender streams.
func (s *Snapshots) write(
	_ context.Context, to consensus.MemberID, meta consensus.SnapshotMeta, write func(io.Writer) error,
) error {
	s.made = &Transfer{To: to, Position: meta.Position}
	return write(&s.made.Stream)
}

// send makes a snapshot now and lets it travel.
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

// stop ends the snapshot to a member that was begun last.
func (s *Snapshots) stop(to consensus.MemberID) {
	s.sender.Stop(to)
	if t := s.under[to]; t != nil {
		t.Stopped = true
	}
}

// Receive verifies and keeps a snapshot.
func (s *Snapshots) Receive(from consensus.MemberID, t *Transfer) bool {
	err := s.receiver.Receive(from, consensus.SnapshotMeta{Position: t.Position}, &t.Stream)
	if err != nil && !s.blames() && !s.outgrown(err) {
		s.Suite.Report("recovery", fmt.Sprintf("a snapshot was refused: %v", err))
	}
	return err == nil
}
