package lanes

import (
	"log/slog"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/fast"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/applier"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/expiry"
	"github.com/quorate/quorate/internal/member/node"
	"github.com/quorate/quorate/internal/member/snapshots"
	"github.com/quorate/quorate/internal/member/upkeep"
	"github.com/quorate/quorate/internal/storage/wal"
)

// applyingHost is a host whose state machine applies batches.
type applyingHost struct {
	Host
	data *datadir.Data
}

func (h applyingHost) ApplyBatch(batch []consensus.Entry) ([]kv.Result, error) {
	return h.data.Machine.ApplyFor(batch, func(consensus.ProposalID) kv.Account { return nil })
}

func (h applyingHost) Applied([]consensus.Entry, []kv.Result) {}

func (h applyingHost) Turn(Lane) {}

func (h applyingHost) Background(f func()) { f() }

// applyingLanes returns the lanes of a member whose store is empty.
func applyingLanes(t *testing.T) (*Lanes, *datadir.Data) {
	t.Helper()
	options := datatest.Options()
	identity := wal.Identity{Cluster: 1, Member: 1, Storage: wal.StorageID{1}}
	if err := datadir.Create(options, identity, consensus.Config{Voters: []consensus.MemberID{1}}); err != nil {
		t.Fatal(err)
	}
	data := datatest.Open(t, options)
	stores := &datadir.Stores{}
	stores.Set(data.Generation)
	logger := slog.New(slog.DiscardHandler)
	l := New(Options{
		Data: data, Stores: stores, Clock: env.WallClock{}, Logger: logger, TickInterval: time.Second, MostTicks: 1,
	}, applyingHost{data: data})
	parts := Parts{
		Received: snapshots.NewReceiver(snapshots.ReceiverOptions{
			Stores: stores, Data: &data.Options, Check: data.Check, Logger: logger,
		}),
		Leases:    expiry.New(expiry.Options{Stores: stores, Clock: env.WallClock{}, Logger: logger}),
		Compactor: upkeep.NewCompactor(stores, upkeep.CompactionPace{}),
	}
	if err := l.Start(node.Options{Raft: raft.Defaults(1)}, raft.Restored{}, parts); err != nil {
		t.Fatal(err)
	}
	return l, data
}

// Ensure that the core learns the revision of the store also when the last entry of a batch is a repetition, whose result has
// the revision of its first entry: later promises of the core must lie beyond the store's revision.
func TestLanes_Apply_revision(t *testing.T) {
	l, data := applyingLanes(t)
	session := consensus.SessionID{Member: 1, Number: 1}
	var entries []consensus.Entry
	log := func(sequence uint64, command kv.Command) {
		entries = append(entries, consensus.Entry{
			Index: consensus.Index(len(entries) + 1), Term: 1, Kind: consensus.EntryCommand, Payload: command.Append(nil),
			Proposal: consensus.ProposalID{Session: session, Sequence: sequence},
		})
	}
	put := kv.Command{Put: &kv.PutOp{Key: []byte("a")}}
	log(0, kv.Command{SessionOpen: &kv.SessionOpenOp{Member: 1, Number: 1}})
	log(1, put)
	log(2, put)
	log(1, put)
	l.apply.queue.Put(applier.Work{Entries: entries})
	if err := l.Apply(); err != nil {
		t.Fatal(err)
	}
	want := uint64(data.Machine.Store().Revision())
	told := l.inbox.take()
	if len(told) != 1 || told[0].(raft.Applied).Revision != want || want != 3 {
		t.Errorf("the store is at revision %d, the core was told %+v", want, told)
	}
}

// Ensure that the loop can ask for the state of a proposal also when the store that it knows was just closed.
func TestLanes_stateOf_whileStoreIsReplaced(t *testing.T) {
	l, data := applyingLanes(t)
	if err := data.Close(); err != nil {
		t.Fatal(err)
	}
	answer := make(chan fast.ProposalState, 1)
	go func() {
		answer <- l.stateOf(consensus.ProposalID{Session: consensus.SessionID{Member: 1, Number: 1}, Sequence: 1})
	}()
	select {
	case state := <-answer:
		if state != fast.ProposalNoSession {
			t.Errorf("got %d, though nobody opened that session", state)
		}
	case <-time.After(10 * time.Second):
		t.Error("the loop waits for the store")
	}
}
