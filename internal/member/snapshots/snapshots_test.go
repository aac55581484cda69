package snapshots_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/cockroachdb/errors/oserror"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/level"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/nextlevel"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/snapshots"
)

var quiet = slog.New(slog.DiscardHandler)

// pair is a leader that has applied ten entries, and a follower that has applied none.
type pair struct {
	leader, follower *datadir.Data
	stores           datadir.Stores // the leader's
	sender           *snapshots.Sender
	receiver         *snapshots.Receiver
	low              bool // the follower's disk
}

// ofNextLevel are the options of a member whose build knows the next feature level.
func ofNextLevel() datadir.Options {
	options := datatest.Options()
	options.Apply.Level = nextlevel.Level
	return options
}

func newPair(t *testing.T) *pair {
	t.Helper()
	p := &pair{
		leader:   datatest.Create(t, ofNextLevel(), 2),
		follower: datatest.Create(t, ofNextLevel(), 1),
	}
	t.Cleanup(func() { datatest.Close(t, p.follower) })
	if _, err := p.leader.Machine.Apply(datatest.Puts(1, 10, 2)); err != nil {
		t.Fatal(err)
	}
	var stores datadir.Stores
	stores.Set(p.follower.Generation)
	p.stores.Set(p.leader.Generation)
	p.receiver = snapshots.NewReceiver(snapshots.ReceiverOptions{
		Stores: &stores, Data: &p.follower.Options, Check: p.follower.Check, Logger: quiet,
		DiskLow: func() bool { return p.low },
	})
	p.sender = snapshots.NewSender(snapshots.SenderOptions{
		Stores: &p.stores, Data: &p.leader.Options, Clock: env.WallClock{}, Logger: quiet,
		Stream: func(
			ctx context.Context, _ consensus.MemberID, meta consensus.SnapshotMeta, write func(io.Writer) error,
		) error {
			r, w := io.Pipe()
			go func() { w.CloseWithError(errors.Join(write(w), context.Cause(ctx))) }()
			return p.receiver.Receive(2, meta, r)
		},
	})
	return p
}

// left are the files in a directory for snapshots.
func left(t *testing.T, o *datadir.Options) []string {
	t.Helper()
	names, err := o.FS.List(o.WorkDir())
	if err != nil && !oserror.IsNotExist(err) {
		t.Fatal(err)
	}
	return names
}

// Ensure that a snapshot arrives, can be taken once and installed, and that the sender keeps nothing of it.
func TestSender_Begin(t *testing.T) {
	p := newPair(t)
	defer datatest.Close(t, p.leader)
	position, err := p.sender.Begin(t.Context(), 1)()
	if err != nil || position != (consensus.Position{Index: 10, Term: 2}) {
		t.Fatalf("sent %v, %v", position, err)
	}
	dir, ok := p.receiver.Take(position)
	if _, again := p.receiver.Take(position); !ok || again {
		t.Errorf("taken %t, and again %t", ok, again)
	}
	if err := p.follower.Replace(p.leader.Machine.SnapshotMeta(), dir); err != nil {
		t.Fatal(err)
	}
	if got := p.follower.Machine.Applied(); got != position {
		t.Errorf("the follower is at %v", got)
	}
	if names := left(t, &p.leader.Options); len(names) != 0 || p.sender.Progress(1) != nil {
		t.Errorf("the sender keeps %q", names)
	}
}

// Ensure that nothing is streamed to a member whose build does not read the store, that the log says so once, and that it is sent
// when that member runs another build.
func TestSender_Begin_unreadable(t *testing.T) {
	p := newPair(t)
	defer datatest.Close(t, p.leader)
	var log bytes.Buffer
	logging := snapshots.NewSender(snapshots.SenderOptions{Stores: &p.stores, Data: &p.leader.Options, Clock: env.WallClock{},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Stream: func(context.Context, consensus.MemberID, consensus.SnapshotMeta, func(io.Writer) error) error {
			t.Error("it is streamed")
			return nil
		}})
	publish := func(member uint64, l level.Level) kv.Command {
		return kv.Command{Publish: &kv.PublishOp{Member: member, Name: "m", Version: "3.7.1", Build: "b", Level: l}}
	}
	apply := func(commands ...kv.Command) {
		t.Helper()
		for i := range commands {
			entry := consensus.Entry{Index: p.leader.Machine.Applied().Index + 1, Term: 2, Kind: consensus.EntryCommand,
				Payload: commands[i].Append(nil)}
			if _, err := p.leader.Machine.Apply([]consensus.Entry{entry}); err != nil {
				t.Fatal(err)
			}
		}
	}
	apply(publish(1, nextlevel.Level), publish(2, nextlevel.Level), publish(3, nextlevel.Level))
	apply(kv.Command{Raise: &kv.RaiseOp{Level: nextlevel.Level, Finalize: true, Of: p.leader.Machine.LevelView()}},
		publish(1, level.Own))
	for range 3 {
		var unreadable *snapshots.UnreadableError
		if _, err := logging.Begin(t.Context(), 1)(); !errors.As(err, &unreadable) ||
			!strings.Contains(err.Error(), fmt.Sprintf("m (build b, level %d) does not read: the snapshot waits", level.Own)) {
			t.Errorf("sent: %v", err)
		}
	}
	if got := strings.Count(log.String(), "does not read"); got != 1 {
		t.Errorf("told %d times: %s", got, log.String())
	}
	apply(publish(1, nextlevel.Level))
	if _, err := p.sender.Begin(t.Context(), 1)(); err != nil {
		t.Errorf("after its upgrade: %v", err)
	}
}

// Ensure that what was stopped before it began to stream does not arrive.
func TestSender_Stop(t *testing.T) {
	p := newPair(t)
	defer datatest.Close(t, p.leader)
	send := p.sender.Begin(t.Context(), 1)
	p.sender.Stop(1)
	if _, err := send(); err == nil {
		t.Error("a snapshot that was stopped was sent")
	}
	if names := left(t, &p.follower.Options); len(names) != 0 {
		t.Errorf("the receiver keeps %q", names)
	}
}

// Ensure that a snapshot is refused that is not what was announced, or for which there is no room, and leaves nothing; that a
// second one replaces the first, and that one that shows nothing new goes.
func TestReceiver_Receive(t *testing.T) {
	p := newPair(t)
	defer datatest.Close(t, p.leader)
	p.low = true
	if _, err := p.sender.Begin(t.Context(), 1)(); !errors.Is(err, snapshots.ErrDiskLow) {
		t.Errorf("no room: %v", err)
	}
	p.low = false
	other := snapshots.NewSender(snapshots.SenderOptions{
		Stores: &p.stores, Data: &p.leader.Options, Clock: env.WallClock{}, Logger: quiet,
		Stream: func(
			_ context.Context, _ consensus.MemberID, meta consensus.SnapshotMeta, write func(io.Writer) error,
		) error {
			meta.Position.Index++
			r, w := io.Pipe()
			go func() { w.CloseWithError(write(w)) }()
			return p.receiver.Receive(2, meta, r)
		},
	})
	if _, err := other.Begin(t.Context(), 1)(); err == nil {
		t.Error("a snapshot of another place is accepted")
	}
	if names := left(t, &p.follower.Options); len(names) != 0 {
		t.Errorf("what was refused is kept: %q", names)
	}
	for range 2 {
		if _, err := p.sender.Begin(t.Context(), 1)(); err != nil {
			t.Fatal(err)
		}
		if names := left(t, &p.follower.Options); len(names) != 1 {
			t.Errorf("kept are %q, want one", names)
		}
	}
	if err := p.receiver.Discard(10); err != nil || len(left(t, &p.follower.Options)) != 0 {
		t.Errorf("%v; what shows nothing new is kept: %q", err, left(t, &p.follower.Options))
	}
}

// Ensure that a backup shows the state as of one moment, and that there is none after the store is closed.
func TestSender_Backup(t *testing.T) {
	p := newPair(t)
	err := p.sender.Backup(t.Context(), func(_ context.Context, machine *apply.Machine) error {
		if _, err := p.leader.Machine.Apply(datatest.Puts(11, 1, 2)); err != nil {
			return err
		}
		if got := machine.Applied().Index; got != 10 {
			t.Errorf("the copy has applied %d", got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	datatest.Close(t, p.leader)
	if err := p.sender.Backup(t.Context(), nil); !errors.Is(err, datadir.ErrStopped) {
		t.Errorf("after the end: %v", err)
	}
}
