package proposals

import (
	fastpath "github.com/quorate/quorate/internal/consensus/proposer"
	"github.com/quorate/quorate/internal/kv"
)

// maxFastBytes is up to which size a command is offered to all voters. A larger one costs more time on the wire, twice to each
// voter, than a round trip saves, and fills their pools.
const maxFastBytes = 64 << 10

// mayBeFast reports whether the result of a command can be known before it is applied, it changes keys, and whether that pays.
// Everything else answers with a revision that depends on what comes before it.
func mayBeFast(payload []byte) bool { return len(payload) <= maxFastBytes && kv.ChangesKeys(payload) }

// Won completes proposals that are decided and not applied here yet. They stay in their session, and are repeated under
// their id, until they are: the session must not end before.
func (p *Own) Won(wins []fastpath.Win) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range wins {
		q := p.named(wins[i].Proposal)
		if q == nil || q.committed || q.done == nil {
			continue
		}
		result, err := kv.DecodeResult(wins[i].Reply)
		if err != nil {
			continue // a leader of a later version: its entry will say the same
		}
		done := q.done
		q.done = nil
		p.open--
		p.openBytes -= len(q.payload)
		tell(done, result, RouteFast)
	}
}

// renew proposes under another id what was given up because nobody could tell whether it was still wanted. It has never
// been executed and never will be under the old one.
func (p *Own) renew(q *Pending) {
	q.committed = true
	if q.done == nil {
		return
	}
	again := &Pending{kind: q.kind, payload: q.payload, done: q.done, waiting: true, onlyOnce: q.onlyOnce}
	q.done, q.renewed = nil, again
	p.queue = append(p.queue, again)
}

// latest follows a proposal to the id that it has now.
func (q *Pending) latest() *Pending {
	for q.renewed != nil {
		q = q.renewed
	}
	return q
}
