package workload

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/clients"
	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/sim/check"
)

const (
	// nativeWrites is how many writes a native client does in a session.
	nativeWrites = 12
	// nativeAttempts is how often it asks before it gives a write up, with its session.
	nativeAttempts = 30
	firstNative    = 2000 // the trace's number of the first of them
)

// native is a client that names its writes itself. What is not answered it asks another member for, or two at once, until it
// knows: so that nearly all of its writes are answered, whatever happens, and each of them must have happened once.
type native struct {
	client
	key      []byte
	owner    clients.Owner
	session  consensus.SessionID // zero while none is open
	above    uint64              // the number of its last
	sequence uint64
	offers   *write // the one on its way, if clients offer writes to all voters
}

// write is one write of a native client, or the opening of a session.
type write struct {
	id       consensus.ProposalID
	command  *kv.Command
	attempts int
	over     bool
	abandons []func()
	offered  *offering // to all voters at once, first
	done     func(r kv.Result, answered bool)
}

// startNatives starts the native clients, and who has not got their keys.
func (l *Load) startNatives() {
	var natives []*native
	for id := range l.mix.Natives {
		natives = append(natives, startNative(l, id))
	}
	if l.mix.Thief && len(natives) > 0 {
		t := &thief{load: l, victims: natives}
		l.world.After(thiefPauses*l.pause(), t.next)
	}
}

func startNative(l *Load, id int) *native {
	n := &native{client: client{load: l, id: firstNative + id, known: map[string]kv.Revision{}}}
	n.key = binary.BigEndian.AppendUint64(make([]byte, 0, quoratepb.ClientKeyBytes), uint64(1<<60+id))
	n.key = append(n.key, make([]byte, quoratepb.ClientKeyBytes-len(n.key))...)
	n.owner, _ = clients.OwnerOf(n.key, l.mix.Owners) // the key is whole
	if l.mix.Direct {
		l.world.Listen(n.owner.ID, n.hear)
	}
	l.world.After(l.pause(), n.next)
	return n
}

func (n *native) again() {
	if !n.load.stopped {
		n.load.world.After(n.load.pause(), n.next)
	}
}

// next opens a session or writes.
func (n *native) next() {
	l := n.load
	switch {
	case l.stopped:
	case n.session == (consensus.SessionID{}) || n.sequence >= nativeWrites:
		n.open()
	case l.rng.IntN(3) == 0:
		n.swap()
	default:
		n.put()
	}
}

// open opens a session in the place of the one that is used up. An opening that is not answered may still come to pass, and
// end a later session: then this client is told that its session is gone.
func (n *native) open() {
	t := n.load.target()
	if t == nil {
		n.again()
		return
	}
	session := t.NextSession(n.owner.ID, n.above)
	w := &write{id: consensus.ProposalID{Session: session}, attempts: nativeAttempts, command: &kv.Command{
		SessionOpen: &kv.SessionOpenOp{Member: uint64(n.owner.ID), Number: session.Number},
	}}
	w.done = func(r kv.Result, answered bool) {
		n.session, n.sequence = consensus.SessionID{}, 0
		if answered && r.Err == nil {
			n.session, n.above = session, session.Number
		}
		n.again()
	}
	n.ask(w, t)
}

func (n *native) put() {
	l, key, value, begin := n.load, n.load.key(), n.value(), n.load.world.Now()
	command := &kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: value}}
	n.write("native put "+key+" "+string(value), command, func(r kv.Result, answered bool) {
		l.suite.Record(check.Operation{Client: n.id, Kind: check.OpPut, Key: key, Value: string(value), Begin: begin,
			End: l.world.Now(), Answered: answered, Done: true, Revision: r.Revision})
		delete(n.known, key)
		if answered {
			n.acknowledged(key, value, begin, r)
		}
	})
}

// swap must be told that it succeeded if it did, also by a member that was asked a second time.
func (n *native) swap() {
	l, key, value, begin := n.load, n.load.key(), n.value(), n.load.world.Now()
	expect := n.known[key]
	command := &kv.Command{Txn: &kv.TxnOp{
		Compares: []kv.Compare{{Key: []byte(key), Target: kv.CompareMod, Result: kv.CompareEqual, Number: int64(expect)}},
		Then:     []kv.Op{{Put: &kv.PutOp{Key: []byte(key), Value: value}}},
	}}
	n.write("native cas "+key+" "+string(value), command, func(r kv.Result, answered bool) {
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

// write names a command and asks for it until it is answered. done is not called if it is known that nothing happened.
func (n *native) write(what string, command *kv.Command, done func(r kv.Result, answered bool)) {
	l := n.load
	l.Ops++
	l.world.Operation(n.id, what)
	n.sequence++
	w := &write{id: consensus.ProposalID{Session: n.session, Sequence: n.sequence}, command: command}
	w.done = func(r kv.Result, answered bool) {
		if answered && aborted(r) {
			l.Refused++
			l.suite.Acks.Refused(command)
			n.again()
			return
		}
		if errors.Is(r.Err, kv.ErrSessionUnknown) || !answered {
			n.session, answered = consensus.SessionID{}, false
			if w.attempts == 1 && r.Err != nil {
				l.Refused++
				l.suite.Acks.Refused(command) // told by the log, of the only attempt: it never happens
				n.again()
				return
			}
		}
		l.world.Answer(n.id, answered, r.Revision)
		if answered {
			l.Answered++
		} else {
			l.Unanswered++
		}
		done(r, answered)
		n.again()
	}
	n.offers = w
	if !l.mix.Direct || l.rng.IntN(4) == 0 || !n.offer(w) {
		n.round(w)
	}
}

// round asks one member, or two, for a while.
func (n *native) round(w *write) {
	l := n.load
	if w.over {
		return
	}
	if w.attempts >= nativeAttempts {
		n.end(w, kv.Result{}, false)
		return
	}
	first := l.target()
	if first == nil {
		n.retry(w) // nobody is up
		return
	}
	w.attempts++
	n.ask(w, first)
	if second := l.target(); second != nil && l.rng.IntN(4) == 0 {
		w.attempts++
		n.ask(w, second)
	}
}

// ask asks one member. Who crashes, or takes too long, is given up, and another one is asked.
func (n *native) ask(w *write, t Target) {
	l, life, heard := n.load, t.Life(), false
	abandon := t.ProposeFor(n.key, w.id.Session.Number, w.id.Sequence, w.command, func(r kv.Result, err error) {
		heard = true
		l.world.After(time.Duration(l.rng.IntN(1000))*time.Microsecond, func() {
			if err == nil {
				n.end(w, r, true)
			} else {
				n.retry(w)
			}
		})
	})
	w.abandons = append(w.abandons, abandon)
	n.watch(t, life, func() bool { return w.over || heard }, func() {
		if l.rng.IntN(2) == 0 {
			abandon() // else it goes on there, as behind a stream that nobody knows to be dead
		}
		n.retry(w)
	})
}

// retry begins another round, after a pause.
func (n *native) retry(w *write) {
	n.load.world.After(n.load.pause(), func() { n.round(w) })
}

func (n *native) end(w *write, r kv.Result, answered bool) {
	if w.over {
		return
	}
	w.over = true
	for _, abandon := range w.abandons {
		abandon()
	}
	w.done(r, answered)
}

// thiefPauses is how many times longer a thief pauses than other clients.
const thiefPauses = 4

// thief is a client that knows the ids of other clients, their sessions and how far they have numbered their writes, as
// anybody may who reads logs. It does not have their keys, and makes keys of their ids.
type thief struct {
	load    *Load
	victims []*native
}

// next tries to write in the place of a client's next write. If that succeeds, the client will be told that its own write
// is done, which nobody has applied.
func (t *thief) next() {
	l := t.load
	if l.stopped {
		return
	}
	l.world.After(thiefPauses*l.pause(), t.next)
	victim, target := t.victims[l.rng.IntN(len(t.victims))], l.target()
	if target == nil || victim.session.Number == 0 {
		return
	}
	key := make([]byte, quoratepb.ClientKeyBytes)
	binary.BigEndian.PutUint64(key, uint64(victim.owner.ID))
	session := victim.session
	command := &kv.Command{Put: &kv.PutOp{Key: []byte("stolen"), Value: []byte("by a thief")}}
	target.ProposeFor(key, session.Number, victim.sequence+1, command, func(r kv.Result, err error) {
		if err == nil && r.Err == nil {
			l.suite.Report("session",
				fmt.Sprintf("somebody without the key of %v wrote in its session %v", victim.owner.ID, session))
		}
	})
}
