package apply

import "github.com/quorate/quorate/internal/kv"

// maxEventBytes bounds the events of one batch that are kept for watchers, the pairs before them included.
const maxEventBytes = 32 << 20

// eventBuffer collects the events of a batch for the watchers.
type eventBuffer struct {
	wanted bool // somebody watches
	events []kv.Event
	bytes  int          // keys and values of events, and of the pairs before them
	room   fixedAccount // of the command that is executed
}

func (b *eventBuffer) begin(wanted bool) { *b = eventBuffer{wanted: wanted} }

// add takes the events of a command. Beyond maxEventBytes it gives up.
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
	if b.bytes > maxEventBytes {
		b.giveUp()
		return
	}
	b.events = append(b.events, events...)
}

// giveUp leaves the events of this batch to the watchers, which read what they want of them from the store.
func (b *eventBuffer) giveUp() { b.wanted, b.events = false, nil }

// command begins a command.
func (b *eventBuffer) command() { b.room.left = maxEventBytes - b.bytes }

// account bounds what the deletions of a command keep of what was before, all together: nothing, if nobody watches.
func (b *eventBuffer) account() *fixedAccount {
	if !b.wanted {
		b.room.left = 0
	}
	return &b.room
}
