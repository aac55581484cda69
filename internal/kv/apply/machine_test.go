package apply_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/storage/engine"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

// bench is a machine on an engine in memory, or on Pebble on a disk in memory, with a log that its helper methods
// write.
type bench struct {
	t     testing.TB
	lsm   bool
	fs    *filestest.MemFS
	eng   engine.Engine
	m     *apply.Machine
	index consensus.Index
	log   []consensus.Entry
	gone  int // results whose values were compacted before they were read
}

func newBench(t testing.TB) *bench { return newBenchOn(t, false) }

func newBenchOn(t testing.TB, lsm bool) *bench {
	b := &bench{t: t, fs: filestest.NewCrashableMem(), lsm: lsm}
	b.openEngine()
	if err := apply.Bootstrap(b.eng, 77, consensus.Config{Voters: []consensus.MemberID{1}}); err != nil {
		t.Fatal(err)
	}
	b.open()
	return b
}

func (b *bench) openEngine() {
	if b.lsm {
		eng, err := engine.Open(engine.Options{FS: b.fs, Dir: "store"})
		if err != nil {
			b.t.Fatal(err)
		}
		b.eng = eng
		return
	}
	eng, err := engine.OpenMem(engine.MemOptions{FS: b.fs, Dir: "store"})
	if err != nil {
		b.t.Fatal(err)
	}
	b.eng = eng
}

func (b *bench) open() { b.openWith(nil) }

// openWith opens a machine on the engine, with the hub of the one before.
func (b *bench) openWith(hub *watch.Hub) {
	m, err := apply.Open(b.eng, apply.Options{Hub: hub})
	if err != nil {
		b.t.Fatal(err)
	}
	b.m = m
}

// entry appends a command to the log.
func (b *bench) entry(cmd kv.Command) *consensus.Entry {
	b.index++
	b.log = append(b.log, consensus.Entry{
		Index: b.index, Term: 1, Kind: consensus.EntryCommand, Payload: cmd.Append(nil),
	})
	return &b.log[len(b.log)-1]
}

func (b *bench) apply(entries ...consensus.Entry) []kv.Result {
	b.t.Helper()
	results, err := b.m.ApplyFor(entries, answerAll)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := range results {
		b.complete(&entries[i], &results[i])
	}
	return results
}

// unlimited is an account without a limit.
type unlimited struct{}

func (unlimited) Take(int) error { return nil }
func (unlimited) Walk(int) error { return nil }
func (unlimited) Release()       {}

func answerAll(consensus.ProposalID) kv.Account { return unlimited{} }

// complete completes a result as the answering code does.
func (b *bench) complete(e *consensus.Entry, res *kv.Result) {
	b.t.Helper()
	if cmd, err := kv.DecodeCommand(e.Payload); err == nil { // an abort that came second has no command
		err := b.m.Recall(&cmd, res, unlimited{})
		if err != nil && !errors.Is(err, kv.ErrResultGone) {
			b.t.Error(err)
		}
	}
	res.Memory = nil
}

// do applies one command by itself.
func (b *bench) do(cmd kv.Command) kv.Result {
	b.t.Helper()
	return b.apply(*b.entry(cmd))[0]
}

// propose applies one command under a proposal id.
func (b *bench) propose(id consensus.ProposalID, cmd kv.Command) kv.Result {
	b.t.Helper()
	e := b.entry(cmd)
	e.Proposal = id
	return b.apply(*e)[0]
}

func (b *bench) get(key string) *kv.KeyValue {
	b.t.Helper()
	found, err := b.m.Store().Get([]byte(key))
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

func (b *bench) want(what string, got kv.Result, want kv.Result) {
	b.t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateErrors()); diff != "" {
		b.t.Errorf("%s: want -, got +\n%s", what, diff)
	}
}

func put(key, value string) kv.Command {
	return kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: []byte(value)}}
}

func putLease(key string, id kv.LeaseID) kv.Command {
	return kv.Command{Put: &kv.PutOp{Key: []byte(key), Lease: id}}
}

func del(key, end string) kv.Command {
	return kv.Command{Delete: &kv.DeleteOp{Key: []byte(key), End: []byte(end)}}
}

func grant(id kv.LeaseID) kv.Command {
	return kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: id, TTLSeconds: 60}}
}

func revoke(id kv.LeaseID) kv.Command { return kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: id}} }

func rangeOp(key string) kv.Op { return kv.Op{Range: &kv.RangeOp{Key: []byte(key)}} }

func txn(op kv.TxnOp) kv.Command { return kv.Command{Txn: &op} }

func TestMachine_Apply_revisions(t *testing.T) {
	b := newBench(t)
	b.want("a put takes the next revision", b.do(put("a", "1")), kv.Result{Revision: 2, Put: &kv.PutResult{}})
	b.want("deleting nothing takes none", b.do(del("x", "")), kv.Result{Revision: 2, Delete: &kv.DeleteResult{}})
	b.do(put("b", "1"))
	got := b.do(kv.Command{Delete: &kv.DeleteOp{Key: []byte("a"), End: []byte{0}, PrevKV: true}})
	b.want("a delete of many takes one", got, kv.Result{Revision: 4, Delete: &kv.DeleteResult{Deleted: 2,
		Prevs: []kv.KeyValue{
			{Key: []byte("a"), Value: []byte("1"), CreateRevision: 2, ModRevision: 2, Version: 1},
			{Key: []byte("b"), Value: []byte("1"), CreateRevision: 3, ModRevision: 3, Version: 1},
		}}})
	results := b.apply(*b.entry(put("c", "1")), *b.entry(del("c", "")), *b.entry(put("c", "2")))
	if results[0].Revision != 5 || results[1].Revision != 6 || results[2].Revision != 7 {
		t.Errorf("three commands of one batch: %+v", results)
	}
	b.want("an empty txn changes nothing", b.do(txn(kv.TxnOp{})),
		kv.Result{Revision: 7, Txn: &kv.TxnResult{Succeeded: true}})
}

func TestMachine_Apply_exact_revisions(t *testing.T) {
	b := newBench(t)
	b.do(put("a", "1"))
	exact := func(rev uint64, cmd kv.Command) kv.Result {
		e := b.entry(cmd)
		e.ExactRevision = rev
		return b.apply(*e)[0]
	}
	b.want("ahead of the store it is taken as it is", exact(9, put("a", "2")),
		kv.Result{Revision: 9, Put: &kv.PutResult{}})
	b.want("equal to the store it is skipped", exact(9, put("a", "3")), kv.Result{Revision: 9, Err: kv.ErrSkipped})
	b.want("below the store it is skipped", exact(5, put("a", "3")), kv.Result{Revision: 9, Err: kv.ErrSkipped})
	b.want("the next slow one goes on from there", b.do(put("b", "1")), kv.Result{Revision: 10, Put: &kv.PutResult{}})
	b.want("without effect it takes no revision", exact(20, del("zz", "")),
		kv.Result{Revision: 10, Delete: &kv.DeleteResult{}})
	if got := b.get("a"); string(got.Value) != "2" || got.ModRevision != 9 {
		t.Errorf("a is %+v", got)
	}
}

func TestMachine_Apply_skipped_leaves_no_result(t *testing.T) {
	b := newBench(t)
	s := openSession(b, 1, 5)
	b.do(put("a", "1"))
	e := b.entry(put("a", "2"))
	e.Proposal, e.ExactRevision = s(2), 2
	b.want("skipped", b.apply(*e)[0], kv.Result{Revision: 2, Err: kv.ErrSkipped})
	b.want("the same proposal, slow", b.propose(s(2), put("a", "2")), kv.Result{Revision: 3, Put: &kv.PutResult{}})
	e = b.entry(put("a", "2"))
	e.Proposal, e.ExactRevision = s(2), 50
	b.want("the same proposal again, exact", b.apply(*e)[0], kv.Result{Revision: 3, Put: &kv.PutResult{}})
	if got := b.m.Store().Revision(); got != 3 {
		t.Errorf("the store is at %d, want 3", got)
	}
}

func TestMachine_Apply_put_rules(t *testing.T) {
	b := newBench(t)
	ignore := func(key string, value, lease bool) kv.Command {
		return kv.Command{Put: &kv.PutOp{Key: []byte(key), IgnoreValue: value, IgnoreLease: lease, PrevKV: true}}
	}
	b.want("ignore_value of a missing key", b.do(ignore("k", true, false)), kv.Result{Revision: 1, Err: kv.ErrKeyNotFound})
	b.want("ignore_lease of a missing key", b.do(ignore("k", false, true)), kv.Result{Revision: 1, Err: kv.ErrKeyNotFound})
	b.want("an unknown lease", b.do(putLease("k", 4)), kv.Result{Revision: 1, Err: kv.ErrLeaseNotFound})
	b.do(grant(4))
	b.do(kv.Command{Put: &kv.PutOp{Key: []byte("k"), Value: []byte("v"), Lease: 4}})
	first := &kv.KeyValue{Key: []byte("k"), Value: []byte("v"), CreateRevision: 2, ModRevision: 2, Version: 1, Lease: 4}
	b.want("keeping the value", b.do(ignore("k", true, false)), kv.Result{Revision: 3, Put: &kv.PutResult{Prev: first}})
	if got := b.get("k"); string(got.Value) != "v" || got.Lease != 0 || got.Version != 2 {
		t.Errorf("after ignore_value: %+v", got)
	}
	if keys := b.leaseKeys(4); len(keys) != 0 {
		t.Errorf("a put without lease leaves %v on the old one", keys)
	}
	b.do(putLease("k", 4))
	b.do(ignore("k", false, true))
	if got := b.get("k"); got.Lease != 4 || len(got.Value) != 0 {
		t.Errorf("after ignore_lease: %+v", got)
	}
	if keys := b.leaseKeys(4); !slices.Equal(keys, []string{"k"}) {
		t.Errorf("ignore_lease leaves %v on it", keys)
	}
}

func TestMachine_Apply_leases(t *testing.T) {
	b := newBench(t)
	b.want("a grant takes no revision", b.do(grant(7)),
		kv.Result{Revision: 1, Lease: &kv.LeaseResult{ID: 7, TTLSeconds: 60}})
	b.want("an id in use", b.do(grant(7)), kv.Result{Revision: 1, Err: kv.ErrLeaseExists})
	tooLong := kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: 8, TTLSeconds: kv.MaxLeaseTTLSeconds + 1}}
	b.want("a TTL above the maximum", b.do(tooLong), kv.Result{Revision: 1, Err: kv.ErrLeaseTTLTooBig})
	b.want("an unknown one", b.do(revoke(9)), kv.Result{Revision: 1, Err: kv.ErrLeaseNotFound})
	b.do(putLease("b", 7))
	b.do(putLease("a", 7))
	b.do(putLease("c", 7))
	b.do(del("c", ""))
	stream := b.m.Hub().Open()
	defer stream.Close()
	stream.Create(watchAll())
	b.want("a revocation is one revision", b.do(revoke(7)), kv.Result{Revision: 6})
	if got := deleted(t, stream); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("deleted %v, want a before b, and not c", got)
	}
	b.do(grant(7))
	b.want("without keys it takes no revision", b.do(revoke(7)), kv.Result{Revision: 6})
}

func TestMachine_Apply_lease_end_of_a_former_leader(t *testing.T) {
	b := newBench(t)
	b.do(grant(7))
	b.do(putLease("a", 7))
	found := func(term uint64) kv.Command { return kv.Command{LeaseRevoke: &kv.LeaseRevokeOp{ID: 7, Term: term}} }
	b.want("the entry is of a later term", b.do(found(9)), kv.Result{Revision: 2, Err: kv.ErrDeposed})
	if keys, ok := b.leaseKeys(7), b.m.Leases().Exists(7); !ok || len(keys) != 1 {
		t.Errorf("lease 7 has %v, %v", keys, ok)
	}
	b.want("the entry is of its term", b.do(found(1)), kv.Result{Revision: 3})
}

func TestMachine_Apply_txn_rules(t *testing.T) {
	b := newBench(t)
	b.do(put("a", "1"))
	modIs := func(key string, rev int64) kv.Compare {
		return kv.Compare{Key: []byte(key), Target: kv.CompareMod, Result: kv.CompareEqual, Number: rev}
	}
	first := kv.KeyValue{Key: []byte("a"), Value: []byte("1"), CreateRevision: 2, ModRevision: 2, Version: 1}

	got := b.do(txn(kv.TxnOp{
		Compares: []kv.Compare{modIs("a", 2)},
		Then: []kv.Op{rangeOp("a"), {Put: put("a", "2").Put}, rangeOp("a"),
			// The nested compare sees the state before the transaction, not the put above.
			{Txn: &kv.TxnOp{Compares: []kv.Compare{modIs("a", 2)}, Then: []kv.Op{{Delete: del("q", "").Delete}}}}},
		Else: []kv.Op{{Put: put("z", "").Put}},
	}))
	second := kv.KeyValue{Key: []byte("a"), Value: []byte("2"), CreateRevision: 2, ModRevision: 3, Version: 2}
	b.want("operations see earlier ones, compares do not", got, kv.Result{Revision: 3, Txn: &kv.TxnResult{
		Succeeded: true,
		Responses: []kv.OpResult{
			{Revision: 2, Range: &kv.RangeResult{KVs: []kv.KeyValue{first}, Count: 1}},
			{Revision: 3, Put: &kv.PutResult{}},
			{Revision: 3, Range: &kv.RangeResult{KVs: []kv.KeyValue{second}, Count: 1}},
			{Txn: &kv.TxnResult{Succeeded: true, Responses: []kv.OpResult{{Revision: 3, Delete: &kv.DeleteResult{}}}}},
		}}})

	got = b.do(txn(kv.TxnOp{Compares: []kv.Compare{modIs("a", 2)}, Else: []kv.Op{rangeOp("a")}}))
	b.want("a failed compare takes the other list, and reading takes no revision", got,
		kv.Result{Revision: 3, Txn: &kv.TxnResult{Responses: []kv.OpResult{
			{Revision: 3, Range: &kv.RangeResult{KVs: []kv.KeyValue{second}, Count: 1}}}}})
}

func TestMachine_Apply_txn_rejected_as_a_whole(t *testing.T) {
	b := newBench(t)
	b.do(put("a", "1"))
	b.do(put("b", "1"))
	b.do(put("b", "2"))
	b.do(kv.Command{Compact: &kv.CompactOp{Revision: 3}})
	at := func(rev kv.Revision) kv.Op { return kv.Op{Range: &kv.RangeOp{Key: []byte("a"), Revision: rev}} }
	write := kv.Op{Put: put("a", "9").Put}
	nested := func(op kv.Op) kv.Op { return kv.Op{Txn: &kv.TxnOp{Then: []kv.Op{op}}} }
	cases := []struct {
		name string
		ops  []kv.Op
		want error
	}{
		{"an unknown lease after a write", []kv.Op{write, {Put: putLease("c", 5).Put}}, kv.ErrLeaseNotFound},
		{"a future revision, though the txn itself reaches it", []kv.Op{write, at(5)}, kv.ErrFutureRevision},
		{"a compacted revision", []kv.Op{write, at(2)}, kv.ErrCompacted},
		{"the same in a nested txn", []kv.Op{write, nested(nested(at(2)))}, kv.ErrCompacted},
		{"ignore_value of a key that only this txn writes", []kv.Op{
			{Put: put("n", "1").Put}, {Put: &kv.PutOp{Key: []byte("n"), IgnoreValue: true}}}, kv.ErrKeyNotFound},
	}
	for _, c := range cases {
		b.want(c.name, b.do(txn(kv.TxnOp{Then: c.ops})), kv.Result{Revision: 4, Err: c.want})
	}
	if got := b.get("a"); string(got.Value) != "1" {
		t.Errorf("a rejected txn wrote %q", got.Value)
	}
	branch := txn(kv.TxnOp{Else: []kv.Op{at(99)}})
	if got := b.do(branch); got.Err != nil {
		t.Errorf("the branch not taken is not checked: %v", got.Err)
	}
}

func TestMachine_Apply_compact(t *testing.T) {
	b := newBench(t)
	for i := 0; i < 4; i++ {
		b.do(put("a", "1"))
	}
	compact := func(rev kv.Revision) error { return b.do(kv.Command{Compact: &kv.CompactOp{Revision: rev}}).Err }
	if err := compact(6); !errors.Is(err, kv.ErrFutureRevision) {
		t.Errorf("beyond the store: %v", err)
	}
	if err := compact(5); err != nil {
		t.Errorf("the current revision: %v", err)
	}
	for _, rev := range []kv.Revision{5, 3} {
		if err := compact(rev); !errors.Is(err, kv.ErrCompacted) {
			t.Errorf("revision %d a second time: %v", rev, err)
		}
	}
}

func TestMachine_Apply_alarms(t *testing.T) {
	b := newBench(t)
	b.do(put("a", "1"))
	b.do(grant(1))
	alarm := func(on bool, member uint64, kind kv.AlarmKind) kv.Command {
		return kv.Command{Alarm: &kv.AlarmOp{Activate: on, Member: member, Kind: kind}}
	}
	putOrDelete := txn(kv.TxnOp{Then: []kv.Op{rangeOp("a")}, Else: []kv.Op{{Put: put("a", "").Put}}})
	onlyDelete := txn(kv.TxnOp{Then: []kv.Op{{Delete: del("q", "").Delete}}})
	onlyRead := txn(kv.TxnOp{Then: []kv.Op{rangeOp("a")}})
	nestedPut := txn(kv.TxnOp{Then: []kv.Op{{Txn: putOrDelete.Txn}}})
	check := func(when string, cmd kv.Command, want error) {
		t.Helper()
		if got := b.do(cmd).Err; !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}

	b.want("raised", b.do(alarm(true, 9, kv.AlarmNoSpace)),
		kv.Result{Revision: 2, Alarms: []kv.Alarm{{Member: 9, Kind: kv.AlarmNoSpace}}})
	b.want("raised again", b.do(alarm(true, 9, kv.AlarmNoSpace)),
		kv.Result{Revision: 2, Alarms: []kv.Alarm{{Member: 9, Kind: kv.AlarmNoSpace}}})
	for name, cmd := range map[string]kv.Command{
		"put": put("a", "2"), "grant": grant(2), "txn with a put in any branch": putOrDelete, "nested put": nestedPut,
	} {
		check("no space, "+name, cmd, kv.ErrNoSpace)
	}
	check("no space, delete", del("q", ""), nil)
	check("no space, txn of deletes", onlyDelete, nil)
	check("no space, txn of reads", onlyRead, nil)
	check("no space, compact", kv.Command{Compact: &kv.CompactOp{Revision: 2}}, nil)
	check("no space, revoke", revoke(1), nil)

	b.do(alarm(true, 3, kv.AlarmCorrupt))
	check("one member is corrupt, delete", del("q", ""), nil)
	b.do(alarm(false, 3, kv.AlarmCorrupt))
	b.do(alarm(true, 0, kv.AlarmCorrupt))
	for name, cmd := range map[string]kv.Command{
		"put": put("a", "2"), "delete": del("a", ""), "grant": grant(2), "revoke": revoke(1), "txn of deletes": onlyDelete,
		"compact": {Compact: &kv.CompactOp{Revision: 2}},
	} {
		check("corrupt, "+name, cmd, kv.ErrCorrupt)
	}
	check("corrupt, txn of reads", onlyRead, nil)
	want := []kv.Alarm{{Member: 0, Kind: kv.AlarmCorrupt}, {Member: 9, Kind: kv.AlarmNoSpace}}
	if got := b.m.Alarms(); !slices.Equal(got, want) {
		t.Errorf("alarms %v, want %v", got, want)
	}
	b.open()
	if got := b.m.Alarms(); !slices.Equal(got, want) {
		t.Errorf("opened again, alarms %v, want %v", got, want)
	}
	check("opened again", put("a", "2"), kv.ErrCorrupt)
	b.want("disarming all members", b.do(alarm(false, 0, kv.AlarmCorrupt)),
		kv.Result{Revision: 2, Alarms: []kv.Alarm{{Member: 0, Kind: kv.AlarmCorrupt}}})
	check("corruption disarmed, space not", put("a", "2"), kv.ErrNoSpace)
	b.do(alarm(false, 9, kv.AlarmNone))
	check("all disarmed", put("a", "2"), nil)
	b.want("disarming nothing", b.do(alarm(false, 9, kv.AlarmNoSpace)), kv.Result{Revision: 3})
}

func TestMachine_Apply_noop_and_garbage(t *testing.T) {
	b := newBench(t)
	b.index++
	b.want("a noop", b.apply(consensus.Entry{Index: b.index, Term: 1, Kind: consensus.EntryNoop})[0],
		kv.Result{Revision: 1})
	b.index++
	garbage := consensus.Entry{Index: b.index, Term: 2, Kind: consensus.EntryCommand, Payload: []byte{1, 1}}
	b.want("garbage is rejected, everywhere alike", b.apply(garbage)[0], kv.Result{Revision: 1, Err: kv.ErrBadCommand})
	if got := b.m.Applied(); got != garbage.Position() {
		t.Errorf("applied %v, want %v", got, garbage.Position())
	}
	b.index++
	bad := consensus.Entry{Index: b.index, Term: 2, Kind: consensus.EntryConfig, Payload: []byte{1, 0}}
	if _, err := b.m.Apply([]consensus.Entry{bad}); !errors.Is(err, apply.ErrBadEntry) {
		t.Errorf("a configuration that does not decode: %v", err)
	}
	if _, err := b.m.Apply([]consensus.Entry{garbage}); !errors.Is(err, apply.ErrBadEntry) {
		t.Errorf("after an operating error: %v", err)
	}
}

// Ensure that an entry of a later build that is not a command, or brings a configuration of a later form, stops the member with
// what to do.
func TestMachine_Apply_laterEntry(t *testing.T) {
	for name, e := range map[string]consensus.Entry{
		"kind":          {Kind: consensus.EntryAbort + 1},
		"configuration": {Kind: consensus.EntryConfig, Payload: []byte{2}},
		"notice":        {Kind: consensus.EntryNoop, Payload: []byte{1, 1, 2}},
	} {
		b := newBench(t)
		e.Index, e.Term = b.m.Applied().Index+1, 2
		if _, err := b.m.Apply([]consensus.Entry{e}); !errors.Is(err, apply.ErrLaterEntry) || errors.Is(err, apply.ErrBadEntry) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMachine_Published(t *testing.T) {
	b := newBench(t)
	op := kv.PublishOp{Member: 4, Name: "n4", ClientURLs: []string{"http://x"}, Version: "0.1", Zone: "r7"}
	b.do(kv.Command{Publish: &op})
	for _, when := range []string{"at once", "opened again"} {
		got, ok := b.m.Published(4)
		if diff := cmp.Diff(op, got); !ok || diff != "" {
			t.Errorf("%s: %v %s", when, ok, diff)
		}
		b.open()
	}
}

func TestBootstrap_errors(t *testing.T) {
	b := &bench{t: t, fs: filestest.NewCrashableMem()}
	b.openEngine()
	if _, err := apply.Open(b.eng, apply.Options{}); !errors.Is(err, apply.ErrNotBootstrapped) {
		t.Errorf("an empty store: %v", err)
	}
	if err := apply.Bootstrap(b.eng, 1, consensus.Config{}); err != nil {
		t.Fatal(err)
	}
	if err := apply.Bootstrap(b.eng, 1, consensus.Config{}); !errors.Is(err, apply.ErrBootstrapped) {
		t.Errorf("twice: %v", err)
	}
	b.open()
	if b.m.Cluster() != 1 || b.m.Applied() != (consensus.Position{}) || b.m.Store().Revision() != 1 {
		t.Errorf("cluster %v, applied %v, revision %d", b.m.Cluster(), b.m.Applied(), b.m.Store().Revision())
	}
}
