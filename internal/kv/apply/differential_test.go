package apply_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand"
	randv2 "math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/kv/apply"
	"github.com/quorate/quorate/internal/kv/watch"
	"github.com/quorate/quorate/internal/storage/files/filestest"
)

var sameResults = cmp.Options{cmpopts.EquateEmpty(), cmpopts.EquateErrors()}

// generator draws commands that conflict often: few keys, leases, members and sessions.
type generator struct {
	rng      *rand.Rand
	revision kv.Revision // of the store, about
	sequence map[consensus.SessionID]uint64
}

func (g *generator) key() []byte { return []byte{byte('a' + g.rng.Intn(6))} }

func (g *generator) end() []byte {
	return [][]byte{nil, nil, {0}, {byte('a' + g.rng.Intn(8))}}[g.rng.Intn(4)]
}

func (g *generator) lease() kv.LeaseID { return kv.LeaseID(g.rng.Intn(4)) }

func (g *generator) putOp() *kv.PutOp {
	op := &kv.PutOp{Key: g.key(), PrevKV: g.rng.Intn(2) == 0}
	switch g.rng.Intn(8) {
	case 0:
		op.IgnoreValue = true
	case 1:
		op.IgnoreLease, op.Value = true, []byte("v")
	default:
		op.Value = fmt.Appendf(nil, "%d", g.rng.Intn(4))
	}
	if !op.IgnoreLease && g.rng.Intn(2) == 0 {
		op.Lease = g.lease()
	}
	return op
}

func (g *generator) deleteOp() *kv.DeleteOp {
	return &kv.DeleteOp{Key: g.key(), End: g.end(), PrevKV: g.rng.Intn(2) == 0}
}

func (g *generator) ops(depth int, deleted *bool) (ops []kv.Op) {
	for i := g.rng.Intn(4); i > 0; i-- {
		switch g.rng.Intn(5) {
		case 0, 1:
			op := g.putOp()
			if *deleted { // proposers refuse to put a key that the same transaction deletes
				op.IgnoreValue, op.IgnoreLease = false, false
			}
			ops = append(ops, kv.Op{Put: op})
		case 2:
			*deleted = true
			ops = append(ops, kv.Op{Delete: g.deleteOp()})
		case 3:
			rev := kv.Revision(0)
			if g.rng.Intn(3) == 0 {
				rev = g.revision + 2 - kv.Revision(g.rng.Intn(12))
			}
			ops = append(ops, kv.Op{Range: &kv.RangeOp{Key: g.key(), End: g.end(), Revision: rev}})
		default:
			if depth < 3 {
				ops = append(ops, kv.Op{Txn: g.txn(depth+1, deleted)})
			}
		}
	}
	return ops
}

func (g *generator) txn(depth int, deleted *bool) *kv.TxnOp {
	op := &kv.TxnOp{}
	for i := g.rng.Intn(3); i > 0; i-- {
		op.Compares = append(op.Compares, kv.Compare{
			Key: g.key(), End: g.end(), Target: kv.CompareTarget(g.rng.Intn(5)), Result: kv.CompareResult(g.rng.Intn(4)),
			Number: []int64{0, 1, 2, int64(g.revision) - 1}[g.rng.Intn(4)], Value: fmt.Appendf(nil, "%d", g.rng.Intn(4)),
		})
	}
	op.Then = g.ops(depth, deleted)
	op.Else = g.ops(depth, deleted)
	return op
}

func (g *generator) jobOp() *kv.JobOp {
	op := &kv.JobOp{
		ID: uint64(g.rng.Intn(5)), Version: uint64(g.rng.Intn(4)), Body: fmt.Appendf(nil, "%d", g.rng.Intn(100)),
	}
	for i := g.rng.Intn(3); i > 0; i-- {
		op.Prune = append(op.Prune, uint64(g.rng.Intn(6)))
	}
	if g.rng.Intn(20) == 0 {
		op.Body = make([]byte, kv.MaxJobBytes+1)
	}
	return op
}

func (g *generator) command() kv.Command {
	switch g.rng.Intn(21) {
	case 0:
		return kv.Command{LeaseGrant: &kv.LeaseGrantOp{ID: g.lease() + 1, TTLSeconds: int64(g.rng.Intn(9))}}
	case 1:
		return revoke(g.lease() + 1)
	case 2:
		return kv.Command{Compact: &kv.CompactOp{Revision: g.revision + 1 - kv.Revision(g.rng.Intn(15))}}
	case 3:
		// Disarmed far more often than raised, so that other commands are not rejected all the time.
		return kv.Command{Alarm: &kv.AlarmOp{Activate: g.rng.Intn(6) == 0, Member: uint64(1 + g.rng.Intn(2)),
			Kind: kv.AlarmKind(1 + g.rng.Intn(2))}}
	case 4:
		return retire(uint64(1+g.rng.Intn(2)), uint64(g.rng.Intn(4)))
	case 20:
		return kv.Command{Job: g.jobOp()}
	case 5, 6, 7:
		return kv.Command{Delete: g.deleteOp()}
	case 8, 9, 10, 11, 12, 13:
		deleted := false
		return kv.Command{Txn: g.txn(0, &deleted)}
	}
	return kv.Command{Put: g.putOp()}
}

// entry draws an entry; sometimes a repeated one, an exact one, or one that opens a session.
func (g *generator) entry(log []consensus.Entry) (e consensus.Entry, cmd kv.Command) {
	cmd = g.command()
	session := sessionOf(uint64(1+g.rng.Intn(2)), uint64(g.rng.Intn(6)))
	switch g.rng.Intn(10) {
	case 0:
		cmd = open(uint64(session.Member), session.Number, uint64(g.rng.Intn(6)), uint64(g.rng.Intn(6)))
		e.Proposal = consensus.ProposalID{Session: session, Sequence: 1}
	case 1, 2, 3, 4:
		if g.sequence[session] == 0 {
			g.sequence[session] = 1
		}
		g.sequence[session]++
		e.Proposal = consensus.ProposalID{Session: session, Sequence: g.sequence[session]}
	case 5:
		if len(log) > 0 {
			e = log[max(0, len(log)-1-g.rng.Intn(30))]
		}
	}
	if e.Kind == consensus.EntryCommand { // a repeated entry
		again, err := kv.DecodeCommand(e.Payload)
		if err != nil {
			panic(err)
		}
		cmd = again
	}
	e.ExactRevision = 0
	if g.rng.Intn(8) == 0 {
		e.ExactRevision = uint64(max(1, g.revision+3-kv.Revision(g.rng.Intn(5))))
	}
	e.Index, e.Term, e.Kind, e.Payload = consensus.Index(len(log)+1), 1, consensus.EntryCommand, cmd.Append(nil)
	if !e.Proposal.IsZero() && g.rng.Intn(20) == 0 {
		e.Kind, e.Payload, e.ExactRevision, cmd = consensus.EntryAbort, nil, 0, kv.Command{}
	}
	return e, cmd
}

// The machine, which applies batches, against the model, which applies one entry at a time: results, state, leases and events
// must agree, also after the machine was opened again from the state after a crash and the log was applied again.
func TestMachine_against_model(t *testing.T) {
	seeds := int64(60)
	if testing.Short() {
		seeds = 10 // the last one has an engine on disk
	}
	for seed := int64(1); seed <= seeds; seed++ {
		lsm := seed%10 == 0
		differential(t, seed, 600, lsm)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func differential(t *testing.T, seed int64, steps int, lsm bool) {
	rng := rand.New(rand.NewSource(seed))
	g := &generator{rng: rng, revision: 1, sequence: map[consensus.SessionID]uint64{}}
	want := newModel()
	b := newBenchOn(t, lsm)
	defer func() {
		if err := b.eng.Close(); err != nil {
			t.Error(err)
		}
	}()
	var results []kv.Result // by log index, from 1
	seen := &observer{t: t, stream: b.m.Hub().Open()}
	seen.stream.Create(watch.Request{Key: []byte{0}, End: []byte{0}, PrevKV: true})
	for len(b.log) < steps {
		first := len(b.log)
		for i := 1 + rng.Intn(8); i > 0; i-- {
			e, cmd := g.entry(b.log)
			b.log = append(b.log, e)
			results = append(results, want.apply(&e, cmd))
			g.revision = want.revision
		}
		b.checkResults(b.apply(b.log[first:]...), results[first:], first)
		switch rng.Intn(12) {
		case 0:
			b.flush()
		case 1:
			if _, err := b.m.Store().CompactStep(3); err != nil {
				t.Fatal(err)
			}
		case 2:
			b.crash(rng)
			b.repeat(results)
		case 3, 4:
			seen.poll()
		}
		if t.Failed() {
			return
		}
	}
	b.checkState(want)
	seen.check(want.events)
	seen.stream.Close()
}

func (b *bench) checkResults(got, want []kv.Result, from int) {
	b.t.Helper()
	for i := range got {
		if got[i].Left != nil { // its history is compacted: the remaining fields must be right
			b.gone++
			if got[i].Err != want[i].Err || got[i].Revision != want[i].Revision {
				b.t.Errorf("entry %+v: %+v is left of %+v", b.log[from+i], got[i], want[i])
			}
			continue
		}
		if diff := cmp.Diff(want[i], got[i], sameResults); diff != "" {
			cmd, _ := kv.DecodeCommand(b.log[from+i].Payload)
			b.t.Errorf("entry %+v %+v: want -, got +\n%s", b.log[from+i], cmd, diff)
		}
	}
}

func (b *bench) flush() {
	if err := b.eng.Flush(); err != nil {
		b.t.Fatal(err)
	}
	if got, err := b.m.DurableApplied(); err != nil || got != b.m.Applied() {
		b.t.Errorf("after a flush %v is durable of %v, %v", got, b.m.Applied(), err)
	}
}

// crash loses writes that were not synced, and opens a machine that continues with the same hub.
func (b *bench) crash(rng *rand.Rand) {
	durable, err := b.m.DurableApplied()
	if err != nil {
		b.t.Fatal(err)
	}
	b.m.Detach()
	hub := b.m.Hub()
	if err := b.eng.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.fs = b.fs.CrashClone(filestest.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: randv2.New(randv2.NewPCG(rng.Uint64(), 0))})
	b.openEngine()
	b.openWith(hub)
	if got := b.m.Applied(); got != durable {
		b.t.Errorf("after a crash %v is applied, %v was durable", got, durable)
	}
}

// repeat applies the rest of the log again; the results must be the same.
func (b *bench) repeat(results []kv.Result) {
	from := int(b.m.Applied().Index)
	if from < len(b.log) {
		b.checkResults(b.apply(b.log[from:]...), results[from:], from)
	}
}

func (b *bench) checkState(want *model) {
	b.t.Helper()
	got, rev, err := b.m.Store().Range(&kv.RangeOp{Key: []byte{0}, End: []byte{0}})
	if err != nil {
		b.t.Fatal(err)
	}
	var pairs []kv.KeyValue
	for _, key := range sortedKeys(want.now) {
		pairs = append(pairs, want.now[key])
	}
	if diff := cmp.Diff(pairs, got.KVs, sameResults); diff != "" || rev != want.revision {
		b.t.Errorf("state at %d, want %d: want -, got +\n%s", rev, want.revision, diff)
	}
	for id := kv.LeaseID(0); id < 6; id++ {
		var hang []string
		for _, key := range sortedKeys(want.now) {
			if id != 0 && want.now[key].Lease == id {
				hang = append(hang, key)
			}
		}
		keys, ok := b.leaseKeys(id), b.m.Leases().Exists(id)
		if n, _ := b.m.Leases().KeysSize(id); n != len(keys) {
			b.t.Errorf("lease %d: %d keys counted, and %d hang on it", id, n, len(keys))
		}
		if ok != want.leases[id] || !slices.Equal(keys, hang) {
			b.t.Errorf("lease %d: %v %v, want %v %v", id, ok, keys, want.leases[id], hang)
		}
	}
	var jobs []apply.Job
	for _, id := range slices.Sorted(maps.Keys(want.jobs)) {
		jobs = append(jobs, want.jobs[id])
	}
	if diff := cmp.Diff(jobs, b.m.Jobs(), sameResults); diff != "" {
		b.t.Errorf("jobs: want -, got +\n%s", diff)
	}
	for id, res := range want.results {
		got, ok, err := b.m.Result(id)
		if got.Left != nil {
			cmd := want.commands[id]
			if err := b.m.Recall(&cmd, &got, unlimited{}); errors.Is(err, kv.ErrResultGone) {
				got = res
			}
			got.Memory = nil
		}
		if diff := cmp.Diff(res, got, sameResults); !ok || err != nil || diff != "" {
			b.t.Errorf("result of %v: %v %v %s", id, ok, err, diff)
		}
	}
	for _, id := range slices.Collect(maps.Keys(want.retired)) {
		if b.m.SessionOpen(id) {
			b.t.Errorf("session %v is open", id)
		}
	}
}

// observer reads a stream that has watched everything from the start.
type observer struct {
	t         *testing.T
	stream    *watch.Stream
	events    []kv.Event
	overtaken bool // by a compaction: legal for an observer that reads as rarely as this
}

// poll takes the responses that are ready, without waiting.
func (o *observer) poll() {
	o.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for {
		responses, err := o.stream.Next(ctx)
		for _, r := range responses {
			o.overtaken = o.overtaken || r.Compact != 0
			if r.Batch != nil {
				o.events = append(o.events, r.Batch.Events...)
			}
		}
		switch {
		case err == nil:
		case !errors.Is(err, context.Canceled):
			o.t.Fatal(err)
		case !o.stream.Lagging():
			return
		}
	}
}

// check compares the events with all changes.
func (o *observer) check(want []kv.Event) {
	o.t.Helper()
	o.poll()
	if o.overtaken && len(o.events) < len(want) {
		want = want[:len(o.events)]
	}
	if diff := cmp.Diff(want, o.events, sameResults, cmpopts.IgnoreFields(kv.Event{}, "Prev")); diff != "" {
		o.t.Errorf("events: want -, got +\n%s", diff)
		return
	}
	for i := range o.events { // of a compacted revision the previous pairs may be missing
		if prev := o.events[i].Prev; prev != nil && !cmp.Equal(prev, want[i].Prev, sameResults) {
			o.t.Errorf("event %d: %+v was before, want %+v", i, prev, want[i].Prev)
		}
	}
}

// leaseKeys returns the keys attached to a lease.
func (b *bench) leaseKeys(id kv.LeaseID) (keys []string) {
	b.t.Helper()
	if err := b.m.VisitLeaseKeys(id, func(key []byte) bool { keys = append(keys, string(key)); return true }); err != nil {
		b.t.Fatal(err)
	}
	return keys
}
