package apply_test

import (
	"bytes"
	"math/rand"
	"testing"

	"github.com/quorate/quorate/internal/auth"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
)

// guesser compares the results of Evaluate with those of Apply, on one machine after the other.
type guesser struct {
	t   *testing.T
	rng *rand.Rand
	g   *generator
	b   *bench
	id  func(sequence uint64) consensus.ProposalID

	asked, told map[string]int // entries by kind of their command
	rejected    int            // entries that Apply rejected
	compacted   kv.Revision    // before the entry of the round was applied
	secured     bool
}

const guessRounds = 5000

// TestMachine_Evaluate_differential: every result of Evaluate equals that of Apply, bit for bit, over random states and with
// random commands before the entry in the log that do not conflict with it.
func TestMachine_Evaluate_differential(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	s := &guesser{t: t, rng: rand.New(rand.NewSource(seed)), asked: map[string]int{}, told: map[string]int{}}
	for round := range guessRounds {
		if round%200 == 0 {
			s.begin(round%1000 == 0, round%400 == 0)
		}
		if s.round(); t.Failed() {
			t.Fatalf("seed %d, round %d", seed, round)
		}
	}
	s.end()
	t.Logf("told %v of %v, %d were rejected", s.told, s.asked, s.rejected)
	asked, told := 0, 0
	for kind, n := range s.asked {
		asked, told = asked+n, told+s.told[kind]
	}
	if told*10 < asked*3 {
		t.Errorf("Evaluate was sure of %d of %d", told, asked)
	}
	for _, kind := range []string{"put", "delete", "txn", "nested txn"} {
		if s.told[kind] == 0 {
			t.Errorf("Evaluate was never sure of a %s", kind)
		}
	}
	for _, kind := range []string{"grant", "other"} {
		if s.told[kind] != 0 || s.asked[kind] == 0 {
			t.Errorf("Evaluate was sure of %d of %d, %s, which bear an unknown revision", s.told[kind], s.asked[kind], kind)
		}
	}
	if s.rejected == 0 {
		t.Error("no entry was rejected")
	}
}

func (s *guesser) begin(lsm, secured bool) {
	s.end()
	s.secured = secured
	s.b = newBenchOn(s.t, lsm)
	s.g = &generator{rng: s.rng, revision: 1, sequence: map[consensus.SessionID]uint64{}}
	s.id = openSession(s.b, 9, 1)
	if s.secured {
		enableAuth(s.b)
	}
}

func (s *guesser) end() {
	if s.b != nil {
		if err := s.b.eng.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

// random appends a command to the log.
func (s *guesser) random(cmd kv.Command) consensus.Entry {
	if s.secured {
		cmd.By = []auth.Credentials{asRoot, asRoot, asAlice, asAlice, {}}[s.rng.Intn(5)]
	}
	return *s.b.entry(cmd)
}

// state gives the store keys and leases, and sometimes alarms.
func (s *guesser) state() {
	for range 1 + s.rng.Intn(4) {
		cmd := s.g.command()
		if s.rng.Intn(3) == 0 {
			cmd = kv.Command{Put: s.g.putOp()}
		}
		s.b.apply(s.random(cmd))
	}
	if s.secured && s.rng.Intn(4) == 0 {
		kind := []auth.Kind{auth.GrantPermission, auth.RevokePermission}[s.rng.Intn(2)]
		granted := auth.Permission{Access: auth.Access(s.rng.Intn(3)), Key: s.g.key(), End: []byte{0}}
		s.b.do(kv.Command{Auth: &auth.Change{Kind: kind, Role: "some", Permission: granted}, By: asRoot})
	}
	for id := kv.LeaseID(1); id < 4; id++ {
		if s.rng.Intn(4) == 0 {
			s.b.do(grant(id))
		}
	}
	if s.rng.Intn(2) == 0 {
		s.b.do(kv.Command{Alarm: &kv.AlarmOp{}}) // disarm all
	}
	if s.rng.Intn(8) == 0 {
		if _, err := s.b.m.Store().CompactStep(3); err != nil {
			s.t.Fatal(err)
		}
	}
	s.g.revision = s.b.m.Store().Revision()
}

// apart draws commands that do not conflict with footprint f.
func (s *guesser) apart(f *consensus.Footprint) (log []consensus.Entry) {
	for range s.rng.Intn(12) {
		cmd := s.g.command()
		if other := kv.FootprintOf(&cmd); !other.Conflicts(f) {
			log = append(log, s.random(cmd))
		}
	}
	return log
}

func (s *guesser) round() {
	s.state()
	cmd := s.g.command()
	f := kv.FootprintOf(&cmd)
	before := s.apart(&f)
	e := s.random(cmd)
	e.Proposal = s.id(uint64(e.Index) + 2)
	e.ExactRevision = uint64(s.g.revision) + uint64(len(before)) + 1 + uint64(s.rng.Intn(3))
	after := s.random(s.g.command()) // it may conflict with e
	done := 0
	if len(before) > 0 {
		done = s.rng.Intn(len(before) + 1)
	}
	if done > 0 {
		s.b.apply(before[:done]...)
	}
	guess, ok := s.b.m.Evaluate(&e)
	s.compacted = s.b.m.Store().CompactRevision()
	results := s.b.apply(append(append(before[done:], e), after)...)
	s.check(&e, &cmd, &guess, &results[len(before)-done], ok)
}

func (s *guesser) check(e *consensus.Entry, cmd *kv.Command, guess, result *kv.Result, ok bool) {
	s.t.Helper()
	kind := kindOf(cmd)
	s.asked[kind]++
	want := result.Append(nil)
	if result.Err != nil {
		s.rejected++
	}
	if ok {
		s.told[kind]++
		if got := guess.Append(nil); !bytes.Equal(got, want) {
			s.t.Errorf("entry %+v\n%+v\nEvaluate %x\nApply    %x", e, cmd, got, want)
		}
		if guess.Revision != kv.Revision(e.ExactRevision) {
			s.t.Errorf("entry %+v is evaluated at %d", e, guess.Revision)
		}
	}
	kept, there := s.b.m.Evaluate(e)
	open := s.b.m.SessionOpen(e.Proposal.Session)
	if atExact := result.Err == nil && result.Revision == kv.Revision(e.ExactRevision); there != (atExact && open) &&
		(there || s.b.m.Store().CompactRevision() == s.compacted) { // it is forgotten only with its history
		s.t.Errorf("entry %+v gave %+v and is known: %v", e, result, there)
	}
	if there && !bytes.Equal(kept.Append(nil), want) {
		s.t.Errorf("entry %+v gave %x, and %x is kept", e, want, kept.Append(nil))
	}
	if !open {
		s.id = openSession(s.b, 9, uint64(e.Index))
	}
}

func kindOf(cmd *kv.Command) string {
	switch {
	case cmd.Put != nil:
		return "put"
	case cmd.Delete != nil:
		return "delete"
	case cmd.LeaseGrant != nil:
		return "grant"
	case cmd.Txn == nil:
		return "other"
	}
	for _, ops := range [][]kv.Op{cmd.Txn.Then, cmd.Txn.Else} {
		for i := range ops {
			if ops[i].Txn != nil {
				return "nested txn"
			}
		}
	}
	return "txn"
}

// exact appends a command with an exact revision to the log.
func (b *bench) exact(id consensus.ProposalID, rev uint64, cmd kv.Command) consensus.Entry {
	e := b.entry(cmd)
	e.Proposal, e.ExactRevision = id, rev
	return *e
}

func TestMachine_Evaluate_cases(t *testing.T) {
	key := func(s string) *kv.PutOp { return &kv.PutOp{Key: []byte(s), Value: []byte("n")} }
	prev := func(s string) *kv.PutOp { return &kv.PutOp{Key: []byte(s), PrevKV: true} }
	at := func(s string, rev kv.Revision) kv.Op { return kv.Op{Range: &kv.RangeOp{Key: []byte(s), Revision: rev}} }
	ops := func(ops ...kv.Op) kv.Command { return txn(kv.TxnOp{Then: ops}) }
	write, gone := kv.Op{Put: key("w")}, kv.Op{Delete: del("none", "").Delete}
	for _, c := range []struct {
		name string
		cmd  kv.Command
		want bool
	}{
		{"put", kv.Command{Put: key("a")}, true},
		{"put with the previous pair", kv.Command{Put: prev("a")}, true},
		{"put of a new key with the previous pair", kv.Command{Put: prev("n")}, true},
		{"put that keeps a value", kv.Command{Put: &kv.PutOp{Key: []byte("a"), IgnoreValue: true}}, true},
		{"put that keeps no value", kv.Command{Put: &kv.PutOp{Key: []byte("n"), IgnoreValue: true}}, false},
		{"put under a lease", putLease("a", 5), true},
		{"put under no such lease", putLease("a", 6), false},
		{"delete", del("a", ""), true},
		{"delete of everything", kv.Command{Delete: &kv.DeleteOp{Key: []byte{0}, End: []byte{0}, PrevKV: true}}, true},
		{"delete of nothing", del("n", ""), false},
		{"empty txn", ops(), false},
		{"txn that reads", ops(rangeOp("a")), false},
		{"read, then write: at which revision it reads is unknown", ops(rangeOp("a"), write), false},
		{"delete nothing, then write", ops(gone, write), false},
		{"write, then read", ops(write, rangeOp("a"), gone), true},
		{"write, then read the same", ops(write, rangeOp("w")), false},
		{"write, then read the same in a nested txn", ops(write, kv.Op{Txn: &kv.TxnOp{Then: []kv.Op{rangeOp("w")}}}), false},
		{"write in a nested txn, then read", ops(kv.Op{Txn: &kv.TxnOp{Then: []kv.Op{write}}}, rangeOp("a")), true},
		{"write, then read the same in the past", ops(write, at("w", 2), at("a", 3)), true},
		{"write, then read what may be the future", ops(write, at("a", 5)), false},
		{"write twice", ops(write, write), true},
		{"write twice with the previous pair", ops(write, kv.Op{Put: prev("w")}), false},
		{"delete what was written", ops(write, kv.Op{Delete: del("w", "").Delete}), false},
		{"delete of a range, then read inside", ops(kv.Op{Delete: del("a", "c").Delete}, rangeOp("b")), false},
		{"a compare that holds", txn(kv.TxnOp{Compares: []kv.Compare{{Key: []byte("a"), Target: kv.CompareMod, Number: 3}},
			Then: []kv.Op{write}}), true},
		{"a compare that does not hold", txn(kv.TxnOp{Compares: []kv.Compare{{Key: []byte("a"), Number: 99}},
			Then: []kv.Op{write}}), false},
		{"a put in a txn under no such lease", ops(write, kv.Op{Put: putLease("b", 6).Put}), false},
		{"grant", grant(7), false},
		{"compaction", kv.Command{Compact: &kv.CompactOp{Revision: 2}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			id := openSession(b, 9, 1)
			b.do(grant(5))
			b.apply(*b.entry(put("a", "1")), *b.entry(put("a", "2")), *b.entry(put("b", "1")))
			e := b.exact(id(2), 8, c.cmd)
			guess, ok := b.m.Evaluate(&e)
			if ok != c.want {
				t.Errorf("sure: %v, want %v", ok, c.want)
			}
			if result := b.apply(e)[0]; ok && !bytes.Equal(guess.Append(nil), result.Append(nil)) {
				t.Errorf("Evaluate %+v, Apply %+v", guess, result)
			}
		})
	}
}

func TestMachine_Evaluate_refuses(t *testing.T) {
	b := newBench(t)
	id := openSession(b, 9, 1)
	b.do(put("a", "1"))
	refused := func(what string, change func(e *consensus.Entry)) {
		t.Helper()
		cmd := put("a", "2")
		e := consensus.Entry{Index: b.index + 1, Term: 1, Kind: consensus.EntryCommand, ExactRevision: 9, Proposal: id(2),
			Payload: cmd.Append(nil)}
		if change != nil {
			change(&e)
		}
		if res, ok := b.m.Evaluate(&e); ok != (change == nil) {
			t.Errorf("%s: %+v %v", what, res, ok)
		}
	}
	refused("one that is fine", nil)
	refused("a slow entry", func(e *consensus.Entry) { e.ExactRevision = 0 })
	refused("a noop", func(e *consensus.Entry) { e.Kind = consensus.EntryNoop })
	refused("a revision that the store has", func(e *consensus.Entry) { e.ExactRevision = 2 })
	refused("no proposal", func(e *consensus.Entry) { e.Proposal = consensus.ProposalID{} })
	refused("a session that is not open", func(e *consensus.Entry) { e.Proposal.Session.Number = 2 })
	refused("an entry that is applied, with no result", func(e *consensus.Entry) { e.Index = b.index })
	refused("a command of a later version", func(e *consensus.Entry) { e.Payload = []byte{9, 9} })
	refused("a proposal with a result", func(e *consensus.Entry) { e.Proposal = id(1) })
	b.abort(id(3))
	refused("a proposal that was aborted at the same revision", func(e *consensus.Entry) {
		e.Index, e.Proposal, e.ExactRevision = b.index, id(3), 2
	})
	b.open()
	refused("an entry that was applied before a restart", func(e *consensus.Entry) { e.Index = b.index })
	b.do(kv.Command{Alarm: &kv.AlarmOp{Activate: true, Member: 1, Kind: kv.AlarmNoSpace}})
	refused("no space", func(*consensus.Entry) {})
	b.open()
	refused("no space, opened again", func(*consensus.Entry) {})
}

// Ensure that no large answer is evaluated: it would be sent in addition to the proposal's own entry.
func TestMachine_Evaluate_large(t *testing.T) {
	b := newBench(t)
	id := openSession(b, 9, 1)
	b.fill(1)
	for i, size := range []struct {
		key  string
		told bool
	}{{"p/000", false}, {"small", true}} {
		b.do(put("small", "1"))
		rev := uint64(b.m.Store().Revision()) + 1
		e := b.exact(id(uint64(i)+2), rev, kv.Command{Put: &kv.PutOp{Key: []byte(size.key), PrevKV: true}})
		if res, told := b.m.Evaluate(&e); told != size.told {
			t.Errorf("%s: %+v %v", size.key, res, told)
		}
		b.apply(e)
		if res, told := b.m.Evaluate(&e); told != size.told {
			t.Errorf("%s, applied: %+v %v", size.key, res, told)
		}
	}
}
