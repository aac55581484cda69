package watch

import (
	"github.com/quorate/quorate/internal/base/linked"
	"github.com/quorate/quorate/internal/kv"
)

// watcher is one watch of a stream. Guarded by hub.mu.
type watcher struct {
	party    *party
	id       int64
	start    kv.Revision // as asked for
	fragment bool
	gone     bool
	until    uint64 // responses queued later are not for it any more; guarded by stream.mu
	heard    uint64 // the tick of its stream during which it got a progress response

	slot, notify, future int // places in stream.watchers, stream.notified, stream.futures
}

// party is watchers of one stream that have the same interest and the same position. A published event is queued once for all
// of them, and missed events are read once; their stream makes a response for each. So an event costs the hub as much as there
// are streams to send it to, and not as there are watchers. It is in step if group is set, and behind if it is in its stream's
// list; if neither, its only watcher starts in the future. Guarded by Hub.mu.
type party struct {
	interest
	stream *Stream
	next   kv.Revision // the first revision it has not got; in step, everything up to hub.rev counts as got, too
	heard  uint64      // the tick of its stream during which it got events

	// Queued responses share the array of members, so no element of it is ever replaced: a new member is appended, and one that
	// leaves stays until half of all have left; then the others get a new array.
	members []*watcher
	live    int // of members

	refused bool // its next events need an overdraft, for which its stream waits

	listed linked.Place[party] // in hub.stepping or stream.behind, in one of them at most
	group  *group
	place  int // in group.parties
}

// partyWatchers bounds the watchers of a party, so that work for all of them is short.
const partyWatchers = 4096

// watcherBytes is the memory counted for a watcher: its places in all lists, and a party of its own.
const watcherBytes = 640

func (p *party) watcherBytes() int64 {
	return int64(watcherBytes + 2*(len(p.interest.start)+len(p.end)))
}

// standing identifies the parties of a stream that new watchers may join. One party has each standing; full ones have none.
type standing struct {
	interest interest
	next     kv.Revision // 0: in step
}

func (p *party) standing() standing {
	if p.group != nil {
		return standing{interest: p.interest}
	}
	return standing{interest: p.interest, next: p.next}
}

// add adds a watcher that is in no party.
func (p *party) add(w *watcher) {
	w.party = p
	p.members = append(p.members, w)
	p.live++
}

// remove takes a watcher out of p. Responses that are queued already still name it.
func (p *party) remove(w *watcher) {
	w.gone = true
	if p.live--; len(p.members) <= 2*p.live+8 {
		return
	}
	rest := make([]*watcher, 0, p.live)
	for _, w := range p.members {
		if !w.gone {
			rest = append(rest, w)
		}
	}
	p.members = rest
}

// absorb takes over the watchers of another party, which is in no list any more.
func (p *party) absorb(other *party) {
	for _, w := range other.members {
		if !w.gone {
			p.add(w)
		}
	}
	p.heard = max(p.heard, other.heard)
	other.members, other.live = nil, 0
}

// asleep reports whether the only watcher of p starts in the future.
func (p *party) asleep() bool { return p.group == nil && p.listed.List() == nil }
