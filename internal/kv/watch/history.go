package watch

import "github.com/quorate/quorate/internal/kv"

// history is the events of the last published revisions, without gaps, within a budget.
type history struct {
	limitBytes int
	bytes      int
	spans      []span
}

// span is one publication: revisions first to last and their events.
type span struct {
	first, last kv.Revision
	events      []kv.Event
	bytes       int
}

func (h *history) clear() {
	clear(h.spans)
	h.spans, h.bytes = h.spans[:0], 0
}

func (h *history) add(first, last kv.Revision, events []kv.Event) {
	if n := len(h.spans); n > 0 && h.spans[n-1].last+1 != first {
		h.clear()
	}
	s := span{first: first, last: last, events: events, bytes: sizeOf(events) + eventOverheadBytes}
	h.spans = append(h.spans, s)
	h.bytes += s.bytes
	drop := 0
	for h.bytes > h.limitBytes {
		h.bytes -= h.spans[drop].bytes
		h.spans[drop] = span{}
		drop++
	}
	h.spans = h.spans[drop:]
}

// since returns the publications from revision from on, cut after about limitBytes, and the revision after them; zero if from
// is older than the history.
func (h *history) since(from kv.Revision, limitBytes int) (found []span, next kv.Revision) {
	if len(h.spans) == 0 || from < h.spans[0].first || from > h.spans[len(h.spans)-1].last {
		return nil, 0
	}
	lo, hi := 0, len(h.spans)-1 // the last span that starts at or before from
	for lo < hi {
		if mid := (lo + hi + 1) / 2; h.spans[mid].first <= from {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	bytes := 0
	for hi = lo; hi < len(h.spans); hi++ {
		if bytes > 0 && bytes+h.spans[hi].bytes > limitBytes {
			break
		}
		bytes += h.spans[hi].bytes
		next = h.spans[hi].last + 1
	}
	return append([]span(nil), h.spans[lo:hi]...), next
}
