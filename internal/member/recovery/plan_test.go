package recovery_test

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/internal/base/env"
	"github.com/quorate/quorate/internal/base/testnet"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/raft"
	"github.com/quorate/quorate/internal/consensus/reconfig"
	"github.com/quorate/quorate/internal/identity"
	"github.com/quorate/quorate/internal/member/datadir"
	"github.com/quorate/quorate/internal/member/datadir/datatest"
	"github.com/quorate/quorate/internal/member/recovery"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
	"github.com/quorate/quorate/internal/storage/wal"
	"github.com/quorate/quorate/internal/transport"
)

type ids = []consensus.MemberID

func configEntry(index consensus.Index, term consensus.Term, change consensus.ConfigChange) consensus.Entry {
	return consensus.Entry{
		Index: index, Term: term, Kind: consensus.EntryConfig, Payload: consensus.AppendConfigChange(nil, &change),
	}
}

func membersOf(sets ...ids) consensus.Config {
	c := consensus.Config{Voters: sets[0]}
	if len(sets) > 1 {
		c.Learners = sets[1]
	}
	if len(sets) > 2 {
		c.Outgoing = sets[2]
	}
	all := slices.Concat(sets...)
	slices.Sort(all)
	for _, id := range slices.Compact(all) {
		c.Members = append(c.Members, consensus.Member{ID: id})
	}
	return c
}

// survivor appends to the log of member 1, of 1, 2 and 3, that has three puts of term 2, and closes it.
func survivor(t *testing.T, hard consensus.HardState, more ...consensus.Entry) datadir.Options {
	t.Helper()
	options := datatest.Options()
	data := datatest.Create(t, options, 1)
	entries := append(datatest.Puts(1, 3, 2), more...)
	if err := data.WAL.Append(wal.Batch{Hard: &hard, Entries: entries}); err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, data)
	return options
}

func inspect(t *testing.T, options datadir.Options) *recovery.Survivor {
	t.Helper()
	s, err := recovery.Inspect(options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Ensure that whatever change the log ends in, the survivor becomes the only voter, keeps every command, and takes the
// others for removed.
func TestSurvivor_Plan(t *testing.T) {
	first := consensus.ConfigID{}
	joint := membersOf(ids{1, 4, 5}, nil, ids{1, 2, 3})
	removesSelf := consensus.ConfigChange{Protocol: consensus.ProtocolSingle, Replaces: first,
		Config: membersOf(ids{2, 3}), Tombs: ids{1}}
	activate := consensus.ConfigChange{Protocol: consensus.ProtocolActivate, Replaces: first,
		Config: membersOf(ids{4, 5}, nil, ids{1, 2, 3}), Tombs: ids{1, 2, 3}}
	marked := consensus.ConfigChange{Protocol: consensus.ProtocolSingle, Replaces: first, Config: membersOf(ids{1, 2, 3})}
	marked.Config.Members[0].Cordoned = true
	change := func(protocol consensus.Protocol, c consensus.Config, tombs ...consensus.MemberID) consensus.ConfigChange {
		return consensus.ConfigChange{Protocol: protocol, Replaces: first, Config: c, Tombs: tombs}
	}
	for _, tc := range []struct {
		name     string
		more     []consensus.Entry
		keep     ids
		tombs    ids
		learners ids
		undone   consensus.Index
	}{
		{name: "the founders", tombs: ids{2, 3}},
		{name: "a removal that is not known to have committed",
			more: []consensus.Entry{configEntry(4, 2, change(consensus.ProtocolSingle, membersOf(ids{1, 2}), 3))}, tombs: ids{2, 3}},
		{name: "a newcomer", tombs: ids{2, 3, 4},
			more: []consensus.Entry{configEntry(4, 2, change(consensus.ProtocolSingle, membersOf(ids{1, 2, 3, 4})))}},
		{name: "a joint configuration", more: []consensus.Entry{configEntry(4, 2, change(consensus.ProtocolJoint, joint))},
			tombs: ids{2, 3, 4, 5}},
		{name: "a joint configuration that was left", tombs: ids{2, 3, 4, 5},
			more: []consensus.Entry{configEntry(4, 2, change(consensus.ProtocolJointEarly, joint)),
				configEntry(5, 2, reconfig.Leave(&joint, consensus.ConfigID{Index: 4, Term: 2}, consensus.ProtocolJointEarly))}},
		{name: "a change that waits to be applied", tombs: ids{2, 3, 4},
			more: []consensus.Entry{configEntry(4, 2, change(consensus.ProtocolApply, membersOf(ids{1, 2, 3, 4})))}},
		{name: "a cordoned member", tombs: ids{2, 3}, more: []consensus.Entry{configEntry(4, 2, marked)}},
		{name: "a learner that stays", keep: ids{4}, tombs: ids{2, 3}, learners: ids{4},
			more: []consensus.Entry{configEntry(4, 2, change(consensus.ProtocolSingle, membersOf(ids{1, 2, 3}, ids{4})))}},
		{name: "a learner is what survived", tombs: ids{2, 3},
			more: []consensus.Entry{configEntry(4, 2, change(consensus.ProtocolSingle, membersOf(ids{2, 3}, ids{1})))}},
		{name: "its own removal, not known to have committed", tombs: ids{2, 3}, undone: 4,
			more: append([]consensus.Entry{configEntry(4, 2, removesSelf)}, datatest.Puts(5, 2, 2)...)},
		{name: "its own removal by activation", tombs: ids{2, 3, 4, 5}, undone: 4,
			more: []consensus.Entry{configEntry(4, 2, activate)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			options := survivor(t, consensus.HardState{Term: 3, Commit: 2}, tc.more...)
			s := inspect(t, options)
			if s.Commit > 3+consensus.Index(len(tc.more)) || s.Last.Index != 3+consensus.Index(len(tc.more)) || s.Term != 3 {
				t.Errorf("inspected: commit %d, last %v, term %d", s.Commit, s.Last, s.Term)
			}
			r, err := s.Plan(tc.keep)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(r.Tombs, tc.tombs) || r.Undone != tc.undone || !slices.Equal(r.Config.Learners, tc.learners) {
				t.Errorf("got tombs %v, learners %v, undone %d", r.Tombs, r.Config.Learners, r.Undone)
			}
			if err := r.Write(options); err != nil {
				t.Fatal(err)
			}
			checkRecovered(t, options, s, tc.tombs)
		})
	}
}

// checkRecovered starts the core alone and lets it elect itself; all entries that were there are handed out.
func checkRecovered(t *testing.T, options datadir.Options, before *recovery.Survivor, tombs ids) {
	t.Helper()
	after := inspect(t, options)
	if !after.Alone() {
		t.Errorf("not alone: %+v", after.Config)
	}
	if m, _ := after.Config.Member(1); m.Cordoned {
		t.Error("the only voter is cordoned: it would hand over to the first that joins")
	}
	if len(after.Config.Learners) == 0 {
		if _, err := after.Plan(nil); !errors.Is(err, recovery.ErrOnlyVoter) {
			t.Errorf("a second time: got %v", err)
		}
	}
	data := datatest.Open(t, options)
	defer datatest.Close(t, data)
	want := before.Identity
	want.Epoch = data.Identity.Epoch
	if data.Identity != want || want.Epoch.Number != before.Identity.Epoch.Number+1 || want.Epoch.Recovery == [16]byte{} {
		t.Errorf("identity %v, was %v", data.Identity, before.Identity)
	}
	if owner := data.Machine.Owner(); owner != want {
		t.Errorf("the store is of %v, the log of %v", owner, want)
	}
	replica, err := raft.New(raft.Defaults(1), data.Restored)
	if err != nil {
		t.Fatal(err)
	}
	var applied []consensus.Entry
	inputs := []raft.Input{raft.Tick{}}
	for range 6 {
		out := replica.Step(inputs...)
		applied = append(applied, out.Apply...)
		inputs = []raft.Input{raft.Persisted{Seq: out.Seq}}
		if len(out.Apply) > 0 {
			if _, err := data.Machine.Apply(out.Apply); err != nil {
				t.Fatal(err)
			}
			inputs = append(inputs, raft.Applied{Index: out.Apply[len(out.Apply)-1].Index})
		}
	}
	if replica.Leader() != 1 || replica.Status().Commit <= after.Last.Index {
		t.Fatalf("leader %v, commit %d: it does not elect itself", replica.Leader(), replica.Status().Commit)
	}
	commands := 0
	for _, e := range applied {
		if e.Kind == consensus.EntryCommand {
			commands++
		}
	}
	if want := int(before.Last.Index); commands < 3 || len(applied) < want {
		t.Errorf("applied %d commands in %d entries, want all %d", commands, len(applied), want)
	}
	var buried ids
	for _, tomb := range data.Machine.Tombstones() {
		buried = append(buried, tomb.Member)
	}
	if !slices.Equal(buried, tombs) || !data.Machine.Settled() {
		t.Errorf("buried %v, want %v", buried, tombs)
	}
}

func TestSurvivor_Plan_refuses(t *testing.T) {
	removed := configEntry(4, 2, consensus.ConfigChange{
		Protocol: consensus.ProtocolSingle, Config: membersOf(ids{2, 3}), Tombs: ids{1},
	})
	for _, tc := range []struct {
		name string
		hard consensus.HardState
		more []consensus.Entry
		keep ids
		want string
	}{
		{"a member that knows of its removal", consensus.HardState{Term: 2, Commit: 4}, []consensus.Entry{removed}, nil,
			"removed this member before"},
		{"a voter to be kept", consensus.HardState{Term: 2}, nil, ids{2}, "not a learner"},
		{"a non-member to be kept", consensus.HardState{Term: 2}, nil, ids{7}, "not a learner"},
	} {
		_, err := inspect(t, survivor(t, tc.hard, tc.more...)).Plan(tc.keep)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
	if _, err := recovery.Inspect(datatest.Options()); err == nil || !strings.Contains(err.Error(), "holds no member's data") {
		t.Errorf("an empty directory: got %v", err)
	}
}

func memoryEngine(fs env.FS) func(string) (engine.Engine, error) {
	return func(dir string) (engine.Engine, error) { return engine.OpenMem(engine.MemOptions{FS: fs, Dir: dir}) }
}

// crashAt lets all operations of a file system fail from the given write on, and gives what a crash there leaves.
func crashAt(fs *filestest.MemFS, cut int) (left func() *filestest.MemFS, failing env.FS) {
	var crashed *filestest.MemFS
	done := 0
	failing = filestest.Wrap(fs, filestest.InjectorFunc(func(op filestest.Op) error {
		if op.Kind.ReadOrWrite() == filestest.OpIsRead {
			return nil
		}
		if done++; done <= cut {
			return nil
		}
		if crashed == nil {
			half := filestest.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rand.New(rand.NewPCG(uint64(cut), 1))}
			crashed = fs.CrashClone(half)
		}
		return errors.New("crashed")
	}))
	return func() *filestest.MemFS { return crashed }, failing
}

// Ensure that after a crash at any moment of the one write the log says the old or the new, and nothing between.
func TestPlan_Write_crash(t *testing.T) {
	undo := configEntry(4, 2, consensus.ConfigChange{
		Protocol: consensus.ProtocolSingle, Config: membersOf(ids{2, 3}), Tombs: ids{1},
	})
	for cut := 0; ; cut++ {
		fs := filestest.NewCrashableMem()
		options := datatest.Options()
		options.FS, options.OpenEngine = fs, memoryEngine(fs)
		data := datatest.Create(t, options, 1)
		if err := data.WAL.Append(wal.Batch{
			Hard: &consensus.HardState{Term: 2}, Entries: append(datatest.Puts(1, 3, 2), undo),
		}); err != nil {
			t.Fatal(err)
		}
		datatest.Close(t, data)
		before := inspect(t, options)
		r, err := before.Plan(nil)
		if err != nil {
			t.Fatal(err)
		}
		left, failing := crashAt(fs, cut)
		options.FS = failing // of the log: the store is not written
		if err := r.Write(options); err == nil {
			t.Logf("%d operations", cut)
			return // there are no more
		}
		options.FS, options.OpenEngine = left(), memoryEngine(left())
		after := inspect(t, options)
		switch after.Last {
		case before.Last:
			if after.ConfigID != before.ConfigID {
				t.Errorf("cut at %d: configuration %v of the old log", cut, after.ConfigID)
			}
		case consensus.Position{Index: before.Last.Index + 1, Term: before.Term + 1<<20}:
			if !after.Alone() {
				t.Errorf("cut at %d: the new log does not make it the only voter", cut)
			}
		default:
			t.Errorf("cut at %d: the log ends at %v", cut, after.Last)
		}
	}
}

// Ensure that a survivor whose store a snapshot has put ahead of its log is recovered from there.
func TestSurvivor_Plan_snapshotInstalled(t *testing.T) {
	leader := datatest.Create(t, datatest.Options(), 2)
	defer datatest.Close(t, leader)
	if _, err := leader.Machine.Apply(datatest.Puts(1, 50, 2)); err != nil {
		t.Fatal(err)
	}
	options := datatest.Options()
	data := datatest.Create(t, options, 1)
	if err := data.WAL.Append(wal.Batch{Hard: &consensus.HardState{Term: 2}, Entries: datatest.Puts(1, 9, 1)}); err != nil {
		t.Fatal(err)
	}
	if err := data.Replace(leader.Machine.SnapshotMeta(), datatest.Receive(t, options, leader)); err != nil {
		t.Fatal(err)
	}
	datatest.Close(t, data) // the crash: the log was not told
	s := inspect(t, options)
	if s.Last != (consensus.Position{Index: 50, Term: 2}) || s.Commit != 50 {
		t.Errorf("inspected: last %v, commit %d", s.Last, s.Commit)
	}
	r, err := s.Plan(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(options); err != nil {
		t.Fatal(err)
	}
	data = datatest.Open(t, options)
	defer datatest.Close(t, data)
	if data.Restored.Base.Position.Index != 50 || len(data.Restored.Entries) != 1 || data.Restored.Hard.Commit != 51 {
		t.Errorf("base %v, %d entries, commit %d", data.Restored.Base.Position, len(data.Restored.Entries), data.Restored.Hard.Commit)
	}
	if again := inspect(t, options); !again.Alone() {
		t.Error("it is not alone")
	}
}

func TestSurvivor_Behind(t *testing.T) {
	short := inspect(t, survivor(t, consensus.HardState{Term: 9, Commit: 1}))
	long := inspect(t, survivor(t, consensus.HardState{Term: 2}, datatest.Puts(4, 2, 2)...))
	later := inspect(t, survivor(t, consensus.HardState{Term: 4}, datatest.Puts(4, 1, 4)...))
	if !short.Behind(long) || long.Behind(short) || !long.Behind(later) || later.Behind(long) {
		t.Error("the order is not that of an election")
	}
	if !long.Holds(short) || long.Holds(later) || short.Holds(long) {
		t.Error("a log holds those that are its beginnings, and no others")
	}
}

// answering is a member that answers, and knows no request.
type answering struct{ transport.Handler }

func (answering) Call(context.Context, string, []byte) ([]byte, error) {
	return nil, status.Error(codes.Unimplemented, "unknown request")
}

// Ensure that a voter that answers is not taken for lost although the operator says so, and that a silent one is.
func TestSurvivor_FindVoters_lostButThere(t *testing.T) {
	l, err := net.Listen("tcp", testnet.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	there, err := transport.New(transport.Options{
		Self: identity.Claim{Member: 1, Cluster: 9}, Handler: answering{}, Listeners: []net.Listener{l},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	url := "http://" + l.Addr().String()
	s := &recovery.Survivor{
		Identity: wal.Identity{Cluster: 9, Member: 98},
		Config: consensus.Config{Voters: ids{1, 97, 98}, Members: []consensus.Member{
			{ID: 1, Name: "there", PeerURLs: []string{url}}, {ID: 97, Name: "gone", PeerURLs: []string{"nonsense"}},
		}},
	}
	found := s.FindVoters(t.Context(), s.FinderOver(transport.Options{}), ids{1, 97})
	if len(found) != 2 || found[0].Presence != transport.Present || found[1].Presence != transport.Silent {
		t.Fatalf("got %+v", found)
	}
	if err := s.CheckVoters(found); err == nil || !strings.Contains(err.Error(), "there answers at "+url+": with this") {
		t.Errorf("got %v, want to hear that it is there", err)
	}
}

func TestSurvivor_CheckVoters(t *testing.T) {
	s := inspect(t, survivor(t, consensus.HardState{Term: 2}))
	found := func(two, three transport.Presence) []recovery.Voter {
		return []recovery.Voter{{ID: 2, Name: "m2", Presence: two}, {ID: 3, Name: "m3", Presence: three}}
	}
	for _, tc := range []struct {
		name   string
		found  []recovery.Voter
		wanted string
	}{
		{"silence", found(transport.Silent, transport.Silent), ""},
		{"somebody else at an address", found(transport.Silent, transport.Another), ""},
		{"one that answers", found(transport.Silent, transport.Present), "that is a quorum"},
		{"one that does not say who it is", found(transport.Unsure, transport.Silent), "does not say who it is"},
	} {
		err := s.CheckVoters(tc.found)
		if (err == nil) != (tc.wanted == "") || (err != nil && !strings.Contains(err.Error(), tc.wanted)) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.wanted)
		}
	}
	five := inspect(t, survivor(t, consensus.HardState{Term: 2},
		configEntry(4, 2, consensus.ConfigChange{Protocol: consensus.ProtocolSingle, Config: membersOf(ids{1, 2, 3, 4, 5})})))
	if err := five.CheckVoters(found(transport.Present, transport.Silent)); err == nil ||
		strings.Contains(err.Error(), "quorum") {
		t.Errorf("one of four others: got %v", err)
	}
}

// Ensure that those are looked for, and must be named, who vote in a configuration that may be in force, whatever the last one
// in the log says: without them the rest would be recovered beside a cluster that serves.
func TestSurvivor_FindVoters_notInLast(t *testing.T) {
	for _, protocol := range []consensus.Protocol{consensus.ProtocolApply, consensus.ProtocolJoint} {
		joint := protocol == consensus.ProtocolJoint
		config := membersOf(ids{1})
		if joint {
			config = membersOf(ids{1}, nil, ids{1, 3})
		}
		change := consensus.ConfigChange{Protocol: protocol, Config: config}
		for commit := consensus.Index(3); commit <= 4; commit++ {
			s := inspect(t, survivor(t, consensus.HardState{Term: 2, Commit: commit}, configEntry(4, 2, change)))
			var asked ids
			for _, voter := range s.FindVoters(t.Context(), silent, nil) {
				asked = append(asked, voter.ID)
			}
			slices.Sort(asked)
			want := ids{2, 3}
			switch {
			case commit == 4 && joint:
				want = ids{3}
			case commit == 4:
				want = nil
			}
			if !slices.Equal(asked, want) {
				t.Errorf("%v, commit %d: looked for %v, want %v", protocol, commit, asked, want)
			}
			if alone := s.Quorum(ids{1}); alone != (commit == 4 && !joint) {
				t.Errorf("%v, commit %d: member 1 alone is a quorum: %t", protocol, commit, alone)
			}
			plan, err := s.Plan(nil)
			if commit == 4 && !joint {
				if !errors.Is(err, recovery.ErrOnlyVoter) {
					t.Errorf("the only voter: %v", err)
				}
				continue
			}
			var unnamed *recovery.UnnamedError
			if err != nil || !errors.As(s.CheckNames(plan, nil), &unnamed) || len(unnamed.Names) != len(want) {
				t.Errorf("%v, commit %d: to be named are %+v, %v, want %v", protocol, commit, unnamed, err, want)
			}
		}
	}
}

func silent(context.Context, consensus.MemberID, string) (transport.Presence, error) {
	return transport.Silent, nil
}
