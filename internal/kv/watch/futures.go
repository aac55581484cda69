package watch

import "container/heap"

// futures is a heap of the watchers of a stream that start after the published revision, the earliest first.
type futures []*watcher

func (f futures) Len() int           { return len(f) }
func (f futures) Less(i, j int) bool { return f[i].start < f[j].start }
func (f futures) Swap(i, j int) {
	f[i], f[j] = f[j], f[i]
	f[i].future, f[j].future = i, j
}

// Push implements heap.Interface.
func (f *futures) Push(x any) {
	w := x.(*watcher)
	w.future = len(*f)
	*f = append(*f, w)
}

// Pop implements heap.Interface.
func (f *futures) Pop() any {
	last := len(*f) - 1
	w := (*f)[last]
	(*f)[last] = nil
	*f = (*f)[:last]
	w.future = nowhere
	return w
}

// sleepers is a heap of the streams that have futures, the one with the earliest first.
type sleepers []*Stream

func (l sleepers) Len() int           { return len(l) }
func (l sleepers) Less(i, j int) bool { return l[i].futures[0].start < l[j].futures[0].start }
func (l sleepers) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].asleep, l[j].asleep = i, j
}

// Push implements heap.Interface.
func (l *sleepers) Push(x any) {
	s := x.(*Stream)
	s.asleep = len(*l)
	*l = append(*l, s)
}

// Pop implements heap.Interface.
func (l *sleepers) Pop() any {
	last := len(*l) - 1
	s := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	s.asleep = nowhere
	return s
}

// sleep puts a stream whose futures have changed in its place among the sleepers. Hub.mu is held.
func (h *Hub) sleep(s *Stream) {
	switch {
	case s.asleep == nowhere && len(s.futures) > 0:
		heap.Push(&h.sleepers, s)
	case s.asleep != nowhere && len(s.futures) > 0:
		heap.Fix(&h.sleepers, s.asleep)
	case s.asleep != nowhere:
		// The stream has no key any more, so the heap could not compare it: the last one takes its place.
		at, last := s.asleep, len(h.sleepers)-1
		h.sleepers.Swap(at, last)
		h.sleepers.Pop()
		if at < last {
			heap.Fix(&h.sleepers, at)
		}
	}
}

// start takes up to most watchers whose start was published out of the futures, and puts the parties that slept behind.
// Hub.mu is held.
func (s *Stream) start(most int) (started int) {
	h := s.hub
	for ; started < most && s.due(); started++ {
		if w := heap.Pop(&s.futures).(*watcher); w.party.asleep() {
			h.stand(w.party)
		}
	}
	if started > 0 {
		h.sleep(s)
		s.signal()
	}
	return started
}

// due reports whether the start of some future watcher was published.
func (s *Stream) due() bool { return len(s.futures) > 0 && s.futures[0].start <= s.hub.rev }

// nowhere is the place of a watcher in a list that it is not in.
const nowhere = -1
