package workload

import (
	"encoding/binary"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/consensus/tally"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/member/clients"
	"github.com/quorate/quorate/internal/nativeclient"
	"github.com/quorate/quorate/internal/sim/check"
	"github.com/quorate/quorate/internal/sim/permits"
)

const (
	firstNative = 2000 // number of the first native client in the trace
	// nativePatience is how many times as long as other clients a native client waits, so that nearly all of its writes are
	// answered, whatever happens.
	nativePatience = 10
	// nativeLife is the mean number of writes after which a native client dies and another one replaces it.
	nativeLife = 100
)

// native is a client that chooses the ids of its writes, as package client does, with the same code (writer).
type native struct {
	client
	clock  func() time.Time
	far    time.Duration
	lives  int
	writer *writer
	owner  clients.Owner
	flying []*flight // writes that have no answer yet
	lies   bool
}

// flight is one write of a native client.
type flight struct {
	call *nativeclient.Call
	end  func(answered bool)
	over bool
	due  bool // it must be answered now
}

// startNatives starts the native clients, the liars, and the thief, which does not have their keys.
func (l *Load) startNatives() {
	for id := range l.mix.Natives {
		l.natives = append(l.natives, startNative(l, id))
	}
	l.startLiars()
	if l.mix.Thief && len(l.natives) > 0 {
		t := &thief{load: l}
		l.world.After(thiefPauses*l.pause(), t.next)
	}
}

func startNative(l *Load, id int) *native {
	n := &native{
		client: client{load: l, id: firstNative + id, by: l.person(id), known: map[string]kv.Revision{}},
		clock:  l.world.Clock(id),
	}
	switch {
	case !l.mix.Direct:
		n.far = time.Hour // a member near it makes the offers
	case l.rng.IntN(4) == 0:
		n.far = nativeclient.FarAway
	}
	n.begin()
	for range 1 + l.rng.IntN(2) { // concurrent writes
		l.world.After(l.pause(), n.next)
	}
	return n
}

// begin begins a life of the client, with a key of its own.
func (n *native) begin() {
	n.lives++
	key := binary.BigEndian.AppendUint64(make([]byte, 0, quoratepb.ClientKeyBytes), uint64(1<<60+n.lives<<20+n.id-firstNative))
	key = append(key, make([]byte, quoratepb.ClientKeyBytes-len(key))...)
	n.owner, _ = clients.OwnerOf(key, n.load.mix.Owners) // the key has full length
	n.writer = newWriter(n.load, n.by, n.logIn, key, n.clock, n.far)
	if n.lies {
		n.writer.twist = n.twist
	}
}

// end ends a life: the outcomes of unanswered writes stay unknown. With farewell, the client retires its sessions.
func (n *native) end(farewell bool) {
	n.writer.close(farewell)
	n.load.gone[consensus.MemberID(n.writer.table.ID())] = n.load.world.Now()
	flying := n.flying
	n.flying = nil
	for _, f := range flying {
		f.end(false)
	}
}

func (n *native) again() {
	if !n.load.stopped {
		n.load.world.After(n.load.pause(), n.next)
	}
}

// next does the next write.
func (n *native) next() {
	l := n.load
	if l.stopped {
		return
	}
	if l.rng.IntN(nativeLife) == 0 && !l.expects {
		n.end(l.rng.IntN(2) == 0)
		n.begin()
	}
	if n.by.MustLogin() {
		if t := l.target(); t != nil {
			n.logIn(t, n.again)
			return
		}
	}
	switch {
	case n.lies:
		n.lie()
	case l.rng.IntN(3) == 0:
		n.swap()
	default:
		n.put()
	}
}

func (n *native) put() {
	l, key, value, begin := n.load, n.load.key(), n.value(), n.load.world.Now()
	command := &kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: value}}
	n.write("native put "+key+" "+string(value), quoratepb.Proposal_KIND_PUT, command, func(r kv.Result, answered bool) {
		l.suite.Record(check.Operation{Client: n.id, Kind: check.OpPut, Key: key, Value: string(value), Begin: begin,
			End: l.world.Now(), Answered: answered, Done: true, Revision: r.Revision})
		delete(n.known, key)
		if answered {
			n.acknowledged(key, value, begin, r)
		}
	})
}

// swap is a compare-and-swap. It must be answered with success if it succeeded, also by a member that was asked a second time.
func (n *native) swap() {
	l, key, value, begin := n.load, n.load.key(), n.value(), n.load.world.Now()
	expect := n.known[key]
	command := &kv.Command{Txn: &kv.TxnOp{
		Compares: []kv.Compare{{Key: []byte(key), Target: kv.CompareMod, Result: kv.CompareEqual, Number: int64(expect)}},
		Then:     []kv.Op{{Put: &kv.PutOp{Key: []byte(key), Value: value}}},
	}}
	n.write("native cas "+key+" "+string(value), quoratepb.Proposal_KIND_TXN, command, func(r kv.Result, answered bool) {
		done := answered && r.Txn != nil && r.Txn.Succeeded
		l.suite.Record(check.Operation{Client: n.id, Kind: check.OpCAS, Key: key, Value: string(value), Expect: expect,
			Begin: begin, End: l.world.Now(), Answered: answered, Done: done, Revision: r.Revision})
		delete(n.known, key)
		if done {
			n.acknowledged(key, value, begin, r)
		} else if answered {
			l.suite.Wrote(begin, l.world.Now(), r.Revision, key, false)
		}
	})
}

func (n *native) acknowledged(key string, value []byte, begin time.Duration, r kv.Result) {
	l := n.load
	if r.Err != nil {
		l.suite.Report("state-machine", fmt.Sprintf("a native write of %q was rejected: %v", key, r.Err))
		return
	}
	n.known[key] = r.Revision
	l.suite.Acks.Add(key, string(value), r.Revision)
	l.suite.Wrote(begin, l.world.Now(), r.Revision, key, true)
}

// write writes until it has an answer, or for long. done is not called if it is known that nothing happened.
func (n *native) write(
	what string, kind quoratepb.Proposal_Kind, command *kv.Command, done func(r kv.Result, answered bool),
) {
	l := n.load
	l.Ops++
	l.world.Operation(n.id, what)
	f := &flight{}
	f.end = func(answered bool) {
		if f.over {
			return
		}
		f.over = true
		n.ended(f.call, command, answered, done)
		n.again()
	}
	owner := n.owner
	f.call, _ = n.writer.table.Add(kind, command.Append(nil), func() { // it fails after Close alone
		n.decided(f.call, owner)
		l.world.After(time.Duration(l.rng.IntN(1000))*time.Microsecond, func() { f.end(true) })
	})
	live := n.flying[:0]
	for _, other := range n.flying {
		if !other.over {
			live = append(live, other)
		}
	}
	n.flying = append(live, f)
	table := n.writer.table
	l.world.After(nativePatience*l.mix.Patience, func() {
		if !l.expects && table.Abandon(f.call) {
			f.end(false)
		}
	})
}

// ExpectAnswers makes native clients wait for all that they have asked, however long that takes.
func (l *Load) ExpectAnswers() {
	l.expects, l.expected = true, l.world.Now()
	for _, n := range l.natives {
		for _, f := range n.flying {
			f.due = !f.over
		}
	}
}

// Owed returns a native client that has no answer yet to what it had asked when ExpectAnswers was called. One that no member
// lets in, because its login failed, is owed none.
func (l *Load) Owed() (client int, owed bool) {
	for _, n := range l.natives {
		for _, f := range n.flying {
			if f.due && !f.over && (n.writer.connected() || n.writer.mayConnect() && !n.by.Barred()) {
				return n.id, true
			}
		}
	}
	return 0, false
}

// decided tells the checkers of a write that was decided, and is perhaps applied nowhere yet.
func (n *native) decided(c *nativeclient.Call, owner clients.Owner) {
	if c.Decided == nil {
		return
	}
	d := c.Decided.Decision
	d.Proposal.Session.Member = owner.ID
	n.load.suite.FastDecided(consensus.MemberID(c.Decided.Leader), []tally.Decision{d})
	n.load.Direct++
}

// ended handles the outcome of a write.
func (n *native) ended(c *nativeclient.Call, command *kv.Command, answered bool, done func(r kv.Result, answered bool)) {
	l := n.load
	var r kv.Result
	switch {
	case !answered || c.InDoubt:
		answered = false
	case status.Code(c.Err) == codes.OutOfRange: // it was applied, and nobody knows any more what came of it
		answered = false
	case c.Err != nil:
		n.refused(c.Err, command)
		return
	default:
		var err error
		if r, err = kv.DecodeResult(c.Response); err != nil {
			l.suite.Report("state-machine", "a response does not decode: "+err.Error())
			return
		}
	}
	l.world.Answer(n.id, answered, r.Revision)
	if answered {
		l.Answered++
	} else {
		l.Unanswered++
	}
	if !answered || !l.overQuota(command, &r) {
		done(r, answered)
	}
}

// refused takes the refusal of a write: it never happens.
func (n *native) refused(why error, command *kv.Command) {
	l := n.load
	switch {
	case n.by != nil && permits.ForWantOfPermission(why):
		n.by.Note(why)
		l.Denied++
	case status.Code(why) != codes.ResourceExhausted:
		l.suite.Report("state-machine", fmt.Sprintf("a native write was refused: %v", why))
	default:
		l.Refused++
	}
	l.suite.Acks.Refused(command)
}

// thiefPauses is how many times longer a thief pauses than other clients.
const thiefPauses = 4

// thief is a client that knows the ids of other clients, their sessions and the numbers of their writes, as every reader of
// logs does. It does not have their keys, and makes keys of their ids.
type thief struct{ load *Load }

// next tries to write in place of a client's next write. If that succeeds, the client learns that its own write is done,
// although no member has applied it.
func (t *thief) next() {
	l := t.load
	if l.stopped {
		return
	}
	l.world.After(thiefPauses*l.pause(), t.next)
	victim, target := l.natives[l.rng.IntN(len(l.natives))], l.target()
	last := victim.writer.last
	if target == nil || last == nil {
		return
	}
	key := make([]byte, quoratepb.ClientKeyBytes)
	binary.BigEndian.PutUint64(key, uint64(victim.owner.ID))
	command := &kv.Command{Put: &kv.PutOp{Key: []byte("stolen"), Value: []byte("by a thief")}}
	stream := target.Stream(l.person(0), key, func(r *quoratepb.ProposeResponse) {
		for _, a := range r.Answers {
			if a.Verdict == quoratepb.Answer_VERDICT_APPLIED {
				l.suite.Report("session", fmt.Sprintf("somebody without the key of %v wrote in its session %d",
					victim.owner.ID, a.Session))
			}
		}
	}, func() {})
	stream.Send(&quoratepb.ProposeRequest{Proposals: []*quoratepb.Proposal{{
		Session: last.Session, Sequence: last.Sequence + 1, Kind: quoratepb.Proposal_KIND_PUT, Request: command.Append(nil),
	}}})
	l.world.After(l.mix.Patience, stream.Close)
}

// Linked returns the member to which a native client has had a stream all the time since then, in one life of that member.
func (l *Load) Linked(client consensus.MemberID, since time.Duration) (to Target, linked bool) {
	for _, n := range l.natives {
		if link := n.writer.link; link != nil && link.up && !link.over && consensus.MemberID(link.client) == client &&
			link.since < since && link.target.Life() == link.life {
			return link.target, true
		}
	}
	return nil, false
}

// Gone reports whether a native client had gone at that time.
func (l *Load) Gone(client consensus.MemberID, at time.Duration) bool {
	since, gone := l.gone[client]
	return gone && since <= at
}
