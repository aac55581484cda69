package workload

import (
	"errors"

	"github.com/quorate/quorate/api/quoratepb"
	"github.com/quorate/quorate/internal/kv"
	"github.com/quorate/quorate/internal/nativeclient"
)

// A liar is a native client with a key of its own that keeps no rule of the fast path: under one id it offers to some voters a
// write of its own key and to others a write of a key of an honest client, it leaves voters out, and its stamps and terms are
// arbitrary. The laws are the same: promised results are the applied ones.

const (
	firstLiar = firstNative + 500
	liarsKey  = "liar"
	victimKey = "victim" // no history is kept of it: liars may write any value there
)

// startLiars starts the clients that lie.
func (l *Load) startLiars() {
	for id := range l.mix.Liars {
		n := &native{
			client: client{load: l, id: firstLiar + id, by: l.person(id), known: map[string]kv.Revision{}},
			clock:  l.world.Clock(firstLiar + id), far: 1, lies: true,
		}
		n.begin()
		l.natives = append(l.natives, n)
		l.world.After(l.pause(), n.next)
		l.world.After(l.pause(), func() { l.beVictim(0) })
	}
}

// beVictim writes the key that liars write, if it is unchanged since it was last seen: so the reply shows the value before.
func (l *Load) beVictim(seen kv.Revision) {
	t := l.target()
	if l.stopped || t == nil {
		l.world.After(l.pause(), func() { l.beVictim(seen) })
		return
	}
	over := false
	next := func(r kv.Result, err error) {
		if over {
			return
		}
		over = true
		if err == nil && r.Err == nil {
			seen = r.Revision
		}
		l.world.After(l.pause(), func() { l.beVictim(seen) })
	}
	put := kv.Op{Put: &kv.PutOp{Key: []byte(victimKey), Value: []byte("honest")}}
	abandon := t.Propose(l.person(0), &kv.Command{Txn: &kv.TxnOp{
		Compares: []kv.Compare{{
			Key: []byte(victimKey), Target: kv.CompareMod, Result: kv.CompareEqual, Number: int64(seen),
		}},
		Then: []kv.Op{put}, Else: []kv.Op{put},
	}}, next)
	l.world.After(l.mix.Patience, func() {
		if !over {
			abandon()
			next(kv.Result{}, errNoAnswer)
		}
	})
}

// errNoAnswer ends the wait for an answer.
var errNoAnswer = errors.New("sim: no answer")

// lie offers one write, in different forms to different voters (twist).
func (n *native) lie() {
	l := n.load
	var call *nativeclient.Call
	over := false
	end := func() {
		if !over {
			over = true
			l.world.After(0, n.next)
		}
	}
	call, _ = n.writer.table.Add(quoratepb.Proposal_KIND_PUT, n.told(liarsKey), func() { // it fails only after Close
		l.world.After(l.pause(), end)
	})
	l.world.After(l.mix.Patience, func() {
		if n.writer.table.Abandon(call) {
			end()
		}
	})
}

// told returns a put of a key.
func (n *native) told(key string) []byte {
	command := &kv.Command{Put: &kv.PutOp{Key: []byte(key), Value: n.value()}}
	return command.Append(nil)
}

// twist returns the offer that a voter gets in place of the real one; nil: none.
func (n *native) twist(r *quoratepb.ProposeRequest) *quoratepb.ProposeRequest {
	rng := n.load.rng
	due := r.Due
	switch rng.IntN(40) {
	case 0:
		return nil
	case 1:
		due = rng.Uint64()
	case 2:
		next := &quoratepb.TermConfig{Term: r.TermConfig.GetTerm() + 1}
		return &quoratepb.ProposeRequest{TermConfig: next, Records: r.Records}
	default:
		return r
	case 3, 4, 5, 6, 7, 8, 9, 10: // about one voter of five
	}
	other := &quoratepb.ProposeRequest{TermConfig: r.TermConfig, Due: due}
	for _, p := range r.Records {
		other.Records = append(other.Records, &quoratepb.Proposal{
			Session: p.Session, Sequence: p.Sequence, Kind: p.Kind, Request: n.told(victimKey),
		})
	}
	return other
}
