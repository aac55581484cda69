package apply

import "github.com/quorate/quorate/internal/kv"

// maxEventBytes bounds the events of one batch that are kept for watchers, with their previous pairs: Options.EventBytes may be
// less.
const maxEventBytes = 32 << 20

// eventBuffer collects the events of a batch for the watchers.
type eventBuffer struct {
	most   int  // bytes
	wanted bool // some watcher may get them
	events []kv.Event
	bytes  int          // keys and values of events, and of the pairs before them
	room   fixedAccount // of the command that is executed
}

// newEventBuffer returns a buffer of most bytes: zero, or more than maxEventBytes, means maxEventBytes.
func newEventBuffer(most int) eventBuffer {
	if most <= 0 {
		most = maxEventBytes
	}
	return eventBuffer{most: min(most, maxEventBytes)}
}

func (b *eventBuffer) begin(wanted bool) { *b = eventBuffer{most: b.most, wanted: wanted} }

// add adds the events of a command. Beyond most it gives up.
func (b *eventBuffer) add(events []kv.Event) {
	if !b.wanted {
		return
	}
	for i := range events {
		b.bytes += len(events[i].KV.Key) + len(events[i].KV.Value)
		if prev := events[i].Prev; prev != nil {
			b.bytes += len(prev.Value)
		}
	}
	if b.bytes > b.most {
		b.giveUp()
		return
	}
	b.events = append(b.events, events...)
	showBefore(b.events[len(b.events)-len(events):])
}

// showBefore sets the previous pairs of one command's events to those from before the command, as watches deliver them: as in
// etcd, a pair that the command itself wrote and replaced is not delivered. The chain covers it.
func showBefore(events []kv.Event) {
	var first map[string]*kv.KeyValue // before the first change of each key
	for i := range events {
		e := &events[i]
		if e.Prev == nil || e.Prev.ModRevision != e.KV.ModRevision {
			continue
		}
		if first == nil {
			first = make(map[string]*kv.KeyValue, len(events))
			for j := range events {
				if key := string(events[j].KV.Key); first[key] == nil && events[j].Prev != nil {
					first[key] = events[j].Prev
				}
			}
		}
		e.Prev = nil
		if before := first[string(e.KV.Key)]; before.ModRevision != e.KV.ModRevision {
			e.Prev = before
		}
	}
}

// giveUp keeps no events of this batch: watchers read theirs from the store.
func (b *eventBuffer) giveUp() { b.wanted, b.events = false, nil }

// command begins a command.
func (b *eventBuffer) command() { b.room.left = b.most - b.bytes }

// account bounds the previous values that the deletions of a command keep, all together: to nothing, if there is no watcher.
func (b *eventBuffer) account() *fixedAccount {
	if !b.wanted {
		b.room.left = 0
	}
	return &b.room
}
